//! What each git subcommand may do.
//!
//! Owns the forms of subcommands (`branch` lists or makes, `stash list` reads, `stash` writes ..) and git's global
//! options. Options with files or programs are in the table of programs, as `git <subcommand>`. Entry point:
//! [`judge`].

use std::collections::BTreeSet;

use super::super::args::Arg;
use super::super::eval::{Env, Eval};
use super::super::program::{self, Part};
use super::super::run::Context;
use super::super::scan::PUSH;
use super::super::scope::{Mode, Scope};
use super::super::word::UNKNOWN;
use super::repository::{self, Repository};
use super::{forbidden, is_push};

/// What a subcommand does in the form it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Read,
    /// Changes the worktree and the branch it is on.
    Own,
    /// Asks; *always* covers the action inside.
    Capability(String),
    /// Asks; *always* covers this target.
    Target(String),
    /// Asks; *always* covers this text.
    Exact(&'static str),
}

const READ: [&str; 34] = [
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "annotate",
    "grep",
    "ls-files",
    "ls-tree",
    "cat-file",
    "rev-parse",
    "rev-list",
    "describe",
    "shortlog",
    "name-rev",
    "merge-base",
    "for-each-ref",
    "show-ref",
    "show-branch",
    "count-objects",
    "check-ignore",
    "check-attr",
    "range-diff",
    "cherry",
    "whatchanged",
    "diff-tree",
    "diff-index",
    "diff-files",
    "fsck",
    "version",
    "--version",
    "--no-pager",
    "-P",
    "-h",
];
const OWN: [&str; 13] = [
    "add",
    "stage",
    "commit",
    "restore",
    "mv",
    "rm",
    "apply",
    "am",
    "merge",
    "revert",
    "cherry-pick",
    "format-patch",
    "archive",
];
const NETWORK: [&str; 9] = [
    "fetch",
    "pull",
    "clone",
    "ls-remote",
    "upload-pack",
    "receive-pack",
    "upload-archive",
    "fetch-pack",
    "remote-http",
];
const SHARED: &str = "changes what the repository's other worktrees see, or its history";

/// `-c` settings without a risk, by the start of their key.
const SETTINGS: [&str; 9] = [
    "color.",
    "core.quotepath",
    "core.abbrev",
    "core.autocrlf",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "merge.conflictstyle",
    "commit.gpgsign",
];
const SETTING_SECTIONS: [&str; 3] = ["log.", "advice.", "i18n."];

/// Judges `git` with its arguments.
pub(crate) fn judge(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env, context: &Context) {
    let words: Vec<String> = args.iter().map(|arg| arg.text.clone()).collect();
    if let Some(reason) = forbidden(&words) {
        eval.findings.deny(reason);
    }
    let mut own = env.clone();
    let Some((sub, rest)) = globals(eval, args, &mut own) else { return };
    let following: Vec<String> = [sub.clone()].into_iter().chain(rest.iter().map(|arg| arg.text.clone())).collect();
    if is_push(&following) {
        eval.findings.deny(PUSH);
        return;
    }
    let form = form(&sub, rest);
    if sub != "version" && sub != "init" && sub != "clone" {
        place(eval, &form, &own);
    }
    match &form {
        Form::Read => {}
        Form::Own => eval.findings.change(format!("git {sub} changes the worktree or its branch")),
        Form::Capability(action) => {
            eval.findings
                .ask_for(format!("{action} can discard or change work"), Scope::Capability { action: action.clone() });
        }
        Form::Target(target) => eval.findings.ask_for(
            format!("git {sub} leaves the branch for {target}"),
            Scope::Target { action: "git checkout".into(), target: target.clone() },
        ),
        Form::Exact(why) => eval.findings.ask(format!("git {sub} {why}")),
    }
    inner(eval, &sub, rest, &own, context);
    match program::lookup(&format!("git {sub}")) {
        Some(program) => eval.table(&format!("git {sub}"), program, rest, &mut own),
        None if form == Form::Read || form == Form::Own => {
            eval.findings.ask(format!("git {sub} is not known well enough"));
        }
        None => {}
    }
    env.wrote_repository |= own.wrote_repository;
}

