//! Words: quotes, escapes, expansions, arrays.
//!
//! The part of the lexer that finds where a word ends and what its characters and expansions are.

use std::ops::Range;

use super::super::word::{Expansion, ParamKind, UNKNOWN, Unit, Word};
use super::{Ends, Lexer, NESTING, is_invisible, is_name};

impl Lexer<'_> {
    /// A word at the cursor; empty if none starts here.
    pub(super) fn word(&mut self) -> Word {
        let mut word = Word::default();
        let start = self.at;
        while !self.done() {
            match self.peek(0) {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'(' => {
                    let name = self.slice(start..self.at);
                    let name = name.strip_suffix('=').map(|name| name.strip_suffix('+').unwrap_or(name));
                    if !word.quoted && name.is_some_and(is_name) {
                        word.array = Some(self.array());
                    }
                    break;
                }
                b'<' | b'>' if self.peek(1) != b'(' => break,
                b'<' | b'>' => {
                    let fed = self.peek(0) == b'>';
                    self.at += 2;
                    let body = self.substitution();
                    word.units.push(Unit::Expand { what: Expansion::Process { fed, body }, quoted: false });
                }
                b'\\' => {
                    self.at += 1;
                    if self.peek(0) == b'\n' {
                        self.at += 1;
                    } else if let Some(c) = self.bump() {
                        self.check_quoted(c);
                        word.quoted = true;
                        word.units.push(Unit::Char { c, quoted: true });
                    } else {
                        self.error("a backslash at the end");
                        word.units.push(Unit::Char { c: '\\', quoted: false });
                    }
                }
                b'\'' => {
                    word.quoted = true;
                    self.at += 1;
                    self.single_quoted(&mut word.units);
                }
                b'"' => {
                    word.quoted = true;
                    self.at += 1;
                    self.double_quoted(&mut word.units, Ends::AtQuote);
                }
                b'$' => match self.peek(1) {
                    b'\'' => {
                        word.quoted = true;
                        self.at += 2;
                        self.ansi_quoted(&mut word.units);
                    }
                    b'"' => {
                        word.quoted = true;
                        self.at += 2;
                        self.double_quoted(&mut word.units, Ends::AtQuote);
                    }
                    _ => self.dollar(&mut word.units, false),
                },
                b'`' => self.backtick(&mut word.units, false),
                _ => {
                    if let Some(c) = self.bump() {
                        if c.is_control() {
                            self.error("a control character");
                        } else if !c.is_ascii() && is_invisible(c) {
                            self.error("a blank or invisible character that bash takes for part of a word");
                        }
                        word.units.push(Unit::Char { c, quoted: false });
                    }
                }
            }
        }
        if word.is_open_subscript() {
            self.error("a subscript with a break in it");
        }
        word
    }

    /// `( a b c )` after `name=`.
    fn array(&mut self) -> Vec<Word> {
        self.at += 1;
        let mut elements = Vec::new();
        self.depth += 1;
        if self.depth > NESTING {
            self.error("nested too deeply");
            self.at = self.text.len();
        }
        loop {
            while matches!(self.peek(0), b' ' | b'\t' | b'\n') || self.rest().starts_with("\\\n") {
                self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
            }
            match self.peek(0) {
                b')' => {
                    self.at += 1;
                    break;
                }
                b'#' => {
                    self.error("a comment in an array");
                    self.at = self.text.len();
                }
                _ => {}
            }
            let start = self.at;
            let element = self.word();
            if self.at == start {
                self.error("an array is not closed");
                break;
            }
            elements.push(element);
        }
        self.depth -= 1;
        elements
    }

    fn check_quoted(&mut self, c: char) {
        if (c.is_control() && c != '\n' && c != '\t') || c == UNKNOWN {
            self.error("a control character");
        }
    }

    fn single_quoted(&mut self, units: &mut Vec<Unit>) {
        loop {
            match self.bump() {
                Some('\'') => break,
                Some(c) => {
                    self.check_quoted(c);
                    units.push(Unit::Char { c, quoted: true });
                }
                None => {
                    self.error("a quote is not closed");
                    break;
                }
            }
        }
    }

    /// `$'..'` with its escapes.
    fn ansi_quoted(&mut self, units: &mut Vec<Unit>) {
        loop {
            let c = match self.bump() {
                Some('\'') => break,
                Some('\\') => match self.escape() {
                    Some(c) => c,
                    None => {
                        self.error("an escape that is not plain");
                        UNREADABLE
                    }
                },
                Some(c) => {
                    self.check_quoted(c);
                    c
                }
                None => {
                    self.error("a quote is not closed");
                    break;
                }
            };
            units.push(Unit::Char { c, quoted: true });
        }
    }

    /// The character of an escape whose backslash was read; `None` if it is no single ASCII or Unicode character.
    fn escape(&mut self) -> Option<char> {
        let radix = |lexer: &mut Self, radix: u32, most: usize| {
            let mut value: u32 = 0;
            let mut count = 0;
            while count < most {
                let Some(digit) = char::from(lexer.peek(0)).to_digit(radix) else { break };
                value = value.checked_mul(radix)?.checked_add(digit)?;
                lexer.at += 1;
                count += 1;
            }
            (count > 0).then_some(value)
        };
        let ascii = |value: u32| char::from_u32(value).filter(|c| c.is_ascii() && *c != '\0');
        let c = self.bump()?;
        match c {
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'e' | 'E' => Some('\u{1b}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            '\\' | '\'' | '"' | '?' => Some(c),
            '0'..='7' => {
                self.at -= 1;
                radix(self, 8, 3).and_then(ascii)
            }
            'x' => radix(self, 16, 2).and_then(ascii),
            'u' => radix(self, 16, 4).and_then(char::from_u32).filter(|c| *c != '\0'),
            'U' => radix(self, 16, 8).and_then(char::from_u32).filter(|c| *c != '\0'),
            _ => None,
        }
    }

    /// The inside of double quotes, or of an unquoted here-document.
    pub(super) fn double_quoted(&mut self, units: &mut Vec<Unit>, ends: Ends) {
        loop {
            match self.peek(0) {
                _ if self.done() => {
                    if ends == Ends::AtQuote {
                        self.error("a quote is not closed");
                    }
                    break;
                }
                b'"' if ends == Ends::AtQuote => {
                    self.at += 1;
                    break;
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek(0) {
                        b'\n' => self.at += 1,
                        b'$' | b'`' | b'\\' => {
                            let c = char::from(self.peek(0));
                            self.at += 1;
                            units.push(Unit::Char { c, quoted: true });
                        }
                        b'"' if ends == Ends::AtQuote => {
                            self.at += 1;
                            units.push(Unit::Char { c: '"', quoted: true });
                        }
                        _ => units.push(Unit::Char { c: '\\', quoted: true }),
                    }
                }
                b'$' => self.dollar(units, true),
                b'`' => self.backtick(units, true),
                _ => {
                    if let Some(c) = self.bump() {
                        self.check_quoted(c);
                        units.push(Unit::Char { c, quoted: true });
                    }
                }
            }
        }
    }

    /// Whatever starts with the dollar sign at the cursor.
    fn dollar(&mut self, units: &mut Vec<Unit>, quoted: bool) {
        let start = self.at;
        let next = self.peek(1);
        let what = match next {
            b'(' if self.peek(2) == b'(' => match self.arithmetic_end(start + 3) {
                Some(end) => {
                    let (text, inner) = self.arithmetic(start + 3..end);
                    self.at = end + 2;
                    Expansion::Arith { text, inner }
                }
                None => {
                    self.at += 2;
                    Expansion::Command { body: self.substitution() }
                }
            },
            b'(' => {
                self.at += 2;
                Expansion::Command { body: self.substitution() }
            }
            b'{' => {
                self.at += 2;
                self.braced(quoted)
            }
            b'[' => {
                let length = self.rest().find(']');
                let end = start + length.unwrap_or(self.rest().len());
                let (text, inner) = self.arithmetic(start + 2..end);
                if length.is_none() || text.contains(['[', '\'', '"']) {
                    self.error("an old arithmetic expansion that is not plain");
                }
                self.at = (end + 1).min(self.text.len());
                Expansion::Arith { text, inner }
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.at += 1;
                let name: String = self.rest().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                self.at += name.len();
                Expansion::Param { name, kind: ParamKind::Plain, inner: Vec::new() }
            }
            b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => {
                self.at += 2;
                Expansion::Param { name: char::from(next).to_string(), kind: ParamKind::Plain, inner: Vec::new() }
            }
            _ => {
                self.at += 1;
                units.push(Unit::Char { c: '$', quoted: true });
                return;
            }
        };
        units.push(Unit::Expand { what, quoted });
    }

    /// The body of a substitution whose opening was read, the closing parenthesis consumed.
    fn substitution(&mut self) -> String {
        let start = self.at;
        self.depth += 1;
        self.tokens(true);
        self.depth -= 1;
        let body = self.slice(start..self.at).to_string();
        if self.peek(0) == b')' {
            self.at += 1;
        }
        body
    }

    /// Backticks: the body with their own escapes removed.
    fn backtick(&mut self, units: &mut Vec<Unit>, quoted: bool) {
        self.at += 1;
        let mut body = String::new();
        loop {
            match self.bump() {
                Some('`') => break,
                Some('\\') => match self.peek(0) {
                    b'`' | b'\\' | b'$' => {
                        body.push(char::from(self.peek(0)));
                        self.at += 1;
                    }
                    b'"' if quoted => {
                        body.push('"');
                        self.at += 1;
                    }
                    _ => body.push('\\'),
                },
                Some(c) => {
                    self.check_quoted(c);
                    body.push(c);
                }
                None => {
                    self.error("a backtick is not closed");
                    break;
                }
            }
        }
        units.push(Unit::Expand { what: Expansion::Command { body }, quoted });
    }

    /// Where the arithmetic that starts at `from` (after two parentheses) ends: at two that close it.
    pub(super) fn arithmetic_end(&self, from: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let (mut at, mut open) = (from, 0_usize);
        loop {
            match *bytes.get(at)? {
                b'\\' => at += 1,
                b'\'' => at += self.text.get(at + 1..)?.find('\'')? + 1,
                b'"' => {
                    at += 1;
                    while *bytes.get(at)? != b'"' {
                        at += if *bytes.get(at)? == b'\\' { 2 } else { 1 };
                    }
                }
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => return (bytes.get(at + 1) == Some(&b')')).then_some(at),
                _ => {}
            }
            at += 1;
        }
    }

    pub(super) fn arithmetic(&mut self, span: Range<usize>) -> (String, Vec<Unit>) {
        let text = self.slice(span).to_string();
        let mut inner = Lexer { text: &text, at: 0, errors: Vec::new(), here: Vec::new(), depth: self.depth + 1 };
        let mut units = Vec::new();
        if inner.depth > NESTING {
            inner.error("nested too deeply");
        } else {
            inner.double_quoted(&mut units, Ends::AtEnd);
        }
        for error in inner.errors {
            self.error(error);
        }
        (text, units)
    }

    /// `${..}` whose opening was read.
    fn braced(&mut self, quoted: bool) -> Expansion {
        let start = self.at;
        let mut inner = Vec::new();
        self.depth += 1;
        if self.depth > NESTING {
            self.error("nested too deeply");
            self.at = self.text.len();
        }
        loop {
            match self.peek(0) {
                _ if self.done() => {
                    self.error("an expansion is not closed");
                    break;
                }
                b'}' => break,
                b'\\' => {
                    self.at += 1;
                    if let Some(c) = self.bump() {
                        inner.push(Unit::Char { c, quoted: true });
                    }
                }
                b'\'' if quoted => {
                    // Whether it quotes depends on the operator.
                    self.error("a single quote in an expansion inside double quotes");
                    self.at += 1;
                }
                b'\'' => {
                    self.at += 1;
                    self.single_quoted(&mut inner);
                }
                b'"' => {
                    self.at += 1;
                    self.double_quoted(&mut inner, Ends::AtQuote);
                }
                b'$' if self.peek(1) == b'\'' && !quoted => {
                    self.at += 2;
                    self.ansi_quoted(&mut inner);
                }
                b'$' => self.dollar(&mut inner, quoted),
                b'`' => self.backtick(&mut inner, quoted),
                b'<' | b'>' if self.peek(1) == b'(' => {
                    self.error("a process substitution in an expansion");
                    self.at += 1;
                }
                _ => {
                    if let Some(c) = self.bump() {
                        self.check_quoted(c);
                        inner.push(Unit::Char { c, quoted });
                    }
                }
            }
        }
        self.depth -= 1;
        let content = self.slice(start..self.at);
        if self.peek(0) == b'}' {
            self.at += 1;
        }
        let (name, kind) = parameter(content);
        Expansion::Param { name: name.to_string(), kind, inner }
    }
}

