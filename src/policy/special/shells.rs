//! Shells given a text or a script, `eval`, `source`, `xargs`.
//!
//! Entry points: [`shell`], [`evaluate`], [`source`], [`xargs`].

use super::super::args::{Arg, Files};
use super::super::eval::{Env, Eval, Stdin};
use super::super::program::{self, Class};
use super::super::run::Context;
use super::super::scan::is_interpreter;
use super::super::scope::Scope;
use super::super::word::UNKNOWN;

/// `bash`, `sh` and the like.
pub(crate) fn shell(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env, context: &Context) {
    if !matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh") {
        eval.findings.ask(format!("{name} reads commands by its own rules"));
        return;
    }
    let mut rest = args;
    let (mut code, mut from_stdin) = (false, false);
    while let Some((arg, after)) = rest.split_first() {
        let Some(text) = arg.known() else { break };
        if text == "--" {
            rest = after;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            if !matches!(long, "norc" | "noprofile" | "posix" | "login" | "verbose") {
                eval.findings.ask(format!("{name} with the option {text}"));
                return;
            }
            rest = after;
            continue;
        }
        let Some(letters) = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty()) else { break };
        rest = after;
        for letter in letters.chars() {
            match letter {
                'c' => code = true,
                's' => from_stdin = true,
                'l' | 'e' | 'u' | 'x' | 'v' | 'f' | 'n' => {}
                'o' => match rest.split_first() {
                    Some((option, after))
                        if matches!(option.as_str(), "pipefail" | "errexit" | "nounset" | "xtrace") =>
                    {
                        rest = after;
                    }
                    _ => {
                        eval.findings.ask(format!("{name} with an option that is not known"));
                        return;
                    }
                },
                _ => {
                    eval.findings.ask(format!("{name} with the option -{letter}"));
                    return;
                }
            }
        }
    }
    if code {
        match rest.first().and_then(Arg::known) {
            Some(text) => {
                eval.nested(text, env, &context.stdin);
            }
            None => eval.findings.ask(format!("{name} runs a text that is known only at run time")),
        }
        return;
    }
    match rest.first().filter(|_| !from_stdin) {
        Some(script) => script_file(eval, name, script, rest.get(1..).unwrap_or(&[]), env),
        None => match &context.stdin {
            Stdin::Text(text) => eval.nested(&text.clone(), env, &Stdin::Inherited),
            Stdin::File(file) => script_file(eval, name, &file.clone(), &[], env),
            Stdin::Inherited | Stdin::Files(_) | Stdin::Unknown => {
                eval.findings.ask(format!("{name} runs whatever it reads"));
            }
        },
    }
}

/// A script that a shell runs: one key for it.
fn script_file(eval: &mut Eval<'_>, shell: &str, script: &Arg, rest: &[Arg], env: &mut Env) {
    let found = match (script.known(), &script.pattern) {
        (Some(_), None) => eval
            .candidates("runs", script, env)
            .into_iter()
            .map(|(base, path)| eval.places.find(&base, &path))
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    match found.as_deref() {
        Some([found]) if !matches!(found.place, super::super::paths::Place::Harmless) => eval.findings.ask_for(
            format!("{shell} runs the script {}", found.real.display()),
            Scope::Script { shell: shell.to_string(), path: found.real.clone() },
        ),
        _ => eval.findings.ask(format!("{shell} runs a script that is known only at run time")),
    }
    for arg in rest {
        eval.operand(shell, arg, Class::Write, env);
    }
}

/// `eval WORDS`: in this shell.
pub(crate) fn evaluate(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env, context: &Context) {
    let args = match args.split_first() {
        Some((first, rest)) if first.as_str() == "--" => rest,
        _ => args,
    };
    let words: Option<Vec<&str>> = args.iter().map(|arg| arg.known().filter(|_| arg.pattern.is_none())).collect();
    match words {
        Some(words) => eval.text(&words.join(" "), env, &context.stdin),
        None => {
            eval.findings.ask("eval runs a text that is known only at run time");
            env.dirs = None;
        }
    }
}

/// `source FILE`.
pub(crate) fn source(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let shell = if name == "." { "source" } else { name };
    match args.split_first() {
        Some((script, rest)) => script_file(eval, shell, script, rest, env),
        None => eval.findings.ask("source without a file"),
    }
    // What it leaves is not known.
    env.dirs = None;
    env.numbers.clear();
}

/// `xargs CMD`: the words it adds come from its input.
pub(crate) fn xargs(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env, context: &Context) {
    let mut rest = args;
    let mut replace: Option<String> = None;
    while let Some((arg, after)) = rest.split_first() {
        let Some(text) = arg.known() else { break };
        if !text.starts_with('-') || text == "-" {
            break;
        }
        rest = match text {
            "--" => {
                rest = after;
                break;
            }
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" | "--verbose" | "--exit" => after,
            "-n" | "-L" | "-P" | "-s" | "-d" | "-E" | "--max-args" | "--max-lines" | "--max-procs" | "--max-chars"
            | "--delimiter" => after.get(1..).unwrap_or(&[]),
            "-I" => {
                replace = after.first().and_then(Arg::known).map(str::to_string);
                after.get(1..).unwrap_or(&[])
            }
            _ if text.starts_with("-I") => {
                replace = text.strip_prefix("-I").map(str::to_string);
                after
            }
            _ if ["-n", "-L", "-P", "-s", "-d", "-0n", "-rn"].iter().any(|option| text.starts_with(option)) => after,
            _ if ["--max-args=", "--max-procs=", "--delimiter=", "--max-lines="]
                .iter()
                .any(|o| text.starts_with(o)) =>
            {
                after
            }
            _ if text.chars().skip(1).all(|letter| matches!(letter, '0' | 'r' | 't' | 'x')) => after,
            _ => {
                eval.findings.ask(format!("xargs with the option {text}"));
                return;
            }
        };
    }
    let trusted = match &context.stdin {
        Stdin::Files(Files::Inside) => true,
        Stdin::Files(Files::Walked) | Stdin::Inherited | Stdin::Text(_) | Stdin::File(_) | Stdin::Unknown => false,
    };
    if !trusted {
        eval.findings.ask("xargs hands on words that are known only at run time");
    }
    let Some(program) = rest.first() else { return };
    let added = if trusted {
        Arg { files: Some(Files::Inside), ..Arg::unknown() }
    } else {
        Arg { splits: true, ..Arg::unknown() }
    };
    let mut words: Vec<Arg> = Vec::new();
    match replace.as_deref().filter(|replace| !replace.is_empty()) {
        Some(replace) => {
            for word in rest {
                words.push(if word.as_str() == replace {
                    added.clone()
                } else if word.text.contains(replace) {
                    Arg { text: word.text.replace(replace, &UNKNOWN.to_string()), ..word.clone() }
                } else {
                    word.clone()
                });
            }
        }
        None => {
            words.extend(rest.iter().cloned());
            words.push(added);
        }
    }
    let name = super::super::run::base_of(program);
    let reads = matches!(name, "sed" | "awk" | "jq")
        || program::lookup(name).is_some_and(|program| program.class == Class::Read)
        || name == "env" && rest.len() == 1;
    if !reads || is_interpreter(name) && name != "awk" {
        eval.findings.ask(format!("xargs runs {name}, which does more than read"));
    }
    let inner = Context { stdin: Stdin::Unknown, ..context.inner() };
    eval.run(&words, &mut env.clone(), &inner);
}