/// Reads git's own options; gives the subcommand and what follows it.
fn globals<'a>(eval: &mut Eval<'_>, args: &'a [Arg], env: &mut Env) -> Option<(String, &'a [Arg])> {
    let mut rest = args;
    loop {
        let (arg, after) = rest.split_first()?;
        rest = after;
        if arg.text.starts_with(UNKNOWN) || arg.files.is_some() || (arg.known().is_none() && !arg.text.starts_with('-'))
        {
            eval.findings.deny("the git subcommand is only known at run time, so it could be a push: write it out");
            return None;
        }
        let Some(text) = arg.known() else {
            eval.findings.ask("an option of git is known only at run time");
            continue;
        };
        if !text.starts_with('-') {
            if arg.pattern.is_some() {
                eval.findings.ask("the git subcommand is a pattern");
                return None;
            }
            return Some((text.to_string(), rest));
        }
        match text {
            "-C" => {
                let dir = rest.first().cloned().unwrap_or_default();
                rest = rest.get(1..).unwrap_or(&[]);
                let mut dirs = BTreeSet::new();
                let mut known = dir.pattern.is_none();
                for (base, path) in eval.candidates("runs git in", &dir, env) {
                    match eval.places.find(&base, &path) {
                        Some(found) => {
                            dirs.insert(found.real);
                        }
                        None => known = false,
                    }
                }
                env.dirs = Some(dirs).filter(|dirs| known && !dirs.is_empty());
                if env.dirs.is_none() {
                    eval.findings.ask("runs git in a directory that is known only at run time");
                }
            }
            "-c" => {
                setting(eval, rest.first());
                rest = rest.get(1..).unwrap_or(&[]);
            }
            "--no-pager"
            | "-P"
            | "--literal-pathspecs"
            | "--no-optional-locks"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects" => {}
            "--version" | "-v" | "-h" if rest.is_empty() => return None,
            "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" | "--config-env" => {
                eval.findings.ask(format!("git with the option {text}"));
                rest = rest.get(1..).unwrap_or(&[]);
            }
            _ => eval.findings.ask(format!("git with the option {text}")),
        }
    }
}

/// `-c key=value`.
fn setting(eval: &mut Eval<'_>, setting: Option<&Arg>) {
    let Some(text) = setting.and_then(Arg::known) else {
        eval.findings.ask("a git setting that is known only at run time");
        return;
    };
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let key = key.to_ascii_lowercase();
    let known = SETTINGS.iter().any(|known| key == *known || known.ends_with('.') && key.starts_with(known))
        || SETTING_SECTIONS.iter().any(|section| key.starts_with(section))
        || key == "core.pager" && matches!(value, "" | "cat");
    if !known {
        eval.findings.ask(format!("the git setting {key} can run a program or change what git does"));
    }
}

/// The repository that git would work on.
fn place(eval: &mut Eval<'_>, form: &Form, env: &Env) {
    let Some(dirs) = env.dirs.clone() else {
        eval.findings.ask("git works in a directory that is known only at run time");
        return;
    };
    for dir in dirs {
        match repository::at(&dir, eval.area, eval.places) {
            Repository::Own if env.wrote_repository => {
                eval.findings.ask("files that look like a repository were just written");
            }
            Repository::Own => {}
            Repository::Other(at) => {
                let reason = format!("git works on another repository, at {}", at.display());
                if *form == Form::Read {
                    let scope = Scope::OutsideTree { program: "git".into(), mode: Mode::Read, path: at };
                    eval.findings.ask_for(reason, scope);
                } else {
                    eval.findings.ask(reason);
                }
            }
            Repository::Tampered(why) => {
                eval.findings.ask(format!("the worktree's repository is not as it should be: {why}"));
            }
        }
    }
}

