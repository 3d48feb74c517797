//! Bash words after quote removal: characters, expansions, brace alternatives.
//!
//! Owns what a word *is* (not where it ends, see `lex`) and what can be said of its text without running anything.
//! Knows no commands. Entry points: [`Word`], [`Word::braces`], [`Word::literal`].

/// Stands for a value known only at run time in the text of a word; no character that a path or option needs.
pub(crate) const UNKNOWN: char = '\u{FFFC}';

/// One word of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) units: Vec<Unit>,
    /// Some part of it was quoted: it is no reserved word and is there even when empty.
    pub(crate) quoted: bool,
    /// `name=(..)`: the elements.
    pub(crate) array: Option<Vec<Self>>,
}

/// A character or an expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Char { c: char, quoted: bool },
    Expand { what: Expansion, quoted: bool },
}

/// What bash replaces by a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// `$x`, `${x..}` and the special parameters.
    Param { name: String, kind: ParamKind, inner: Vec<Unit> },
    /// `$(..)` and backticks: the body as a command text.
    Command { body: String },
    /// `<(..)` (the command reads nothing of ours) and `>(..)` (it is fed what we write).
    Process { fed: bool, body: String },
    /// `$((..))` and `$[..]`.
    Arith { text: String, inner: Vec<Unit> },
}

/// How a parameter is expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    /// Its value as it is.
    Plain,
    /// The length of its value: always a number.
    Length,
    /// A value made from it by a default, a pattern or a change of case.
    Derived,
    /// `${x:offset:length}`: the arithmetic text.
    Slice(String),
    /// Indirection, assignment, `@` operators, unclear subscripts: may run code or assign unseen.
    Odd,
}

impl Word {
    pub(crate) fn plain(text: &str) -> Self {
        Self { units: text.chars().map(|c| Unit::Char { c, quoted: false }).collect(), quoted: false, array: None }
    }

    /// One quoted literal, as an argument handed on by another program.
    pub(crate) fn quoted(text: &str) -> Self {
        Self { units: text.chars().map(|c| Unit::Char { c, quoted: true }).collect(), quoted: true, array: None }
    }

    /// The text if nothing in it is known only at run time (a wildcard stands for itself).
    pub(crate) fn literal(&self) -> Option<String> {
        self.units
            .iter()
            .map(|unit| match unit {
                Unit::Char { c, .. } => Some(*c),
                Unit::Expand { .. } => None,
            })
            .collect()
    }

    /// The text with [`UNKNOWN`] for every expansion.
    pub(crate) fn shape(&self) -> String {
        self.units
            .iter()
            .map(|unit| match unit {
                Unit::Char { c, .. } => *c,
                Unit::Expand { .. } => UNKNOWN,
            })
            .collect()
    }

    /// The text if the word is unquoted and literal: the only form in which bash sees a reserved word.
    pub(crate) fn bare(&self) -> Option<String> {
        if self.quoted { None } else { self.literal() }
    }

    /// Every expansion in it, also inside others and in array elements.
    pub(crate) fn expansions(&self) -> Vec<&Expansion> {
        let mut found = Vec::new();
        collect(&self.units, &mut found);
        for element in self.array.iter().flatten() {
            found.extend(element.expansions());
        }
        found
    }

    /// It starts like `name[` and the bracket is not closed: where bash expects an assignment it reads on.
    pub(crate) fn is_open_subscript(&self) -> bool {
        let name = self.units.iter().take_while(
            |unit| matches!(unit, Unit::Char { c, quoted: false } if c.is_ascii_alphanumeric() || *c == '_'),
        );
        let name = name.count();
        let mut open = 0_usize;
        for unit in self.units.iter().skip(name) {
            if is_char(unit, '[') {
                open += 1;
            } else if is_char(unit, ']') {
                open = open.saturating_sub(1);
            }
            if open == 0 {
                return false;
            }
        }
        name > 0 && open > 0
    }

