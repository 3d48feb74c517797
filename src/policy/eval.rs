//! Walking a command text: lists, pipelines, branches, the working directory, substitutions.
//!
//! Owns what runs where: which directories a command may run in, what it gets on standard input, what its words
//! become. What a single command does is for `run`; whether a path is fine is for `access`. Entry points:
//! [`Eval::new`], [`Eval::text`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use super::args::{Arg, Files};
use super::disk::Kind;
use super::findings::Findings;
use super::lex::{self, Redirect, Target};
use super::paths::Places;
use super::shell::{self, Command, Item, Join, List, Pipeline, Simple, Stage};
use super::word::{Expansion, ParamKind, Unit, Word};
use super::{Area, arith};

/// Texts inside each other (substitutions, `sh -c`) that are judged; deeper ones ask.
const DEPTH: usize = 16;
/// Simple commands judged in one call, nested texts and repeated loop bodies included.
const COMMANDS: usize = 500;
/// Words that brace expansion may make in one command.
const BRACES: usize = 256;
/// Directories that a command may be run in, before none of them counts as known.
const DIRECTORIES: usize = 8;

/// What holds for a command when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Env {
    /// Directories it may run in (resolved); `None` if that is known only at run time.
    pub(crate) dirs: Option<BTreeSet<PathBuf>>,
    /// A `cd` went through a link, so the shell's idea of `..` differs from the kernel's.
    pub(crate) through_link: bool,
    /// Variables that hold numbers this text gave them.
    pub(crate) numbers: BTreeSet<String>,
    /// HOME, PWD and the like were assigned, or IFS was: their expansions are no longer known.
    pub(crate) tainted: BTreeSet<String>,
    /// `**` may stand for a whole tree.
    pub(crate) globstar: bool,
    /// Something that looks like a part of a repository was written: git may find another one.
    pub(crate) wrote_repository: bool,
}

/// What a command gets on standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// Whatever the call itself has: nothing of interest.
    Inherited,
    /// Exactly this text.
    Text(String),
    /// A list of files.
    Files(Files),
    /// The content of a file.
    File(Arg),
    Unknown,
}

impl Stdin {
    /// The same input when several commands read from it.
    fn shared(&self) -> Self {
        match self {
            Self::Inherited => Self::Inherited,
            Self::Text(_) | Self::Files(_) | Self::File(_) | Self::Unknown => Self::Unknown,
        }
    }
}

/// One simple command and what it added, for showing how a verdict came about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) findings: Findings,
}

/// The judgement of one command text.
pub(crate) struct Eval<'a> {
    pub(crate) area: &'a Area,
    pub(crate) places: &'a Places<'a>,
    pub(crate) findings: Findings,
    pub(crate) steps: Vec<Step>,
    depth: usize,
    commands: usize,
    /// Some literal in the text has a subscript that holds a substitution.
    pub(crate) subscript_bomb: bool,
    /// The `find` whose command is being judged.
    pub(crate) walk: Option<Walk>,
}

/// What a `find` hands to a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    pub(crate) starts: Vec<Arg>,
    /// A link that leads out is among what it comes to.
    pub(crate) links_out: bool,
}

impl<'a> Eval<'a> {
    pub(crate) fn new(area: &'a Area, places: &'a Places<'a>) -> Self {
        Self {
            area,
            places,
            findings: Findings::default(),
            steps: Vec::new(),
            depth: 0,
            commands: 0,
            subscript_bomb: false,
            walk: None,
        }
    }

    pub(crate) fn start(&self) -> Env {
        Env {
            dirs: Some(BTreeSet::from([self.places.root.clone()])),
            through_link: false,
            numbers: BTreeSet::new(),
            tainted: BTreeSet::new(),
            globstar: false,
            wrote_repository: false,
        }
    }

