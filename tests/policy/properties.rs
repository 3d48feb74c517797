//! What holds for every text: it gets a verdict soon, and dressing it up never loosens the verdict.

use std::time::{Duration, Instant};

use agentcraft_tui::policy::{Role, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixture::{Machine, unescape, word};
use crate::{AGREED, FURTHER, rows};

/// How strict a verdict is.
fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

/// A text as one single-quoted word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Ways to run a command text inside another one; each runs all of it.
fn wrappers() -> Vec<(&'static str, fn(&str) -> String)> {
    vec![
        ("true first", |text| format!("true; {text}")),
        ("newline first", |text| format!("true\n{text}")),
        ("and", |text| format!("true && {text}")),
        ("comment first", |text| format!("# it's \"\n{text}")),
        ("comment after", |text| format!("{text}\n# it's (")),
        ("more after", |text| format!("{text}\ntrue")),
        ("subshell", |text| format!("({text}\n)")),
        ("group", |text| format!("{{ {text}\n}}")),
        ("if", |text| format!("if true; then\n{text}\nfi")),
        ("else", |text| format!("if false; then :; else\n{text}\nfi")),
        ("while", |text| format!("while true; do\n{text}\ndone")),
        ("for", |text| format!("for i in 1 2; do\n{text}\ndone")),
        ("case", |text| format!("case x in (x)\n{text}\n;; esac")),
        ("substitution", |text| format!("echo \"$({text}\n)\"")),
        ("process", |text| format!("cat <({text}\n)")),
        ("sh -c", |text| format!("sh -c {}", quoted(text))),
        ("bash -lc", |text| format!("timeout 5 bash -lc {}", quoted(text))),
        ("env", |text| format!("env A=1 sh -c {}", quoted(text))),
        ("eval", |text| format!("eval {}", quoted(text))),
        ("here-document", |text| format!("bash <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT")),
        ("pipe", |text| format!("printf '%s\\n' {} | sh", quoted(text))),
        ("background", |text| format!("({text}\n) & wait")),
        ("redirected", |text| format!("{{ {text}\n}} 2>/dev/null")),
    ]
}

/// Dressing a command up never makes its verdict looser, for every row of both tables that asks or denies.
#[test]
fn wrapping_never_loosens() {
    let machine = Machine::linked();
    let mut looser = Vec::new();
    for (id, role, tool, input, verdict) in rows(AGREED).into_iter().chain(rows(FURTHER)) {
        if tool != "Bash" || verdict == "allow" || input.is_empty() {
            continue;
        }
        let text = unescape(&machine.fill(input));
        let plain = rank(&machine.bash(role, &text));
        for (name, wrap) in wrappers() {
            // What is cut off in the middle of a construct swallows what is put after it: a substitution, a group.
            let open = ["parse", "heredoc"].iter().any(|_| unfinished(&text));
            let after = machine.bash(role, &wrap(&text));
            let least = if open { plain.min(1) } else { plain };
            if rank(&after) < least {
                looser.push(format!("{id} {name}: {} became {}", word(&machine.bash(role, &text)), word(&after)));
            }
        }
    }
    assert!(looser.is_empty(), "{} looser:\n{}", looser.len(), looser.join("\n"));
}

/// A text that does not end where it stops: a quote, a group or a here-document is open.
fn unfinished(text: &str) -> bool {
    let quotes = text.matches('\'').count() % 2 == 1 || text.matches('"').count() % 2 == 1;
    let groups = text.matches('(').count() != text.matches(')').count();
    quotes || groups || text.contains("<<") || text.starts_with("if ") || text.starts_with("for x")
}

fn push() -> impl Strategy<Value = String> {
    let git = select(vec![
        "git",
        "/usr/bin/git",
        "\"git\"",
        "g'i't",
        "\\git",
        "$'git'",
        "git -C src",
        "git --no-pager",
        "git -c color.ui=never",
    ]);
    let push = select(vec![
        "push",
        "pu\\sh",
        "'push'",
        "p\"us\"h",
        "$'\\x70ush'",
        "send-pack",
        "lfs push",
        "svn dcommit",
        "push --dry-run",
    ]);
    let rest = select(vec!["", " origin", " origin main", " -f", " .", " 'a b'", " \"$X\""]);
    (git, push, rest).prop_map(|(git, push, rest)| format!("{git} {push}{rest}"))
}

fn prefix() -> impl Strategy<Value = String> {
    select(vec![
        "",
        "command ",
        "nohup ",
        "nice -n 5 ",
        "timeout 9 ",
        "env A=1 ",
        "A=1 B=2 ",
        "exec ",
        "time ",
        "setsid ",
        "stdbuf -oL ",
        "sudo ",
        "! ",
        "2>/dev/null ",
        "builtin command ",
    ])
    .prop_map(str::to_string)
}

/// A command that writes or reads outside, in some spelling.
fn outside() -> impl Strategy<Value = String> {
    let target = select(vec![
        "../x",
        "{HOME}/x",
        "~/x",
        "$HOME/x",
        "\"$HOME\"/x",
        "${HOME}/x",
        "{REPO}/x",
        "/etc/x",
        "src/../../x",
        "outlink/x",
        "dangling",
        "inlink/../../x",
        "{TMP}/esc/x",
        "'../x'",
        "..\"/\"x",
        "./../x",
        "{TMP}/../x",
        "\"$UNKNOWN\"",
        "$UNKNOWN",
        "$(cat f)",
        "repolink/x",
        "{HOME}/.agents/memory/x",
        "src/{a,../../x}",
        ".git/x",
        "$'\\x2e\\x2e/x'",
        "*/../../x",
    ]);
    let form = select(vec![
        "echo hi > T",
        "echo hi >> T",
        "echo hi >| T",
        "ls &> T",
        "ls 2> T",
        "ls >& T",
        "touch T",
        "cp README.md T",
        "cp -t T README.md",
        "mv README.md T",
        "mkdir -p T",
        "tee T < README.md",
        "truncate -s 0 T",
        "rm T",
        "sed -i s/a/b/ T",
        "sort -o T data/list.txt",
        "sort -oT data/list.txt",
        "sort data/list.txt --output=T",
        "uniq data/list.txt T",
        "install README.md T",
        "rm -rf T",
        "find src -fprint T",
        "git log --output=T",
        "cat <<E > T\nhi\nE",
        ": > T",
        "exec > T",
        "cargo build --target-dir T",
        "git format-patch -1 -o T",
        "tree -o T",
        "xxd README.md T",
        "time -o T ls",
        "gcc -o T src/a.c",
        "chmod +x T",
        "dd if=README.md of=T",
        "{ ls; } > T",
        "(ls) > T",
        "if true; then ls; fi > T",
        "cd T && touch y",
    ]);
    (form, target).prop_map(|(form, target)| form.replace('T', target))
}

/// Pieces that shell texts are made of, in any order.
fn soup() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "ls", "cat", "git", "push", "echo", " ", " ", " ", "\n", ";", "&", "&&", "||", "|", "|&", "(", ")", "{", "}",
        "$(", "`", "\"", "'", "\\", "$", "${", "$((", "))", "[[", "]]", "[", "]", "<", ">", ">>", "<<", "<<-", "<<<",
        "E", "'E'", "#", "if", "then", "fi", "for", "in", "do", "done", "while", "case", "esac", ";;", "function",
        "x=", "x", "=", "~", "*", "?", "..", "/", "-", "--", "!", "time", "coproc", "select", "\t", "\r", "\u{a0}",
        "é", "\u{200b}", "0", "1", "a[", "@", "%", "+", ",", ":", "<(", ">(", "$'", "$\"", "&>", ">&", "2>", "\\\n",
        "eval", "sh -c ", "xargs", "find", "-exec", "{}", "sed", "awk", "env", "-i", "..", "{a,b}", "{1..9}",
    ]);
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A debug build on a busy machine gets this long; the aim is far below.
const SOON: Duration = Duration::from_secs(5);

