use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use super::options::Machine;
use super::*;
use crate::protocol::DecisionKind;

fn machine() -> Machine {
    Machine { user_home: Some("/home/ada".into()), login: Some("ada".to_owned()), cwd: "/home/ada/work".into() }
}

fn from_environment(variables: &[(&str, &str)]) -> Result<Layer, ConfigError> {
    let known: BTreeMap<&str, &str> = variables.iter().copied().collect();
    environment::layer(|name| known.get(name).map(OsString::from))
}

fn from_file(text: &str) -> Result<Layer, ConfigError> {
    let home = tempfile::tempdir().expect("a directory");
    fs::write(home.path().join(file::FILE), text).expect("written");
    file::layer(home.path(), Some("/home/ada".as_ref()))
}

fn options(layer: Layer) -> Options {
    Options::resolve(layer, &machine()).expect("valid options")
}

fn check_file_refused(text: &str, words: &[&str]) {
    let error = from_file(text).expect_err(text).to_string();
    assert!(error.contains("config.toml"), "{error}");
    for word in words {
        assert!(error.contains(word), "{text}: {error}");
    }
}

/// Without any setting: the sim, its profile, five workers at once, nothing answered, nothing signed, notices on.
#[test]
fn defaults() {
    let options = options(Layer::default());
    assert_eq!(options.home, PathBuf::from("/home/ada/.agentcraft"));
    assert_eq!((options.profile.as_str(), options.port), ("sim", None));
    let settings = &options.settings;
    assert_eq!(settings.backend, BackendName::Sim);
    assert_eq!(settings.team.len(), 5);
    assert_eq!((settings.max_concurrent, settings.repo_poll_ms), (5, 10_000));
    assert!(!settings.sign_merges && settings.lead_review && settings.resume);
    assert_eq!(settings.merge_style, MergeStyle::Merge);
    assert!(!settings.auto_answer.demo && settings.auto_answer.kinds.is_empty());
    assert_eq!(settings.user_name, "Ada");
    assert_eq!((options.sim.speed, options.sim.seed, options.sim.ambient), (1.0, 7, true));
    assert!(!options.autostart && options.notify && !options.screen.read_only);
}

/// Flags win over the environment, the environment over the file, the file over the defaults; each for its own values.
#[test]
fn the_later_source_wins() {
    let file = from_file("workers = 2\nuser-name = 'File'\nport = 1\nrepo-poll-ms = 900").expect("a layer");
    let env =
        from_environment(&[("AGENTCRAFT_USER_NAME", "Env"), ("AGENTCRAFT_PORT", "2"), ("AGENTCRAFT_WORKERS", "")]);
    let flags = Layer { port: Some(3), ..Layer::default() };
    let options = options(flags.over(env.expect("a layer").over(file)));
    assert_eq!(options.port, Some(3));
    assert_eq!(options.settings.user_name, "Env");
    assert_eq!(
        options.settings.team,
        [AgentId::from("juniper"), AgentId::from("kit")],
        "an empty variable says nothing"
    );
    assert_eq!(options.settings.repo_poll_ms, 900);
}

use crate::protocol::AgentId;

/// Every key of the file is read.
#[test]
fn a_whole_file() {
    let layer = from_file(
        r#"
        backend = "sim"
        profile = "work"
        port = 0
        repos = ["/src/a", "~/b", "c"]
        workers = ["kit", "@Wren"]
        max-concurrent = 2
        ci = "make test"
        merge-style = "squash"
        sign-merges = true
        user-name = "Ada  L."
        lead-review = false
        resume = false
        repo-poll-ms = 500
        turn-timeout = "90m"
        notify = true
        log = "debug"
        auto-answer = ["question", "permission"]

        [sim]
        speed = 2
        seed = 9
        ambient = false

        [screen]
        ascii = true
        theme = "light"
        mouse = false
        color = false
        read-only = true

        [setup]
        "~/b" = "npm ci"
        "#,
    )
    .expect("a layer");
    let home = layer.repos.as_ref().and_then(|repos| repos.get(2)).expect("three").clone();
    assert!(home.is_absolute() && home.ends_with("c"), "{}", home.display());
    let expected = Layer {
        backend: Some(BackendName::Sim),
        profile: Some("work".to_owned()),
        port: Some(0),
        repos: Some(vec!["/src/a".into(), "/home/ada/b".into(), home]),
        workers: Some(Workers::Named(vec!["kit".into(), "wren".into()])),
        max_concurrent: Some(2),
        ci: Some("make test".to_owned()),
        merge_style: Some(MergeStyle::Squash),
        sign_merges: Some(true),
        user_name: Some("Ada L.".to_owned()),
        lead_review: Some(false),
        resume: Some(false),
        repo_poll_ms: Some(500),
        turn_timeout_ms: Some(90 * 60_000),
        notify: Some(true),
        verbosity: Some(Verbosity::Debug),
        auto_answer: Some(AutoAnswerWish::Kinds([DecisionKind::Question, DecisionKind::Permission].into())),
        speed: Some(2.0),
        seed: Some(9),
        ambient: Some(false),
        ascii: Some(true),
        theme: Some(Theme::Light),
        mouse: Some(false),
        color: Some(false),
        read_only: Some(true),
        setup: [(PathBuf::from("/home/ada/b"), "npm ci".to_owned())].into(),
        ..Layer::default()
    };
    assert_eq!(layer, expected);
    assert_eq!(from_file("").expect("an empty file"), Layer::default());
}

