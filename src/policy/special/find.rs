//! `find`: where it starts, what it may run, write or delete.
//!
//! Entry points: [`find`], [`lists_files`].

use super::super::access::Tree;
use super::super::args::{Arg, Files};
use super::super::eval::{Env, Eval, Walk};
use super::super::glob;
use super::super::paths::Place;
use super::super::program::Class;
use super::super::run::Context;
use super::super::scope::{Mode, Scope};

/// Tests and actions without an argument.
const PLAIN: [&str; 27] = [
    "-depth",
    "-mount",
    "-xdev",
    "-daystart",
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-true",
    "-false",
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-nouser",
    "-nogroup",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "(",
    ")",
    "!",
    ",",
    "-noleaf",
];
/// Tests with an argument that is no path.
const WITH_DATA: [&str; 33] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-fstype",
    "-lname",
    "-ilname",
    "-used",
    "-printf",
    "-newermt",
];
/// Tests that look at another file.
const WITH_FILE: [&str; 4] = ["-newer", "-anewer", "-cnewer", "-samefile"];
/// Actions that write a file.
const WRITERS: [&str; 3] = ["-fprint", "-fprint0", "-fls"];

/// An expression cut into its parts.
#[derive(Default)]
struct Parsed {
    starts: Vec<Arg>,
    /// Patterns that every result matches by its name.
    names: Vec<String>,
    /// No result is a link.
    only_files: bool,
    /// Nothing in it runs, writes, deletes, prints in its own form or follows links.
    only_lists: bool,
}

pub(crate) fn find(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env, context: &Context) {
    let parsed = parse(args);
    for start in &parsed.starts {
        eval.operand("find", start, Class::Read, env);
    }
    let mut rest = args.get(leading(args)..).unwrap_or(&[]).iter();
    for option in args.iter().take_while(|arg| arg.text.starts_with('-') && is_leading(arg.as_str())) {
        if option.text == "-L" || option.text == "-H" {
            eval.findings.ask(format!("find {} follows links", option.text));
        }
    }
    while let Some(arg) = rest.next() {
        let Some(text) = arg.known() else {
            eval.findings.ask("find is given words that are known only at run time");
            continue;
        };
        if PLAIN.contains(&text) {
        } else if WITH_DATA.contains(&text) {
            if rest.next().is_none_or(|value| value.splits || value.files.is_some()) {
                eval.findings.ask(format!("find {text} without a plain value"));
            }
        } else if WITH_FILE.contains(&text) || text.starts_with("-newer") {
            eval.value("find", rest.next(), Class::Read, env);
        } else if WRITERS.contains(&text) {
            eval.findings.change("find writes a file");
            eval.value("find", rest.next(), Class::Write, env);
        } else if text == "-fprintf" {
            eval.findings.change("find writes a file");
            eval.value("find", rest.next(), Class::Write, env);
            rest.next();
        } else if text == "-delete" {
            delete(eval, &parsed, env);
        } else if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            let mut words = Vec::new();
            let mut closed = false;
            for word in rest.by_ref() {
                let plus = word.as_str() == "+" && words.last().is_some_and(|last: &Arg| last.as_str() == "{}");
                if word.as_str() == ";" || plus {
                    closed = true;
                    break;
                }
                words.push(word.clone());
            }
            if !closed || words.is_empty() {
                eval.findings.ask("find with a command that is not closed");
                continue;
            }
            execute(eval, &parsed, text, &words, env, context);
        } else {
            eval.findings.ask(format!("find with {text}"));
        }
    }
}

fn is_leading(text: &str) -> bool {
    matches!(text, "-H" | "-L" | "-P") || text.starts_with("-O")
}

/// Options before the start points.
fn leading(args: &[Arg]) -> usize {
    let options = args.iter().take_while(|arg| is_leading(arg.as_str())).count();
    let starts = args
        .iter()
        .skip(options)
        .take_while(|arg| !arg.text.starts_with(['-', '(', ')', ',']) && arg.text != "!" || arg.text == "-")
        .count();
    options + starts
}