    /// Splits `name=value`, `name+=value`, `name[i]=value` with an unquoted name.
    pub(crate) fn assignment(&self) -> Option<Assignment> {
        let mut name = String::new();
        let mut units = self.units.iter().enumerate();
        let mut subscript: Option<Vec<Unit>> = None;
        while let Some((at, unit)) = units.next() {
            let Unit::Char { c, quoted: false } = unit else { return None };
            match c {
                'a'..='z' | 'A'..='Z' | '_' => name.push(*c),
                '0'..='9' if !name.is_empty() => name.push(*c),
                '[' if !name.is_empty() => {
                    let close = self.units.iter().skip(at).position(|unit| is_char(unit, ']'))?.checked_add(at)?;
                    subscript = Some(self.units.get(at.checked_add(1)?..close)?.to_vec());
                    let mut rest = self.units.iter().enumerate().skip(close.checked_add(1)?).peekable();
                    if rest.peek().is_some_and(|(_, unit)| is_char(unit, '+')) {
                        rest.next();
                    }
                    let (equals, unit) = rest.next()?;
                    return is_char(unit, '=').then(|| self.split_at(name, subscript, equals));
                }
                '+' if !name.is_empty() => {
                    let (equals, unit) = units.next()?;
                    return is_char(unit, '=').then(|| self.split_at(name, subscript, equals));
                }
                '=' if !name.is_empty() => return Some(self.split_at(name, subscript, at)),
                _ => return None,
            }
        }
        None
    }

    fn split_at(&self, name: String, subscript: Option<Vec<Unit>>, equals: usize) -> Assignment {
        let value = Self {
            units: self.units.iter().skip(equals.saturating_add(1)).cloned().collect(),
            quoted: self.quoted,
            array: self.array.clone(),
        };
        Assignment { name, subscript, value }
    }

    /// The words that brace expansion makes of it, at most `cap`; `None` when there would be more.
    pub(crate) fn braces(&self, cap: usize) -> Option<Vec<Self>> {
        if self.array.is_some() || !self.units.iter().any(|unit| is_char(unit, '{')) {
            return Some(vec![self.clone()]);
        }
        let openings = self.units.iter().filter(|unit| is_char(unit, '{')).count();
        if openings > BRACE_OPENINGS || self.units.len() > BRACE_LENGTH {
            return None;
        }
        let expanded = expand_braces(&self.units, cap, 0)?;
        Some(expanded.into_iter().map(|units| Self { units, quoted: self.quoted, array: None }).collect())
    }
}

/// `name[subscript]=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) subscript: Option<Vec<Unit>>,
    pub(crate) value: Word,
}

fn collect<'u>(units: &'u [Unit], found: &mut Vec<&'u Expansion>) {
    for unit in units {
        if let Unit::Expand { what, .. } = unit {
            found.push(what);
            match what {
                Expansion::Param { inner, .. } | Expansion::Arith { inner, .. } => collect(inner, found),
                Expansion::Command { .. } | Expansion::Process { .. } => {}
            }
        }
    }
}

fn is_char(unit: &Unit, wanted: char) -> bool {
    matches!(unit, Unit::Char { c, quoted: false } if *c == wanted)
}

/// Opening braces in one word, and its characters, beyond which it counts as too many alternatives.
const BRACE_OPENINGS: usize = 64;
const BRACE_LENGTH: usize = 4096;
/// Nested braces deeper than this count as too many alternatives.
const BRACE_DEPTH: usize = 16;

fn expand_braces(units: &[Unit], cap: usize, depth: usize) -> Option<Vec<Vec<Unit>>> {
    if depth > BRACE_DEPTH {
        return None;
    }
    let mut from = 0;
    while let Some(open) = units.iter().skip(from).position(|unit| is_char(unit, '{')).map(|at| at + from) {
        let Some((close, commas)) = matching(units, open) else {
            from = open + 1;
            continue;
        };
        let inside = units.get(open + 1..close)?;
        let alternatives: Vec<Vec<Unit>> = if commas.is_empty() {
            match sequence(inside, cap) {
                Sequence::Not => {
                    from = open + 1;
                    continue;
                }
                Sequence::TooLong => return None,
                Sequence::Of(values) => values,
            }
        } else {
            let mut all = Vec::new();
            let mut start = open + 1;
            for end in commas.into_iter().chain([close]) {
                all.extend(expand_braces(units.get(start..end)?, cap, depth + 1)?);
                start = end + 1;
            }
            all
        };
        let tails = expand_braces(units.get(close + 1..)?, cap, depth + 1)?;
        if alternatives.len().checked_mul(tails.len())? > cap {
            return None;
        }
        let head = units.get(..open)?;
        let mut all = Vec::new();
        for middle in &alternatives {
            for tail in &tails {
                all.push(head.iter().chain(middle).chain(tail).cloned().collect());
            }
        }
        return Some(all);
    }
    Some(vec![units.to_vec()])
}