fn judged(machine: &Machine, role: Role, text: &str) -> Verdict {
    let started = Instant::now();
    let verdict = machine.bash(role, text);
    assert!(started.elapsed() < SOON, "took {:?}: {text:?}", started.elapsed());
    verdict
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any text at all gets a verdict, and the same one again.
    #[test]
    fn any_text_gets_a_verdict(texts in vec(any::<String>(), 8)) {
        let machine = Machine::linked();
        for text in texts {
            let first = judged(&machine, Role::Worker, &text);
            prop_assert_eq!(&first, &judged(&machine, Role::Worker, &text));
        }
    }

    /// So does any order of what shell texts are made of, for both roles; a question always has a key.
    #[test]
    fn any_soup_of_tokens_gets_a_verdict(texts in vec(soup(), 16)) {
        let machine = Machine::linked();
        for text in texts {
            for role in [Role::Worker, Role::Lead] {
                if let Verdict::Ask(ask) = judged(&machine, role, &text) {
                    prop_assert!(!ask.keys.is_empty() && !ask.reason.is_empty() && !ask.covers.is_empty());
                    prop_assert!(!ask.reason.contains('\n') || text.contains('\n'));
                }
            }
        }
    }

    /// A push stays denied under any nesting of wrappers and whatever stands before it.
    #[test]
    fn a_wrapped_push_is_denied(push in push(), prefix in prefix(), layers in vec(select(wrappers()), 0..4)) {
        let machine = Machine::linked();
        let mut text = format!("{prefix}{push}");
        for (_, wrap) in &layers {
            text = wrap(&text);
        }
        for role in [Role::Worker, Role::Lead] {
            let verdict = machine.bash(role, &text);
            prop_assert!(matches!(verdict, Verdict::Deny(_)), "{:?}: {:?}", text, verdict);
        }
    }

    /// A text in which something is written outside is never allowed, whatever surrounds it.
    #[test]
    fn a_write_outside_is_never_allowed(bad in outside(), layers in vec(select(wrappers()), 0..3)) {
        let machine = Machine::linked();
        let mut text = bad;
        for (_, wrap) in &layers {
            text = wrap(&text);
        }
        for role in [Role::Worker, Role::Lead] {
            let verdict = machine.bash(role, &text);
            prop_assert!(!matches!(verdict, Verdict::Allow), "{:?}", text);
        }
    }
}

