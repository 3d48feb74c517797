//! What is known of programs: a table that can be read and extended (`programs.toml`), and how options are read.
//!
//! Owns the table's form and the walk over a command's arguments. It judges nothing: it says which argument is an
//! option's value, an operand, data, or not known. Entry points: [`lookup`], [`walk`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::args::Arg;
use super::word::UNKNOWN;

/// What a program does at most, unless an option says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// Reads files in the area.
    Read,
    /// Changes files in the worktree.
    Write,
    /// Runs project code; its paths may be written.
    Dev,
    /// Never without the person's word.
    Ask,
}

/// What the words are that are neither options nor their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operands {
    Read,
    Write,
    /// Text: nothing is opened.
    Data,
    /// The first is a pattern or script, unless an option gave it; the others are read.
    Pattern,
    /// The first is read, the second written.
    SecondWritten,
    /// There should be none.
    None,
}

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing of interest, no value.
    Flag,
    /// Its value is no path.
    Data,
    /// Its value gives the pattern or script.
    Script,
    /// Its value is a file with the pattern or script.
    ScriptFile,
    Read,
    /// Links met in a tree are followed.
    Follow,
    Write,
    /// Runs a program or code, or leaves the class of its program in another way.
    Ask,
}

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    No,
    /// Glued, after `=`, or the next word.
    Yes,
    /// Glued or after `=` only.
    Glued,
    /// A name, then the value.
    Named,
}

/// One program of the table.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) class: Class,
    pub(crate) operands: Operands,
    /// Options that are not listed are harmless (their values are still looked at as paths); else they ask.
    open: bool,
    /// `-name` is one option, not a cluster of letters.
    single_dash: bool,
    pub(crate) reason: Option<String>,
    /// Starts of arguments that name a program or code.
    ask_words: Vec<String>,
    /// Texts that make any argument name a program or code.
    ask_parts: Vec<String>,
    options: BTreeMap<String, (Meaning, Value)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    program: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Names, separated by blanks; `git x` for a git subcommand.
    names: Vec<String>,
    class: Class,
    operands: Option<Operands>,
    #[serde(default)]
    closed: bool,
    #[serde(default)]
    single_dash: bool,
    reason: Option<String>,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    script: String,
    #[serde(default)]
    script_file: String,
    #[serde(default)]
    follow: String,
    #[serde(default)]
    read: String,
    #[serde(default)]
    write: String,
    #[serde(default)]
    ask: String,
    #[serde(default)]
    ask_words: Vec<String>,
    #[serde(default)]
    ask_parts: Vec<String>,
}

const TEXT: &str = include_str!("programs.toml");

static PROGRAMS: LazyLock<BTreeMap<String, Program>> = LazyLock::new(|| {
    // A table that does not read leaves every program unknown: everything asks. A test keeps it readable.
    parse(TEXT).unwrap_or_default()
});

fn parse(text: &str) -> Result<BTreeMap<String, Program>, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut programs = BTreeMap::new();
    for entry in table.program {
        let mut options = BTreeMap::new();
        let groups = [
            (&entry.flags, Meaning::Flag),
            (&entry.data, Meaning::Data),
            (&entry.script, Meaning::Script),
            (&entry.script_file, Meaning::ScriptFile),
            (&entry.follow, Meaning::Follow),
            (&entry.read, Meaning::Read),
            (&entry.write, Meaning::Write),
            (&entry.ask, Meaning::Ask),
        ];
        for (names, meaning) in groups {
            for name in names.split_whitespace() {
                let (name, value) = match name.split_at_checked(name.len() - 1) {
                    Some((name, "!")) => (name, Value::No),
                    Some((name, "?")) => (name, Value::Glued),
                    Some((name, "+")) => (name, Value::Named),
                    _ if meaning == Meaning::Flag => (name, Value::No),
                    _ => (name, Value::Yes),
                };
                if options.insert(name.to_string(), (meaning, value)).is_some() {
                    return Err(format!("{:?}: the option {name} is listed twice", entry.names));
                }
            }
        }
        let operands = entry.operands.unwrap_or(match entry.class {
            Class::Read => Operands::Read,
            Class::Write | Class::Dev => Operands::Write,
            Class::Ask => Operands::Data,
        });
        let program = Program {
            class: entry.class,
            operands,
            open: !entry.closed,
            single_dash: entry.single_dash,
            reason: entry.reason,
            ask_words: entry.ask_words,
            ask_parts: entry.ask_parts,
            options,
        };
        for name in entry.names {
            if programs.insert(name.clone(), program.clone()).is_some() {
                return Err(format!("{name} is listed twice"));
            }
        }
    }
    Ok(programs)
}

