//! The scan that runs over the whole text first: pushing, signing, tampering with the git guard.
//!
//! Owns what is denied whatever is stored. It works on words (see `lex`), not on a syntax tree, so a text that does
//! not parse or that is too long to judge is denied all the same. It looks into everything that is code: nested
//! shells, substitutions, here-documents and literals fed to a shell, commands that git runs, inline code. Entry
//! points: [`scan`], [`push_in_code`].

use super::env;
use super::findings::Findings;
use super::git::{self, Subcommand};
use super::lex::{self, Redirect, Target, Token, TokenKind};
use super::word::{Expansion, ParamKind, UNKNOWN, Unit, Word};

/// Words that brace expansion may make of one command before letters alone decide.
const BRACES: usize = 4096;
/// Bytes lexed in all, nested texts counted again; beyond, only the plain letters are looked at.
const BUDGET: usize = 2 * 1024 * 1024;
/// Texts inside each other.
const DEPTH: usize = 80;
/// Words after a `git` that is not the first of its command.
const NEAR: usize = 256;

/// What an agent is told that tried to push.
pub(crate) const PUSH: &str =
    "agents never push: commit on your branch, the Foreman brings it over when the work is collected";
const MAYBE_PUSH: &str = "the git subcommand is only known at run time, so it could be a push: write it out";
const CLEARED: &str = "the environment must not be cleared: the git guard lives in it";

/// Programs whose arguments are data.
const DATA: [&str; 10] = ["echo", "printf", "grep", "egrep", "fgrep", "rg", "test", "[", "[[", "ag"];
/// Programs that take a command text as an argument.
const CODE_WRAPPERS: [&str; 35] = [
    "sudo",
    "doas",
    "su",
    "runuser",
    "watch",
    "flock",
    "parallel",
    "script",
    "strace",
    "ltrace",
    "gdb",
    "busybox",
    "ssh",
    "env",
    "xargs",
    "entr",
    "chroot",
    "unshare",
    "nsenter",
    "setpriv",
    "screen",
    "tmux",
    "expect",
    "unbuffer",
    "docker",
    "podman",
    "kubectl",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "alias",
    "trap",
    "eval",
    "make",
];
const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "csh", "tcsh", "rbash", "busybox"];

pub(crate) fn is_shell(base: &str) -> bool {
    SHELLS.contains(&base)
}

/// The part of a program's name that counts.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Programs that run code given inline or on standard input.
pub(crate) fn is_interpreter(base: &str) -> bool {
    let stem = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        stem,
        "python"
            | "pypy"
            | "node"
            | "nodejs"
            | "deno"
            | "bun"
            | "perl"
            | "ruby"
            | "php"
            | "lua"
            | "luajit"
            | "tclsh"
            | "awk"
            | "gawk"
            | "mawk"
            | "nawk"
            | "osascript"
            | "Rscript"
            | "irb"
            | "ipython"
            | "tsx"
            | "ts-node"
    )
}

/// Denies what may never run, from the text alone.
pub(crate) fn scan(text: &str, findings: &mut Findings) {
    Scan { findings, left: BUDGET }.text(text, 0, Fed::No);
}

/// Whether what a command prints is run by a shell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fed {
    No,
    ToShell,
}

struct Scan<'f> {
    findings: &'f mut Findings,
    left: usize,
}

/// One simple command as the scan sees it.
#[derive(Default)]
struct Segment {
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    /// Its output goes on to the next segment.
    piped: bool,
}

/// A part of a word, and which word it is a part of.
struct Piece {
    text: String,
    word: usize,
}