    /// Judges a text that a shell runs; the working directory it leaves is in `env` afterwards.
    pub(crate) fn text(&mut self, text: &str, env: &mut Env, stdin: &Stdin) {
        if self.depth >= DEPTH {
            self.findings.ask("the command is nested too deeply to be judged");
            return;
        }
        let lexed = lex::lex(text);
        let list = match shell::read(text, &lexed) {
            Ok(list) => list,
            Err(unread) => {
                self.findings.ask(format!("the command {}", unread.0));
                return;
            }
        };
        self.subscript_bomb |= has_subscript_bomb(text);
        for name in assigned_names(&lexed.tokens) {
            if matches!(name.as_str(), "HOME" | "PWD" | "OLDPWD" | "TMPDIR" | "IFS") {
                env.tainted.insert(name);
            }
        }
        self.depth += 1;
        self.list(&list, text, env, stdin);
        self.depth -= 1;
    }

    /// Judges a text that runs in a shell of its own.
    pub(crate) fn nested(&mut self, text: &str, env: &Env, stdin: &Stdin) {
        self.text(text, &mut env.clone(), stdin);
    }

    fn list(&mut self, list: &List, text: &str, env: &mut Env, stdin: &Stdin) {
        // Commands that share an input each get what the others leave of it.
        let alone = matches!(list.as_slice(), [item] if item.rest.is_empty());
        let stdin = if alone { stdin.clone() } else { stdin.shared() };
        for item in list {
            self.item(item, text, env, &stdin);
        }
    }

    fn item(&mut self, item: &Item, text: &str, env: &mut Env, stdin: &Stdin) {
        let before = env.clone();
        let (mut success, mut failure) = self.pipeline(&item.first, text, &before, stdin);
        for (join, pipeline) in &item.rest {
            let start = match join {
                Join::And => success.clone(),
                Join::Or => failure.clone(),
            };
            let (then, otherwise) = self.pipeline(pipeline, text, &start, stdin);
            (success, failure) = match join {
                Join::And => (then, merge(failure, &otherwise)),
                Join::Or => (merge(success, &then), otherwise),
            };
        }
        if item.background {
            *env = before;
            return;
        }
        // A plain `cd` to a directory that is there counts as done.
        let sure = item.rest.is_empty()
            && success
                .dirs
                .as_ref()
                .is_some_and(|dirs| dirs.iter().all(|dir| self.places.disk.kind(dir) == Kind::Directory));
        *env = if sure { success } else { merge(success, &failure) };
    }

    /// The state after a pipeline, if it succeeds and if it fails.
    fn pipeline(&mut self, pipeline: &Pipeline, text: &str, env: &Env, stdin: &Stdin) -> (Env, Env) {
        if let [stage] = pipeline.as_slice() {
            let mut success = env.clone();
            let plain_cd = self.stage(stage, text, &mut success, stdin);
            let failure = if plain_cd { env.clone() } else { success.clone() };
            if stage.negated {
                let both = merge(success, &failure);
                return (both.clone(), both);
            }
            return (success, failure);
        }
        let mut input = stdin.clone();
        for stage in pipeline {
            let questions = self.findings.questions.len();
            let mut own = env.clone();
            self.stage(stage, text, &mut own, &input);
            let asked = self.findings.questions.len() > questions;
            input = if asked { Stdin::Unknown } else { self.output(stage, env, &input) };
        }
        (env.clone(), env.clone())
    }

