//! Bash's builtins that change the shell itself: directory, variables, options, code.
//!
//! Entry points: [`builtin`], [`change_directory`].

use std::collections::BTreeSet;

use super::super::args::Arg;
use super::super::eval::{Env, Eval, Setting};
use super::super::lex::is_name;
use super::super::paths::Place;
use super::super::run::Context;
use super::super::scope::Scope;
use super::super::word::{UNKNOWN, Word};
use super::shells;

/// Builtins that are judged here.
pub(crate) const NAMES: [&str; 40] = [
    "cd",
    "pushd",
    "popd",
    "dirs",
    "eval",
    "source",
    ".",
    "alias",
    "unalias",
    "trap",
    "coproc",
    "hash",
    "enable",
    "history",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "fc",
    "let",
    "getopts",
    "mapfile",
    "readarray",
    "read",
    "declare",
    "typeset",
    "export",
    "readonly",
    "local",
    "unset",
    "set",
    "shopt",
    "printf",
    "test",
    "[",
    "caller",
    "logout",
    "ulimit",
    "times",
    "help",
];

pub(crate) fn builtin(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env, context: &Context) {
    match name {
        "cd" => {
            let operands = match args.split_first() {
                Some((first, rest)) if matches!(first.as_str(), "-L" | "-P" | "-e" | "--") => rest,
                _ => args,
            };
            if operands.len() > 1 {
                eval.findings.ask("cd with more than one directory");
            }
            change_directory(eval, operands.first(), env);
        }
        "pushd" => change_directory(eval, args.first(), env),
        "eval" => shells::evaluate(eval, args, env, context),
        "source" | "." => shells::source(eval, name, args, env),
        "let" => {
            for arg in args {
                eval.arith(arg.as_str(), &[], env);
            }
            if args.is_empty() {
                eval.findings.ask("let without an expression");
            }
        }
        "read" => read(eval, args, env),
        "mapfile" | "readarray" => mapfile(eval, name, args, env),
        "getopts" => match args.get(1).and_then(Arg::known) {
            Some(variable) => set_by_name(eval, variable, env),
            None => eval.findings.ask("getopts without a plain variable"),
        },
        "declare" | "typeset" | "export" | "readonly" | "local" => declare(eval, name, args, env),
        "unset" => unset(eval, args, env),
        "set" => set(eval, args),
        "shopt" => shopt(eval, args, env),
        "printf" => printf(eval, args, env),
        "test" | "[" => test(eval, args),
        "hash" => {
            if args.iter().any(|arg| arg.known().is_none() || (arg.text.starts_with('-') && arg.text != "-r")) {
                eval.findings.ask("hash can make a name stand for another program");
            }
        }
        "history" | "enable" => {
            if !args.is_empty() {
                eval.findings.ask(format!("{name} with arguments changes the shell"));
            }
        }
        "compgen" => {
            let plain = |arg: &Arg| {
                arg.known().is_some_and(|text| {
                    text.strip_prefix('-').is_none_or(|letters| letters.chars().all(|c| "abcdefgjksuv".contains(c)))
                })
            };
            if !args.iter().all(plain) {
                eval.findings.ask("compgen can run code");
            }
        }
        "times" | "caller" => {}
        _ => eval.findings.ask(format!("{name} changes the shell")),
    }
}

