//! The typed layer over the bash grammar: a command text as lists, pipelines and commands.
//!
//! Two readers have to agree. `lex` says where words, operators and here-documents are; tree-sitter's bash grammar
//! says what they make up. Every token must be claimed by exactly the node that the grammar puts there; an error, a
//! node kind not named here or a token left over makes the text [`Unread`]. How operators bind is decided here, for
//! the grammar hangs a redirection on a whole list. Knows no commands by name. Entry point: [`read`].

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::lex::{self, Lexed, NESTING, Redirect, Token, TokenKind};
use super::word::{Unit, Word};

/// Longest text that is judged, in bytes; the caller checks.
pub(crate) const MAX_BYTES: usize = 64 * 1024;
/// Tokens, and control operators among them, beyond which a text is not parsed: the parser's time grows faster than
/// the text, and the judge takes no more parts than that anyway.
const TOKENS: usize = 8192;
const OPERATORS: usize = 600;
/// Rounds of the parser (each about a hundred operations) before it is stopped, so that the answer does not depend
/// on how busy the machine is; ordinary text of the longest length stays far below.
const ROUNDS: usize = 2_500;
/// Time before the parser is stopped whatever it did.
const DEADLINE: Duration = Duration::from_millis(500);

/// Why a text is not understood: in plain words, to follow "the command".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) String);

pub(crate) type List = Vec<Item>;

/// Pipelines joined by `&&` and `||`, up to `;`, a newline or `&`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Join, Pipeline)>,
    pub(crate) background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

pub(crate) type Pipeline = Vec<Stage>;

/// One command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) command: Command,
    /// Redirections of a compound command; a simple command has its own.
    pub(crate) redirects: Vec<Redirect>,
    /// `!` stands before it: success and failure change places.
    pub(crate) negated: bool,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Simple(Simple),
    /// `[[ .. ]]`: its words without the brackets.
    Test(Vec<Word>),
    /// `((..))`.
    Arith {
        text: String,
        inner: Vec<Unit>,
    },
    Group(List),
    Subshell(List),
    /// Conditions and bodies in order; only the first condition runs for certain.
    If(Vec<List>),
    Loop {
        head: List,
        body: List,
    },
    For {
        name: Word,
        values: Vec<Word>,
        body: List,
    },
    CountedFor {
        text: String,
        inner: Vec<Unit>,
        body: List,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, List)>,
    },
    /// A definition: what the name stands for afterwards is not followed.
    Function,
}

/// Words (assignments first, if any) and redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

/// Every named node of the grammar; a test holds this against the grammar's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Program,
    /// Containers whose parts are taken in the order of the text.
    List,
    Pipeline,
    RedirectedStatement,
    NegatedCommand,
    /// Simple commands: what they hold is taken from the tokens.
    Command,
    DeclarationCommand,
    UnsetCommand,
    VariableAssignment,
    VariableAssignments,
    TestCommand,
    FileRedirect,
    HerestringRedirect,
    CompoundStatement,
    Subshell,
    IfStatement,
    ElifClause,
    ElseClause,
    WhileStatement,
    ForStatement,
    CStyleForStatement,
    DoGroup,
    CaseStatement,
    CaseItem,
    FunctionDefinition,
    Comment,
    /// Here-documents are hidden from the grammar: seeing one means that the readers disagree.
    HereDocument,
    /// Parts of words and expressions, which are taken from the tokens.
    Part,
    /// Nothing that this version of the layer knows.
    Unknown,
}

/// Named kinds that are parts of words and expressions.
const PARTS: [&str; 30] = [
    "_expression",
    "_primary_expression",
    "_statement",
    "ansi_c_string",
    "arithmetic_expansion",
    "array",
    "binary_expression",
    "brace_expression",
    "command_name",
    "command_substitution",
    "concatenation",
    "expansion",
    "extglob_pattern",
    "file_descriptor",
    "number",
    "parenthesized_expression",
    "postfix_expression",
    "process_substitution",
    "raw_string",
    "regex",
    "simple_expansion",
    "special_variable_name",
    "string",
    "string_content",
    "subscript",
    "ternary_expression",
    "test_operator",
    "translated_string",
    "unary_expression",
    "variable_name",
];

