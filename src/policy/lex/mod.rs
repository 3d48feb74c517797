//! Cutting a command text into bash's tokens: words, operators, redirections, here-documents.
//!
//! Owns bash's quoting rules and where tokens end. It goes on after an error, for the push scan has to see also
//! texts that do not parse; whoever runs the text must look at [`Lexed::errors`] first. It builds no syntax tree:
//! `shell` does, from another parser, and requires both to agree. Entry point: [`lex`].

mod words;

use std::ops::Range;

use super::word::{Unit, Word};

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
            if self.rest().starts_with("((") && (command || after_for) && inside.last() != Some(&Inside::CasePattern) {
                if let Some(end) = self.arithmetic_end(start + 2) {
                    let (text, inner) = self.arithmetic(start + 2..end);
                    self.at = end + 2;
                    tokens.push(Token { kind: TokenKind::Arith { text, inner }, span: start..self.at });
                    (command, after_for) = (false, false);
                    continue;
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The shapes of all words, `|` before each operator and redirection.
    fn words(text: &str) -> Vec<String> {
        let lexed = lex(text);
        assert_eq!(lexed.errors, Vec::<&str>::new(), "{text}");
        lexed
            .tokens
            .into_iter()
            .map(|token| match token.kind {
                TokenKind::Word(word) => word.shape(),
                TokenKind::Operator(text) => format!("|{text}"),
                TokenKind::Newline => "|newline".into(),
                TokenKind::Redirect(redirect) => match redirect.target {
                    Target::Word(word) => format!("|{}{}", redirect.operator, word.shape()),
                    Target::Here(word) => format!("|{}{}", redirect.operator, word.shape()),
                },
                TokenKind::Arith { text, .. } => format!("|(({text}))"),
            })
            .collect()
    }

    #[test]
    fn quotes_are_removed_as_bash_does() {
        for (text, wanted) in [
            ("g'i't \"pu\"sh", &["git", "push"][..]),
            ("\\git pu\\\nsh", &["git", "push"]),
            ("$'\\x67it' $'a\\tb' $'\\160'", &["git", "a\tb", "p"]),
            ("\"a\\$b \\x\" '' x\"\"y", &["a$b \\x", "", "xy"]),
            ("a#b #c", &["a#b"]),
            ("echo $'a\\'b' c", &["echo", "a'b", "c"]),
            ("a\\ b", &["a b"]),
        ] {
            assert_eq!(words(text), wanted, "{text}");
        }
    }

    #[test]
    fn operators_and_redirections_are_the_longest() {
        assert_eq!(words("a&&b||c|&d;e&f"), ["a", "|&&", "b", "|||", "c", "||&", "d", "|;", "e", "|&", "f"]);
        assert_eq!(words("a 2>&1 >|x &>>y 3<>z <<<w"), ["a", "|>&1", "|>|x", "|&>>y", "|<>z", "|<<<w"]);
        assert_eq!(words("((1<<2)); x"), ["|((1<<2))", "|;", "x"]);
    }

    #[test]
    fn here_documents_end_where_bash_ends_them() {
        assert_eq!(words("cat <<E; b\nx\nE\nc"), ["cat", "|<<x\n", "|;", "b", "|newline", "c"]);
        assert_eq!(words("a <<A <<B\n1\nA\n2\nB\n"), ["a", "|<<1\n", "|<<2\n", "|newline"]);
        assert_eq!(words("a <<-E\n\tx\n\tE\nb"), ["a", "|<<-x\n", "|newline", "b"]);
        // A backslash joins the lines of an unquoted one before its end is looked for.
        assert_eq!(words("a <<E\nx\\\nE\nE\nb"), ["a", "|<<xE\n", "|newline", "b"]);
        assert_eq!(words("a <<'E'\nx\\\nE\nb"), ["a", "|<<x\\\n", "|newline", "b"]);
        assert_eq!(words("echo '<<X' # <<Y\nb"), ["echo", "<<X", "|newline", "b"]);
    }

    #[test]
    fn what_is_not_clear_is_an_error() {
        for text in [
            "'a",
            "\"a",
            "`a",
            "$(a",
            "${a",
            "a\\",
            "cat <<E\nx",
            "$'\\xff'",
            "$'\\0'",
            "a\u{a0}b",
            "a\u{200b}",
            "a\rb",
            "'a\u{1b}'",
            "a[x y]=1",
            "\"${x%'y'}\"",
            "cat <<$X\nx\n$X\n",
            "$(cat <<E\nx\nE)\n)",
            "(a",
            "case x in a) b",
            "cat <<E $(\n)\nE\n",
        ] {
            assert!(!lex(text).errors.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_case_inside_a_substitution_does_not_end_it() {
        assert_eq!(words("echo $(case x in a) b;; (c) d;; esac) e"), ["echo", "\u{FFFC}", "e"]);
        assert_eq!(words("echo \"$(echo \")\")\" b"), ["echo", "\u{FFFC}", "b"]);
    }
}