/// `cd DIR`: the directories that later commands may run in.
pub(crate) fn change_directory(eval: &mut Eval<'_>, operand: Option<&Arg>, env: &mut Env) {
    let Some(arg) = operand.filter(|arg| arg.as_str() != "-" && !arg.text.is_empty()) else {
        eval.findings.ask("changes to a directory that is not named");
        env.dirs = None;
        return;
    };
    let plain = arg.known().is_some_and(|text| !text.starts_with(['+', '-'])) && arg.pattern.is_none();
    let climbs = arg.text.split('/').any(|part| part == "..");
    if !plain || (env.through_link && climbs) {
        eval.findings.ask("changes to a directory that is known only at run time");
        env.dirs = None;
        return;
    }
    let mut dirs = BTreeSet::new();
    for (base, path) in eval.candidates("changes to", arg, env) {
        let Some(found) = eval.places.find(&base, &path) else {
            eval.findings.ask("changes to a directory that can't be followed");
            env.dirs = None;
            return;
        };
        match found.place {
            Place::Worktree | Place::Scratch | Place::ReadDir => {}
            Place::Outside => eval.findings.ask_for(
                format!("changes to {}, which is outside", found.real.display()),
                Scope::Cd { dir: found.real.clone() },
            ),
            Place::Harmless | Place::Network => eval.findings.ask("changes to what is no directory"),
        }
        // Where the text alone would lead: the shell goes by that when it is asked for `..` later.
        let mut logical = base.clone();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => {
                    logical.pop();
                }
                std::path::Component::CurDir => {}
                part => logical.push(part),
            }
        }
        if logical != found.real {
            if climbs {
                eval.findings.ask("changes to a directory through a link and back");
            }
            env.through_link = true;
        }
        dirs.insert(found.real);
    }
    env.dirs = if dirs.is_empty() { None } else { Some(dirs) };
}

/// A variable whose name is an argument.
fn set_by_name(eval: &mut Eval<'_>, name: &str, env: &mut Env) {
    if is_name(name) {
        eval.assign(name, None, env, Setting::Loop);
    } else if name.contains(['[', '$', '`']) {
        match name.split_once('[') {
            Some((array, index))
                if is_name(array)
                    && index.strip_suffix(']').is_some_and(|index| index.bytes().all(|b| b.is_ascii_digit())) =>
            {
                eval.assign(array, None, env, Setting::Loop);
            }
            _ => eval.findings.ask("a variable's subscript is evaluated"),
        }
    } else {
        eval.findings.ask("a variable whose name is known only at run time");
    }
}

fn read(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.known() else {
            eval.findings.ask("read is given a name known only at run time");
            return;
        };
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            set_by_name(eval, text, env);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'r' | 's' | 'E' => {}
                'a' | 'd' | 'n' | 'N' | 'p' | 't' | 'u' | 'i' => {
                    let glued = letters.get(at + 1..).filter(|glued| !glued.is_empty()).map(str::to_string);
                    let value = match glued {
                        Some(value) => Some(value),
                        None => rest.next().map(|value| value.text.clone()),
                    };
                    if letter == 'a' {
                        set_by_name(eval, value.as_deref().unwrap_or(""), env);
                    }
                    break;
                }
                _ => {
                    eval.findings.ask(format!("read with the option -{letter}"));
                    break;
                }
            }
        }
    }
}

fn mapfile(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.known() {
            None => eval.findings.ask(format!("{name} is given a name known only at run time")),
            Some("-t") => {}
            Some("-d" | "-n" | "-O" | "-s" | "-u") => {
                rest.next();
            }
            Some(text) if text.starts_with('-') => eval.findings.ask(format!("{name} with the option {text}")),
            Some(text) => set_by_name(eval, text, env),
        }
    }
}

fn declare(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let mut exported = name == "export";
    for arg in args {
        let text = arg.as_str();
        if let Some(letters) = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty()) {
            exported |= letters.contains('x');
            if arg.known().is_none() || letters.chars().any(|letter| !"aAglrxpFtu".contains(letter)) {
                eval.findings.ask(format!("{name} with the option {text} changes what names mean"));
            }
            continue;
        }
        let (variable, value) = match text.split_once('=') {
            Some((variable, _)) => (variable, Some(arg.from(variable.len() + 1))),
            None => (text, None),
        };
        let variable = variable.strip_suffix('+').unwrap_or(variable);
        if variable.contains(UNKNOWN) || !is_name(variable) {
            eval.findings.ask(format!("{name} is given a name that is not plain or known only at run time"));
            continue;
        }
        let setting = if exported { Setting::Prefix } else { Setting::Shell };
        match value {
            Some(value) => match value.known() {
                Some(text) => eval.assign(variable, Some(&Word::quoted(text)), env, setting),
                None => eval.assign(variable, None, env, setting),
            },
            // Exporting hands on a value that an earlier command gave.
            None if exported => eval.unset(variable),
            None => eval.assign(variable, None, env, Setting::Loop),
        }
    }
}