/// Commands that git runs for the caller are judged like typed ones.
fn inner(eval: &mut Eval<'_>, sub: &str, rest: &[Arg], env: &Env, context: &Context) {
    let words = |from: usize| rest.get(from..).unwrap_or(&[]).to_vec();
    match sub {
        "bisect" if rest.first().is_some_and(|verb| verb.as_str() == "run") => {
            let command = words(1);
            if command.is_empty() {
                eval.findings.ask("git bisect run without a command");
            }
            eval.run(&command, &mut env.clone(), &context.inner());
        }
        "rebase" => {
            let Some(program) = program::lookup("git rebase") else { return };
            for part in program::walk(program, rest) {
                match part {
                    Part::Option { name, value: Some(value), .. } if name == "x" || name == "exec" => {
                        match value.known() {
                            Some(text) => eval.nested(text, env, &context.stdin),
                            None => eval.findings.ask("git rebase runs a command that is known only at run time"),
                        }
                    }
                    Part::Option { .. } | Part::Other { .. } | Part::Operand(_) => {}
                }
            }
        }
        "submodule" => {
            if let Some(at) = rest.iter().position(|word| word.as_str() == "foreach") {
                let text: Vec<String> =
                    words(at + 1).into_iter().filter(|arg| !arg.text.starts_with("--")).map(|arg| arg.text).collect();
                eval.nested(&text.join(" "), env, &context.stdin);
            }
        }
        _ => {}
    }
}

/// The form of a subcommand.
fn form(sub: &str, rest: &[Arg]) -> Form {
    let words: Vec<&str> = rest.iter().map(Arg::as_str).collect();
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let cluster = |letters: &str| {
        words.iter().any(|word| {
            word.strip_prefix('-').is_some_and(|cluster| {
                !cluster.starts_with('-') && cluster.chars().any(|letter| letters.contains(letter))
            })
        })
    };
    let long = |names: &[&str]| {
        words.iter().any(|word| {
            word.strip_prefix("--").is_some_and(|word| {
                let word = word.split('=').next().unwrap_or(word);
                word.len() > 1 && names.iter().any(|name| name.starts_with(word))
            })
        })
    };
    let operands: Vec<&str> = match program::lookup(&format!("git {sub}")) {
        Some(program) => Vec::from_iter(program::walk(program, rest).into_iter().filter_map(|part| match part {
            Part::Operand(arg) => Some(arg.text),
            Part::Option { .. } | Part::Other { .. } => None,
        }))
        .into_iter()
        .filter_map(|text| words.iter().copied().find(|word| *word == text))
        .collect(),
        None => words.iter().copied().filter(|word| !word.starts_with('-')).collect(),
    };
    let verb = words.iter().copied().find(|word| !word.starts_with('-')).unwrap_or("");
    if READ.contains(&sub) {
        return Form::Read;
    }
    if NETWORK.contains(&sub) {
        return Form::Exact("reaches another repository");
    }
    match sub {
        "archive" if long(&["remote"]) => Form::Exact("reaches another repository"),
        "merge" => match strategy(&words) {
            true => Form::Own,
            false => Form::Exact("with a strategy that is a program of its own"),
        },
        _ if OWN.contains(&sub) => Form::Own,
        "branch" => branch(&words, &operands, &cluster, &long),
        "tag" => tag(&operands, &cluster, &long),
        "stash" => match verb {
            "list" | "show" => Form::Read,
            _ => Form::Exact(SHARED),
        },
        "worktree" if verb == "list" => Form::Read,
        "remote" => match verb {
            "get-url" => Form::Read,
            "" if words.iter().all(|word| matches!(*word, "-v" | "--verbose")) => Form::Read,
            _ => Form::Exact("changes or asks other repositories"),
        },
        "reflog" if !matches!(verb, "expire" | "delete" | "drop") => Form::Read,
        "notes" if matches!(verb, "list" | "show" | "") => Form::Read,
        "submodule" if matches!(verb, "status") => Form::Read,
        "lfs" if verb == "ls-files" => Form::Read,
        "symbolic-ref"
            if operands.len() == 1
                && words.iter().all(|word| !word.starts_with('-') || matches!(*word, "--short" | "-q" | "--quiet")) =>
        {
            Form::Read
        }
        "bisect" => match verb {
            "log" => Form::Read,
            "start" | "good" | "bad" | "skip" | "reset" | "run" | "new" | "old" | "next" => Form::Own,
            _ => Form::Exact("opens a program or replays a file"),
        },
        "config" => config(&words, &operands),
        "clean" => {
            let dry = cluster("n") || has(&["--dry-run"]);
            if dry && !cluster("i") && !long(&["interactive"]) {
                Form::Read
            } else {
                Form::Capability("git clean".into())
            }
        }
        "reset" => match words.iter().find(|word| {
            word.strip_prefix("--").is_some_and(|word| {
                word.len() > 1 && ["hard", "keep", "merge"].iter().any(|mode| mode.starts_with(word))
            })
        }) {
            Some(word) => {
                let mode = match word.get(2..3) {
                    Some("h") => "--hard",
                    Some("k") => "--keep",
                    _ => "--merge",
                };
                Form::Capability(format!("git reset {mode}"))
            }
            None => Form::Own,
        },
        "rebase" => {
            if operands.len() > 1
                || !strategy(&words)
                || long(&["update-refs", "interactive", "edit-todo"])
                || cluster("i")
            {
                Form::Exact("moves other branches or opens an editor")
            } else {
                Form::Capability("git rebase".into())
            }
        }
        "checkout" | "switch" => checkout(sub, &words, &operands, &cluster, &long),
        "init" => Form::Capability("git init".into()),
        "update-ref" | "worktree" | "notes" | "reflog" | "symbolic-ref" | "gc" | "prune" | "repack" | "replace"
        | "filter-branch" | "fast-import" | "maintenance" | "submodule" | "lfs" | "bundle" => Form::Exact(SHARED),
        "hook" | "difftool" | "mergetool" | "gui" | "citool" | "instaweb" | "daemon" | "send-email" | "credential"
        | "shell" | "help" => Form::Exact("runs another program"),
        _ => Form::Exact("may be an alias or a program"),
    }
}

