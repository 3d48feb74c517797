//! Package managers and the build tools that are one: npm and its kin, npx, cargo, go, pip.
//!
//! Entry points: [`node`], [`npx`], [`cargo`], [`go`], [`pip`].

use super::super::args::Arg;
use super::super::disk::Kind;
use super::super::eval::{Env, Eval};
use super::super::program::{self, Class};
use super::super::run::Context;
use super::super::scope::Scope;

/// `npm`, `pnpm`, `yarn`, `bun`.
pub(crate) fn node(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env, context: &Context) {
    let mut rest = args;
    let mut global = false;
    let mut verb = None;
    // Options before the verb.
    while let Some((arg, after)) = rest.split_first() {
        let Some(text) = arg.known() else {
            eval.findings.ask(format!("{name} is given words that are known only at run time"));
            return;
        };
        rest = after;
        if !text.starts_with('-') {
            verb = Some(text);
            break;
        }
        rest = option(eval, name, text, arg, rest, env, &mut global);
    }
    let mut words = Vec::new();
    let mut own = true;
    while let Some((arg, after)) = rest.split_first() {
        rest = after;
        match arg.known() {
            Some("--") if own => own = false,
            Some(text) if own && text.starts_with('-') => {
                if is_placed(text) || is_risky(text) || matches!(text, "-g" | "--global") {
                    rest = option(eval, name, text, arg, rest, env, &mut global);
                } else {
                    words.push(arg.clone());
                }
            }
            Some(_) | None => words.push(arg.clone()),
        }
    }
    if global {
        eval.findings.ask(format!("{name} works on the whole machine's packages"));
    }
    let operands: Vec<&Arg> = words.iter().filter(|arg| !arg.text.starts_with('-')).collect();
    let Some(verb) = verb else {
        if name == "yarn" || name == "bun" && !args.is_empty() {
            eval.findings.ask_for(format!("{name} installs packages"), capability(name, "install"));
        } else {
            eval.findings.ask(format!("{name} without a verb"));
        }
        return;
    };
    match verb {
        "ls" | "list" | "why" | "explain" | "ll" | "la" => paths(eval, name, &words, env, Class::Read),
        "test" | "t" | "tst" | "run" | "run-script" | "pack" => {
            eval.findings.change(format!("{name} {verb} runs project code"));
            paths(eval, name, &words, env, Class::Write);
            let script = operands.first().and_then(|arg| arg.known());
            let server = matches!(verb, "run" | "run-script") && script.is_none() && !operands.is_empty();
            if server {
                eval.findings.ask(format!("{name} runs a script that is known only at run time"));
            }
        }
        "install" | "i" | "in" | "add" | "remove" | "rm" | "uninstall" | "un" | "r" | "update" | "up" | "upgrade"
        | "ci" | "clean-install" | "dedupe" | "prune" | "rebuild" | "install-test" | "it" | "import" => {
            let verb = match verb {
                "i" | "in" => "install",
                "rm" | "un" | "r" | "uninstall" => "remove",
                "up" | "upgrade" => "update",
                "clean-install" => "ci",
                "it" => "install-test",
                other => other,
            };
            eval.findings.ask_for(format!("{name} {verb} changes the installed packages"), capability(name, verb));
            paths(eval, name, &words, env, Class::Write);
        }
        "exec" | "x" | "dlx" => {
            eval.findings.change(format!("{name} {verb} runs a package"));
            let rest: Vec<Arg> = args.iter().skip_while(|arg| arg.as_str() != verb).skip(1).cloned().collect();
            npx(eval, &format!("{name} {verb}"), &rest, env, context);
        }
        _ if name == "bun" && has_script_name(verb) => {
            let rest: Vec<Arg> = args.iter().skip_while(|arg| arg.as_str() != verb).cloned().collect();
            super::interpreters::interpreter(eval, name, &rest, env, context);
        }
        _ => eval.findings.ask(format!("{name} {verb} needs the person's word")),
    }
}

fn has_script_name(text: &str) -> bool {
    [".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts"].iter().any(|end| text.ends_with(end))
}