impl NodeKind {
    pub(crate) fn of(kind: &str) -> Self {
        match kind {
            "program" => Self::Program,
            "list" => Self::List,
            "pipeline" => Self::Pipeline,
            "redirected_statement" => Self::RedirectedStatement,
            "negated_command" => Self::NegatedCommand,
            "command" => Self::Command,
            "declaration_command" => Self::DeclarationCommand,
            "unset_command" => Self::UnsetCommand,
            "variable_assignment" => Self::VariableAssignment,
            "variable_assignments" => Self::VariableAssignments,
            "test_command" => Self::TestCommand,
            "file_redirect" => Self::FileRedirect,
            "herestring_redirect" => Self::HerestringRedirect,
            "compound_statement" => Self::CompoundStatement,
            "subshell" => Self::Subshell,
            "if_statement" => Self::IfStatement,
            "elif_clause" => Self::ElifClause,
            "else_clause" => Self::ElseClause,
            "while_statement" => Self::WhileStatement,
            "for_statement" => Self::ForStatement,
            "c_style_for_statement" => Self::CStyleForStatement,
            "do_group" => Self::DoGroup,
            "case_statement" => Self::CaseStatement,
            "case_item" => Self::CaseItem,
            "function_definition" => Self::FunctionDefinition,
            "comment" => Self::Comment,
            "heredoc_body" | "heredoc_content" | "heredoc_end" | "heredoc_redirect" | "heredoc_start" => {
                Self::HereDocument
            }
            "word" => Self::Part,
            _ if PARTS.contains(&kind) => Self::Part,
            _ => Self::Unknown,
        }
    }
}

/// Reads a text that was cut into tokens without errors.
pub(crate) fn read(text: &str, lexed: &Lexed) -> Result<List, Unread> {
    if let Some(error) = lexed.errors.first() {
        return Err(Unread(format!("has {error}")));
    }
    let operators = lexed.tokens.iter().filter(|token| matches!(token.kind, TokenKind::Operator(_))).count();
    if lexed.tokens.len() > TOKENS || operators > OPERATORS {
        return Err(Unread("has too many parts".into()));
    }
    let shown = hide_here_documents(text, lexed);
    let tree = parse(&shown).ok_or_else(|| Unread("takes too long to parse".into()))?;
    let root = tree.root_node();
    if root.has_error() {
        return Err(Unread("does not parse as bash".into()));
    }
    let mut reader = Reader { lexed, used: vec![false; lexed.tokens.len()], depth: 0 };
    let list = reader.list(children(root))?;
    let left = lexed.tokens.iter().zip(&reader.used).find(|(token, used)| !**used && token.kind != TokenKind::Newline);
    match left {
        Some(_) => Err(disagree()),
        None => Ok(list),
    }
}

/// Replaces here-documents by redirections of the same length from a file, and their bodies by blanks.
fn hide_here_documents(text: &str, lexed: &Lexed) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (operator, body) in &lexed.here {
        for (span, first, fill) in [(operator, b'<', b'H'), (body, b' ', b' ')] {
            for (at, byte) in bytes.iter_mut().enumerate().take(span.end).skip(span.start) {
                *byte = if at == span.start { first } else { fill };
            }
        }
    }
    // Spans end at ASCII bytes on both sides, so this stays UTF-8; if not, the parser sees an error and we ask.
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let started = Instant::now();
    let mut rounds = 0_usize;
    let mut progress = |_: &tree_sitter::ParseState| {
        rounds += 1;
        if rounds > ROUNDS || started.elapsed() > DEADLINE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = text.as_bytes();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or(&[]), None, Some(options))
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

fn disagree() -> Unread {
    Unread("can be read in more than one way".into())
}

/// What stands between two operators.
#[derive(Default)]
struct Open {
    command: Option<Command>,
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    negated: bool,
    span: Option<Range<usize>>,
}

struct Reader<'l> {
    lexed: &'l Lexed,
    used: Vec<bool>,
    depth: usize,
}