/// Stands for an escape whose value is not plain; the text it is in has an error.
const UNREADABLE: char = '\u{FFFD}';

/// Name and kind of what stands between `${` and `}`.
fn parameter(content: &str) -> (&str, ParamKind) {
    if content == "!" || content == "#" {
        return (content, ParamKind::Plain);
    }
    if let Some(rest) = content.strip_prefix('#') {
        let (name, rest) = split_name(rest);
        let plain = !name.is_empty() && plain_subscript(rest).is_some_and(str::is_empty);
        return (name, if plain { ParamKind::Length } else { ParamKind::Odd });
    }
    let (name, rest) = split_name(content);
    let Some(operator) = plain_subscript(rest).filter(|_| !name.is_empty()) else { return (name, ParamKind::Odd) };
    let kind = match operator.as_bytes() {
        [] if rest.is_empty() => ParamKind::Plain,
        [] => ParamKind::Derived,
        [b':', b'-' | b'+' | b'?', ..] | [b'-' | b'+' | b'?' | b'%' | b'#' | b'/' | b'^' | b',', ..] => {
            ParamKind::Derived
        }
        [b':', b'=', ..] => ParamKind::Odd,
        [b':', ..] => ParamKind::Slice(operator.get(1..).unwrap_or("").to_string()),
        _ => ParamKind::Odd,
    };
    (name, kind)
}

fn split_name(text: &str) -> (&str, &str) {
    let end = match text.bytes().next() {
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
            text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
        }
        Some(b'0'..=b'9') => text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()),
        Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => 1,
        _ => 0,
    };
    text.split_at_checked(end).unwrap_or(("", text))
}

/// What follows a subscript of a number, `@` or `*` (or none); `None` for any other subscript.
fn plain_subscript(text: &str) -> Option<&str> {
    let Some(rest) = text.strip_prefix('[') else { return Some(text) };
    let (index, rest) = rest.split_once(']')?;
    let plain = index == "@" || index == "*" || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()));
    plain.then_some(rest)
}