fn capability(name: &str, verb: &str) -> Scope {
    Scope::Capability { action: format!("{name} {verb}") }
}

fn is_placed(text: &str) -> bool {
    ["--prefix", "--cwd", "--dir", "-C", "--cache", "--userconfig", "--globalconfig", "--modules-folder", "--store-dir"]
        .iter()
        .any(|option| text == *option || text.starts_with(&format!("{option}=")))
        || (text.starts_with("-C") && text.len() > 2)
}

fn is_risky(text: &str) -> bool {
    [
        "--script-shell",
        "--node-options",
        "--shell",
        "--registry",
        "--ignore-scripts=false",
        "--git",
        "--editor",
        "--viewer",
    ]
    .iter()
    .any(|option| text.starts_with(option))
}

/// An option of the manager itself; gives back what follows it.
fn option<'a>(
    eval: &mut Eval<'_>,
    name: &str,
    text: &str,
    arg: &Arg,
    rest: &'a [Arg],
    env: &mut Env,
    global: &mut bool,
) -> &'a [Arg] {
    if matches!(text, "-g" | "--global" | "--location=global") {
        *global = true;
    } else if is_placed(text) {
        let at = text.find('=').map(|at| at + 1).or((text.starts_with("-C") && text.len() > 2).then_some(2));
        return match at {
            Some(at) => {
                eval.value(name, Some(&arg.from(at)), Class::Write, env);
                rest
            }
            None => {
                eval.value(name, rest.first(), Class::Write, env);
                rest.get(1..).unwrap_or(&[])
            }
        };
    } else if is_risky(text) {
        eval.findings.ask(format!("{name} with the option {text}"));
    } else if matches!(text, "-w" | "--workspace" | "--filter" | "-F") {
        return rest.get(1..).unwrap_or(&[]);
    } else if !matches!(
        text,
        "-s" | "--silent"
            | "-q"
            | "--quiet"
            | "--verbose"
            | "-d"
            | "--loglevel"
            | "--if-present"
            | "-r"
            | "--recursive"
            | "--workspaces"
            | "-ws"
            | "--color"
            | "--no-color"
            | "--json"
            | "--offline"
            | "--no-audit"
            | "--no-fund"
    ) && !text.starts_with("--loglevel=")
        && !text.starts_with("--workspace=")
        && !text.starts_with("--filter=")
    {
        eval.findings.ask(format!("{name} with the option {text}"));
    }
    rest
}

/// What may be a path among the words.
fn paths(eval: &mut Eval<'_>, name: &str, words: &[Arg], env: &mut Env, class: Class) {
    for word in words {
        match word.text.strip_prefix('-').and_then(|_| word.text.find('=')) {
            Some(at) => eval.value(name, Some(&word.from(at + 1)), class, env),
            None => eval.operand(name, word, class, env),
        }
    }
}

/// `npx`, `bunx`, `npm exec`, `pnpm dlx`: an installed tool, or a package from the registry.
pub(crate) fn npx(eval: &mut Eval<'_>, runner: &str, args: &[Arg], env: &mut Env, context: &Context) {
    let mut rest = args;
    let mut fetches = runner.ends_with("dlx");
    while let Some((arg, after)) = rest.split_first() {
        let text = arg.as_str();
        if !text.starts_with('-') {
            break;
        }
        rest = after;
        match text {
            "--" => break,
            "-y" | "--yes" => fetches = true,
            "-p" | "--package" => {
                fetches = true;
                rest = rest.get(1..).unwrap_or(&[]);
            }
            "--no-install" | "--no" | "-q" | "--quiet" | "--silent" => {}
            _ if text.starts_with("--package=") => fetches = true,
            _ => {
                eval.findings
                    .ask(format!("{runner} with the option {}", text.replace(super::super::word::UNKNOWN, "…")));
                return;
            }
        }
    }
    let Some((tool, _)) = rest.split_first() else {
        eval.findings.ask(format!("{runner} without a package"));
        return;
    };
    let Some(name) = tool.known().filter(|_| tool.pattern.is_none()) else {
        eval.findings.ask(format!("{runner} runs a package that is known only at run time"));
        return;
    };
    let plain =
        name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) && !name.starts_with('.');
    if plain && !fetches && is_installed(eval, name, env) {
        eval.run(rest, env, &context.inner());
        return;
    }
    eval.findings.change(format!("{runner} runs a package"));
    eval.findings.ask_for(
        format!("{runner} may fetch and run the package {name}"),
        Scope::Package { runner: runner.to_string(), package: name.to_string() },
    );
    for arg in rest.iter().skip(1) {
        eval.operand(runner, arg, Class::Write, env);
    }
}