impl Reader<'_> {
    /// Statements and the operators between them, given as siblings in the order of the text.
    fn list(&mut self, nodes: Vec<Node<'_>>) -> Result<List, Unread> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(Unread("is nested too deeply".into()));
        }
        let mut list: List = Vec::new();
        let mut pipelines: Vec<(Join, Pipeline)> = Vec::new();
        let mut pipeline: Pipeline = Vec::new();
        let mut open = Open::default();
        let mut join = Join::And;
        let mut todo: Vec<Node<'_>> = nodes.into_iter().rev().collect();
        let mut last = None;
        while let Some(node) = todo.pop() {
            let kind = NodeKind::of(node.kind());
            if node.is_named() && is_container(kind) {
                todo.extend(children(node).into_iter().rev());
                continue;
            }
            // The grammar does not show newlines; after an operator one goes on with the same item.
            if !open.is_empty() && last.is_some_and(|last| self.newline_between(last, node.start_byte())) {
                end_item(&mut list, &mut pipelines, &mut pipeline, &mut open, join, false)?;
            }
            if open.is_empty() && pipelines.is_empty() && pipeline.is_empty() {
                join = Join::And;
            }
            last = Some(node.end_byte());
            if node.is_named() {
                match kind {
                    NodeKind::Comment => {}
                    NodeKind::FileRedirect | NodeKind::HerestringRedirect => self.simple(node, &mut open)?,
                    kind => self.command(node, kind, &mut open)?,
                }
                continue;
            }
            match node.kind() {
                "\n" => {}
                operator @ (";" | "&") => {
                    self.claim(node)?;
                    end_item(&mut list, &mut pipelines, &mut pipeline, &mut open, join, operator == "&")?;
                }
                "|" | "|&" => {
                    self.claim(node)?;
                    pipeline.push(open.take()?);
                }
                operator @ ("&&" | "||") => {
                    self.claim(node)?;
                    pipeline.push(open.take()?);
                    pipelines.push((join, std::mem::take(&mut pipeline)));
                    join = if operator == "&&" { Join::And } else { Join::Or };
                }
                "!" if open.is_empty() => {
                    self.claim(node)?;
                    open.negated = !open.negated;
                }
                _ => return Err(disagree()),
            }
        }
        end_item(&mut list, &mut pipelines, &mut pipeline, &mut open, join, false)?;
        self.depth -= 1;
        Ok(list)
    }

    fn newline_between(&self, from: usize, to: usize) -> bool {
        let tokens = &self.lexed.tokens;
        let first = tokens.partition_point(|token| token.span.start < from);
        let between = tokens.get(first..).unwrap_or(&[]).iter().take_while(|token| token.span.start < to);
        between.into_iter().any(|token| token.kind == TokenKind::Newline)
    }

    fn command(&mut self, node: Node<'_>, kind: NodeKind, open: &mut Open) -> Result<(), Unread> {
        let command = match kind {
            NodeKind::Command
            | NodeKind::DeclarationCommand
            | NodeKind::UnsetCommand
            | NodeKind::VariableAssignment
            | NodeKind::VariableAssignments => return self.simple(node, open),
            NodeKind::TestCommand => match node.child(0).map(|child| child.kind()) {
                Some("[") => return self.simple(node, open),
                _ => self.test(node)?,
            },
            NodeKind::CompoundStatement => match node.child(0).map(|child| child.kind()) {
                Some("{") => Command::Group(self.body(node, &["{", "}"])?),
                _ => {
                    let (text, inner) = self.arith(node.start_byte())?;
                    Command::Arith { text, inner }
                }
            },
            NodeKind::Subshell => Command::Subshell(self.body(node, &["(", ")"])?),
            NodeKind::IfStatement => {
                let mut lists = Vec::new();
                self.branches(node, &mut lists)?;
                Command::If(lists)
            }
            NodeKind::WhileStatement => {
                let body = node.child_by_field_name("body").ok_or_else(disagree)?;
                let head = children(node).into_iter().filter(|child| *child != body).collect();
                let head = self.without(head, &["while", "until"])?;
                Command::Loop { head: self.list(head)?, body: self.body(body, &["do", "done"])? }
            }
            NodeKind::ForStatement => {
                let body = node.child_by_field_name("body").ok_or_else(disagree)?;
                let mut words = self.words(node.start_byte()..body.start_byte(), &[";"])?.into_iter();
                let keyword = words.next().and_then(|word| word.bare());
                let (Some("for" | "select"), Some(name)) = (keyword.as_deref(), words.next()) else {
                    return Err(disagree());
                };
                if words.next().is_some_and(|word| word.bare().as_deref() != Some("in")) {
                    return Err(disagree());
                }
                Command::For { name, values: words.collect(), body: self.body(body, &["do", "done"])? }
            }
            NodeKind::CStyleForStatement => {
                let body = node.child_by_field_name("body").ok_or_else(disagree)?;
                let keyword = node.child(0).ok_or_else(disagree)?;
                self.claim(keyword)?;
                let at = self.lexed.tokens.iter().find(|token| token.span.start > keyword.start_byte());
                let (text, inner) = self.arith(at.ok_or_else(disagree)?.span.start)?;
                for node in children(node)
                    .into_iter()
                    .filter(|child| child.kind() == ";" && child.start_byte() > keyword.end_byte())
                {
                    self.claim_if_there(node);
                }
                let around: &[&str] = if body.kind() == "do_group" { &["do", "done"] } else { &["{", "}"] };
                Command::CountedFor { text, inner, body: self.body(body, around)? }
            }
            NodeKind::CaseStatement => self.case(node)?,
            NodeKind::FunctionDefinition => {
                self.take(node.byte_range())?;
                Command::Function
            }
            NodeKind::Program
            | NodeKind::List
            | NodeKind::Pipeline
            | NodeKind::RedirectedStatement
            | NodeKind::NegatedCommand
            | NodeKind::FileRedirect
            | NodeKind::HerestringRedirect
            | NodeKind::ElifClause
            | NodeKind::ElseClause
            | NodeKind::DoGroup
            | NodeKind::CaseItem
            | NodeKind::Comment
            | NodeKind::HereDocument
            | NodeKind::Part
            | NodeKind::Unknown => {
                return Err(Unread(format!("holds a construct ({}) that is not known", node.kind())));
            }
        };
        if !open.is_empty() {
            return Err(disagree());
        }
        open.command = Some(command);
        open.grow(node.byte_range());
        Ok(())
    }

    /// Words and redirections of a simple command, from the tokens that lie in the node.
    fn simple(&mut self, node: Node<'_>, open: &mut Open) -> Result<(), Unread> {
        let mut last = None;
        let is_command = !matches!(NodeKind::of(node.kind()), NodeKind::FileRedirect | NodeKind::HerestringRedirect);
        if is_command && !open.words.is_empty() {
            return Err(disagree());
        }
        for token in self.take(node.byte_range())? {
            match token.kind {
                TokenKind::Word(word) => {
                    if open.command.is_some() {
                        return Err(disagree());
                    }
                    open.words.push(word);
                }
                TokenKind::Redirect(redirect) => open.redirects.push(redirect),
                TokenKind::Operator(_) | TokenKind::Newline | TokenKind::Arith { .. } => return Err(disagree()),
            }
            last = Some(token.span.end);
        }
        if last != Some(node.end_byte()) {
            return Err(disagree());
        }
        open.grow(node.byte_range());
        Ok(())
    }

    /// The words between `[[` and `]]`; comparison signs become words.
    fn test(&mut self, node: Node<'_>) -> Result<Command, Unread> {
        let mut words = Vec::new();
        for token in self.take(node.byte_range())? {
            match token.kind {
                TokenKind::Word(word) => words.push(word),
                TokenKind::Operator(text) if text != ";" && text != "&" => words.push(Word::plain(text)),
                TokenKind::Redirect(Redirect { descriptor: None, operator: operator @ ("<" | ">"), target }) => {
                    words.push(Word::plain(operator));
                    match target {
                        lex::Target::Word(word) => words.push(word),
                        lex::Target::Here(_) => return Err(disagree()),
                    }
                }
                TokenKind::Newline => {}
                TokenKind::Operator(_) | TokenKind::Redirect(_) | TokenKind::Arith { .. } => return Err(disagree()),
            }
        }
        let bare = |word: Option<&Word>, text: &str| word.and_then(Word::bare).as_deref() == Some(text);
        if words.len() < 3 || !bare(words.first(), "[[") || !bare(words.last(), "]]") {
            return Err(disagree());
        }
        words.remove(0);
        words.pop();
        Ok(Command::Test(words))
    }

    /// The statements of a node between its first and last keyword.
    fn body(&mut self, node: Node<'_>, around: &[&str]) -> Result<List, Unread> {
        let nodes = children(node);
        let (Some((first, rest)), [open, close]) = (nodes.split_first(), around) else { return Err(disagree()) };
        let Some((last, middle)) = rest.split_last() else { return Err(disagree()) };
        if first.kind() != *open || last.kind() != *close {
            return Err(disagree());
        }
        self.claim(*first)?;
        self.claim(*last)?;
        self.list(middle.to_vec())
    }

    /// Conditions and bodies of `if`, `elif` and `else`, split at their keywords.
    fn branches(&mut self, node: Node<'_>, lists: &mut Vec<List>) -> Result<(), Unread> {
        let mut part: Vec<Node<'_>> = Vec::new();
        for child in children(node) {
            match child.kind() {
                "if" | "then" | "elif" | "else" | "fi" if !child.is_named() => {
                    self.claim(child)?;
                    lists.push(self.list(std::mem::take(&mut part))?);
                }
                "elif_clause" | "else_clause" => {
                    lists.push(self.list(std::mem::take(&mut part))?);
                    self.depth += 1;
                    self.branches(child, lists)?;
                    self.depth -= 1;
                }
                _ => part.push(child),
            }
        }
        lists.push(self.list(part)?);
        Ok(())
    }

    fn case(&mut self, node: Node<'_>) -> Result<Command, Unread> {
        let nodes = children(node);
        let first_item = nodes.iter().find(|child| matches!(child.kind(), "case_item" | "esac"));
        let head = node.start_byte()..first_item.ok_or_else(disagree)?.start_byte();
        let mut words = self.words(head, &[])?.into_iter();
        let keyword = words.next().and_then(|word| word.bare());
        let (Some("case"), Some(subject), Some(between)) = (keyword.as_deref(), words.next(), words.next()) else {
            return Err(disagree());
        };
        if between.bare().as_deref() != Some("in") || words.next().is_some() {
            return Err(disagree());
        }
        let mut arms = Vec::new();
        for child in nodes {
            match child.kind() {
                "case_item" => {
                    let parts = children(child);
                    let close = parts.iter().position(|part| part.kind() == ")").ok_or_else(disagree)?;
                    let close_at = parts.get(close).ok_or_else(disagree)?.end_byte();
                    let patterns = self.words(child.start_byte()..close_at, &["(", ")", "|"])?;
                    let mut statements = parts.get(close + 1..).unwrap_or(&[]).to_vec();
                    if let Some(last) =
                        statements.last().copied().filter(|last| matches!(last.kind(), ";;" | ";&" | ";;&"))
                    {
                        self.claim(last)?;
                        statements.pop();
                    }
                    arms.push((patterns, self.list(statements)?));
                }
                "esac" => self.claim(child)?,
                _ => {}
            }
        }
        Ok(Command::Case { subject, arms })
    }

    /// The words among the tokens in a span that may else hold only newlines and the given operators.
    fn words(&mut self, span: Range<usize>, operators: &[&str]) -> Result<Vec<Word>, Unread> {
        let mut words = Vec::new();
        for token in self.take(span)? {
            match token.kind {
                TokenKind::Word(word) => words.push(word),
                TokenKind::Newline => {}
                TokenKind::Operator(operator) if operators.contains(&operator) => {}
                TokenKind::Operator(_) | TokenKind::Redirect(_) | TokenKind::Arith { .. } => return Err(disagree()),
            }
        }
        Ok(words)
    }

    fn arith(&mut self, start: usize) -> Result<(String, Vec<Unit>), Unread> {
        let at = self.at(start).ok_or_else(disagree)?;
        match self.lexed.tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Arith { text, inner }) => {
                self.mark(at)?;
                Ok((text.clone(), inner.clone()))
            }
            _ => Err(disagree()),
        }
    }

    /// Claims leading keywords and gives the other nodes back.
    fn without<'n>(&mut self, nodes: Vec<Node<'n>>, keywords: &[&str]) -> Result<Vec<Node<'n>>, Unread> {
        let mut others = Vec::new();
        for node in nodes {
            if !node.is_named() && keywords.contains(&node.kind()) && others.is_empty() {
                self.claim(node)?;
            } else {
                others.push(node);
            }
        }
        Ok(others)
    }

    /// All tokens in a span, which nobody else may have claimed; none may cross its borders.
    fn take(&mut self, span: Range<usize>) -> Result<Vec<Token>, Unread> {
        let tokens = &self.lexed.tokens;
        let first = tokens.partition_point(|token| token.span.end <= span.start);
        let mut taken = Vec::new();
        for (at, token) in tokens.iter().enumerate().skip(first) {
            if token.span.start >= span.end {
                break;
            }
            if token.span.start < span.start || token.span.end > span.end {
                return Err(disagree());
            }
            self.mark(at)?;
            taken.push(token.clone());
        }
        Ok(taken)
    }

    /// The token of a keyword or operator node.
    fn claim(&mut self, node: Node<'_>) -> Result<(), Unread> {
        let at = self.at(node.start_byte()).ok_or_else(disagree)?;
        let same = self.lexed.tokens.get(at).is_some_and(|token| match &token.kind {
            TokenKind::Word(word) => word.bare().as_deref() == Some(node.kind()),
            TokenKind::Operator(operator) => *operator == node.kind(),
            TokenKind::Newline | TokenKind::Redirect(_) | TokenKind::Arith { .. } => false,
        });
        if same { self.mark(at) } else { Err(disagree()) }
    }

    fn claim_if_there(&mut self, node: Node<'_>) {
        if let Some(at) = self.at(node.start_byte())
            && self.lexed.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Operator(";"))
        {
            let _ = self.mark(at);
        }
    }

    fn at(&self, start: usize) -> Option<usize> {
        self.lexed.tokens.binary_search_by(|token| token.span.start.cmp(&start)).ok()
    }

    fn mark(&mut self, at: usize) -> Result<(), Unread> {
        match self.used.get_mut(at) {
            Some(used) if !*used => {
                *used = true;
                Ok(())
            }
            Some(_) | None => Err(disagree()),
        }
    }
}