/// No strategy, or one that git has itself.
fn strategy(words: &[&str]) -> bool {
    let own = |name: &str| matches!(name, "ort" | "recursive" | "resolve" | "octopus" | "ours" | "subtree");
    words.iter().enumerate().all(|(at, word)| {
        if let Some(value) = word.strip_prefix("--strategy=") {
            own(value)
        } else if *word == "-s" || *word == "--strategy" {
            words.get(at + 1).is_some_and(|value| own(value))
        } else if let Some(value) = word.strip_prefix("-s").filter(|_| !word.starts_with("--")) {
            own(value)
        } else {
            !word.starts_with("--strat") || word.starts_with("--strategy-option")
        }
    })
}

fn branch(words: &[&str], operands: &[&str], cluster: &dyn Fn(&str) -> bool, long: &dyn Fn(&[&str]) -> bool) -> Form {
    let lists = cluster("l")
        || words.iter().any(|word| {
            ["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--show-current"]
                .iter()
                .any(|option| word == option || word.starts_with(&format!("{option}=")))
        });
    let changes = cluster("dDfmMcCut")
        || long(&[
            "delete",
            "force",
            "move",
            "copy",
            "set-upstream-to",
            "unset-upstream",
            "edit-description",
            "track",
            "no-track",
            "create-reflog",
            "recurse-submodules",
        ]);
    // Abbreviations that could mean either are taken for the change; these are spelled out.
    let shows = words.iter().all(|word| {
        !word.starts_with("--")
            || [
                "--list",
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
                "--show-current",
                "--all",
                "--remotes",
                "--verbose",
                "--sort",
                "--format",
                "--color",
                "--no-color",
                "--column",
                "--no-column",
                "--abbrev",
                "--no-abbrev",
                "--ignore-case",
                "--omit-empty",
                "--quiet",
            ]
            .iter()
            .any(|option| word == option || word.starts_with(&format!("{option}=")))
    });
    match () {
        () if cluster("dDfmMcCut") || (changes && !shows) => Form::Exact(SHARED),
        () if shows && (lists || operands.is_empty()) => Form::Read,
        () if shows => Form::Capability("git branch".into()),
        () => Form::Exact(SHARED),
    }
}