fn parse(args: &[Arg]) -> Parsed {
    let from = leading(args);
    let options = args.iter().take_while(|arg| is_leading(arg.as_str())).count();
    let mut starts = args.get(options..from).unwrap_or(&[]).to_vec();
    if starts.is_empty() {
        starts.push(Arg::literal("."));
    }
    let expression = args.get(from..).unwrap_or(&[]);
    let joined = expression.iter().any(|arg| matches!(arg.as_str(), "-o" | "-or" | "!" | "-not" | "(" | ")" | ","));
    let mut parsed = Parsed { starts, only_lists: options == 0, ..Parsed::default() };
    let mut rest = expression.iter();
    while let Some(arg) = rest.next() {
        let text = arg.as_str();
        if WITH_DATA.contains(&text) && text != "-printf" {
            let value = rest.next();
            if let Some(value) = value.and_then(Arg::known).filter(|_| !joined) {
                match text {
                    "-name" => parsed.names.push(value.to_string()),
                    "-type" => parsed.only_files |= !value.contains('l'),
                    _ => {}
                }
            }
        } else if !PLAIN.contains(&text) || text == "-ls" {
            parsed.only_lists = false;
        }
    }
    parsed
}

impl Parsed {
    /// Whether a link that leads out of the area can be among the results.
    fn links_out(&self, eval: &mut Eval<'_>, env: &Env) -> bool {
        if self.only_files {
            return false;
        }
        let links: Vec<_> = self.starts.iter().flat_map(|start| eval.links_out(start, env)).collect();
        links.iter().any(|link| {
            let name = link.file_name().and_then(|name| name.to_str()).unwrap_or("");
            self.names.iter().all(|pattern| glob::matches(pattern, name))
        })
    }
}

fn execute(eval: &mut Eval<'_>, parsed: &Parsed, how: &str, words: &[Arg], env: &mut Env, context: &Context) {
    // Any action is more than looking.
    eval.findings.change("find runs a command");
    let walk = Walk { starts: parsed.starts.clone(), links_out: parsed.links_out(eval, env) };
    let args: Vec<Arg> = words
        .iter()
        .map(|word| {
            if word.as_str() == "{}" {
                Arg { files: Some(Files::Walked), ..Arg::unknown() }
            } else if word.text.contains("{}") {
                Arg { text: word.text.replace("{}", &super::super::word::UNKNOWN.to_string()), ..word.clone() }
            } else {
                word.clone()
            }
        })
        .collect();
    let mut inner = env.clone();
    if how.ends_with("dir") {
        // It runs in the directory of each file.
        inner.dirs = None;
    }
    let before = eval.walk.replace(walk);
    eval.run(&args, &mut inner, &context.inner());
    eval.walk = before;
    env.wrote_repository |= inner.wrote_repository;
}

/// `-delete`: asks even inside.
fn delete(eval: &mut Eval<'_>, parsed: &Parsed, env: &mut Env) {
    eval.findings.change("find deletes files");
    let mut inside = true;
    for start in &parsed.starts {
        for (base, path) in eval.candidates("deletes", start, env) {
            match eval.places.find(&base, &path) {
                Some(found) if matches!(found.place, Place::Worktree | Place::Scratch) => {}
                Some(found) => {
                    inside = false;
                    let scope =
                        Scope::OutsideTree { program: "find -delete".into(), mode: Mode::Write, path: found.real };
                    eval.findings.ask_for("deletes files outside the worktree", scope);
                }
                None => eval.findings.ask("deletes files in a place that can't be followed"),
            }
        }
        let narrow = !parsed.names.is_empty() && !parsed.names.iter().any(|name| glob::matches(name, ".git"));
        if !narrow {
            eval.whole_tree("find", start, env, Tree::Written);
        }
    }
    if inside {
        eval.findings.ask_for("deletes whatever find comes to", Scope::Capability { action: "find -delete".into() });
    }
}

/// Whether the output is a list of files in the area and nothing else.
pub(crate) fn lists_files(eval: &mut Eval<'_>, args: &[Arg], env: &Env) -> bool {
    let parsed = parse(args);
    parsed.only_lists
        && args.iter().all(|arg| arg.known().is_some())
        && parsed.starts.iter().all(|start| {
            eval.candidates("walks", start, env)
                .iter()
                .all(|(base, path)| eval.places.find(base, path).is_some_and(|found| found.place == Place::Worktree))
        })
        && !parsed.links_out(eval, env)
}
