//! What one command does: the program's name, wrappers around it, the table of programs.
//!
//! Owns the way from a name to what judges it; programs with rules of their own have files in `special`. Entry
//! point: [`Eval::run`].

use super::args::Arg;
use super::env::{self, Risk};
use super::eval::{Env, Eval, Setting, Stdin};
use super::lex::{Redirect, Target};
use super::program::{self, Class, Meaning, Operands, Part, Program};
use super::scan::{self, base, is_interpreter, is_shell};
use super::scope::Scope;
use super::special;
use super::word::{Expansion, Unit, Word};
use super::{Role, git};

/// Wrappers around each other; more ask.
const LAYERS: usize = 8;
/// Directories whose programs count by their base name.
const SYSTEM: [&str; 6] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// What surrounds a command.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) stdin: Stdin,
    /// Typed as it is: no wrapper, no assignment before it.
    pub(crate) direct: bool,
    /// Wrappers around it.
    pub(crate) layers: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self { stdin: Stdin::Inherited, direct: true, layers: 0 }
    }
}

impl Context {
    /// The same around a command that something else starts.
    pub(crate) fn inner(&self) -> Self {
        Self { stdin: self.stdin.clone(), direct: false, layers: self.layers.saturating_add(1) }
    }
}

impl Eval<'_> {
    /// Judges a program with its arguments.
    pub(crate) fn run(&mut self, args: &[Arg], env: &mut Env, context: &Context) {
        let Some((program, rest)) = args.split_first() else { return };
        if context.layers > LAYERS {
            self.findings.ask("the command has too many wrappers");
            return;
        }
        let Some(name) = program.known().filter(|_| program.pattern.is_none()) else {
            if rest.iter().any(|arg| matches!(arg.as_str(), "push" | "send-pack" | "http-push")) {
                self.findings.deny(scan::PUSH);
            }
            self.findings.ask("the program is known only at run time");
            return;
        };
        if self.is_lead_read(args, context) {
            return;
        }
        let Some(name) = self.program_name(name, program, rest, env) else { return };
        let name = name.as_str();
        let tool = program::lookup(name).is_some() || special::knows(name) || is_shell(name) || is_interpreter(name);
        if let [only] = rest {
            if only.known() == Some("--version") && tool {
                return;
            }
        }
        match name {
            "command" | "builtin" | "exec" | "nohup" | "nice" | "time" | "timeout" | "stdbuf" | "setsid" | "env" => {
                self.wrapper(name, rest, env, context);
            }
            "git" => git::subcommands::judge(self, rest, env, context),
            _ if special::run(self, name, rest, env, context) => {}
            _ if is_shell(name) => special::shells::shell(self, name, rest, env, context),
            _ if is_interpreter(name) => special::interpreters::interpreter(self, name, rest, env, context),
            _ => match program::lookup(name) {
                Some(program) => self.table(name, program, rest, env),
                None => self.findings.ask(format!("the program `{name}` is not known")),
            },
        }
    }

    /// A read command that the person allows the lead: word by word, as typed.
    fn is_lead_read(&self, args: &[Arg], context: &Context) -> bool {
        self.area.role == Role::Lead
            && context.direct
            && args.iter().all(|arg| arg.known().is_some())
            && self.area.lead_read_commands.iter().any(|allowed| {
                let words: Vec<&str> = allowed.split_whitespace().collect();
                !words.is_empty()
                    && words.len() <= args.len()
                    && !words.iter().any(|word| word.contains('/') && Some(word) == words.first())
                    && words.iter().zip(args).all(|(word, arg)| arg.known() == Some(*word))
            })
    }

    /// The name that counts for a program typed with or without a path; `None` if that was a question already.
    fn program_name(&mut self, name: &str, program: &Arg, rest: &[Arg], env: &mut Env) -> Option<String> {
        if !name.contains('/') {
            return Some(name.to_string());
        }
        let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
        if SYSTEM.contains(&dir) && !file.is_empty() {
            return Some(file.to_string());
        }
        let found: Vec<_> = self
            .candidates("runs", program, env)
            .into_iter()
            .map(|(base, path)| (self.places.find_entry(&base, &path), self.places.find(&base, &path)))
            .collect();
        let installed = !found.is_empty()
            && found.iter().all(|(entry, target)| match (entry, target) {
                (Some(entry), Some(target)) => {
                    target.real.starts_with(&self.places.root)
                        && entry.real.starts_with(&self.places.root)
                        && entry.real.parent().is_some_and(|dir| dir.ends_with("node_modules/.bin"))
                }
                _ => false,
            });
        if installed {
            return Some(file.to_string());
        }
        let script = [".sh", ".bash", ".zsh"].iter().any(|end| file.ends_with(end));
        match found.as_slice() {
            [(Some(_), Some(target))] if script => {
                self.findings.ask_for(
                    format!("runs the script {name}"),
                    Scope::Script { shell: "itself".into(), path: target.real.clone() },
                );
                for arg in rest {
                    self.writes(name, arg, env);
                }
            }
            _ => self.findings.ask(format!("runs {name}, which is no known program")),
        }
        None
    }

    /// A program around another one.
    fn wrapper(&mut self, name: &str, args: &[Arg], env: &mut Env, context: &Context) {
        let mut rest = args;
        let inner = context.inner();
        let mut own = env.clone();
        let leaks = matches!(name, "command" | "builtin" | "time");
        while let Some((arg, after)) = rest.split_first() {
            let Some(text) = arg.known() else {
                self.findings.ask(format!("an argument of {name} is known only at run time"));
                return;
            };
            if text == "--" {
                rest = after;
                break;
            }
            if !text.starts_with('-') || text == "-" {
                if name == "env" {
                    if text == "-" {
                        self.findings.ask("clears the environment");
                        return;
                    }
                    if let Some((variable, _)) = text.split_once('=') {
                        let value = Word::quoted(arg.as_str().get(variable.len() + 1..).unwrap_or(""));
                        self.assign(variable, Some(&value), &mut own, Setting::Prefix);
                        rest = after;
                        continue;
                    }
                }
                break;
            }
            rest = match (name, text) {
                ("command", "-v" | "-V") => return,
                ("command", "-p") | ("time", "-p" | "-v" | "-a") | ("setsid", "-c" | "-f" | "-w") => after,
                ("exec", "-l") => after,
                ("exec", "-a") => after.get(1..).unwrap_or(&[]),
                ("nice", "-n" | "--adjustment") => after.get(1..).unwrap_or(&[]),
                ("nice", _)
                    if text
                        .trim_start_matches("-n")
                        .trim_start_matches(['-', '+'])
                        .bytes()
                        .all(|b| b.is_ascii_digit()) =>
                {
                    after
                }
                ("nice", _) if text.starts_with("--adjustment=") => after,
                ("timeout", "-k" | "-s" | "--kill-after" | "--signal") => after.get(1..).unwrap_or(&[]),
                ("timeout", "--foreground" | "--preserve-status" | "-v" | "--verbose" | "-p" | "-f") => after,
                ("timeout", _) if ["-k", "-s", "--kill-after=", "--signal="].iter().any(|o| text.starts_with(o)) => {
                    after
                }
                ("stdbuf", "-i" | "-o" | "-e") => after.get(1..).unwrap_or(&[]),
                ("stdbuf", _) if ["-i", "-o", "-e"].iter().any(|o| text.starts_with(o)) => after,
                ("time", "-f" | "--format") => after.get(1..).unwrap_or(&[]),
                ("time", "-o" | "--output") => {
                    if let Some(file) = after.first() {
                        self.writes("time", file, &mut own);
                    }
                    after.get(1..).unwrap_or(&[])
                }
                ("time", _) if text.starts_with("--output=") || (text.starts_with("-o") && text.len() > 2) => {
                    let at = if text.starts_with("-o") { 2 } else { "--output=".len() };
                    self.writes("time", &arg.from(at), &mut own);
                    after
                }
                ("env", "-u" | "--unset") => {
                    match after.first().and_then(Arg::known) {
                        Some(variable) => self.unset(variable),
                        None => self.findings.ask("unsets a variable whose name is known only at run time"),
                    }
                    after.get(1..).unwrap_or(&[])
                }
                ("env", _) if text.starts_with("--unset=") || (text.starts_with("-u") && text.len() > 2) => {
                    let variable = text.strip_prefix("--unset=").or(text.strip_prefix("-u")).unwrap_or("");
                    self.unset(variable);
                    after
                }
                ("env", "-C" | "--chdir") => {
                    special::builtins::change_directory(self, after.first(), &mut own);
                    after.get(1..).unwrap_or(&[])
                }
                ("env", _) if text.starts_with("--chdir=") || (text.starts_with("-C") && text.len() > 2) => {
                    let at = if text.starts_with("-C") { 2 } else { "--chdir=".len() };
                    special::builtins::change_directory(self, Some(&arg.from(at)), &mut own);
                    after
                }
                ("env", "-0" | "--null" | "-v" | "--debug") => after,
                ("env", _)
                    if text == "-S"
                        || text == "--split-string"
                        || text.starts_with("-S")
                        || text.starts_with("--split-string=") =>
                {
                    // Its own quoting rules differ from the shell's in escapes only: those ask.
                    let (code, following) = match text {
                        "-S" | "--split-string" => {
                            (after.first().and_then(Arg::known).map(str::to_string), after.get(1..).unwrap_or(&[]))
                        }
                        _ => (
                            text.strip_prefix("--split-string=").or(text.strip_prefix("-S")).map(str::to_string),
                            after,
                        ),
                    };
                    let plain = code.as_ref().is_some_and(|code| {
                        !code
                            .contains(['\\', '$', '#', '`', ';', '|', '&', '<', '>', '(', ')', '*', '?', '[', '{', '~'])
                    });
                    match code.filter(|_| plain && following.is_empty()) {
                        Some(code) => self.nested(&format!("env {code}"), &own, &context.stdin),
                        None => self.findings.ask("env splits a text that is not plain"),
                    }
                    return;
                }
                _ => {
                    self.findings.ask(format!("{name} with the option {text}"));
                    return;
                }
            };
        }
        if name == "timeout" {
            // The duration.
            match rest.split_first() {
                Some((duration, after)) if duration.known().is_some() => rest = after,
                _ => {
                    self.findings.ask("timeout without a plain duration");
                    return;
                }
            }
        }
        if rest.is_empty() {
            // `env` prints, `exec` with redirections only opens files.
            return;
        }
        if name == "command" || name == "builtin" || name == "exec" || name == "time" {
            let start = if leaks { env } else { &mut own };
            self.run(rest, start, &inner);
        } else {
            self.run(rest, &mut own, &inner);
        }
    }

    /// A program of the table.
    pub(crate) fn table(&mut self, name: &str, program: &Program, args: &[Arg], env: &mut Env) {
        if program.class == Class::Ask {
            self.findings.ask(format!("{name} {}", program.reason.as_deref().unwrap_or("is never run unasked")));
            return;
        }
        if program.class == Class::Dev {
            self.findings.change(format!("{name} runs project code"));
        } else if program.class == Class::Write {
            self.findings.change(format!("{name} changes files"));
        }
        if let Some(arg) = args.iter().find(|arg| program.names_code(arg.as_str())) {
            self.findings.ask(format!("{name} is given {}, which can run another program", shown(arg)));
        }
        let written = if program.class == Class::Dev { Class::Dev } else { Class::Write };
        let mut operands = Vec::new();
        let mut pattern_given = false;
        let mut follows = false;
        for part in program::walk(program, args) {
            match part {
                Part::Option { name: option, meaning, value } => match meaning {
                    Meaning::Flag => {}
                    Meaning::Data => self.data(name, value.as_ref()),
                    Meaning::Script => {
                        pattern_given = true;
                        self.data(name, value.as_ref());
                    }
                    Meaning::ScriptFile => {
                        pattern_given = true;
                        self.value(name, value.as_ref(), Class::Read, env);
                    }
                    Meaning::Read => self.value(name, value.as_ref(), Class::Read, env),
                    Meaning::Write => self.value(name, value.as_ref(), written, env),
                    Meaning::Follow => follows = true,
                    Meaning::Ask => self.findings.ask(format!("{name} with the option {}", dashed(&option))),
                },
                Part::Other { text, value } => {
                    if text.known().is_none() {
                        self.findings.ask(format!("an option of {name} is known only at run time"));
                    } else if !program.is_open() {
                        self.findings.ask(format!("{name} with the option {}", text.text));
                    }
                    self.value(name, value.as_ref(), program.class, env);
                }
                Part::Operand(arg) => operands.push(arg),
            }
        }
        self.operands(name, program, &operands, pattern_given, env);
        if follows {
            let skipped = usize::from(program.operands == Operands::Pattern && !pattern_given);
            let mut trees = operands.split_off(skipped.min(operands.len()));
            if trees.is_empty() {
                trees.push(Arg::literal("."));
            }
            for operand in &trees {
                self.whole_tree(name, operand, env, super::access::Tree::Followed);
            }
        }
    }

    fn operands(&mut self, name: &str, program: &Program, operands: &[Arg], pattern_given: bool, env: &mut Env) {
        let mut operands = operands.iter();
        match program.operands {
            Operands::Data => {}
            Operands::None => {
                if operands.next().is_some() {
                    self.findings.ask(format!("{name} with an argument changes the system"));
                }
            }
            Operands::Pattern => {
                if !pattern_given {
                    if let Some(pattern) = operands.next().filter(|pattern| pattern.is_unknown()) {
                        self.findings.ask(format!("{name} is given `{}`, which may be an option", shown(pattern)));
                    }
                }
                for operand in operands {
                    self.operand(name, operand, Class::Read, env);
                }
            }
            Operands::Read => operands.for_each(|operand| self.operand(name, operand, Class::Read, env)),
            Operands::Write => operands.for_each(|operand| self.operand(name, operand, program.class, env)),
            Operands::SecondWritten => {
                for (at, operand) in operands.enumerate() {
                    self.operand(name, operand, if at == 1 { Class::Write } else { Class::Read }, env);
                }
            }
        }
    }

    /// An operand, and what may be a path inside it: `@file`, `name=value`.
    pub(crate) fn operand(&mut self, name: &str, arg: &Arg, class: Class, env: &mut Env) {
        self.path(name, arg, class, env);
        if arg.known().is_none() {
            return;
        }
        if arg.text.starts_with('@') && arg.text.len() > 1 {
            self.path(name, &arg.from(1), class, env);
        }
        if let Some(at) = arg.text.find('=') {
            self.value(name, Some(&arg.from(at + 1)), class, env);
        }
        self.path_list(name, arg, class, env);
    }

    /// `a:../b`: a list of paths in one argument of a development tool.
    fn path_list(&mut self, name: &str, arg: &Arg, class: Class, env: &mut Env) {
        if class != Class::Dev || !arg.text.contains(':') {
            return;
        }
        for part in arg.text.split(':').filter(|part| program::looks_like_path(part)) {
            self.path(name, &Arg::literal(part), class, env);
        }
    }

    /// The value of an option.
    pub(crate) fn value(&mut self, name: &str, value: Option<&Arg>, class: Class, env: &mut Env) {
        let Some(value) = value else { return };
        // Programs may take `~` for the home directory themselves.
        match value.text.strip_prefix('~') {
            Some(rest) if value.known().is_some() && (rest.is_empty() || rest.starts_with('/')) => {
                let home = self.places.home.display().to_string();
                self.path(name, &Arg::literal(&format!("{home}{rest}")), class, env);
            }
            Some(_) => self.findings.ask(format!("{name} is given {}, which is not plain", value.text)),
            None => {
                self.path(name, value, class, env);
                self.path_list(name, value, class, env);
            }
        }
    }

    fn path(&mut self, name: &str, arg: &Arg, class: Class, env: &mut Env) {
        match class {
            Class::Read => self.reads(name, arg, env),
            Class::Write | Class::Dev => self.writes(name, arg, env),
            Class::Ask => {}
        }
    }

    /// A value that is no path: fine unless it may become several words.
    fn data(&mut self, name: &str, value: Option<&Arg>) {
        if value.is_some_and(|value| value.is_unknown() && (value.splits || value.files.is_some())) {
            self.findings.ask(format!("{name} is given words that are known only at run time"));
        }
    }

    /// A redirection of a command.
    pub(crate) fn redirect(&mut self, redirect: &Redirect, env: &mut Env) {
        let (Target::Word(word) | Target::Here(word)) = &redirect.target;
        self.visit(word, env);
        if let Some(name) = redirect.descriptor.as_ref().and_then(|name| name.strip_prefix('{')) {
            self.assign(name.trim_end_matches('}'), None, env, Setting::Loop);
        }
        if matches!(redirect.target, Target::Here(_)) || redirect.operator == "<<<" {
            return;
        }
        let Some(all) = self.arguments(std::slice::from_ref(word), env) else {
            self.findings.ask("a redirection whose target is not plain");
            return;
        };
        let [target] = all.as_slice() else {
            self.findings.ask("a redirection whose target is not plain");
            return;
        };
        let duplicates = {
            let text = target.as_str();
            let number = text.strip_suffix('-').unwrap_or(text);
            !text.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        match redirect.operator {
            "<" => self.reads("a redirection", target, env),
            "<>" => {
                self.reads("a redirection", target, env);
                self.writes("a redirection", target, env);
            }
            ">&" | "<&" if duplicates => {}
            "<&" => self.findings.ask("a redirection whose target is not plain"),
            _ => self.writes("a redirection", target, env),
        }
    }

    /// A variable is set.
    pub(crate) fn assign(&mut self, name: &str, value: Option<&Word>, env: &mut Env, setting: Setting) {
        let literal = value.and_then(Word::literal);
        let number = literal.as_deref().is_some_and(|text| text.parse::<i64>().is_ok())
            || value.is_some_and(|value| {
                matches!(value.units.as_slice(), [Unit::Expand { what: Expansion::Arith { .. }, .. }])
            });
        if number && setting == Setting::Shell {
            env.numbers.insert(name.to_string());
        } else {
            env.numbers.remove(name);
        }
        if name == "IFS" && setting == Setting::Shell && literal.as_deref() != Some("") {
            env.tainted.insert(name.to_string());
        }
        if env::is_guard(name) {
            self.findings.deny(format!("{name} belongs to the git guard and must not be set or unset"));
        }
        match env::risk(name, literal.as_deref()) {
            Risk::Runs => self.findings.ask(format!("{name} can make other programs run code or look elsewhere")),
            Risk::RedirectsGit => self.findings.ask(format!("{name} points git elsewhere")),
            Risk::None => {}
        }
        if setting != Setting::Prefix {
            return;
        }
        match literal {
            None => self.findings.ask(format!("the variable {name} is given a value known only at run time")),
            Some(text) => {
                let place = env::names_a_place(name) && (text.contains('/') || text.starts_with('~') || text == "..");
                if place {
                    self.value(name, Some(&Arg::literal(&text)), Class::Write, env);
                }
            }
        }
    }

    /// A variable is unset.
    pub(crate) fn unset(&mut self, name: &str) {
        if env::is_guard(name) {
            self.findings.deny(format!("{name} belongs to the git guard and must not be set or unset"));
        } else if env::risk(name, None) != Risk::None {
            self.findings.ask(format!("without {name} other programs may look elsewhere"));
        }
    }
}

fn dashed(option: &str) -> String {
    if option.chars().count() == 1 { format!("-{option}") } else { format!("--{option}") }
}

fn shown(arg: &Arg) -> String {
    arg.text.replace(super::word::UNKNOWN, "…")
}

/// The base name of a program as typed.
pub(crate) fn base_of(arg: &Arg) -> &str {
    base(arg.as_str())
}