/// Unknown keys, wrong types and wrong values are refused by name, with the nearest right one.
#[test]
fn a_wrong_file_is_refused() {
    check_file_refused("worker = 2", &["no setting \"worker\"", "did you mean \"workers\"?"]);
    check_file_refused("max_concurrent = 2", &["did you mean \"max-concurrent\"?"]);
    check_file_refused("[sim]\nsped = 2", &["\"sim.sped\"", "did you mean \"sim.speed\"?"]);
    check_file_refused("allow-browser-origins = true", &["no setting"]);
    check_file_refused("port = 'high'", &["port: expected a number, found text"]);
    check_file_refused("port = 70000", &["is no port"]);
    check_file_refused("merge-style = 'rebase'", &["not one of merge, squash"]);
    check_file_refused("sign-merges = 1", &["expected true or false"]);
    check_file_refused("repos = '/a'", &["expected a list"]);
    check_file_refused("workers = 6", &["1 to 5"]);
    check_file_refused("workers = ['kit', 'kitt']", &["did you mean kit?"]);
    check_file_refused("auto-answer = ['merges']", &["did you mean merge?"]);
    check_file_refused("sim = 2", &["expected a section [sim]"]);
    check_file_refused("port = ", &["1 |"]);
    check_file_refused("ci = ' '", &["empty"]);
    check_file_refused("turn-timeout = '5'", &["90s, 45m or 2h"]);
}

/// Wrong variables are refused by name.
#[test]
fn a_wrong_variable_is_refused() {
    for (name, value, words) in [
        ("AGENTCRAFT_BACKEND", "claud", "did you mean claude?"),
        ("AGENTCRAFT_PORT", "-1", "is no port"),
        ("AGENTCRAFT_PROFILE", "../x", "no profile's name"),
        ("AGENTCRAFT_SIM_SPEED", "0.01", "is no speed"),
        ("AGENTCRAFT_NOTIFY", "maybe", "neither yes nor no"),
    ] {
        let error = from_environment(&[(name, value)]).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains(words), "{error}");
    }
    let layer = from_environment(&[("AGENTCRAFT_SIGN_MERGES", "off"), ("NO_COLOR", "0"), ("AGENTCRAFT_DEBUG", "1")]);
    let layer = layer.expect("a layer");
    assert_eq!((layer.sign_merges, layer.color, layer.verbosity), (Some(false), Some(false), Some(Verbosity::Debug)));
}

/// Single values, as they are written on the command line.
#[test]
fn values_are_checked() {
    assert_eq!(values::workers("2"), Ok(Workers::First(2)));
    assert_eq!(values::workers("tove,kit").map(|workers| workers.ids()), Ok(vec!["tove".into(), "kit".into()]));
    for wrong in ["0", "6", "-1", "kit,kit", "kit,--reset", "kit,,wren", "marlow", ""] {
        assert!(values::workers(wrong).is_err(), "{wrong}");
    }
    assert_eq!(values::turn_timeout_ms("2h"), Ok(7_200_000));
    for wrong in ["0m", "5x", "h", "30", "9999999999999999999h", "59s"] {
        assert!(values::turn_timeout_ms(wrong).is_err(), "{wrong}");
    }
    assert_eq!(values::user_name(&"x".repeat(60)).map(|name| name.len()), Ok(40));
    assert_eq!(values::user_name(" A\tB \n"), Ok("A B".to_owned()));
    assert!(values::user_name(" ").is_err());
    assert!(values::speed("NaN").is_err() && values::speed("inf").is_err());
    assert!(values::paths("a,--goal").is_err());
    assert_eq!(values::paths("a, b"), Ok(vec!["a".into(), "b".into()]));
    assert_eq!(values::auto_answer("demo"), Ok(AutoAnswerWish::Demo));
    assert!(values::auto_answer("").is_err() && values::auto_answer("all").is_err());
}

/// A path that exists is one path, whatever commas its name holds.
#[test]
fn commas_in_a_path() {
    let home = tempfile::tempdir().expect("a directory");
    let odd = home.path().join("a, b");
    fs::create_dir(&odd).expect("made");
    assert_eq!(values::paths(odd.to_str().expect("text")), Ok(vec![odd]));
}

/// Values that don't go together, or can't be had, are refused when they meet.
#[test]
fn what_cannot_be_had() {
    let refused = |layer: Layer| Options::resolve(layer, &machine()).expect_err("refused").to_string();
    let claude = refused(Layer { backend: Some(BackendName::Claude), ..Layer::default() });
    assert!(claude.contains("no claude engine yet") && claude.contains("--backend sim"), "{claude}");
    let gone = options::check_repo("/nonexistent/x".as_ref()).expect_err("refused").to_string();
    assert!(gone.contains("/nonexistent/x") && gone.contains("name the directory"), "{gone}");
    let home = tempfile::tempdir().expect("a directory");
    let both = Layer { repos: Some(vec![home.path().to_owned()]), showcase: Some(Showcase::Busy), ..Layer::default() };
    assert!(refused(both).contains("--showcase"));
    let homeless = Machine { user_home: None, ..machine() };
    assert!(matches!(Options::resolve(Layer::default(), &homeless), Err(ConfigError::NoHome)));
}

/// Automatic answers outside the demo repository need their kinds named.
#[test]
fn automatic_answers() {
    let demo = options(Layer { auto_answer: Some(AutoAnswerWish::Demo), speed: Some(50.0), ..Layer::default() });
    let auto = &demo.settings.auto_answer;
    assert!(auto.demo && auto.kinds.is_empty());
    assert_eq!((auto.delay_ms, auto.retry_ms), (30, 10));
    let kinds = AutoAnswerWish::Kinds([DecisionKind::Question].into());
    let named = options(Layer { auto_answer: Some(kinds), ..Layer::default() });
    assert!(!named.settings.auto_answer.demo && !named.settings.auto_answer.kinds.contains(&DecisionKind::Merge));
}