    /// Judges one command of a pipeline; true if it was a `cd` that may fail and leave things as they were.
    fn stage(&mut self, stage: &Stage, text: &str, env: &mut Env, stdin: &Stdin) -> bool {
        for redirect in &stage.redirects {
            self.redirect(redirect, env);
        }
        let stdin = &input_of(&stage.redirects, stdin, env, self);
        match &stage.command {
            Command::Simple(simple) => {
                self.commands += 1;
                if self.commands > COMMANDS {
                    self.findings.ask(format!("the command has more than {COMMANDS} parts"));
                    return false;
                }
                let before = self.counts();
                let before_env = env.clone();
                self.simple(simple, env, stdin);
                self.step(text, &stage.span, before);
                env.dirs != before_env.dirs
            }
            Command::Test(words) => {
                self.test(words, env);
                false
            }
            Command::Arith { text, inner } => {
                self.computes(text, env);
                self.units(inner, env);
                false
            }
            Command::Group(list) => {
                self.list(list, text, env, stdin);
                false
            }
            Command::Subshell(list) => {
                self.list(list, text, &mut env.clone(), stdin);
                false
            }
            Command::If(lists) => {
                let stdin = &stdin.shared();
                let mut lists = lists.iter();
                if let Some(condition) = lists.next() {
                    self.list(condition, text, env, stdin);
                }
                let start = env.clone();
                for list in lists {
                    let mut branch = env.clone();
                    self.list(list, text, &mut branch, stdin);
                    *env = merge(std::mem::replace(env, start.clone()), &branch);
                }
                false
            }
            Command::Loop { head, body } => {
                let stdin = &stdin.shared();
                self.repeated(env, |eval, env| {
                    eval.list(head, text, env, stdin);
                    eval.list(body, text, env, stdin);
                });
                false
            }
            Command::For { name, values, body } => {
                let stdin = &stdin.shared();
                self.variables_of(values, env);
                let numbers = values.iter().all(|word| word.bare().is_some_and(|text| text.parse::<i64>().is_ok()));
                match name.literal().filter(|name| lex::is_name(name)) {
                    Some(name) => {
                        self.assign(&name, None, env, Setting::Loop);
                        if numbers && !values.is_empty() {
                            env.numbers.insert(name);
                        }
                    }
                    None => self.findings.ask("a loop variable that is no plain name"),
                }
                self.repeated(env, |eval, env| eval.list(body, text, env, stdin));
                false
            }
            Command::CountedFor { text: arithmetic, inner, body } => {
                let stdin = &stdin.shared();
                for (at, part) in arithmetic.split(';').enumerate() {
                    if at == 0 { self.computes(part, env) } else { self.arith(part, &[], env) }
                }
                self.units(inner, env);
                self.repeated(env, |eval, env| eval.list(body, text, env, stdin));
                false
            }
            Command::Case { subject, arms } => {
                self.visit(subject, env);
                let start = env.clone();
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.visit(pattern, &start);
                    }
                    let mut branch = merge(start.clone(), env);
                    self.list(body, text, &mut branch, stdin);
                    *env = merge(std::mem::replace(env, start.clone()), &branch);
                }
                false
            }
            Command::Function => {
                self.findings.ask("a function is defined, and its name may hide another command");
                false
            }
        }
    }

    /// A body that runs any number of times: until the directories no longer change.
    fn repeated(&mut self, env: &mut Env, mut body: impl FnMut(&mut Self, &mut Env)) {
        for round in 0..3 {
            let mut after = env.clone();
            if round == 2 {
                after.dirs = None;
                env.dirs = None;
            }
            body(self, &mut after);
            let merged = merge(env.clone(), &after);
            let settled = merged == *env;
            *env = merged;
            if settled {
                return;
            }
        }
    }

    fn counts(&self) -> [usize; 3] {
        [self.findings.denials.len(), self.findings.questions.len(), self.findings.changes.len()]
    }

    /// Notes what a simple command added.
    fn step(&mut self, text: &str, span: &Range<usize>, [denials, questions, changes]: [usize; 3]) {
        let added = Findings {
            denials: self.findings.denials.get(denials..).unwrap_or(&[]).to_vec(),
            questions: self.findings.questions.get(questions..).unwrap_or(&[]).to_vec(),
            changes: self.findings.changes.get(changes..).unwrap_or(&[]).to_vec(),
        };
        self.steps.push(Step { text: text.get(span.clone()).unwrap_or("").to_string(), findings: added });
    }

    /// Assignments, redirections, then the program.
    fn simple(&mut self, simple: &Simple, env: &mut Env, stdin: &Stdin) {
        let mut words = simple.words.as_slice();
        let mut assignments = Vec::new();
        while let Some((first, rest)) = words.split_first() {
            let Some(assignment) = first.assignment() else { break };
            assignments.push(assignment);
            words = rest;
        }
        for word in words {
            self.visit(word, env);
        }
        for redirect in &simple.redirects {
            self.redirect(redirect, env);
        }
        let setting = if words.is_empty() { Setting::Shell } else { Setting::Prefix };
        let reads = words.first().and_then(Word::literal).is_some_and(|name| name == "read");
        for assignment in &assignments {
            self.visit(&assignment.value, env);
            if let Some(subscript) = &assignment.subscript {
                self.subscript(subscript);
            }
            // `IFS= read` is how lines are read.
            let setting = if assignment.name == "IFS" && reads { Setting::Shell } else { setting };
            self.assign(&assignment.name, Some(&assignment.value), env, setting);
        }
        if words.is_empty() {
            return;
        }
        let Some(args) = self.arguments(words, env) else {
            self.findings.ask("braces that expand to too many words");
            return;
        };
        let stdin = input_of(&simple.redirects, stdin, env, self);
        let context = super::run::Context { stdin, direct: assignments.is_empty(), ..Default::default() };
        self.run(&args, env, &context);
    }

    /// What words become; `None` if braces make too many of them.
    pub(crate) fn arguments(&mut self, words: &[Word], env: &Env) -> Option<Vec<Arg>> {
        let mut args = Vec::new();
        for word in words {
            for word in word.braces(BRACES)? {
                if args.len() >= BRACES.saturating_mul(16) {
                    return None;
                }
                args.push(self.arg(&word, env));
            }
        }
        Some(args)
    }

    /// What one word becomes, braces done.
    pub(crate) fn arg(&mut self, word: &Word, env: &Env) -> Arg {
        if word.array.is_some() {
            return Arg { text: format!("{}{}", word.shape(), super::word::UNKNOWN), ..Arg::default() };
        }
        if let [Unit::Expand { what: Expansion::Command { body }, .. }] = word.units.as_slice() {
            if let Some(files) = self.files(body, env) {
                return Arg { files: Some(files), text: super::word::UNKNOWN.to_string(), ..Arg::default() };
            }
        }
        let mut units = Vec::with_capacity(word.units.len());
        for unit in &word.units {
            match unit {
                Unit::Char { .. } => units.push(unit.clone()),
                Unit::Expand { what, quoted } => match self.known_value(what, *quoted, env) {
                    // A value that is known is one piece: it holds nothing that splits or matches.
                    Some(value) => units.extend(value.chars().map(|c| Unit::Char { c, quoted: true })),
                    None => units.push(unit.clone()),
                },
            }
        }
        let mut arg = Arg::from_units(&units, word.quoted);
        if let Some(Unit::Char { c: '~', quoted: false }) = word.units.first() {
            arg = self.tilde(arg, &word.units, env);
        }
        arg
    }

    /// `~` and `~/x` for the home directory; any other form is not known.
    fn tilde(&self, arg: Arg, units: &[Unit], env: &Env) -> Arg {
        let name: Vec<&Unit> =
            units.iter().skip(1).take_while(|unit| !matches!(unit, Unit::Char { c: '/', .. })).collect();
        let home = self.places.home.to_str().filter(|_| !env.tainted.contains("HOME"));
        match (name.is_empty(), home, arg.text.get(1..)) {
            (true, Some(home), Some(rest)) => Arg {
                text: format!("{home}{rest}"),
                ..Arg {
                    pattern: arg.pattern.as_ref().map(|pattern| format!("{home}{}", pattern.get(1..).unwrap_or(""))),
                    ..arg.clone()
                }
            },
            _ => Arg { text: format!("{}{}", super::word::UNKNOWN, arg.text), ..arg },
        }
    }

    /// The value of an expansion where it is known and holds nothing that bash would split or match.
    fn known_value(&self, what: &Expansion, quoted: bool, env: &Env) -> Option<String> {
        let one_directory = || {
            let dirs = env.dirs.as_ref()?;
            let dir = dirs.first().filter(|_| dirs.len() == 1 && !env.through_link)?;
            dir.to_str().map(str::to_string)
        };
        let value = match what {
            Expansion::Param { name, kind: ParamKind::Plain, .. } => {
                if env.tainted.contains(name) || (!quoted && env.tainted.contains("IFS")) {
                    return None;
                }
                match name.as_str() {
                    "HOME" => self.places.home.to_str().map(str::to_string),
                    "PWD" => one_directory(),
                    "TMPDIR" => self.places.scratch().and_then(|scratch| scratch.to_str()).map(str::to_string),
                    _ => None,
                }
            }
            Expansion::Command { body } => match body.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["pwd"] => one_directory(),
                ["git", "rev-parse", "--show-toplevel"] => {
                    let own = env.dirs.as_ref()?.iter().all(|dir| {
                        super::git::repository::at(dir, self.area, self.places)
                            == super::git::repository::Repository::Own
                    });
                    self.places.root.to_str().filter(|_| own).map(str::to_string)
                }
                _ => None,
            },
            // A pipe that bash names; what feeds it is judged as a command.
            Expansion::Process { .. } => Some("/dev/fd/63".to_string()),
            Expansion::Param { .. } | Expansion::Arith { .. } => None,
        }?;
        let plain = |c: char| !c.is_whitespace() && !matches!(c, '*' | '?' | '[' | '\\');
        (quoted || value.chars().all(plain)).then_some(value)
    }

    /// Judges everything a word runs or evaluates by being expanded.
    pub(crate) fn visit(&mut self, word: &Word, env: &Env) {
        self.units(&word.units, env);
        for element in word.array.iter().flatten() {
            if element.shape().starts_with('[') {
                self.subscript_word(element);
            }
            self.visit(element, env);
        }
    }

    fn variables_of(&mut self, words: &[Word], env: &Env) {
        for word in words {
            self.visit(word, env);
        }
    }

    pub(crate) fn units(&mut self, units: &[Unit], env: &Env) {
        for unit in units {
            let Unit::Expand { what, .. } = unit else { continue };
            match what {
                Expansion::Param { name, kind, inner } => {
                    match kind {
                        ParamKind::Plain | ParamKind::Length | ParamKind::Derived => {}
                        ParamKind::Slice(offsets) => {
                            for part in offsets.split(':') {
                                self.arith(part, &[], env);
                            }
                        }
                        ParamKind::Odd => self
                            .findings
                            .ask(format!("the expansion of `{name}` can run code or assign a value unseen")),
                    }
                    self.units(inner, env);
                }
                Expansion::Command { body } => self.nested(body, env, &Stdin::Inherited),
                Expansion::Process { fed, body } => {
                    let stdin = if *fed { Stdin::Unknown } else { Stdin::Inherited };
                    self.nested(body, env, &stdin);
                }
                Expansion::Arith { text, inner } => self.arith(text, inner, env),
            }
        }
    }

    /// Arithmetic: fine if it only computes with numbers of this text.
    pub(crate) fn arith(&mut self, text: &str, inner: &[Unit], env: &Env) {
        self.units(inner, env);
        if let Err(why) = arith::check(text, &env.numbers) {
            self.findings.ask(format!("arithmetic {why}"));
        }
    }

    /// Arithmetic that runs as a command: what it sets first counts as a number afterwards.
    fn computes(&mut self, text: &str, env: &mut Env) {
        for part in text.split(',') {
            match arith::sets(part) {
                Some(name) => {
                    let value = part.split_once('=').map_or("", |(_, value)| value);
                    self.arith(value, &[], env);
                    self.assign(name, None, env, Setting::Loop);
                    env.numbers.insert(name.to_string());
                }
                None => self.arith(part, &[], env),
            }
        }
    }

    /// The subscript of an assignment: evaluated as arithmetic unless the array is associative.
    fn subscript(&mut self, subscript: &[Unit]) {
        let word = Word { units: subscript.to_vec(), ..Word::default() };
        let number =
            word.literal().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        if !number {
            self.findings.ask("a subscript is evaluated as arithmetic");
        }
    }

    fn subscript_word(&mut self, element: &Word) {
        let shape = element.shape();
        let name = shape.split(']').next().unwrap_or("");
        if name.contains(['$', '`', super::word::UNKNOWN]) {
            self.findings.ask("a subscript is evaluated as arithmetic");
        }
    }

    /// `[[ .. ]]`: numbers are evaluated, names given to `-v` too.
    fn test(&mut self, words: &[Word], env: &Env) {
        for (at, word) in words.iter().enumerate() {
            self.visit(word, env);
            let near = |at: Option<usize>| at.and_then(|at| words.get(at));
            match word.bare().as_deref() {
                Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                    for operand in [near(at.checked_sub(1)), near(at.checked_add(1))].into_iter().flatten() {
                        let text = operand.literal().unwrap_or_else(|| source_of(operand));
                        if let Err(why) = arith::check(&text, &env.numbers) {
                            self.findings.ask(format!("a compared number {why}"));
                        }
                    }
                }
                Some("-v" | "-R") => {
                    let name = near(at.checked_add(1)).and_then(Word::literal);
                    if !name.is_some_and(|name| lex::is_name(&name)) {
                        self.findings.ask("a tested name is evaluated");
                    }
                }
                _ => {}
            }
        }
    }
}

