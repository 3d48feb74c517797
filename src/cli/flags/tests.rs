use super::*;
use crate::protocol::DecisionKind;

fn read(line: &str) -> Result<CommandLine, clap::Error> {
    let words = std::iter::once("agentcraft-tui").chain(line.split_whitespace());
    CommandLine::read(words.map(|word| word.replace('_', " ")))
}

fn check(line: &str) -> CommandLine {
    read(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn check_refused(line: &str, words: &str) {
    let error = read(line).expect_err(line);
    let text = error.render().to_string();
    assert!(text.contains(words), "{line}: {text}");
    assert_eq!(error.exit_code(), 2);
}

/// The definition of the flags is sound.
#[test]
fn the_definition_is_sound() {
    Flags::command().debug_assert();
}

/// Both ways to write a value, lists and repetition, and the `--no-` forms.
#[test]
fn flags_are_read() {
    let line = check("--backend=sim --workers juniper,kit --repo a,b --repo c --no-sign-merges --no-lead-review");
    assert_eq!(line.layer.backend, Some(BackendName::Sim));
    assert_eq!(line.layer.workers.map(|workers| workers.ids()), Some(vec!["juniper".into(), "kit".into()]));
    assert_eq!(line.layer.repos, Some(vec!["a".into(), "b".into(), "c".into()]));
    assert_eq!((line.layer.sign_merges, line.layer.lead_review), (Some(false), Some(false)));
    assert_eq!(line.given, ["--backend", "--repo", "--workers", "--no-sign-merges", "--no-lead-review"]);
    assert_eq!(check("--no-notify --notify").layer.notify, Some(true), "the last one counts");
    assert_eq!(check("--goal Add_a_flag").goal.as_deref(), Some("Add a flag"));
    assert_eq!(check("").layer, Layer::default());
}

/// Options with a value that may be left out.
#[test]
fn values_that_may_be_left_out() {
    assert_eq!(check("--auto-answer --autostart").layer.auto_answer, Some(AutoAnswerWish::Demo));
    let kinds = [DecisionKind::Question, DecisionKind::Merge].into();
    assert_eq!(check("--auto-answer=question,merge").layer.auto_answer, Some(AutoAnswerWish::Kinds(kinds)));
    assert_eq!(check("--showcase").layer.showcase, Some(Showcase::Busy));
    assert_eq!(check("--showcase late").layer.showcase, Some(Showcase::Late));
    check_refused("--auto-answer question", "unrecognized subcommand 'question'");
}

/// Slips are errors with a suggestion, and no setting lets a browser in.
#[test]
fn slips_are_refused() {
    check_refused("--autostrat", "--autostart");
    check_refused("--backend clade", "did you mean claude?");
    check_refused("--merge-style rebase", "not one of merge, squash");
    check_refused("--profile ../x", "no profile's name");
    check_refused("--workers,--reset", "unexpected argument");
    check_refused("--workers kit,--reset", "looks like a flag");
    check_refused("--repo a,--goal", "looks like a flag");
    check_refused("--repo --goal x", "a value is required");
    check_refused("startt", "unrecognized subcommand");
    check_refused("stattus", "status");
    check_refused("-- word", "unrecognized subcommand 'word'");
    check_refused("--max-concurrent 0", "1 to 100");
    check_refused("--repo-poll-ms 499", "500");
    check_refused("--speed 0", "is no speed");
    check_refused("--yes", "--reset");
    check_refused("--attach --no-ui", "cannot be used with");
    check_refused("--goal _", "the goal is empty");
    check_refused("--allow-browser-origins", "unexpected argument");
    check_refused("--debug --quiet", "cannot be used with");
}

/// Verbs take what says which Foreman, before or behind them, and nothing of a start.
#[test]
fn verbs() {
    let line = check("--port 8000 send /answer d2 Merge --no-wait");
    let words = ["/answer", "d2", "Merge"].map(str::to_owned).to_vec();
    assert_eq!((line.verb, line.layer.port), (Some(Verb::Send { no_wait: true, line: words }), Some(8000)));
    assert_eq!(check("status --json --profile work").verb, Some(Verb::Status { json: true }));
    assert_eq!(check("status --profile work").layer.profile.as_deref(), Some("work"));
    assert_eq!(check("stop").verb, Some(Verb::Stop));
    assert_eq!(check("protocol --schema").verb, Some(Verb::Protocol { schema: true }));
    check_refused("--reset status", "--reset belongs to a start");
    check_refused("status --reset", "unexpected argument");
    check_refused("send", "required");
}

/// A reset asks unless it is confirmed.
#[test]
fn resets_ask() {
    assert_eq!(check("").reset, Reset::Keep);
    assert_eq!(check("--reset").reset, Reset::Ask);
    assert_eq!(check("--reset --yes").reset, Reset::Confirmed);
}
