//! Programs that remove, move and copy files, and a few others about files and the clock.
//!
//! Entry points: [`remove`], [`transfer`], [`chmod`], [`dd`], [`date`].

use std::path::{Path, PathBuf};

use super::super::access::Tree;
use super::super::args::{Arg, Files};
use super::super::disk::Kind;
use super::super::eval::{Env, Eval};
use super::super::paths::Place;
use super::super::program::{self, Meaning, Part};
use super::super::scope::{Mode, Scope};

/// `rm`, `rmdir`, `unlink`.
pub(crate) fn remove(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let Some(program) = program::lookup(name) else { return };
    eval.findings.change(format!("{name} deletes files"));
    let mut operands = Vec::new();
    let mut recursive = false;
    for part in program::walk(program, args) {
        match part {
            Part::Operand(arg) => operands.push(arg),
            Part::Option { .. } => {}
            Part::Other { text, value } => {
                let long = text.text.strip_prefix("--");
                recursive |= name == "rm"
                    && (matches!(text.as_str(), "-r" | "-R")
                        || long.is_some_and(|long| !long.is_empty() && "recursive".starts_with(long)));
                let known = text.known().is_some()
                    && (matches!(text.as_str(), "-r" | "-R" | "-f" | "-i" | "-I" | "-v" | "-d" | "-p")
                        || long.is_some_and(|long| {
                            [
                                "recursive",
                                "force",
                                "verbose",
                                "dir",
                                "parents",
                                "ignore-fail-on-non-empty",
                                "interactive",
                                "one-file-system",
                                "preserve-root",
                            ]
                            .iter()
                            .any(|option| option.starts_with(long.split('=').next().unwrap_or(long)))
                        }));
                if !known || value.is_some() {
                    eval.findings
                        .ask(format!("{name} with the option {}", text.text.replace(super::super::word::UNKNOWN, "…")));
                }
            }
        }
    }
    for operand in &operands {
        match operand.files {
            Some(Files::Walked) => {
                eval.findings
                    .ask_for("deletes whatever find comes to", Scope::Capability { action: "find -delete".into() });
                eval.removes(name, operand, env);
                continue;
            }
            Some(Files::Inside) => {
                eval.findings.ask(format!("{name} deletes files whose names are known only at run time"));
                continue;
            }
            None => {}
        }
        if recursive { remove_tree(eval, operand, env) } else { eval.removes(name, operand, env) }
    }
}

/// `rm -r`: asks even inside.
fn remove_tree(eval: &mut Eval<'_>, operand: &Arg, env: &mut Env) {
    for (base, path) in eval.candidates("deletes", operand, env) {
        let Some(found) = eval.places.find_entry(&base, &path) else {
            eval.findings.ask(format!("deletes {}, which can't be followed", path.display()));
            continue;
        };
        let shown = found.real.display().to_string();
        if found.place == Place::Outside || found.place == Place::ReadDir || found.place == Place::Network {
            let scope = Scope::OutsideTree { program: "rm -r".into(), mode: Mode::Write, path: found.real };
            eval.findings.ask_for(format!("deletes {shown}, which is outside the worktree"), scope);
            continue;
        }
        if found.root {
            eval.findings.ask(format!("deletes all of {shown}"));
            continue;
        }
        let survey = eval.places.survey(&found.real);
        if found.git_entry || survey.git_entry || !survey.complete {
            eval.findings.ask(format!("deletes {shown} with a git directory in it"));
        }
        // A link among the parents that leads out was resolved; one at the end only goes itself.
        eval.findings
            .ask_for(format!("deletes {shown} and what is below it"), Scope::Capability { action: "rm -r".into() });
    }
}