fn unset(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    for arg in args {
        match arg.known() {
            Some("-v" | "-f") => {}
            Some(name) if is_name(name) => {
                env.numbers.remove(name);
                env.tainted.insert(name.to_string());
                eval.unset(name);
            }
            Some(_) | None => eval.findings.ask("unset evaluates a name that is not plain"),
        }
    }
}

fn set(eval: &mut Eval<'_>, args: &[Arg]) {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.known() {
            Some("--" | "-") => return,
            Some("-o" | "+o") => match rest.next().and_then(Arg::known) {
                None
                | Some(
                    "pipefail" | "errexit" | "nounset" | "xtrace" | "noglob" | "noclobber" | "verbose" | "errtrace",
                ) => {}
                Some(option) => eval.findings.ask(format!("set -o {option} changes how the shell reads commands")),
            },
            Some(text) if text.starts_with(['-', '+']) => {
                let letters = text.get(1..).unwrap_or("");
                let (plain, takes) = match letters.strip_suffix('o') {
                    Some(letters) => (letters, true),
                    None => (letters, false),
                };
                if plain.chars().any(|letter| !"euxvfCE".contains(letter)) {
                    eval.findings.ask(format!("set {text} changes how the shell reads commands"));
                }
                if takes && !matches!(rest.next().and_then(Arg::known), Some("pipefail" | "errexit" | "nounset")) {
                    eval.findings.ask(format!("set {text} changes how the shell reads commands"));
                }
            }
            // Positional parameters.
            Some(_) => return,
            None => {
                eval.findings.ask("set is given an option known only at run time");
                return;
            }
        }
    }
}

fn shopt(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let changes = args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains(['s', 'u', 'o']));
    for arg in args {
        match arg.known() {
            Some(text) if text.starts_with('-') => {
                if text.contains('o') {
                    eval.findings.ask("shopt changes how the shell reads commands");
                }
            }
            Some("nullglob" | "failglob" | "inherit_errexit") => {}
            Some("globstar") => env.globstar = true,
            Some(_) if !changes => {}
            Some(option) => eval.findings.ask(format!("the shell option {option} changes how commands are read")),
            None => eval.findings.ask("shopt is given an option known only at run time"),
        }
    }
}

fn printf(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let mut rest = args;
    if let Some((first, after)) = args.split_first() {
        if first.as_str() == "--" {
            return;
        }
        if let Some(glued) = first.text.strip_prefix("-v") {
            let name =
                if glued.is_empty() { after.first().map(|arg| arg.text.clone()) } else { Some(glued.to_string()) };
            set_by_name(eval, name.as_deref().unwrap_or(""), env);
            rest = &[];
        }
    }
    // A first argument that may turn out to be `-v` assigns whatever follows.
    if rest.first().is_some_and(|first| first.text.starts_with(UNKNOWN) && (first.splits || rest.len() > 1)) {
        eval.findings.ask("printf is given a format that may be an option");
    }
}

fn test(eval: &mut Eval<'_>, args: &[Arg]) {
    for (at, arg) in args.iter().enumerate() {
        if matches!(arg.as_str(), "-v" | "-R") {
            let name = args.get(at + 1).and_then(Arg::known);
            if name.is_some_and(|name| !is_name(name) && name != "]")
                || args.get(at + 1).is_some_and(|arg| arg.known().is_none())
            {
                eval.findings.ask("a tested name is evaluated");
            }
        }
        if arg.splits && eval.subscript_bomb {
            eval.findings.ask("a tested value may be an option");
        }
    }
}
