//! What is allowed is run by a real bash on a machine of its own: nothing outside changes, no secret shows.
//!
//! The commands are put together from forms and paths of that machine alone, so that even a wrong verdict reaches
//! nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agentcraft_tui::policy::{Role, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::fixture::Machine;

const SECRET: &str = "THIS-MUST-NOT-SHOW";
/// Commands tried; set `POLICY_SHELL_CASES` to look further.
const CASES: usize = 2_000;

const PATHS: [&str; 46] = [
    "$HOME/private/secrets.txt",
    "~/.netrc",
    "{HOME}/.netrc",
    "../../private/secrets.txt",
    "../home/.netrc",
    "outlink/secrets.txt",
    "keyfile",
    "dangling",
    "inlink/main.rs",
    "repolink/README.md",
    "src/main.rs",
    "README.md",
    "*.md",
    "*file",
    "*link/*",
    "..",
    "../..",
    ".",
    "data/list.txt",
    "notes/a",
    "notes/b",
    ".git/config",
    "{TMP}/esc/secrets.txt",
    "{TMP}/a",
    "src",
    "inlink",
    "inlink/..",
    "outlink",
    "src/..",
    "inlink/../../README.md",
    "net/client.rs",
    "../README.md",
    "../../x",
    "notes",
    "{README.md,../../private/secrets.txt}",
    "'keyfile'",
    "./keyfile",
    "docs/../keyfile",
    "$PWD/README.md",
    "\"$PWD\"/../x",
    "vendor/dep/.git/HEAD",
    "$(pwd)/x",
    "$(git ls-files)",
    "src/*",
    "a\\ b",
    "n{1..3}",
];

const FORMS: [&str; 88] = [
    "cat @",
    "head -1 @",
    "ls @",
    "cp @ @",
    "mv @ @",
    "touch @",
    "echo hi > @",
    "cat @ > @",
    "cat < @",
    "cd @",
    "cd @ && cat @",
    "rm @",
    "sed -n 1p @",
    "sed -i s/x/y/ @",
    "sort @ -o @",
    "tee @ < @",
    "grep -r . @",
    "grep -R . @",
    "grep -f @ @",
    "find @ -type f",
    "find @ -name '*.rs' -exec cat {} +",
    "find @ -exec cat {} \\;",
    "cp -r @ @",
    "mkdir -p @",
    "wc @ @",
    "diff @ @",
    "diff -r @ @",
    "uniq @ @",
    "xxd @ @",
    "awk '{print}' @",
    "cat <<E >> @\n$(cat @)\nE",
    "(cd @; cat @)",
    "cd @; cat @",
    "if cd @; then cat @; fi",
    "while cat @; do break; done",
    "for f in @ @; do echo \"$f\"; done",
    "x=@; echo $x",
    "cat @ | tee @",
    "bash -c 'cat @'",
    "eval cat @",
    "cat $(echo @)",
    "echo $(< @)",
    "cat <(cat @)",
    "xargs cat < @",
    "git ls-files | xargs head -1",
    "cat @ || cat @",
    "cd @ || touch @",
    "cd @ | cat @",
    "pushd @ && touch @",
    "{ cd @; cat @; }",
    "test -f @ && cat @",
    "[[ -f @ ]] && rm @",
    "install @ @",
    "truncate -s 0 @",
    "env -C @ cat @",
    "timeout 1 cat @",
    "nl @",
    "cut -c1- @",
    "cp -t @ @",
    "cp -P @ @",
    "cp -a @ @",
    "mv -t @ @",
    "ls -R @",
    "du -a @",
    "comm @ @",
    "join @ @",
    "paste @ @",
    "base64 @",
    "date -f @",
    "shopt -s nullglob; cat @",
    "set -- @; cat \"$1\"",
    "exec 3< @; cat <&3",
    "exec > @; cat @",
    "read x < @; echo \"$x\"",
    "mapfile a < @; echo \"${a[@]}\"",
    "printf '%s' \"$(cat @)\"",
    "! cd @ && cat @",
    "time cat @",
    "command cat @",
    "cat -- @",
    "true && cd @ && cat @ || touch @",
    "case x in x) cat @;; esac",
    "until cat @; do break; done",
    "tac @",
    "od -c @",
    "(cat @\n) && cat @ # it's",
    "cat $'\\x2e./'@",
    "\\cat \"\"@",
];

/// Everything outside the worktree and the scratch directory.
fn outside(machine: &Machine) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, machine: &Machine, seen: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path == machine.worktree || path == machine.scratch {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            seen.insert(path.clone(), content);
            if meta.is_dir() {
                walk(&path, machine, seen);
            }
        }
    }
    let mut seen = BTreeMap::new();
    walk(machine.home.parent().unwrap(), machine, &mut seen);
    seen
}

fn fresh() -> Machine {
    let machine = Machine::own();
    for file in ["private/secrets.txt", ".netrc", ".bashrc", "work/repo/README.md"] {
        fs::write(machine.home.join(file), format!("{SECRET}\n")).unwrap();
    }
    machine
}

fn bash(machine: &Machine, text: &str) -> Output {
    Command::new("timeout")
        .args(["-k", "1", "5", "bash", "-c", text])
        .current_dir(&machine.worktree)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", &machine.home)
        .env("TMPDIR", &machine.scratch)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .expect("bash and timeout are installed")
}

#[test]
fn what_is_allowed_stays_inside() {
    let cases = std::env::var("POLICY_SHELL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let command = (select(&FORMS[..]), vec(select(&PATHS[..]), 3))
        .prop_map(|(form, paths)| paths.into_iter().fold(form.to_string(), |text, path| text.replacen('@', path, 1)));
    let separator = select(vec!["; ", " && ", "\n", " || ", " | "]);
    let strategy = vec((command, separator), 1..4);
    let mut runner = TestRunner::deterministic();
    let mut machine = fresh();
    let mut before = outside(&machine);
    let mut allowed = 0;
    for _ in 0..cases {
        let parts = strategy.new_tree(&mut runner).unwrap().current();
        let mut text = String::new();
        for (at, (command, separator)) in parts.iter().enumerate() {
            text.push_str(command);
            if at + 1 < parts.len() {
                text.push_str(if command.contains(['\n', '#']) { "\n" } else { separator });
            }
        }
        let text = machine.fill(&text);
        if machine.bash(Role::Worker, &text) != Verdict::Allow {
            continue;
        }
        allowed += 1;
        let output = bash(&machine, &text);
        let printed = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&printed).contains(SECRET), "shows a secret: {text:?}");
        assert_eq!(outside(&machine), before, "changes what is outside: {text:?}");
        // Once parts of the worktree are gone, less is tried.
        let whole = ["src/main.rs", "outlink", "inlink", "README.md"]
            .iter()
            .all(|name| fs::symlink_metadata(machine.worktree.join(name)).is_ok());
        if !whole || allowed % 40 == 0 {
            machine = fresh();
            before = outside(&machine);
        }
    }
    assert!(allowed * 20 > cases, "only {allowed} of {cases} were allowed: the test looks at nothing");
}
