//! Cutting a command text into bash's tokens: words, operators, redirections, here-documents.
//!
//! Owns bash's quoting rules and where tokens end. It goes on after an error, for the push scan has to see also
//! texts that do not parse; whoever runs the text must look at [`Lexed::errors`] first. It builds no syntax tree:
//! `shell` does, from another parser, and requires both to agree. Entry point: [`lex`].

use std::ops::Range;

use super::word::{Expansion, ParamKind, UNKNOWN, Unit, Word};

/// Substitutions and quotes inside each other; deeper counts as an error.
pub(crate) const NESTING: usize = 64;

/// A token and where it stands in the text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word(Word),
    /// A control operator.
    Operator(&'static str),
    Newline,
    Redirect(Redirect),
    /// `((..))` as a command or in `for`: the text between.
    Arith {
        text: String,
        inner: Vec<Unit>,
    },
}

/// A redirection with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// A file descriptor was named before the operator: its number, or a variable's name in braces.
    pub(crate) descriptor: Option<String>,
    pub(crate) operator: &'static str,
    pub(crate) target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Word(Word),
    /// The text of a here-document; with a quoted delimiter it holds no expansions.
    Here(Word),
}

/// A text cut into tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    /// Why bash may read the text in another way than these tokens say. Empty for a text that is understood.
    pub(crate) errors: Vec<&'static str>,
    /// Here-document operators (with delimiter) and bodies, at every depth, and other redirections (without a body)
    /// to be hidden from another parser.
    pub(crate) here: Vec<(Range<usize>, Range<usize>)>,
}

/// Cuts `text`; never fails, see [`Lexed::errors`].
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer { text, at: 0, errors: Vec::new(), here: Vec::new(), depth: 0 };
    let tokens = lexer.tokens(false);
    Lexed { tokens, errors: lexer.errors, here: lexer.here }
}

/// The expansions in a text that bash treats like the inside of double quotes (an unquoted here-document).
pub(crate) fn lex_quoted(text: &str) -> (Word, Vec<&'static str>) {
    let mut lexer = Lexer { text, at: 0, errors: Vec::new(), here: Vec::new(), depth: 0 };
    let mut word = Word { quoted: true, ..Word::default() };
    lexer.double_quoted(&mut word.units, Ends::AtEnd);
    (word, lexer.errors)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    errors: Vec<&'static str>,
    here: Vec<(Range<usize>, Range<usize>)>,
    depth: usize,
}

/// What the lexer is inside of, for telling a `)` that ends a pattern from one that closes a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Group,
    CaseHead,
    CasePattern,
    CaseBody,
}

/// A here-document whose body starts after the next newline.
struct Pending {
    token: usize,
    operator: Range<usize>,
    strip_tabs: bool,
    quoted: bool,
    delimiter: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// At the closing double quote.
    AtQuote,
    /// At the end of the text.
    AtEnd,
}