/// `cp`, `mv`, `install`.
pub(crate) fn transfer(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let Some(program) = program::lookup(name) else { return };
    eval.findings.change(format!("{name} changes files"));
    let (mut operands, mut target) = (Vec::new(), None);
    let (mut trees, mut follows, mut directories, mut plain_target) = (name == "mv", false, false, false);
    for part in program::walk(program, args) {
        match part {
            Part::Operand(arg) => operands.push(arg),
            Part::Other { text, .. } => {
                eval.findings
                    .ask(format!("{name} with the option {}", text.text.replace(super::super::word::UNKNOWN, "…")));
            }
            Part::Option { name: option, meaning, value } => match meaning {
                Meaning::Write => target = value,
                Meaning::Follow => follows = true,
                Meaning::Ask => {
                    eval.findings.ask(format!("{name} with the option {option} makes links or runs a program"));
                }
                Meaning::Flag | Meaning::Data | Meaning::Script | Meaning::ScriptFile | Meaning::Read => {
                    if value.as_ref().is_some_and(|value| value.known().is_none()) {
                        eval.findings.ask(format!("{name} is given words that are known only at run time"));
                    }
                    // A backup's name is the file's with this at its end.
                    if matches!(option.as_str(), "S" | "suffix") && value.is_some_and(|value| value.text.contains('/'))
                    {
                        eval.findings.ask(format!("{name} is given a suffix that is a path"));
                    }
                    trees |= matches!(
                        option.as_str(),
                        "r" | "R" | "a" | "d" | "P" | "archive" | "recursive" | "no-dereference"
                    );
                    directories |= name == "install" && matches!(option.as_str(), "d" | "directory");
                    plain_target |= matches!(option.as_str(), "T" | "no-target-directory");
                }
            },
        }
    }
    if directories {
        for operand in &operands {
            eval.writes(name, operand, env);
        }
        return;
    }
    let into = target.is_some();
    let Some(target) = target.or_else(|| operands.pop()).filter(|_| !operands.is_empty()) else {
        eval.findings.ask(format!("{name} without a source and a target"));
        return;
    };
    for source in &operands {
        if name == "mv" {
            eval.removes(name, source, env);
        } else {
            eval.reads(name, source, env);
        }
        if source.files.is_some() {
            eval.findings.ask(format!("{name} takes files whose names are known only at run time"));
            continue;
        }
        if trees {
            eval.whole_tree(name, source, env, if follows { Tree::Followed } else { Tree::Moved });
        }
    }
    eval.writes(name, &target, env);
    if plain_target {
        return;
    }
    // In a directory, what is written bears the source's name.
    for source in &operands {
        for (base, path) in eval.candidates("writes", source, env) {
            let name_of = path
                .file_name()
                .map(PathBuf::from)
                .or_else(|| eval.places.find(&base, &path).and_then(|found| found.real.file_name().map(PathBuf::from)));
            let Some(file) = name_of.filter(|_| target.known().is_some()) else { continue };
            for (base, dir) in eval.candidates("writes", &target, env) {
                let is_dir = eval.places.find(&base, &dir).is_some_and(|found| found.kind == Kind::Directory);
                if is_dir || into {
                    let written = dir.join(&file);
                    match written.to_str() {
                        Some(text) => eval.writes(name, &Arg::literal(&absolute(&base, text)), env),
                        None => eval.findings.ask(format!("{name} writes a name that is not plain")),
                    }
                }
            }
        }
    }
}

fn absolute(base: &Path, text: &str) -> String {
    if text.starts_with('/') { text.to_string() } else { format!("{}/{text}", base.display()) }
}

/// `chmod`: a capability inside.
pub(crate) fn chmod(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    eval.findings.ask_for("changes permissions", Scope::Capability { action: "chmod".into() });
    let mut mode_seen = false;
    let mut recursive = false;
    let mut operands = Vec::new();
    for arg in args {
        let Some(text) = arg.known() else {
            eval.findings.ask("chmod is given words that are known only at run time");
            continue;
        };
        if let Some(reference) = text.strip_prefix("--reference=") {
            mode_seen = true;
            eval.reads("chmod", &Arg::literal(reference), env);
        } else if text.starts_with("--") || (text.starts_with('-') && text.chars().skip(1).all(|c| "Rcfv".contains(c)))
        {
            recursive |= text == "--recursive" || (!text.starts_with("--") && text.contains('R'));
        } else if !mode_seen {
            mode_seen = true;
        } else {
            operands.push(arg.clone());
        }
    }
    for operand in &operands {
        eval.writes("chmod", operand, env);
        if recursive {
            eval.whole_tree("chmod", operand, env, Tree::Written);
        }
    }
}

/// `dd`: a capability inside.
pub(crate) fn dd(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    eval.findings.ask_for("copies with dd", Scope::Capability { action: "dd".into() });
    for arg in args {
        match arg.text.split_once('=') {
            Some(("if", _)) => eval.reads("dd", &arg.from(3), env),
            Some(("of", _)) => eval.writes("dd", &arg.from(3), env),
            Some(_) if arg.known().is_some() => {}
            Some(_) | None => eval.findings.ask("dd with an argument that is not plain"),
        }
    }
}

/// `date`: prints, unless it is given a time to set.
pub(crate) fn date(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let Some(program) = program::lookup("date") else { return };
    for part in program::walk(program, args) {
        if let Part::Operand(operand) = part
            && !operand.text.starts_with('+')
        {
            eval.findings.ask("date with a time sets the clock");
        }
    }
    eval.table("date", program, args, env);
}