/// The entry of a program, by base name, or of `git <subcommand>`.
pub(crate) fn lookup(name: &str) -> Option<&'static Program> {
    PROGRAMS.get(name)
}

/// A program that is not itself a way to run any other.
pub(crate) fn is_known(name: &str) -> bool {
    name == "git" || lookup(name).is_some_and(|program| program.class != Class::Ask)
}

/// One argument's part in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// An option by its full name in the table (without dashes), with its value if it takes one.
    Option {
        name: String,
        meaning: Meaning,
        value: Option<Arg>,
    },
    /// An option that is not in the table.
    Other {
        text: Arg,
        value: Option<Arg>,
    },
    Operand(Arg),
}

/// Reads arguments as GNU programs do: clusters, glued values, abbreviated long names, `--`.
pub(crate) fn walk(program: &Program, args: &[Arg]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = args.iter();
    let mut only_operands = false;
    while let Some(arg) = rest.next() {
        let text = arg.as_str();
        if only_operands || !text.starts_with('-') || text == "-" {
            parts.push(Part::Operand(arg.clone()));
        } else if text == "--" {
            only_operands = true;
        } else if let Some(long) = text.strip_prefix("--") {
            long_option(program, arg, long, 2, &mut rest, &mut parts);
        } else if program.single_dash {
            long_option(program, arg, text.get(1..).unwrap_or(""), 1, &mut rest, &mut parts);
        } else {
            cluster(program, arg, &mut rest, &mut parts);
        }
    }
    parts
}

fn long_option<'a>(
    program: &Program,
    arg: &Arg,
    long: &str,
    dashes: usize,
    rest: &mut impl Iterator<Item = &'a Arg>,
    parts: &mut Vec<Part>,
) {
    let (name, glued) = match long.split_once('=') {
        Some((name, _)) => (name, Some(arg.from(dashes + name.len() + 1))),
        None => (long, None),
    };
    let exact = program.options.get_key_value(name).filter(|_| name.len() > 1 || dashes == 1);
    // The gravest of all options that the text may be an abbreviation of.
    let known = exact.or_else(|| {
        let abbreviated = program
            .options
            .iter()
            .filter(|(known, _)| dashes == 2 && !name.is_empty() && known.len() > 1 && known.starts_with(name));
        abbreviated.max_by_key(|(_, (meaning, _))| gravity(*meaning))
    });
    match known {
        Some((known, (meaning, value))) => {
            let value = match (glued, value) {
                (Some(glued), _) => Some(glued),
                (None, Value::Yes) => Some(rest.next().cloned().unwrap_or_default()),
                (None, Value::Named) => Some(rest.nth(1).cloned().unwrap_or_default()),
                (None, Value::No | Value::Glued) => None,
            };
            parts.push(Part::Option { name: known.clone(), meaning: *meaning, value });
        }
        None if dashes == 1 => {
            // `-I../include`, `-MFfile`: an option may stand right before its value.
            let prefix = program
                .options
                .iter()
                .filter(|(known, (_, value))| {
                    matches!(value, Value::Yes | Value::Glued)
                        && long.len() > known.len()
                        && long.starts_with(known.as_str())
                })
                .max_by_key(|(known, _)| known.len());
            match prefix {
                Some((known, (meaning, _))) => {
                    let value = Some(arg.from(dashes + known.len()));
                    parts.push(Part::Option { name: known.clone(), meaning: *meaning, value });
                }
                None => {
                    let rest = (long.len() > 1).then(|| arg.from(2));
                    let path = glued.or_else(|| rest.filter(|rest| looks_like_path(rest.as_str())));
                    parts.push(Part::Other { text: arg.clone(), value: path });
                }
            }
        }
        None => parts.push(Part::Other { text: arg.clone(), value: glued }),
    }
}

