//! Whether the paths of a command may be read or written.
//!
//! Owns what an argument can name (wildcards matched on disk, every directory the command may run in) and the
//! questions that follow. Knows no programs beyond their names in questions. Entry points: [`Eval::reads`],
//! [`Eval::writes`], [`Eval::removes`], [`Eval::whole_tree`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::args::{Arg, Files};
use super::disk::Kind;
use super::eval::{Env, Eval};
use super::git::repository::shapes_a_repository;
use super::glob;
use super::paths::{Found, Place};
use super::scope::{Mode, Scope};

/// Names that wildcards of one argument may match before it counts as unknown.
const MATCHES: usize = 512;

/// What is done with the whole tree below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// Read, links in it followed.
    Followed,
    /// Moved or copied: links in it then lead elsewhere.
    Moved,
    /// Written file by file.
    Written,
}

/// How the last component is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// What a link there leads to.
    Followed,
    /// The entry itself.
    Entry,
}

impl Eval<'_> {
    /// The argument is opened for reading.
    pub(crate) fn reads(&mut self, program: &str, arg: &Arg, env: &mut Env) {
        match arg.files {
            Some(Files::Inside) => return,
            Some(Files::Walked) => {
                if self.walk.as_ref().is_some_and(|walk| walk.links_out) {
                    self.findings.ask(format!("{program} reads whatever find comes to, and a link there leads out"));
                }
                return;
            }
            None => {}
        }
        for (base, path) in self.candidates("reads", arg, env) {
            match self.places.find(&base, &path) {
                Some(found) if found.readable() => {}
                Some(found) => self.outside(program, Mode::Read, &found),
                None => self.findings.ask(format!("{program} reads {}, which can't be followed", path.display())),
            }
        }
    }

    /// The argument is created or changed, through a link that stands there.
    pub(crate) fn writes(&mut self, program: &str, arg: &Arg, env: &mut Env) {
        self.written(program, arg, env, Last::Followed);
    }

    /// The entry itself is removed, moved or replaced.
    pub(crate) fn removes(&mut self, program: &str, arg: &Arg, env: &mut Env) {
        self.written(program, arg, env, Last::Entry);
    }

    fn written(&mut self, program: &str, arg: &Arg, env: &mut Env, last: Last) {
        match arg.files {
            Some(Files::Inside) => {
                self.findings.ask(format!("{program} writes files whose names are known only at run time"));
                return;
            }
            Some(Files::Walked) => {
                self.findings.change(format!("{program} changes files"));
                let starts = self.walk.as_ref().map(|walk| walk.starts.clone()).unwrap_or_default();
                for start in starts {
                    self.written(program, &start, env, Last::Followed);
                    self.whole_tree(program, &start, env, Tree::Written);
                }
                if self.walk.as_ref().is_some_and(|walk| walk.links_out) {
                    self.findings.ask(format!("{program} changes whatever find comes to, and a link there leads out"));
                }
                return;
            }
            None => {}
        }
        for (base, path) in self.candidates("writes", arg, env) {
            let found = match last {
                Last::Followed => self.places.find(&base, &path),
                Last::Entry => self.places.find_entry(&base, &path),
            };
            let Some(found) = found else {
                self.findings.ask(format!("{program} writes {}, which can't be followed", path.display()));
                continue;
            };
            // A link that leads out asks even where only the link would go: what it hides is not ours.
            let target = if last == Last::Entry { self.places.find(&base, &path) } else { None };
            let found = match target {
                Some(target) if !target.readable() => target,
                Some(_) | None => found,
            };
            if found.place != Place::Harmless {
                self.findings.change(format!("{program} changes files"));
            }
            env.wrote_repository |= shapes_a_repository(&found.real);
            if found.writable() {
                continue;
            }
            if found.git_entry && found.place != Place::Outside {
                self.findings.ask_for(
                    format!("{program} changes the git entry {}", found.real.display()),
                    Scope::GitEntry { tool: program.into(), file: found.real },
                );
            } else {
                self.outside(program, Mode::Write, &found);
            }
        }
    }

    fn outside(&mut self, program: &str, mode: Mode, found: &Found) {
        let what = match mode {
            Mode::Read => "reads",
            Mode::Write => "changes",
            Mode::Run => "runs",
        };
        if found.place == Place::Network {
            self.findings.ask(format!("{program} opens a network connection"));
            return;
        }
        let dir = match found.kind {
            // What a directory is good for depends on the program: it may list or walk all of it.
            Kind::Directory => {
                let scope = Scope::OutsideTree { program: program.into(), mode, path: found.real.clone() };
                self.findings.ask_for(format!("{program} {what} {}, which is outside", found.real.display()), scope);
                return;
            }
            Kind::Absent | Kind::File | Kind::Link(_) | Kind::Special | Kind::Unreadable => {
                found.real.parent().unwrap_or(&found.real).to_path_buf()
            }
        };
        self.findings.ask_for(
            format!("{program} {what} {}, which is outside", found.real.display()),
            Scope::OutsideDir { program: program.into(), mode, dir },
        );
    }

    /// Every place the argument may name, with the directory it is looked up in; questions for what is not known.
    pub(crate) fn candidates(&mut self, what: &str, arg: &Arg, env: &Env) -> Vec<(PathBuf, PathBuf)> {
        if arg.is_unknown() {
            self.findings.ask(format!("{what} a path that is known only at run time"));
            return Vec::new();
        }
        if arg.text.is_empty() || arg.text == "-" {
            return Vec::new();
        }
        if arg.text.contains('\0') {
            self.findings.ask(format!("{what} a path that is not plain"));
            return Vec::new();
        }
        let absolute = arg.text.starts_with('/');
        let bases: Vec<PathBuf> = match &env.dirs {
            _ if absolute => vec![PathBuf::from("/")],
            Some(dirs) => dirs.iter().cloned().collect(),
            None => {
                self.findings.ask(format!("{what} {} in a directory that is known only at run time", arg.text));
                return Vec::new();
            }
        };
        let Some(pattern) = &arg.pattern else {
            return bases.into_iter().map(|base| (base, PathBuf::from(&arg.text))).collect();
        };
        if env.globstar && pattern.contains("**") {
            self.findings.ask(format!("{what} whatever `{}` matches", arg.text));
            return Vec::new();
        }
        let mut all = Vec::new();
        for base in bases {
            match self.matches(&base, pattern) {
                Some(paths) => all.extend(paths.into_iter().map(|path| (base.clone(), path))),
                None => self.findings.ask(format!("{what} whatever `{}` matches", arg.text)),
            }
        }
        all
    }

    /// What a pattern matches below a directory, and the pattern's own text if that is nothing; `None` if that can't
    /// be told: too many, or `..` after a wildcard.
    fn matches(&self, base: &Path, pattern: &str) -> Option<Vec<PathBuf>> {
        let mut found = vec![PathBuf::new()];
        let mut wild = false;
        if pattern.starts_with('/') {
            found = vec![PathBuf::from("/")];
        }
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
        for part in &parts {
            let plain: String = unescaped(part);
            if !has_wildcard(part) {
                if wild && plain == ".." {
                    return None;
                }
                for path in &mut found {
                    path.push(&plain);
                }
                continue;
            }
            // A bracket can spell dots and slashes; what it matches is looked up, but `..` never is.
            wild = true;
            let mut next = Vec::new();
            for path in found {
                let here = self.places.find(base, if path.as_os_str().is_empty() { Path::new(".") } else { &path })?;
                if here.kind != Kind::Directory {
                    continue;
                }
                for name in self.places.disk.names(&here.real, MATCHES.saturating_mul(8))? {
                    let text = name.to_str()?;
                    let hidden = text.starts_with('.') && !part.starts_with('.');
                    if !hidden && glob::matches(part, text) {
                        next.push(path.join(text));
                    }
                }
                if part.starts_with('.') {
                    // `.*` matches these two as well.
                    next.extend(
                        [".", ".."].iter().filter(|name| glob::matches(part, name)).map(|name| path.join(name)),
                    );
                }
                if next.len() > MATCHES {
                    return None;
                }
            }
            found = next;
        }
        // Bash hands the pattern on as it is when nothing matches; and what does not exist yet may be made first.
        let fixed: PathBuf = {
            let mut fixed = PathBuf::from(if pattern.starts_with('/') { "/" } else { "." });
            fixed.extend(parts.iter().take_while(|part| !has_wildcard(part)).map(|part| unescaped(part)));
            fixed
        };
        found.push(fixed);
        Some(found)
    }

    /// Asks where a tree holds what must not be touched by walking it; `path` was judged by itself already.
    pub(crate) fn whole_tree(&mut self, program: &str, arg: &Arg, env: &Env, tree: Tree) {
        // A list that turns out empty leaves the program its default: the directory it runs in.
        let here = Arg::literal(".");
        let arg = if arg.files.is_some() && tree == Tree::Followed { &here } else { arg };
        if arg.is_unknown() {
            return;
        }
        for (base, path) in self.candidates("walks", arg, env) {
            let Some(found) = self.places.find_entry(&base, &path) else { continue };
            if found.place == Place::Outside || found.place == Place::Harmless {
                continue;
            }
            let survey = self.places.survey(&found.real);
            if !survey.complete {
                self.findings.ask(format!("{program} walks a tree that is too big to look through"));
            }
            let links_out = survey.links.iter().any(|link| link.leads_out);
            let climbs = survey.links.iter().any(|link| link.climbs);
            match tree {
                Tree::Followed if links_out => {
                    self.findings.ask(format!("{program} follows links in {}, and one leads out", path.display()));
                }
                Tree::Moved if links_out || climbs => {
                    self.findings.ask(format!("{program} takes along a link in {} that leads out", path.display()));
                }
                Tree::Followed | Tree::Moved | Tree::Written => {}
            }
            if matches!(tree, Tree::Moved | Tree::Written) && (survey.git_entry || found.git_entry) {
                self.findings.ask(format!("{program} changes {}, which holds a git directory", path.display()));
            }
            if tree == Tree::Moved && found.root {
                self.findings.ask(format!("{program} changes the root of {}", found.real.display()));
            }
        }
    }

    /// Names of links below a start that lead out of the area, for a walk that hands every entry on.
    pub(crate) fn links_out(&mut self, arg: &Arg, env: &Env) -> Vec<PathBuf> {
        let mut links = BTreeSet::new();
        for (base, path) in self.candidates("walks", arg, env) {
            let Some(found) = self.places.find(&base, &path) else { continue };
            if found.readable() {
                let survey = self.places.survey(&found.real);
                if !survey.complete {
                    self.findings.ask("walks a tree that is too big to look through");
                }
                links.extend(survey.links.into_iter().filter(|link| link.leads_out).map(|link| link.path));
            }
        }
        links.into_iter().collect()
    }
}

fn has_wildcard(part: &str) -> bool {
    let mut escaped = false;
    part.chars().any(|c| {
        let wild = !escaped && matches!(c, '*' | '?' | '[');
        escaped = !escaped && c == '\\';
        wild
    })
}

fn unescaped(part: &str) -> String {
    let mut text = String::new();
    let mut escaped = false;
    for c in part.chars() {
        if !escaped && c == '\\' {
            escaped = true;
        } else {
            escaped = false;
            text.push(c);
        }
    }
    text
}