/// A tool in `node_modules/.bin` of every directory the command may run in, or above it in the worktree.
fn is_installed(eval: &Eval<'_>, tool: &str, env: &Env) -> bool {
    let Some(dirs) = &env.dirs else { return false };
    !dirs.is_empty()
        && dirs.iter().all(|dir| {
            dir.ancestors().take_while(|dir| dir.starts_with(&eval.places.root)).any(|dir| {
                let path = dir.join("node_modules/.bin").join(tool);
                eval.places
                    .find(dir, &path)
                    .is_some_and(|found| found.kind != Kind::Absent && found.real.starts_with(&eval.places.root))
            })
        })
}

/// `cargo VERB`.
pub(crate) fn cargo(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let Some(program) = program::lookup("cargo") else { return };
    let verb = args.iter().find(|arg| !arg.text.starts_with('-')).map(Arg::as_str).unwrap_or("");
    let listing = args.iter().all(|arg| matches!(arg.as_str(), "--version" | "-V" | "--list" | "--help" | "-h"));
    match verb {
        "build" | "b" | "check" | "c" | "test" | "t" | "run" | "r" | "clippy" | "fmt" | "doc" | "d" | "bench"
        | "metadata" | "tree" => {
            if args.iter().any(|arg| arg.as_str() == "--open") {
                eval.findings.ask("cargo doc --open starts a browser");
            }
        }
        "add" | "remove" | "rm" | "update" | "fetch" | "search" | "vendor" => {
            let verb = if verb == "rm" { "remove" } else { verb };
            eval.findings.ask_for(
                format!("cargo {verb} reaches the registry"),
                Scope::Capability { action: format!("cargo {verb}") },
            );
        }
        "" if listing && !args.is_empty() => {}
        _ => eval
            .findings
            .ask(format!("cargo {} needs the person's word", verb.replace(super::super::word::UNKNOWN, "…"))),
    }
    eval.table("cargo", program, args, env);
}

/// `go VERB`.
pub(crate) fn go(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let Some(program) = program::lookup("go") else { return };
    let verb = args.iter().find(|arg| !arg.text.starts_with('-')).map(Arg::as_str).unwrap_or("");
    match verb {
        "build" | "test" | "vet" | "fmt" | "list" | "doc" | "version" => {}
        "run" if !args.iter().any(|arg| arg.text.contains('@')) => {}
        "env" if !args.iter().any(|arg| matches!(arg.as_str(), "-w" | "-u" | "--w" | "--u")) => {}
        "get" | "install" | "mod" => eval
            .findings
            .ask_for(format!("go {verb} reaches the module proxy"), Scope::Capability { action: format!("go {verb}") }),
        _ => {
            eval.findings.ask(format!("go {} needs the person's word", verb.replace(super::super::word::UNKNOWN, "…")));
        }
    }
    eval.table("go", program, args, env);
}

/// `pip`: only what looks at what is installed.
pub(crate) fn pip(eval: &mut Eval<'_>, name: &str, args: &[Arg]) {
    let verb = args.first().map(Arg::as_str).unwrap_or("");
    let plain = args.iter().all(|arg| {
        arg.known().is_some_and(|text| {
            !text.starts_with('-') || matches!(text, "-f" | "--files" | "-v" | "--format=json" | "--all" | "-l")
        })
    });
    if !matches!(verb, "list" | "show" | "freeze" | "check") || !plain {
        eval.findings.ask(format!("{name} installs or manages packages"));
    }
}
