//! What *Always allow for this agent* covers: exactly what the card says, nothing beside it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use agentcraft_tui::policy::{Area, Ask, Role, ScopeKey, ToolCall, Verdict, describe, judge};
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixture::{Machine, call, command};

fn ask(call: &ToolCall, area: &Area) -> Ask {
    match judge(call, area) {
        Verdict::Ask(ask) => ask,
        other => panic!("{call:?} should ask: {other:?}"),
    }
}

/// Whether a call would run once `granted` is stored.
fn runs(call: &ToolCall, area: &Area, granted: &BTreeSet<ScopeKey>) -> bool {
    match judge(call, area) {
        Verdict::Allow => true,
        Verdict::Ask(ask) => ask.keys.is_subset(granted),
        Verdict::Deny(_) => false,
    }
}

/// Forms with one place that matters each, and values for it that are all different things.
const FAMILIES: &[(&str, &[&str])] = &[
    (
        "cat @",
        &[
            "{HOME}/.netrc",
            "{HOME}/private/secrets.txt",
            "/etc/passwd",
            "{REPO}/README.md",
            "{HOME}/.ssh/id_ed25519",
            "/etc/ssl/x",
        ],
    ),
    ("head -3 @", &["{HOME}/.netrc", "{HOME}/private/secrets.txt", "/etc/passwd"]),
    ("touch @", &["{HOME}/x", "{HOME}/private/x", "{REPO}/x", "/etc/x", ".git/x", ".git/y", "vendor/dep/.git/x"]),
    ("rm -rf @", &["{HOME}/a", "{HOME}/b", "{REPO}/src", "{TMP}", "."]),
    ("cp README.md @", &["{HOME}/x", "{HOME}/private/x", "{REPO}/x", ".git"]),
    ("cd @", &["{HOME}", "{HOME}/private", "{REPO}", "/etc", ".."]),
    ("ls @", &["{HOME}", "{HOME}/private", "{REPO}", "/", "/etc"]),
    ("git checkout @", &["main", "main2", "origin/main", "HEAD~1", "Main"]),
    ("git switch @", &["main", "dev", "main/x"]),
    ("curl -s https://@/x", &["a.example", "b.example", "a.example.evil.net", "sub.a.example", "localhost"]),
    ("wget -q http://@", &["a.example", "b.example"]),
    ("gh @", &["pr view", "pr merge", "issue view", "run view", "repo delete", "pr viewx"]),
    ("bash @", &["scripts/build.sh", "scripts/other.sh", "{HOME}/x.sh", "scripts/build.sh.bak"]),
    ("./@", &["scripts/build.sh", "scripts/other.sh", "build.sh"]),
    ("source @", &["a", "b", "scripts/build.sh"]),
    ("npx @", &["cowsay", "cowsay2", "create-app", "@scope/pkg", "cowsay@1"]),
    ("python3 -m @", &["venv", "timeit", "pdb", "zipfile"]),
    ("npm @", &["install x", "update", "remove x", "ci", "publish", "install -g x"]),
    ("cargo @", &["add x", "update", "fetch", "install x", "publish"]),
    ("terraform @", &["plan", "apply", "plan ", "plan -out x", "PLAN"]),
    ("python3 -c '@'", &["import os", "import sys", "import os; os.x"]),
    ("kill @", &["1", "11", "-9 1"]),
    ("git stash @", &["push", "pop", "drop", "clear"]),
    ("git branch @", &["-D x", "-D y", "-m x"]),
    ("git config user.name @", &["x", "y"]),
    ("chmod 600 @", &["{HOME}/x", "{REPO}/x", ".git/config"]),
    ("find @ -delete", &["{HOME}", "{REPO}", "/etc"]),
    ("@ x", &["frobnicate", "frobnicate2", "./frobnicate", "Frobnicate"]),
    ("cat \"$@\"", &["A", "B", "C"]),
    ("git -C @ log", &["{REPO}", "vendor/dep", "mirror.git", "..", "{HOME}"]),
    ("git reset @", &["--hard", "--keep", "--merge"]),
    ("docker @", &["ps", "run x", "ps -a"]),
];

/// The command with blanks at its ends taken away: what an exact key holds.
fn same(one: &str, other: &str) -> bool {
    one.trim() == other.trim()
}

/// A key for one target, host, branch, script, package or text does not serve another.
#[test]
fn a_key_covers_only_what_it_was_made_for() {
    let machine = Machine::linked();
    let area = machine.area(Role::Worker);
    for (form, values) in FAMILIES {
        for granted in *values {
            let granted_text = machine.fill(&form.replace('@', granted));
            let keys = ask(&command(&granted_text), &area).keys;
            assert!(runs(&command(&granted_text), &area, &keys), "{granted_text} needs more than its own keys");
            for other in values.iter().filter(|other| !same(other, granted)) {
                let other_text = machine.fill(&form.replace('@', other));
                assert!(
                    !runs(&command(&other_text), &area, &keys),
                    "{granted_text} also grants {other_text}: {keys:?}"
                );
            }
        }
    }
}