impl Scan<'_> {
    fn text(&mut self, text: &str, depth: usize, fed: Fed) {
        let enough = self.left >= text.len() && depth <= DEPTH;
        self.left = self.left.saturating_sub(text.len());
        if !enough {
            self.letters(text);
            return;
        }
        let lexed = lex::lex(text);
        if !lexed.errors.is_empty() {
            self.letters(text);
        }
        let segments = segments(lexed.tokens);
        // From the end: whether something further down the pipe runs what it is given.
        let mut runs = false;
        let mut fed_to = Vec::with_capacity(segments.len());
        for segment in segments.iter().rev() {
            let fed = if segment.piped && runs { Fed::ToShell } else { fed };
            fed_to.push(fed);
            runs = segment.piped && runs || segment.words.iter().any(runs_input);
        }
        for (segment, fed) in segments.iter().zip(fed_to.into_iter().rev()) {
            self.segment(segment, depth, fed);
        }
    }

    fn segment(&mut self, segment: &Segment, depth: usize, fed: Fed) {
        let mut words = Vec::new();
        for word in &segment.words {
            match word.braces(BRACES.saturating_sub(words.len())) {
                Some(all) => words.extend(all),
                None => {
                    self.letters(&word.shape());
                    words.push(word.clone());
                }
            }
        }
        let shapes: Vec<String> = words.iter().map(Word::shape).collect();
        let start = start_of_command(&words);
        let program = shapes.get(start).map_or("", |name| base(name));
        let data = DATA.contains(&program);
        let shell = shapes.iter().any(|shape| is_shell(base(shape)) || base(shape) == "eval");
        let code = shell || shapes.iter().any(|shape| is_interpreter(base(shape)));
        let fed_here = if shell { Fed::ToShell } else { fed };

        for word in &segment.words {
            self.expansions(
                word,
                depth,
                if std::ptr::eq(word, segment.words.get(start).unwrap_or(word)) || shell {
                    Fed::ToShell
                } else {
                    fed_here
                },
            );
        }
        for redirect in &segment.redirects {
            let (Target::Word(word) | Target::Here(word)) = &redirect.target;
            self.expansions(word, depth, fed_here);
            let document = matches!(redirect.target, Target::Here(_)) || redirect.operator == "<<<";
            if document && (code || fed == Fed::ToShell) {
                self.code(&word.shape(), depth);
            }
        }
        // What is printed into a shell is its script; in one piece, and each word by itself.
        let prints_code = segment.words.iter().flat_map(Word::expansions).any(|what| match what {
            Expansion::Process { fed: true, body } => is_shell(base(body.trim().split(' ').next().unwrap_or(""))),
            Expansion::Process { fed: false, .. }
            | Expansion::Param { .. }
            | Expansion::Command { .. }
            | Expansion::Arith { .. } => false,
        }) || segment.redirects.iter().any(|redirect| match &redirect.target {
            Target::Word(word) => word.expansions().iter().any(|what| match what {
                Expansion::Process { fed: true, body } => is_shell(base(body.trim())),
                Expansion::Process { .. }
                | Expansion::Param { .. }
                | Expansion::Command { .. }
                | Expansion::Arith { .. } => false,
            }),
            Target::Here(_) => false,
        });
        if fed == Fed::ToShell || prints_code {
            let all = shapes.get(start.saturating_add(1)..).unwrap_or(&[]);
            self.code(&all.join(" "), depth);
            for shape in all {
                self.code(shape, depth);
            }
        }
        self.tampering(&words, &shapes, start, program);
        if data {
            return;
        }
        self.cleared(&shapes);
        self.nested(&shapes, depth);
        self.pushing(&words, start);
        let gits = shapes.iter().enumerate().filter(|(_, shape)| base(shape) == "git");
        for (nth, (at, _)) in gits.enumerate() {
            let rest = shapes.get(at + 1..).unwrap_or(&[]);
            self.git(if nth == 0 { rest } else { rest.get(..NEAR).unwrap_or(rest) }, depth);
        }
    }

    /// Code for a shell or an interpreter.
    fn code(&mut self, text: &str, depth: usize) {
        if push_in_code(text) {
            self.findings.deny(PUSH);
        }
        // `printf` turns these into line breaks before the shell sees them.
        let text = text.replace("\\n", "\n");
        self.text(&text, depth.saturating_add(1), Fed::No);
    }

    fn expansions(&mut self, word: &Word, depth: usize, fed: Fed) {
        for what in word.expansions() {
            match what {
                Expansion::Command { body } | Expansion::Process { body, .. } => self.text(body, depth + 1, fed),
                Expansion::Param { name, kind: ParamKind::Odd, .. } if env::is_guard(name) => {
                    self.findings.deny(tampers(name));
                }
                Expansion::Param { .. } | Expansion::Arith { .. } => {}
            }
        }
    }

    /// Code handed over as an argument: looked for from the first program that takes any, which covers the rest.
    fn nested(&mut self, shapes: &[String], depth: usize) {
        let after = |wanted: &dyn Fn(&str) -> bool| {
            shapes.iter().position(|shape| wanted(base(shape))).and_then(|at| shapes.get(at + 1..))
        };
        if let Some(rest) = after(&is_shell) {
            let flag = rest
                .iter()
                .position(|word| word.starts_with(['-', '+']) && !word.starts_with("--") && word.contains('c'));
            for word in flag.and_then(|flag| rest.get(flag + 1..)).unwrap_or(&[]) {
                self.code(word, depth);
            }
        }
        if after(&is_interpreter).is_some_and(|rest| rest.iter().any(|word| push_in_code(word))) {
            self.findings.deny(PUSH);
        }
        if let Some(rest) = after(&|name| CODE_WRAPPERS.contains(&name)) {
            self.text(&rest.join(" "), depth + 1, Fed::No);
            for word in rest.iter().filter(|word| word.contains([' ', '\t', '\n', '='])) {
                self.code(word, depth);
                self.code(word.split_once('=').map_or("", |(_, value)| value), depth);
            }
        }
        // A git that gets its subcommand from elsewhere: `xargs git`, `find -exec git {}`.
        let feeder = shapes.iter().position(|word| {
            matches!(base(word), "xargs" | "parallel")
                || matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")
        });
        for (at, _) in shapes
            .iter()
            .enumerate()
            .filter(|(at, shape)| feeder.is_some_and(|feeder| feeder < *at) && base(shape) == "git")
        {
            let rest = shapes.get(at + 1..).unwrap_or(&[]);
            let unsure = match git::subcommand(rest) {
                Subcommand::None | Subcommand::Unknown => true,
                Subcommand::At(at) => rest.get(at).is_some_and(|word| word.contains(['{', '%', ';', '+'])),
            };
            if unsure {
                self.findings.deny(MAYBE_PUSH);
            }
        }
    }

    /// `git`, its global options, then a push word; also where an expansion only separates them.
    fn pushing(&mut self, words: &[Word], start: usize) {
        let pieces = pieces(words);
        let texts: Vec<String> = pieces.iter().map(|piece| piece.text.clone()).collect();
        let pushes = |rest: &[String]| rest.iter().take(NEAR).any(|word| git::is_push(std::slice::from_ref(word)));
        for (at, piece) in pieces.iter().enumerate() {
            let rest = texts.get(at + 1..).unwrap_or(&[]);
            let name = base(&piece.text);
            if name == "git" {
                match git::subcommand(rest) {
                    Subcommand::None => {}
                    Subcommand::Unknown => {
                        // `git$x` may be the name of another thing; `git $x` is not.
                        let next = pieces.iter().skip(at + 1).find(|piece| piece.text.contains(UNKNOWN));
                        let own = next.is_some_and(|next| next.word == piece.word);
                        if pushes(rest) {
                            self.findings.deny(PUSH);
                        } else if !own {
                            self.findings.deny(MAYBE_PUSH);
                        }
                    }
                    Subcommand::At(sub) => {
                        let from = rest.get(sub..).unwrap_or(&[]);
                        if git::is_push(from) || from.first().is_some_and(|word| could_glob_to_push(word)) {
                            self.findings.deny(PUSH);
                        }
                    }
                }
            } else if let Some(sub) =
                name.strip_prefix("git-").filter(|_| piece.word == start || runs_words(words, start))
            {
                let mut from = vec![sub.to_string()];
                from.extend(rest.iter().take(NEAR).cloned());
                if git::is_push(&from) {
                    self.findings.deny(PUSH);
                }
            }
        }
        // `$G push`, `/usr/bin/g?t push`.
        let unknown = words.get(start).is_some_and(|word| word.literal().is_none() || word.units.iter().any(is_wild));
        let push_word = |word: &Word| matches!(word.shape().as_str(), "push" | "send-pack" | "http-push");
        if unknown && words.iter().skip(start + 1).any(push_word) {
            self.findings.deny(PUSH);
        }
    }

    /// What follows a `git`: signing, guard settings, commands that git runs.
    fn git(&mut self, rest: &[String], depth: usize) {
        if let Some(reason) = git::forbidden(rest) {
            self.findings.deny(reason);
        }
        for code in git::commands_within(rest) {
            self.code(&code, depth);
        }
    }

    /// Assigning, exporting or unsetting the variables that hold the git guard.
    fn tampering(&mut self, words: &[Word], shapes: &[String], start: usize, program: &str) {
        let names_variables = matches!(
            program,
            "export"
                | "unset"
                | "declare"
                | "typeset"
                | "readonly"
                | "local"
                | "read"
                | "mapfile"
                | "readarray"
                | "getopts"
                | "for"
                | "select"
                | "let"
                | "env"
                | "unsetenv"
                | "setenv"
                | "sudo"
                | "doas"
                | "systemd-run"
        ) || shapes.iter().any(|shape| base(shape) == "env");
        let data = DATA.contains(&program) || program == "cat" || program == "git";
        for (at, shape) in shapes.iter().enumerate() {
            let name = words.get(at).and_then(Word::assignment).map(|assignment| assignment.name);
            let assigned = match shape.split_once('=') {
                Some((left, _)) => Some(left.strip_suffix('+').unwrap_or(left)),
                None => None,
            };
            let bare = shape.strip_prefix("-u").or(shape.strip_prefix("--unset=")).unwrap_or(shape);
            let bare = bare.split('[').next().unwrap_or(bare);
            let hit = if at < start {
                name.filter(|name| env::is_guard(name))
            } else if program == "printf" && shapes.get(at.wrapping_sub(1)).is_some_and(|option| option == "-v") {
                Some(bare.to_string()).filter(|name| env::is_guard(name))
            } else if program == "printf" {
                shape.strip_prefix("-v").map(str::to_string).filter(|name| env::is_guard(name))
            } else if data {
                None
            } else {
                assigned
                    .filter(|name| env::is_guard(name))
                    .or_else(|| Some(bare).filter(|name| names_variables && env::is_guard(name)))
                    .map(str::to_string)
            };
            if let Some(name) = hit {
                self.findings.deny(tampers(&name));
            }
        }
    }

    fn cleared(&mut self, shapes: &[String]) {
        for (at, shape) in shapes.iter().enumerate() {
            let options = shapes.iter().skip(at + 1);
            match base(shape) {
                "env" => {
                    let mut takes_value = false;
                    for option in options {
                        if std::mem::take(&mut takes_value) {
                            continue;
                        }
                        match option.strip_prefix('-') {
                            _ if option == "--" => break,
                            Some("") => self.findings.deny(CLEARED),
                            Some(long) if long.starts_with('-') => {
                                let name = long.get(1..).unwrap_or("");
                                if name.len() > 1
                                    && "ignore-environment".starts_with(name)
                                    && !"ignore-signal".starts_with(name)
                                    || name == "i"
                                    || name == "ignore"
                                {
                                    self.findings.deny(CLEARED);
                                }
                                takes_value = matches!(name, "unset" | "chdir" | "split-string" | "argv0");
                            }
                            Some(cluster) => {
                                for (at, c) in cluster.char_indices() {
                                    match c {
                                        'i' => self.findings.deny(CLEARED),
                                        'u' | 'C' | 'S' | 'a' => {
                                            takes_value = at + 1 == cluster.len() && c != 'S';
                                            break;
                                        }
                                        _ => {}
                                    }
                                }
                            }
                            None if option.contains('=') => {}
                            None => break,
                        }
                    }
                }
                "exec" => {
                    for option in options {
                        match option.strip_prefix('-') {
                            Some(cluster) if !cluster.starts_with('-') => {
                                let letters = cluster.split('a').next().unwrap_or("");
                                if letters.contains('c') {
                                    self.findings.deny(CLEARED);
                                }
                            }
                            Some(_) => break,
                            // The name after `-a`, or the program.
                            None if shapes.iter().any(|word| word == "-a") => {}
                            None => break,
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The last resort for a text whose tokens are not clear: its letters without quotes and signs.
    fn letters(&mut self, text: &str) {
        let plain: String = text.replace("\\\n", "").chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let words: Vec<String> = plain
            .split(|c: char| {
                c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '{' | '}' | '<' | '>' | '`' | ',' | '$')
            })
            .filter(|word| !word.is_empty())
            .map(str::to_string)
            .collect();
        for (at, word) in words.iter().enumerate() {
            let name = base(word);
            let rest = words.get(at + 1..).unwrap_or(&[]);
            if name == "git" {
                if let Subcommand::At(sub) = git::subcommand(rest) {
                    if git::is_push(rest.get(sub..).unwrap_or(&[])) {
                        self.findings.deny(PUSH);
                    }
                }
                if let Some(reason) = git::forbidden(rest.get(..rest.len().min(64)).unwrap_or(rest)) {
                    self.findings.deny(reason);
                }
            }
            if let Some(sub) = name.strip_prefix("git-") {
                if git::is_push(&[sub.to_string()]) {
                    self.findings.deny(PUSH);
                }
            }
            if word.split_once('=').is_some_and(|(name, _)| env::is_guard(name)) {
                self.findings.deny(tampers(word.split('=').next().unwrap_or(word)));
            }
        }
    }
}

fn tampers(name: &str) -> String {
    format!("{name} belongs to the git guard and must not be set or unset")
}

/// `git` and `push` stand together in a program text, whatever quotes and commas lie between.
pub(crate) fn push_in_code(text: &str) -> bool {
    let mut words: Vec<(String, bool)> = Vec::new();
    let mut word = String::new();
    let mut breaks = true;
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/') {
            word.push(c);
        } else {
            if !word.is_empty() {
                words.push((std::mem::take(&mut word), breaks));
                breaks = false;
            }
            breaks |= matches!(c, ';' | '\n' | ')' | '}');
        }
    }
    (0..words.len()).any(|at| {
        let name = words.get(at).map_or("", |(word, _)| base(word));
        let Some(sub) = name.strip_prefix("git").filter(|sub| sub.is_empty() || sub.starts_with('-')) else {
            return false;
        };
        let together = words.iter().skip(at + 1).take_while(|(_, breaks)| !breaks).take(32);
        let rest: Vec<String> = together.map(|(word, _)| word.clone()).collect();
        if let Some(sub) = sub.strip_prefix('-') {
            let from: Vec<String> = [sub.to_string()].into_iter().chain(rest).collect();
            return git::is_push(&from);
        }
        match git::subcommand(&rest) {
            Subcommand::At(sub) => git::is_push(rest.get(sub..).unwrap_or(&[])),
            Subcommand::None | Subcommand::Unknown => false,
        }
    })
}

/// Simple commands: what stands between control operators.
fn segments(tokens: Vec<Token>) -> Vec<Segment> {
    let mut segments = vec![Segment::default()];
    for token in tokens {
        let Some(last) = segments.last_mut() else { break };
        match token.kind {
            TokenKind::Word(word) => {
                last.words.extend(word.array.iter().flatten().cloned());
                last.words.push(word);
            }
            TokenKind::Redirect(redirect) => last.redirects.push(redirect),
            TokenKind::Operator(operator) => {
                last.piped = matches!(operator, "|" | "|&") || (operator == ")" || operator == "(") && last.piped;
                segments.push(Segment::default());
            }
            TokenKind::Newline => segments.push(Segment::default()),
            TokenKind::Arith { text, inner } => {
                last.words.push(Word {
                    units: vec![Unit::Expand { what: Expansion::Arith { text, inner }, quoted: true }],
                    ..Word::default()
                });
            }
        }
    }
    segments
}

/// The index of the program among the words: after assignments, reserved words and plain prefixes.
fn start_of_command(words: &[Word]) -> usize {
    words
        .iter()
        .position(|word| {
            let reserved = word.bare().is_some_and(|text| {
                matches!(
                    text.as_str(),
                    "if" | "then"
                        | "elif"
                        | "else"
                        | "while"
                        | "until"
                        | "do"
                        | "!"
                        | "{"
                        | "time"
                        | "coproc"
                        | "command"
                        | "builtin"
                        | "nohup"
                )
            });
            !reserved && word.assignment().is_none()
        })
        .unwrap_or(words.len())
}

/// Whether a program may run one of its words: only well-known ones are trusted not to.
fn runs_words(words: &[Word], start: usize) -> bool {
    let program = words.get(start).map(Word::shape).unwrap_or_default();
    !super::program::is_known(base(&program)) || CODE_WRAPPERS.contains(&base(&program))
}

/// Words split where an unquoted expansion may split them.
fn pieces(words: &[Word]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let mut text = String::new();
        let mut splits = false;
        for unit in &word.units {
            match unit {
                Unit::Char { c, .. } => text.push(*c),
                Unit::Expand { quoted: true, .. } => text.push(UNKNOWN),
                Unit::Expand { quoted: false, .. } => {
                    splits = true;
                    if !text.is_empty() {
                        pieces.push(Piece { text: std::mem::take(&mut text), word: index });
                    }
                    pieces.push(Piece { text: UNKNOWN.to_string(), word: index });
                }
            }
        }
        if !text.is_empty() || !splits {
            pieces.push(Piece { text, word: index });
        }
    }
    pieces
}

/// Runs what it reads on standard input.
fn runs_input(word: &Word) -> bool {
    let shape = word.shape();
    is_shell(base(&shape)) || is_interpreter(base(&shape))
}

fn is_wild(unit: &Unit) -> bool {
    matches!(unit, Unit::Char { c: '*' | '?' | '[', quoted: false })
}

/// A pattern that a file named like a push word would complete.
fn could_glob_to_push(word: &str) -> bool {
    word.contains(['*', '?', '['])
        && ["push", "send-pack", "http-push", "svn", "p4"].iter().any(|name| super::glob::matches(word, name))
}