/// How a variable is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// An assignment of its own: a variable of the shell.
    Shell,
    /// Before a command, or exported: an environment variable.
    Prefix,
    /// By a builtin or a loop, to a value not known.
    Loop,
}

/// States that are both possible.
fn merge(mut one: Env, other: &Env) -> Env {
    one.dirs = match (one.dirs, &other.dirs) {
        (Some(mut one), Some(other)) => {
            one.extend(other.iter().cloned());
            (one.len() <= DIRECTORIES).then_some(one)
        }
        _ => None,
    };
    one.through_link |= other.through_link;
    one.numbers = one.numbers.intersection(&other.numbers).cloned().collect();
    one.tainted.extend(other.tainted.iter().cloned());
    one.globstar |= other.globstar;
    one.wrote_repository |= other.wrote_repository;
    one
}

/// What the last redirection of standard input gives, else what was there.
fn input_of(redirects: &[Redirect], stdin: &Stdin, env: &Env, eval: &mut Eval<'_>) -> Stdin {
    let mut input = stdin.clone();
    for redirect in redirects {
        let zero = redirect.descriptor.as_deref().is_none_or(|descriptor| descriptor == "0");
        if !zero {
            continue;
        }
        input = match (redirect.operator, &redirect.target) {
            (_, Target::Here(word)) => word.literal().map_or(Stdin::Unknown, Stdin::Text),
            ("<<<", Target::Word(word)) => {
                word.literal().map_or(Stdin::Unknown, |text| Stdin::Text(format!("{text}\n")))
            }
            ("<" | "<>", Target::Word(word)) => Stdin::File(eval.arg(word, env)),
            ("<&", Target::Word(_)) => Stdin::Unknown,
            _ => continue,
        };
    }
    input
}