fn cluster<'a>(program: &Program, arg: &Arg, rest: &mut impl Iterator<Item = &'a Arg>, parts: &mut Vec<Part>) {
    let text = arg.as_str();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        let after = at + letter.len_utf8();
        let glued = (after < text.len()).then(|| arg.from(after));
        match program.options.get_key_value(letter.encode_utf8(&mut [0; 4]) as &str) {
            Some((name, (meaning, Value::No))) => {
                parts.push(Part::Option { name: name.clone(), meaning: *meaning, value: None });
            }
            Some((name, (meaning, value))) => {
                let value = match (glued, value) {
                    (Some(glued), _) => Some(glued),
                    (None, Value::Yes) => Some(rest.next().cloned().unwrap_or_default()),
                    (None, Value::Named) => Some(rest.nth(1).cloned().unwrap_or_default()),
                    (None, Value::No | Value::Glued) => None,
                };
                parts.push(Part::Option { name: name.clone(), meaning: *meaning, value });
                return;
            }
            None => {
                // What follows may be its value; that is only of interest if it looks like a path.
                let path = glued.filter(|glued| looks_like_path(glued.as_str()));
                let ends = path.is_some();
                let single = Arg { text: format!("-{letter}"), ..arg.clone() };
                parts.push(Part::Other { text: if letter == UNKNOWN { arg.clone() } else { single }, value: path });
                if ends {
                    return;
                }
            }
        }
    }
}

/// Whether a text glued to an option is looked at as a path.
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.starts_with(['/', '~', '$', UNKNOWN])
        || text.contains("..")
        || text.starts_with("=/")
        || text.starts_with("=~")
}

fn gravity(meaning: Meaning) -> u8 {
    match meaning {
        Meaning::Flag => 0,
        Meaning::Data => 1,
        Meaning::Script => 2,
        Meaning::ScriptFile | Meaning::Read => 3,
        Meaning::Follow => 4,
        Meaning::Write => 5,
        Meaning::Ask => 6,
    }
}

impl Program {
    /// Options that are not in the table are harmless by themselves.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// The argument names a program or code, whatever option it is.
    pub(crate) fn names_code(&self, text: &str) -> bool {
        self.ask_words.iter().any(|word| text.starts_with(word))
            || self.ask_parts.iter().any(|part| text.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is data: a slip in it shows here, not as a question to a person.
    #[test]
    fn the_table_reads() {
        let programs = parse(TEXT).unwrap();
        assert!(programs.len() > 200, "{}", programs.len());
        for (name, program) in &programs {
            assert!(program.class != Class::Ask || program.reason.is_some(), "{name} asks without saying why");
        }
    }

    fn parts(name: &str, args: &[&str]) -> Vec<Part> {
        let args: Vec<Arg> = args.iter().map(|text| Arg::literal(text)).collect();
        walk(lookup(name).unwrap(), &args)
    }

    #[test]
    fn glued_values_and_abbreviations_are_options() {
        let writes = |parts: &[Part]| {
            parts.iter().any(|part| matches!(part, Part::Option { meaning: Meaning::Write, value: Some(v), .. } if v.as_str() == "x"))
        };
        for args in [&["-o", "x"][..], &["-ox"], &["-uox"], &["--output=x"], &["--outp", "x"], &["f", "-o", "x"]] {
            assert!(writes(&parts("sort", args)), "{args:?}");
        }
        assert!(!writes(&parts("sort", &["--", "-o", "x"])));
        let asks = parts("sort", &["--compress-prog=./x"]);
        assert!(matches!(asks.as_slice(), [Part::Option { meaning: Meaning::Ask, .. }]), "{asks:?}");
    }
}
