//! Programs that fetch: `curl`, `wget`, `gh`, `glab`.
//!
//! Entry points: [`fetch`], [`hub`].

use std::collections::BTreeSet;

use super::super::args::Arg;
use super::super::eval::{Env, Eval};
use super::super::program::{Class, looks_like_path};
use super::super::scope::Scope;

/// `curl` and `wget`: a key for the hosts if the rest is plain, else for the exact text.
pub(crate) fn fetch(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let mut hosts = BTreeSet::new();
    let mut plain = true;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.known() else {
            plain = false;
            continue;
        };
        if !text.starts_with('-') {
            match host(text) {
                Some(host) => {
                    hosts.insert(host);
                }
                None => plain = false,
            }
            continue;
        }
        match (name, text) {
            ("curl", "-o" | "--output") | ("wget", "-O" | "--output-document") => {
                eval.value(name, rest.next(), Class::Write, env);
            }
            ("curl", "-X" | "--request") => {
                plain &= rest.next().is_some_and(|verb| matches!(verb.as_str(), "GET" | "HEAD"));
            }
            ("curl", "-m" | "--max-time" | "--connect-timeout" | "--retry" | "-w" | "--write-out") => {
                rest.next();
            }
            (
                "curl",
                "-O" | "--remote-name" | "--fail" | "--silent" | "--show-error" | "--location" | "--head"
                | "--compressed",
            ) => {}
            ("wget", "-q" | "--quiet" | "-nv" | "--no-verbose" | "-c") => {}
            ("curl", _)
                if !text.starts_with("--") && text.chars().skip(1).all(|letter| "fsSLIivkO46".contains(letter)) => {}
            ("wget", _) if text.starts_with("-qO") && text.len() > 3 => {
                eval.value(name, Some(&arg.from(3)), Class::Write, env);
            }
            ("wget", "-qO") => eval.value(name, rest.next(), Class::Write, env),
            _ => plain = false,
        }
    }
    if plain && !hosts.is_empty() {
        let to: Vec<String> = hosts.into_iter().collect();
        eval.findings
            .ask_for(format!("{name} fetches from {}", to.join(", ")), Scope::Net { tool: name.to_string(), to });
    } else {
        eval.findings.ask(format!("{name} uses the network"));
    }
    if name == "wget" || args.iter().any(|arg| arg.text.contains('O') && arg.text.starts_with('-')) {
        // A name that the server chooses, in the directory it runs in.
        eval.writes(name, &Arg::literal("."), env);
    }
}

/// The literal host of a URL or of what curl takes for one.
fn host(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let rest = match lower.split_once("://") {
        Some(("http" | "https", rest)) => rest,
        Some(_) => return None,
        None => lower.as_str(),
    };
    if text.contains(['{', '}', '[', ']', '*', '\\', '@']) {
        return None;
    }
    let host = rest.split(['/', '?', '#']).next()?.split(':').next()?;
    let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    (plain && !host.is_empty() && (host.contains('.') || host == "localhost")).then(|| host.to_string())
}

/// `gh` and `glab`: a key for the two subcommand words.
pub(crate) fn hub(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let words: Vec<&str> = args
        .iter()
        .take(2)
        .filter_map(Arg::known)
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-'))
        .collect();
    match words.as_slice() {
        [first, second]
            if !matches!(
                *first,
                "api"
                    | "auth"
                    | "secret"
                    | "alias"
                    | "extension"
                    | "config"
                    | "ssh-key"
                    | "gpg-key"
                    | "variable"
                    | "codespace"
                    | "cs"
                    | "copilot"
            ) =>
        {
            eval.findings.ask_for(
                format!("{name} {first} {second} uses the network"),
                Scope::Net { tool: name.to_string(), to: vec![(*first).to_string(), (*second).to_string()] },
            );
        }
        _ => eval.findings.ask(format!("{name} uses the network")),
    }
    for (at, arg) in args.iter().enumerate() {
        let file = at.checked_sub(1).and_then(|at| args.get(at)).is_some_and(|option| {
            matches!(
                option.as_str(),
                "-F" | "--body-file" | "--notes-file" | "--input" | "-f" | "--template" | "--file"
            )
        });
        if arg.known().is_none() {
            eval.findings.ask(format!("{name} is given words that are known only at run time"));
        } else if let Some(at) = arg.text.find('=').filter(|_| arg.text.starts_with('-')) {
            eval.value(name, Some(&arg.from(at + 1)), Class::Read, env);
        } else if file || looks_like_path(&arg.text) {
            eval.value(name, Some(arg), Class::Read, env);
        }
    }
}