/// Names that a text assigns in any of its commands, also as arguments of `export` and the like.
fn assigned_names(tokens: &[lex::Token]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut taking = false;
    for token in tokens {
        match &token.kind {
            lex::TokenKind::Word(word) => {
                let shape = word.shape();
                if matches!(
                    shape.as_str(),
                    "read"
                        | "for"
                        | "select"
                        | "mapfile"
                        | "readarray"
                        | "getopts"
                        | "printf"
                        | "unset"
                        | "export"
                        | "declare"
                        | "typeset"
                        | "local"
                        | "readonly"
                        | "let"
                        | "eval"
                ) {
                    taking = true;
                }
                // `IFS= read` sets it for that command only.
                if let Some(assignment) = word.assignment().filter(|assignment| assignment.name != "IFS") {
                    names.insert(assignment.name);
                } else if let Some((name, _)) = shape.split_once('=') {
                    names.insert(name.trim_end_matches('+').to_string());
                } else if taking {
                    names.insert(shape);
                }
            }
            lex::TokenKind::Operator(_) | lex::TokenKind::Newline => taking = false,
            lex::TokenKind::Redirect(_) => {}
            lex::TokenKind::Arith { text, .. } => {
                for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                    names.insert(name.to_string());
                }
            }
        }
    }
    names
}

/// The arithmetic text of a word that is made of plain parameters.
fn source_of(word: &Word) -> String {
    word.units
        .iter()
        .map(|unit| match unit {
            Unit::Char { c, .. } => c.to_string(),
            Unit::Expand { what: Expansion::Param { name, kind: ParamKind::Plain, .. }, .. } => format!("${{{name}}}"),
            Unit::Expand { what: Expansion::Param { kind: ParamKind::Length, .. }, .. } => "0".into(),
            Unit::Expand { what: Expansion::Arith { .. }, .. } => "0".into(),
            Unit::Expand { .. } => "`".into(),
        })
        .collect()
}

/// A literal such as `a[$(id)]`, which runs code when it is used as a number or a name.
fn has_subscript_bomb(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let name = before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let inside = text.get(at..).unwrap_or("").split(']').next().unwrap_or("");
        name && (inside.contains("$(") || inside.contains('`'))
    })
}