const OPERATORS: [&str; 11] = [";;&", ";;", ";&", ";", "&&", "&", "||", "|&", "|", "(", ")"];
const REDIRECTS: [&str; 12] = ["<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">&", ">|", ">"];

impl<'t> Lexer<'t> {
    /// The byte `offset` after the cursor; 0 past the end (a NUL in the text is an error of its own).
    fn peek(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.at.saturating_add(offset)).copied().unwrap_or(0)
    }

    fn done(&self) -> bool {
        self.at >= self.text.len()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn slice(&self, span: Range<usize>) -> &'t str {
        self.text.get(span).unwrap_or("")
    }

    fn error(&mut self, why: &'static str) {
        if !self.errors.contains(&why) {
            self.errors.push(why);
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// All tokens up to the end, or in a substitution up to (not including) the parenthesis that closes it.
    fn tokens(&mut self, nested: bool) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        let mut inside: Vec<Inside> = Vec::new();
        let (mut command, mut after_for, mut after_function, mut in_test) = (true, false, false, false);
        if self.depth > NESTING {
            self.error("nested too deeply");
            self.at = self.text.len();
            return tokens;
        }
        loop {
            while matches!(self.peek(0), b' ' | b'\t') || self.rest().starts_with("\\\n") {
                self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
            }
            let start = self.at;
            if self.done() {
                if nested {
                    self.error("a substitution is not closed");
                }
                break;
            }
            match self.peek(0) {
                b'\n' => {
                    self.at += 1;
                    tokens.push(Token { kind: TokenKind::Newline, span: start..self.at });
                    for document in std::mem::take(&mut pending) {
                        self.here_document(document, &mut tokens);
                    }
                    command |= !in_test;
                    continue;
                }
                b'#' => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    if self.slice(start..start + length).chars().any(|c| c.is_control() && c != '\t') {
                        self.error("a control character");
                    }
                    self.at += length;
                    continue;
                }
                b')' if nested && inside.is_empty() => break,
                _ => {}
            }
            if self.rest().starts_with("((")
                && (command || after_for)
                && inside.last() != Some(&Inside::CasePattern)
                && let Some(end) = self.arithmetic_end(start + 2)
            {
                let (text, inner) = self.arithmetic(start + 2..end);
                self.at = end + 2;
                tokens.push(Token { kind: TokenKind::Arith { text, inner }, span: start..self.at });
                (command, after_for) = (false, false);
                continue;
            }
            let process = matches!(self.peek(0), b'<' | b'>') && self.peek(1) == b'(';
            if let Some(redirect) = REDIRECTS.iter().find(|text| self.rest().starts_with(**text)).filter(|_| !process) {
                if in_test && redirect.starts_with("<<") {
                    self.error("a here-document in a test");
                }
                let kind = self.redirect(None, redirect, tokens.len(), &mut pending);
                tokens.push(Token { kind, span: start..self.at });
                continue;
            }
            if let Some(operator) = OPERATORS.iter().find(|text| self.rest().starts_with(**text)) {
                self.at += operator.len();
                tokens.push(Token { kind: TokenKind::Operator(operator), span: start..self.at });
                match *operator {
                    "(" if inside.last() == Some(&Inside::CasePattern) => {}
                    "(" => inside.push(Inside::Group),
                    ")" => match inside.last_mut() {
                        Some(top @ Inside::CasePattern) => *top = Inside::CaseBody,
                        Some(Inside::Group) => {
                            inside.pop();
                        }
                        Some(Inside::CaseHead | Inside::CaseBody) | None => self.error("an unmatched parenthesis"),
                    },
                    ";;" | ";&" | ";;&" => {
                        if let Some(top @ Inside::CaseBody) = inside.last_mut() {
                            *top = Inside::CasePattern;
                        }
                    }
                    _ => {}
                }
                command = true;
                continue;
            }
            let word = self.word();
            if self.at == start {
                // Nothing that a word could start with: skip it rather than stand still.
                self.error("an unexpected character");
                self.bump();
                continue;
            }
            if !pending.is_empty() && self.slice(start..self.at).contains('\n') {
                self.error("a line break inside a word before a here-document's body");
            }
            let text = self.slice(start..self.at);
            let follows = matches!(self.peek(0), b'<' | b'>');
            if follows && is_descriptor(text) {
                let descriptor = text.to_string();
                if let Some(redirect) = REDIRECTS.iter().find(|text| self.rest().starts_with(**text)) {
                    let kind = self.redirect(Some(descriptor), redirect, tokens.len(), &mut pending);
                    tokens.push(Token { kind, span: start..self.at });
                    continue;
                }
            }
            let bare = if word.quoted { None } else { word.bare() };
            let reserved = bare.as_deref().unwrap_or("");
            if in_test {
                in_test = reserved != "]]";
                command = false;
            } else if after_function {
                (after_function, command) = (false, true);
            } else if inside.last() == Some(&Inside::CaseHead) && reserved == "in" {
                if let Some(top) = inside.last_mut() {
                    *top = Inside::CasePattern;
                }
                command = true;
            } else if inside.last() == Some(&Inside::CasePattern) {
                if reserved == "esac" && command {
                    inside.pop();
                }
                command = false;
            } else if command {
                command = false;
                match reserved {
                    "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "{" | "!" | "time" | "coproc" => {
                        command = true;
                    }
                    "case" => inside.push(Inside::CaseHead),
                    "esac" if inside.last() == Some(&Inside::CaseBody) => {
                        inside.pop();
                    }
                    "for" | "select" => after_for = true,
                    "function" => after_function = true,
                    "[[" => in_test = true,
                    _ => command = word.assignment().is_some(),
                }
                if reserved != "for" && reserved != "select" {
                    after_for = false;
                }
            } else {
                after_for = false;
            }
            tokens.push(Token { kind: TokenKind::Word(word), span: start..self.at });
        }
        if !pending.is_empty() {
            self.error("a here-document has no body");
        }
        if !inside.is_empty() {
            self.error("a group or case is not closed");
        }
        tokens
    }

    /// A redirection whose operator stands at the cursor.
    fn redirect(
        &mut self,
        descriptor: Option<String>,
        operator: &'static str,
        token: usize,
        pending: &mut Vec<Pending>,
    ) -> TokenKind {
        let operator_at = self.at;
        self.at += operator.len();
        if operator == "<>" {
            // The grammar does not know it; another redirection stands there just as well.
            self.here.push((operator_at..self.at, 0..0));
        }
        while matches!(self.peek(0), b' ' | b'\t') || self.rest().starts_with("\\\n") {
            self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
        }
        let target_at = self.at;
        let word = self.word();
        if self.at == target_at {
            self.error("a redirection without a target");
        }
        let target = if matches!(operator, "<<" | "<<-") {
            let delimiter = word.literal();
            let raw = self.slice(target_at..self.at);
            if delimiter.is_none() || raw.contains(['$', '`', '\n']) || word.array.is_some() {
                self.error("a here-document delimiter that is not plain");
            }
            pending.push(Pending {
                token,
                operator: operator_at..self.at,
                strip_tabs: operator == "<<-",
                quoted: word.quoted,
                delimiter: delimiter.unwrap_or_default(),
            });
            Target::Here(Word::default())
        } else {
            Target::Word(word)
        };
        TokenKind::Redirect(Redirect { descriptor, operator, target })
    }

    /// Reads the body that starts at the cursor and puts it into its token.
    fn here_document(&mut self, document: Pending, tokens: &mut [Token]) {
        let start = self.at;
        let mut body = String::new();
        let mut closed = false;
        while !self.done() {
            // In an unquoted document a backslash joins lines before the delimiter is looked for.
            let mut line = String::new();
            loop {
                let length = self.rest().find('\n');
                let piece = self.slice(self.at..self.at + length.unwrap_or(self.rest().len()));
                self.at += piece.len() + usize::from(length.is_some());
                let escapes = piece.bytes().rev().take_while(|byte| *byte == b'\\').count();
                if !document.quoted && escapes % 2 == 1 && length.is_some() {
                    line.push_str(piece.get(..piece.len() - 1).unwrap_or(""));
                } else {
                    line.push_str(piece);
                    break;
                }
            }
            let line = if document.strip_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line == document.delimiter {
                closed = true;
                break;
            }
            // Inside a substitution bash also takes the delimiter with the closing parenthesis for the end.
            if line.strip_prefix(document.delimiter.as_str()).is_some_and(|rest| rest.starts_with(')')) {
                self.error("a here-document that may end earlier");
            }
            body.push_str(line);
            body.push('\n');
        }
        if !closed {
            self.error("a here-document is not closed");
        }
        if body.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            self.error("a control character");
        }
        let word = if document.quoted {
            Word::quoted(&body)
        } else {
            let mut inner = Lexer { text: &body, at: 0, errors: Vec::new(), here: Vec::new(), depth: self.depth + 1 };
            let mut word = Word { quoted: true, ..Word::default() };
            inner.double_quoted(&mut word.units, Ends::AtEnd);
            for error in inner.errors {
                self.error(error);
            }
            word
        };
        self.here.push((document.operator, start..self.at));
        if let Some(Token { kind: TokenKind::Redirect(redirect), .. }) = tokens.get_mut(document.token) {
            redirect.target = Target::Here(word);
        }
    }

    /// A word at the cursor; empty if none starts here.
    fn word(&mut self) -> Word {
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
    fn double_quoted(&mut self, units: &mut Vec<Unit>, ends: Ends) {
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
    fn arithmetic_end(&self, from: usize) -> Option<usize> {
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

    fn arithmetic(&mut self, span: Range<usize>) -> (String, Vec<Unit>) {
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

pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `2` or `{name}` right before a redirection.
fn is_descriptor(text: &str) -> bool {
    let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number || text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).is_some_and(is_name)
}

/// Looks like a blank or like nothing, but is a letter of a word for bash.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x202A..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFC | 0xE0000..=0xE0FFF)
}