fn tag(operands: &[&str], cluster: &dyn Fn(&str) -> bool, long: &dyn Fn(&[&str]) -> bool) -> Form {
    if cluster("dfv") || long(&["delete", "force", "verify"]) {
        return Form::Exact(SHARED);
    }
    let lists = cluster("ln") || long(&["list", "contains", "no-contains", "merged", "no-merged", "points-at", "sort"]);
    if operands.is_empty() || lists { Form::Read } else { Form::Capability("git tag".into()) }
}

fn config(words: &[&str], operands: &[&str]) -> Form {
    const READS: [&str; 8] =
        ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool", "--list", "-l"];
    const PLAIN: [&str; 18] = [
        "--global",
        "--system",
        "--local",
        "--worktree",
        "-z",
        "--null",
        "--name-only",
        "--show-origin",
        "--show-scope",
        "--bool",
        "--int",
        "--path",
        "--type",
        "-f",
        "--file",
        "--blob",
        "--includes",
        "--default",
    ];
    let reads = words.iter().any(|word| READS.contains(word));
    let known = words
        .iter()
        .filter(|word| word.starts_with('-'))
        .all(|word| READS.contains(word) || PLAIN.contains(&word.split('=').next().unwrap_or(word)));
    let one_name = operands.len() == 1
        && !matches!(operands.first(), Some(&("edit" | "unset" | "set" | "rename-section" | "remove-section")));
    let new_form = matches!(operands.first(), Some(&("list" | "get")));
    if known && (reads || one_name || new_form) { Form::Read } else { Form::Exact("changes the configuration") }
}

fn checkout(
    sub: &str,
    words: &[&str],
    operands: &[&str],
    cluster: &dyn Fn(&str) -> bool,
    long: &dyn Fn(&[&str]) -> bool,
) -> Form {
    const RISKY: &str = "can discard work or take another worktree's branch";
    if words.contains(&"-")
        || long(&["ignore-other-worktrees", "orphan", "force-create", "force", "merge", "track", "discard-changes"])
    {
        return Form::Exact(RISKY);
    }
    let creates = if sub == "checkout" { "b" } else { "c" };
    let only_create = words.iter().all(|word| {
        !word.starts_with('-')
            || matches!(*word, "-q" | "--quiet" | "--no-track" | "--progress" | "--no-progress" | "--")
            || word
                .strip_prefix('-')
                .and_then(|word| word.chars().next())
                .is_some_and(|letter| creates.contains(letter))
            || word.starts_with("--create")
    });
    if (cluster(creates) && !cluster("BCfmt") || sub == "switch" && long(&["create"])) && only_create {
        return Form::Capability(format!("git {sub} -{creates}"));
    }
    let quiet = |word: &&str| {
        matches!(*word, "-q" | "--quiet" | "--detach" | "-d" | "--" | "--progress" | "--no-progress" | "--no-guess")
    };
    if sub == "checkout"
        && let Some(at) = words.iter().position(|word| *word == "--")
    {
        let before = words.get(..at).unwrap_or(&[]);
        let tree = before.iter().filter(|word| !word.starts_with('-')).count();
        let plain = before
            .iter()
            .filter(|word| word.starts_with('-'))
            .all(|word| matches!(*word, "-q" | "--quiet" | "--ours" | "--theirs" | "-f"));
        if tree <= 1 && plain && words.len() > at + 1 {
            return Form::Own;
        }
        return Form::Exact(RISKY);
    }
    match operands {
        [target] if words.iter().filter(|word| word.starts_with('-')).all(quiet) => Form::Target((*target).to_string()),
        _ => Form::Exact(RISKY),
    }
}