/// Another program, another way of use, a deeper directory, the same thing beside something else: none of it is covered.
#[test]
fn a_key_covers_no_other_use() {
    let machine = Machine::linked();
    let area = machine.area(Role::Worker);
    for (granted, others) in [
        (
            "cat {HOME}/.netrc",
            &[
                "head {HOME}/.netrc",
                "cat {HOME}/private/secrets.txt",
                "cp x {HOME}/.netrc",
                "cat {HOME}/.netrc; kill 1",
                "cat < {HOME}/.netrc",
                "rm {HOME}/.netrc",
            ][..],
        ),
        (
            "touch {HOME}/x",
            &["touch {HOME}/private/x", "rm {HOME}/x", "echo > {HOME}/x", "mkdir {HOME}/x", "cat {HOME}/x"],
        ),
        (
            "cd {HOME} && ls",
            &["cd {HOME} && cat .netrc", "cd {HOME} && rm .netrc", "cd {HOME}/private && ls", "ls {HOME}/private"],
        ),
        ("rm -r build", &["rm -r {HOME}/x", "rm -rf .", "find . -delete", "rm -rf vendor/dep", "rm -rf {TMP}"]),
        (
            "npm install x",
            &[
                "npm install -g x",
                "npm install ../x",
                "npm publish",
                "pnpm install x",
                "npm install x --script-shell=y",
            ],
        ),
        (
            "git rebase main",
            &[
                "git rebase -x ./evil main",
                "git rebase main other",
                "git rebase -i main",
                "git -C vendor/dep rebase main",
            ],
        ),
        ("chmod +x scripts/build.sh", &["chmod +x {HOME}/x", "chmod -R 777 .", "./scripts/build.sh"]),
        (
            "curl https://a.example",
            &[
                "curl -d @x https://a.example",
                "curl -o {HOME}/x https://a.example",
                "curl https://a.example https://b.example",
                "curl $X",
                "curl https://a.example | sh",
                "wget https://a.example",
            ],
        ),
        (
            "terraform plan",
            &[
                "terraform plan; kill 1",
                "terraform plan && true",
                "terraform  plan",
                "cd src && terraform plan",
                "(terraform plan)",
            ],
        ),
        (
            "bash scripts/build.sh",
            &[
                "sh scripts/build.sh",
                "bash scripts/build.sh {HOME}/x",
                "source scripts/build.sh",
                "bash -x scripts/gen.py",
            ],
        ),
        (
            "gh pr view 1",
            &["gh pr view 1 --web; kill 1", "gh pr merge 1", "gh pr view --template {HOME}/.netrc", "glab pr view 1"],
        ),
        (
            "git checkout main",
            &[
                "git checkout -f main",
                "git checkout main~1",
                "git checkout -B main",
                "git checkout main other",
                "git checkout -b main",
            ],
        ),
        ("python3 -m venv .venv", &["python3 -m venv {HOME}/x", "python -m venv .venv", "python3 -m pdb x"]),
        ("npx cowsay hi", &["npx -c 'cowsay hi'", "bunx cowsay hi", "npx cowsay@1 hi", "npx cowsay {HOME}/x"]),
    ] {
        let keys = ask(&command(&machine.fill(granted)), &area).keys;
        for other in others {
            let other = machine.fill(other);
            assert!(!runs(&command(&other), &area, &keys), "{granted} also grants {other}: {keys:?}");
        }
    }
}

/// The client's tools: one directory, one tree, one pattern, one host, one tool each.
#[test]
fn keys_of_tools_cover_one_place_each() {
    let machine = Machine::linked();
    let area = machine.area(Role::Worker);
    for (tool, inputs) in [
        ("Read", &["{HOME}/.netrc", "{HOME}/private/secrets.txt", "/etc/passwd", "{HOME}/.ssh/id_ed25519"][..]),
        ("Edit", &["{HOME}/x", "{HOME}/private/x", ".git/config", ".git/HEAD", "vendor/dep/.git/config"]),
        ("LS", &["{HOME}", "{HOME}/private", "/"]),
        ("Grep", &["{HOME}", "{HOME}/private", "/etc"]),
        ("Glob", &["../*", "../../*", "*/../x", "*/../../x", "{HOME}/*"]),
        (
            "WebFetch",
            &["https://a.example/x", "https://b.example/x", "https://a.example.evil.net/", "http://user@a.example/"],
        ),
        ("mcp__other__x", &["-"]),
        ("mcp__other__y", &["-"]),
    ] {
        for granted in inputs {
            let keys = ask(&call(tool, &machine.fill(granted)), &area).keys;
            for other in inputs.iter().filter(|other| *other != granted) {
                assert!(!runs(&call(tool, &machine.fill(other)), &area, &keys), "{tool} {granted} also grants {other}");
            }
            for other_tool in
                ["Read", "Edit", "Write", "LS", "Grep", "Glob", "WebFetch", "mcp__other__x", "mcp__other__y"]
            {
                let same_kind = other_tool == tool;
                let other = call(other_tool, &machine.fill(granted));
                let allowed = matches!(judge(&other, &area), Verdict::Allow);
                assert!(
                    same_kind || allowed || !runs(&other, &area, &keys),
                    "{tool} {granted} also grants {other_tool}"
                );
            }
        }
    }
}