/// Texts at and past every limit end soon, and never in a looser verdict than without the limit.
#[test]
fn limits_never_loosen() {
    let machine = Machine::linked();
    let deep = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    for times in [10, 70, 300, 5_000] {
        for (open, close) in [
            ("(", ")"),
            ("$(", ")"),
            ("{ ", "; }"),
            ("\"$(", ")\""),
            ("if true; then ", "; fi"),
            ("<(", ")"),
            ("echo $(", ")"),
            ("((", "))"),
            ("${x:-", "}"),
            ("$((", "))"),
            ("a=(", ")"),
            ("[[ (", ") ]]"),
            ("`", "`"),
            ("echo {a,", "}"),
            ("case x in x) ", ";; esac"),
        ] {
            let text = deep(open, "git push", close, times);
            let verdict = judged(&machine, Role::Worker, &text);
            assert!(!matches!(verdict, Verdict::Allow), "{open} x{times}");
            let text = deep(open, "cat /etc/passwd", close, times);
            assert!(!matches!(judged(&machine, Role::Worker, &text), Verdict::Allow), "{open} x{times}");
        }
        for (open, close) in [("(", ")"), ("$(", ")"), ("{ ", "; }"), ("\"$(", ")\""), ("if true; then ", "; fi")] {
            let text = deep(open, "git push", close, times);
            assert!(matches!(judged(&machine, Role::Worker, &text), Verdict::Deny(_)), "{open} x{times}");
        }
    }
    for filler in [
        "true; ",
        "x ",
        "git ",
        "sudo ",
        "sh -c ",
        "a | ",
        "{a,b}",
        "git status && ",
        "echo 'x' ",
        "\\\n",
        "$(true) ",
        "[ ",
        "x=1 ",
    ] {
        for times in [1_000, 20_000] {
            let text = format!("{}\ngit push", filler.repeat(times));
            let verdict = judged(&machine, Role::Worker, &text);
            assert!(matches!(verdict, Verdict::Deny(_)), "{filler:?} x{times}: {verdict:?}");
            assert!(
                !matches!(judged(&machine, Role::Worker, &filler.repeat(times)), Verdict::Allow)
                    || filler == "\\\n"
                    || times == 1_000
            );
        }
    }
}
