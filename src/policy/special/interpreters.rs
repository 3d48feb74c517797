//! Interpreters: scripts of the worktree, modules, inline code.
//!
//! Entry point: [`interpreter`].

use super::super::args::Arg;
use super::super::eval::{Env, Eval, Stdin};
use super::super::paths::Place;
use super::super::program::{Class, looks_like_path};
use super::super::run::Context;
use super::super::scan::{PUSH, push_in_code};
use super::super::scope::Scope;
use super::inline::{self, Language};

/// How an interpreter reads its options.
struct Options {
    language: Language,
    /// Letters whose value (or the rest of the cluster) is code.
    code: &'static str,
    /// Letters whose value is a path or module.
    path: &'static str,
    /// Letters whose value is data.
    data: &'static str,
    /// Letters without a value.
    flags: &'static str,
    /// Long options whose value is code.
    long_code: &'static [&'static str],
    /// Long options whose value is a path or module.
    long_path: &'static [&'static str],
    /// Long options without a risk, as prefixes.
    long_flags: &'static [&'static str],
}

fn options(name: &str) -> Option<Options> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match stem {
        "python" | "pypy" => Options {
            language: Language::Python,
            code: "c",
            path: "",
            data: "WX",
            flags: "uBEsSIOqvbV",
            long_code: &[],
            long_path: &[],
            long_flags: &[],
        },
        "node" | "nodejs" => Options {
            language: Language::JavaScript,
            code: "ep",
            path: "r",
            data: "",
            flags: "cv",
            long_code: &["--eval", "--print"],
            long_path: &["--require", "--import", "--env-file", "--test-reporter-destination"],
            long_flags: &[
                "--trace-warnings",
                "--trace-deprecation",
                "--no-warnings",
                "--no-deprecation",
                "--enable-source-maps",
                "--max-old-space-size=",
                "--test",
                "--check",
                "--experimental-strip-types",
                "--experimental-vm-modules",
                "--experimental-test-coverage",
                "--unhandled-rejections=",
                "--stack-trace-limit=",
                "--throw-deprecation",
            ],
        },
        "ruby" => Options {
            language: Language::Other,
            code: "e",
            path: "rIC",
            data: "",
            flags: "lwcv",
            long_code: &[],
            long_path: &[],
            long_flags: &["--yjit", "--disable-gems"],
        },
        "perl" => Options {
            language: Language::Other,
            code: "eE",
            path: "IMm",
            data: "",
            flags: "lwcv",
            long_code: &[],
            long_path: &[],
            long_flags: &[],
        },
        "php" => Options {
            language: Language::Other,
            code: "r",
            path: "fcl",
            data: "",
            flags: "nqv",
            long_code: &["--run"],
            long_path: &["--file"],
            long_flags: &["--version"],
        },
        "lua" | "luajit" => Options {
            language: Language::Other,
            code: "e",
            path: "l",
            data: "",
            flags: "vW",
            long_code: &[],
            long_path: &[],
            long_flags: &[],
        },
        "deno" | "bun" => Options {
            language: Language::JavaScript,
            code: "e",
            path: "r",
            data: "",
            flags: "",
            long_code: &["--eval", "--print"],
            long_path: &["--require", "--preload"],
            long_flags: &["--allow-read", "--allow-env", "--no-check", "--quiet", "--silent", "--smol"],
        },
        _ => return None,
    })
}

/// Modules that `python -m` may run in the worktree.
const MODULES: [&str; 14] = [
    "pytest",
    "unittest",
    "doctest",
    "py_compile",
    "compileall",
    "json.tool",
    "mypy",
    "ruff",
    "black",
    "isort",
    "flake8",
    "pylint",
    "coverage",
    "pip",
];

pub(crate) fn interpreter(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env, context: &Context) {
    let Some(options) = options(name) else {
        eval.findings.ask(format!("{name} runs code that can't be judged"));
        return;
    };
    eval.findings.change(format!("{name} runs code"));
    let mut rest = args;
    if name == "deno" {
        match args.split_first() {
            Some((first, after)) if first.as_str() == "run" => rest = after,
            _ => {
                eval.findings.ask("deno with a subcommand that can't be judged");
                return;
            }
        }
    }
    let mut ran = false;
    while let Some((arg, after)) = rest.split_first() {
        let Some(text) = arg.known() else { break };
        if !text.starts_with('-') || text == "-" {
            break;
        }
        rest = after;
        if text == "--" {
            break;
        }
        if text.starts_with("--") {
            let (long, glued) = match text.split_once('=') {
                Some((long, _)) => (long, Some(arg.from(long.len() + 1))),
                None => (text, None),
            };
            if options.long_code.contains(&long) {
                let code = take(glued, &mut rest);
                run_code(eval, name, options.language, code.as_ref());
                ran = true;
            } else if options.long_path.contains(&long) {
                let path = take(glued, &mut rest);
                path_or_module(eval, name, path.as_ref(), env);
            } else if !options.long_flags.iter().any(|flag| text.starts_with(flag)) {
                eval.findings.ask(format!("{name} with the option {long}"));
            }
            continue;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let next = at + letter.len_utf8();
            let glued = (next < text.len()).then(|| arg.from(next));
            if name.starts_with("py") && letter == 'm' {
                let module = take(glued, &mut rest);
                run_module(eval, name, module.as_ref(), rest, env, context);
                return;
            }
            if options.code.contains(letter) {
                // `node -pe code`: the letters after it are more options.
                if options.language == Language::JavaScript && glued.is_some() {
                    continue;
                }
                let code = take(glued, &mut rest);
                run_code(eval, name, options.language, code.as_ref());
                ran = true;
                break;
            }
            if options.path.contains(letter) {
                let path = take(glued, &mut rest);
                if letter == 'f' && name.starts_with("php") {
                    script(eval, name, path.as_ref(), env);
                    ran = true;
                } else {
                    path_or_module(eval, name, path.as_ref(), env);
                }
                break;
            }
            if options.data.contains(letter) {
                take(glued, &mut rest);
                break;
            }
            if !options.flags.contains(letter) {
                eval.findings.ask(format!("{name} with the option -{letter}"));
                break;
            }
        }
    }
    if !ran {
        match rest.split_first().filter(|(first, _)| first.as_str() != "-") {
            Some((first, after)) => {
                script(eval, name, Some(first), env);
                rest = after;
            }
            None => {
                rest = rest.get(1..).unwrap_or(&[]);
                match &context.stdin {
                    Stdin::Text(text) => run_code(eval, name, options.language, Some(&Arg::literal(text))),
                    Stdin::File(_) | Stdin::Inherited | Stdin::Files(_) | Stdin::Unknown => {
                        eval.findings.ask(format!("{name} runs whatever it reads"));
                    }
                }
            }
        }
    }
    for arg in rest {
        eval.operand(name, arg, Class::Write, env);
    }
}