/// The brace that closes the one at `open`, and the commas between on its level.
fn matching(units: &[Unit], open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    for (at, unit) in units.iter().enumerate().skip(open) {
        match unit {
            Unit::Char { c: '{', quoted: false } => depth += 1,
            Unit::Char { c: '}', quoted: false } => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            Unit::Char { c: ',', quoted: false } if depth == 1 => commas.push(at),
            Unit::Char { .. } | Unit::Expand { .. } => {}
        }
    }
    None
}

enum Sequence {
    Not,
    TooLong,
    Of(Vec<Vec<Unit>>),
}

/// `1..9`, `a..f`, each with an optional step.
fn sequence(inside: &[Unit], cap: usize) -> Sequence {
    let text: Option<String> = inside
        .iter()
        .map(|unit| match unit {
            Unit::Char { c, quoted: false } => Some(*c),
            Unit::Char { quoted: true, .. } | Unit::Expand { .. } => None,
        })
        .collect();
    let Some(text) = text else { return Sequence::Not };
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => match step.parse::<i64>() {
            Ok(step) => (*first, *last, step.checked_abs().unwrap_or(1).max(1)),
            Err(_) => return Sequence::Not,
        },
        _ => return Sequence::Not,
    };
    let letter = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|c| c.is_ascii_alphabetic() && chars.next().is_none())
    };
    let (from, to, letters) = match (letter(first), letter(last)) {
        (Some(from), Some(to)) => (i64::from(u32::from(from)), i64::from(u32::from(to)), true),
        _ => match (first.parse::<i64>(), last.parse::<i64>()) {
            (Ok(from), Ok(to)) => (from, to, false),
            _ => return Sequence::Not,
        },
    };
    let Some(span) = to.checked_sub(from).and_then(i64::checked_abs) else { return Sequence::TooLong };
    let Ok(count) = usize::try_from(span / step) else { return Sequence::TooLong };
    if count >= cap {
        return Sequence::TooLong;
    }
    let padded = !letters
        && [first, last].iter().any(|text| {
            let digits = text.trim_start_matches(['-', '+']);
            digits.len() > 1 && digits.starts_with('0')
        });
    let width = if padded { first.len().max(last.len()) } else { 0 };
    let mut values = Vec::new();
    let mut value = from;
    loop {
        let text = match u32::try_from(value).ok().and_then(char::from_u32) {
            Some(c) if letters => c.to_string(),
            _ if value < 0 => format!("-{:0width$}", value.unsigned_abs(), width = width.saturating_sub(1)),
            _ => format!("{value:0width$}"),
        };
        values.push(text.chars().map(|c| Unit::Char { c, quoted: letters }).collect());
        let next = if from <= to { value.checked_add(step) } else { value.checked_sub(step) };
        match next {
            Some(next) if (from <= to && next <= to) || (from > to && next >= to) => value = next,
            _ => return Sequence::Of(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Vec<String> {
        Word::plain(text).braces(100).unwrap().iter().map(Word::shape).collect()
    }

    #[test]
    fn braces_expand_as_in_bash() {
        for (text, wanted) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("{a,b}{1,2}", &["a1", "a2", "b1", "b2"]),
            ("x{1..3}", &["x1", "x2", "x3"]),
            ("{3..1}", &["3", "2", "1"]),
            ("{01..3}", &["01", "02", "03"]),
            ("{a..c}", &["a", "b", "c"]),
            ("{1..7..3}", &["1", "4", "7"]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("{a{b,c}}", &["{ab}", "{ac}"]),
            ("{a}", &["{a}"]),
            ("{a,b", &["{a,b"]),
            ("{,x}", &["", "x"]),
            ("{}", &["{}"]),
        ] {
            assert_eq!(expanded(text), wanted, "{text}");
        }
        assert_eq!(Word::plain("{1..1000}").braces(100), None);
        assert_eq!(Word::plain("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}").braces(100), None);
        assert_eq!(Word::quoted("{a,b}").braces(100).unwrap().len(), 1);
    }

    #[test]
    fn assignments_are_split_at_unquoted_names() {
        let name = |text: &str| Word::plain(text).assignment().map(|assignment| assignment.name);
        assert_eq!(name("a=b"), Some("a".into()));
        assert_eq!(name("_a1+=b=c"), Some("_a1".into()));
        assert_eq!(name("a[0]=b"), Some("a".into()));
        for text in ["1a=b", "=b", "a", "a-b=c", "a b=c", "--x=y"] {
            assert_eq!(name(text), None, "{text}");
        }
        assert_eq!(Word::quoted("a=b").assignment(), None);
    }
}
