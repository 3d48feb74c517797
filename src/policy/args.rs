//! Arguments of a command after bash's expansions, as far as they are known before it runs.
//!
//! Owns what an argument's text is and how sure it is. Knows neither programs nor paths. Entry point: [`Arg`].

use super::word::{UNKNOWN, Unit};

/// One argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arg {
    /// The text, with [`UNKNOWN`] where it is known only at run time.
    pub(crate) text: String,
    /// An unquoted unknown part: it may become several arguments or none.
    pub(crate) splits: bool,
    /// A shell pattern for it (quoted signs escaped), if it holds an unquoted wildcard.
    pub(crate) pattern: Option<String>,
    /// Some part was quoted.
    pub(crate) quoted: bool,
    /// It stands for a list of files that a command prints.
    pub(crate) files: Option<Files>,
}

/// A list of files made by a command that can only name files below its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// Every one lies in the worktree.
    Inside,
    /// What a `find` hands to the command it runs: anything below its start points.
    Walked,
}

impl Arg {
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_string(), quoted: true, ..Self::default() }
    }

    /// A value known only at run time, in one piece.
    pub(crate) fn unknown() -> Self {
        Self { text: UNKNOWN.to_string(), quoted: true, ..Self::default() }
    }

    /// The text if it is all known; a wildcard stands for itself.
    pub(crate) fn known(&self) -> Option<&str> {
        if self.is_unknown() { None } else { Some(&self.text) }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.text.contains(UNKNOWN) || self.files.is_some()
    }

    /// The text for comparing with names: unknown parts never match one.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The part of the argument from a byte offset on.
    pub(crate) fn from(&self, at: usize) -> Self {
        let cut = |text: &str| text.get(at..).unwrap_or("").to_string();
        Self {
            text: cut(&self.text),
            // Escapes make a pattern longer than its text; without any, both can be cut at the same place.
            pattern: self.pattern.as_ref().map(|pattern| match pattern.len() == self.text.len() {
                true => cut(pattern),
                false => "*".to_string(),
            }),
            ..self.clone()
        }
    }

    /// An argument from the characters of a word whose expansions were replaced.
    pub(crate) fn from_units(units: &[Unit], quoted: bool) -> Self {
        let mut arg = Self { quoted, ..Self::default() };
        let mut pattern = String::new();
        let mut wild = false;
        // A bracket that is never closed stands for itself.
        let closes = units.iter().rposition(|unit| matches!(unit, Unit::Char { c: ']', quoted: false }));
        for (at, unit) in units.iter().enumerate() {
            match unit {
                Unit::Char { c, quoted } => {
                    arg.text.push(*c);
                    if matches!(c, '*' | '?' | '[' | '\\') {
                        if *quoted || *c == '\\' || (*c == '[' && closes.is_none_or(|close| close < at)) {
                            pattern.push('\\');
                        } else {
                            wild = true;
                        }
                    }
                    pattern.push(*c);
                }
                Unit::Expand { quoted, .. } => {
                    arg.text.push(UNKNOWN);
                    pattern.push(UNKNOWN);
                    arg.splits |= !quoted;
                }
            }
        }
        arg.pattern = wild.then_some(pattern);
        arg
    }
}