/// Containers of statements whose parts stand in the order of the text.
fn is_container(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::List | NodeKind::Pipeline | NodeKind::RedirectedStatement | NodeKind::NegatedCommand)
}

impl Open {
    fn is_empty(&self) -> bool {
        self.command.is_none() && self.words.is_empty() && self.redirects.is_empty()
    }

    fn grow(&mut self, span: Range<usize>) {
        self.span = Some(match self.span.take() {
            Some(old) => old.start.min(span.start)..old.end.max(span.end),
            None => span,
        });
    }

    fn take(&mut self) -> Result<Stage, Unread> {
        if self.is_empty() {
            return Err(disagree());
        }
        let open = std::mem::take(self);
        let span = open.span.unwrap_or(0..0);
        Ok(match open.command {
            Some(command) => Stage { command, redirects: open.redirects, negated: open.negated, span },
            None => {
                let simple = Simple { words: open.words, redirects: open.redirects };
                Stage { command: Command::Simple(simple), redirects: Vec::new(), negated: open.negated, span }
            }
        })
    }
}

fn end_item(
    list: &mut List,
    pipelines: &mut Vec<(Join, Pipeline)>,
    pipeline: &mut Pipeline,
    open: &mut Open,
    join: Join,
    background: bool,
) -> Result<(), Unread> {
    if open.is_empty() {
        // After an operator a command has to follow; a newline there is no end.
        return if pipelines.is_empty() && pipeline.is_empty() { Ok(()) } else { Err(disagree()) };
    }
    pipeline.push(open.take()?);
    pipelines.push((join, std::mem::take(pipeline)));
    let mut all = std::mem::take(pipelines).into_iter();
    if let Some((_, first)) = all.next() {
        list.push(Item { first, rest: all.collect(), background });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new version of the grammar cannot bring a node that nobody thought about.
    #[test]
    fn every_node_kind_of_the_grammar_is_named() {
        let kinds: serde_json::Value = serde_json::from_str(tree_sitter_bash::NODE_TYPES).unwrap();
        let named: Vec<&str> = kinds
            .as_array()
            .unwrap()
            .iter()
            .filter(|kind| kind["named"] == true)
            .map(|kind| kind["type"].as_str().unwrap())
            .collect();
        assert!(named.len() > 50, "{named:?}");
        let unknown: Vec<&&str> = named.iter().filter(|kind| NodeKind::of(kind) == NodeKind::Unknown).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(NodeKind::of("if_statement_of_tomorrow"), NodeKind::Unknown);
    }
}