fn take(glued: Option<Arg>, rest: &mut &[Arg]) -> Option<Arg> {
    if glued.is_some() {
        return glued;
    }
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(first.clone())
}

fn run_code(eval: &mut Eval<'_>, name: &str, language: Language, code: Option<&Arg>) {
    match code.and_then(Arg::known) {
        Some(code) if inline::is_harmless(language, code) => {}
        Some(code) => {
            if push_in_code(code) {
                eval.findings.deny(PUSH);
            }
            eval.findings.ask(format!("{name} runs inline code that is more than computing and printing"));
        }
        None => eval.findings.ask(format!("{name} runs code that is known only at run time")),
    }
}

/// The value of `-r`, `-I` and the like: a path, or the name of an installed module.
fn path_or_module(eval: &mut Eval<'_>, name: &str, value: Option<&Arg>, env: &mut Env) {
    let Some(value) = value else { return };
    if value.known().is_none() {
        eval.findings.ask(format!("{name} loads code that is known only at run time"));
    } else if looks_like_path(&value.text) || value.text.contains('/') {
        eval.value(name, Some(value), Class::Write, env);
    } else {
        // Perl's `-M` takes code after a module's name.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | '@');
        if !value.text.chars().all(plain) {
            eval.findings.ask(format!("{name} loads {}, which is no plain name", value.text));
        }
        eval.reads(name, value, env);
    }
}

/// A script file: of the worktree, or a question.
fn script(eval: &mut Eval<'_>, name: &str, script: Option<&Arg>, env: &mut Env) {
    // A name with a colon may be an address or a package.
    let plain = |script: &&Arg| script.known().is_some_and(|text| !text.contains(':')) && script.pattern.is_none();
    let Some(script) = script.filter(plain) else {
        eval.findings.ask(format!("{name} runs a script that is known only at run time"));
        return;
    };
    for (base, path) in eval.candidates("runs", script, env) {
        let inside = eval.places.find(&base, &path).is_some_and(|found| found.place == Place::Worktree);
        if !inside {
            eval.findings.ask(format!("{name} runs the script {}, which is not in the worktree", path.display()));
        }
    }
}

/// `python -m MODULE`.
fn run_module(eval: &mut Eval<'_>, name: &str, module: Option<&Arg>, rest: &[Arg], env: &mut Env, context: &Context) {
    let Some(module) = module.and_then(Arg::known) else {
        eval.findings.ask(format!("{name} runs a module that is known only at run time"));
        return;
    };
    match module {
        "pip" => eval.findings.ask("pip installs or manages packages"),
        "pytest" | "mypy" | "ruff" | "black" | "isort" | "flake8" | "pylint" => {
            let args: Vec<Arg> = [Arg::literal(module)].into_iter().chain(rest.iter().cloned()).collect();
            eval.run(&args, env, &context.inner());
        }
        "json.tool" => {
            let operands: Vec<&Arg> = rest.iter().filter(|arg| !arg.text.starts_with('-') || arg.text == "-").collect();
            for (at, operand) in operands.into_iter().enumerate() {
                eval.operand("json.tool", operand, if at == 1 { Class::Write } else { Class::Read }, env);
            }
            if rest.iter().any(|arg| arg.known().is_none()) {
                eval.findings.ask("json.tool is given words that are known only at run time");
            }
        }
        _ if MODULES.contains(&module) => {
            for arg in rest {
                eval.operand(module, arg, Class::Write, env);
            }
        }
        _ => eval.findings.ask_for(
            format!("{name} runs the module {module}"),
            Scope::Module { program: name.to_string(), module: module.to_string() },
        ),
    }
    if !MODULES.contains(&module) {
        for arg in rest {
            eval.operand(module, arg, Class::Write, env);
        }
    }
}