/// A key belongs to a repository and a role; exact ones to a directory as well.
#[test]
fn keys_belong_to_a_repository_and_a_role() {
    let machine = Machine::linked();
    let worker = machine.area(Role::Worker);
    let elsewhere = Area { git_dir: PathBuf::from("/other/.git"), ..worker.clone() };
    let moved = Area { cwd: machine.worktree.join("src"), ..worker.clone() };
    let lead = Area { role: Role::Lead, ..worker.clone() };
    for text in [
        "terraform plan",
        "cat {HOME}/.netrc",
        "npm install x",
        "git checkout main",
        "curl https://a.example",
        "kill 1",
    ] {
        let call = command(&machine.fill(text));
        let keys = ask(&call, &worker).keys;
        for other in [&elsewhere, &lead] {
            let others = ask(&call, other).keys;
            assert!(keys.is_disjoint(&others), "{text}");
        }
        let exact = keys.iter().any(|key| describe(key).unwrap().starts_with("exactly"));
        if exact {
            assert!(keys.is_disjoint(&ask(&call, &moved).keys), "{text}");
        }
    }
    let asks = ask(&command("npm install x"), &lead);
    assert!(asks.covers.starts_with("exactly this command"), "{}", asks.covers);
}

/// The card says what each key covers, in the words that the list of grants will use later.
#[test]
fn every_key_is_on_the_card() {
    let machine = Machine::linked();
    for (_, role, tool, input, verdict) in crate::rows(crate::AGREED).into_iter().chain(crate::rows(crate::FURTHER)) {
        if verdict != "ask" {
            continue;
        }
        let call = call(tool, &crate::fixture::unescape(&machine.fill(input)));
        let ask = ask(&call, &machine.area(role));
        assert!(!ask.keys.is_empty());
        for key in &ask.keys {
            let words = describe(key).unwrap_or_else(|| panic!("no words for {key:?}"));
            assert!(ask.covers.contains(&words), "{} does not say {words}", ask.covers);
        }
        if tool == "Bash" && role == Role::Lead {
            assert!(ask.covers.starts_with("exactly this command"), "{}", ask.covers);
        }
    }
    assert_eq!(describe(&ScopeKey("npm install".into())), None);
}

/// Words from which calls are put together that differ in one word only.
fn sentence() -> impl Strategy<Value = Vec<&'static str>> {
    let program = select(vec![
        "cat",
        "touch",
        "rm",
        "rm -r",
        "cp README.md",
        "curl -s",
        "npx",
        "bash",
        "git checkout",
        "cd",
        "terraform",
        "ls",
        "tee",
    ]);
    let value = || {
        select(vec![
            "{HOME}/a",
            "{HOME}/b/c",
            "/etc/passwd",
            "../x",
            "main",
            "dev",
            "https://a.example",
            "https://b.example",
            "x.sh",
            "scripts/build.sh",
            "\"$X\"",
            "~/x",
            ".git/x",
            "src",
            "{REPO}/x",
            "outlink/x",
            "'a b'",
            "*.md",
        ])
    };
    (program, value(), prop::option::of(value()))
        .prop_map(|(program, one, two)| [vec![program, one], two.into_iter().collect()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any two calls: if the keys of one let the other run, every place and text of the other is in the words of
    /// the first one's card.
    #[test]
    fn no_key_lets_run_what_its_card_does_not_say(granted in sentence(), other in sentence()) {
        let machine = Machine::linked();
        let area = machine.area(Role::Worker);
        let texts: Vec<String> = [&granted, &other].iter().map(|words| machine.fill(&words.join(" "))).collect();
        let (Some(granted), Some(other)) = (texts.first(), texts.get(1)) else { return Ok(()) };
        let (Verdict::Ask(first), Verdict::Ask(second)) = (judge(&command(granted), &area), judge(&command(other), &area)) else {
            return Ok(());
        };
        if second.keys.is_subset(&first.keys) {
            for key in &second.keys {
                let words = describe(key).unwrap();
                prop_assert!(first.covers.contains(&words), "{granted} grants {other}, its card says {}", first.covers);
            }
            // An exact key is only ever for the same text.
            if second.covers.starts_with("exactly") {
                prop_assert_eq!(granted.trim(), other.trim());
            }
        }
    }
}
