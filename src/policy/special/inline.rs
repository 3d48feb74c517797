//! Inline code that only computes with literals and prints.
//!
//! Owns the short list of names that are harmless in each language; everything else is not. Entry point:
//! [`is_harmless`].

use std::collections::BTreeSet;

/// Language families that differ in what is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    JavaScript,
    /// Perl, Ruby, PHP, Lua: printing and arithmetic only.
    Other,
}

const PYTHON: [&str; 62] = [
    "print",
    "sum",
    "range",
    "len",
    "min",
    "max",
    "abs",
    "round",
    "sorted",
    "int",
    "float",
    "str",
    "list",
    "tuple",
    "set",
    "dict",
    "enumerate",
    "zip",
    "map",
    "filter",
    "bool",
    "pow",
    "divmod",
    "reversed",
    "any",
    "all",
    "ord",
    "chr",
    "hex",
    "bin",
    "oct",
    "repr",
    "complex",
    "frozenset",
    "hash",
    "sep",
    "end",
    "for",
    "in",
    "if",
    "else",
    "elif",
    "while",
    "and",
    "or",
    "not",
    "is",
    "True",
    "False",
    "None",
    "pass",
    "break",
    "continue",
    "assert",
    "del",
    "key",
    "reverse",
    "start",
    "default",
    "strict",
    "bytes",
    "ascii",
];
const JAVASCRIPT: [&str; 26] = [
    "const",
    "let",
    "var",
    "for",
    "of",
    "in",
    "if",
    "else",
    "while",
    "true",
    "false",
    "null",
    "undefined",
    "NaN",
    "Infinity",
    "Number",
    "String",
    "Boolean",
    "parseInt",
    "parseFloat",
    "isNaN",
    "typeof",
    "BigInt",
    "break",
    "continue",
    "void",
];
/// The only members that code may name: of `console`, `Math` and `JSON`.
const MEMBERS: [&str; 31] = [
    "console.log",
    "console.error",
    "Math.max",
    "Math.min",
    "Math.abs",
    "Math.floor",
    "Math.ceil",
    "Math.round",
    "Math.sqrt",
    "Math.pow",
    "Math.PI",
    "Math.E",
    "Math.log",
    "Math.log2",
    "Math.log10",
    "Math.exp",
    "Math.sin",
    "Math.cos",
    "Math.tan",
    "Math.trunc",
    "Math.sign",
    "Math.hypot",
    "Math.cbrt",
    "JSON.stringify",
    "JSON.parse",
    "Number.isInteger",
    "Number.MAX_SAFE_INTEGER",
    "Number.EPSILON",
    "Math.random",
    "Math.atan",
    "Math.atan2",
];
const OTHER: [&str; 7] = ["print", "say", "puts", "p", "echo", "printf", "if"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Number,
    Text,
    Sign(char),
}

/// Whether code plainly only computes and prints. `false` for anything that is not recognised.
pub(crate) fn is_harmless(language: Language, code: &str) -> bool {
    let Some(tokens) = tokens(language, code) else { return false };
    let names: &[&str] = match language {
        Language::Python => &PYTHON,
        Language::JavaScript => &JAVASCRIPT,
        Language::Other => &OTHER,
    };
    let own = assigned(&tokens);
    tokens.iter().enumerate().all(|(at, token)| match token {
        Token::Name(name) => {
            names.contains(&name.as_str())
                || language == Language::JavaScript && MEMBERS.contains(&name.as_str())
                || language != Language::Other && own.contains(name.as_str())
        }
        Token::Number | Token::Text => {
            // Two texts in a row, or a name right before one, may be a prefix that changes its meaning.
            !matches!((token, at.checked_sub(1).and_then(|at| tokens.get(at))), (Token::Text, Some(Token::Text)))
        }
        Token::Sign(_) => true,
    })
}

/// Names that the code itself gives a value: loop variables and plain assignments.
fn assigned(tokens: &[Token]) -> BTreeSet<&str> {
    let mut own = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        if name.contains('.') || name.starts_with('_') || name.len() > 20 {
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let after = tokens.get(at + 1);
        let declared =
            matches!(before, Some(Token::Name(word)) if matches!(word.as_str(), "for" | "let" | "const" | "var"));
        let starts = matches!(before, None | Some(Token::Sign(';' | '\n')));
        let equals = after == Some(&Token::Sign('=')) && !matches!(tokens.get(at + 2), Some(Token::Sign('=' | '>')));
        if declared || (starts && equals) {
            own.insert(name.as_str());
        }
    }
    own
}

fn tokens(language: Language, code: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            'a'..='z' | 'A'..='Z' => {
                let mut name = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')) {
                    name.push(c);
                }
                // A quote right after a name makes it a prefix (`f"..."`, `b'...'`).
                if chars.peek().is_some_and(|c| matches!(c, '"' | '\'' | '`')) {
                    return None;
                }
                if language == Language::Python && name.contains('.') {
                    return None;
                }
                tokens.push(Token::Name(name));
            }
            '0'..='9' => {
                while chars.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_')).is_some() {}
                tokens.push(Token::Number);
            }
            '"' | '\'' => {
                loop {
                    match chars.next()? {
                        '\\' => {
                            // Only line breaks and tabs; others could spell anything.
                            chars.next().filter(|c| matches!(c, 'n' | 't' | '\\' | '"' | '\''))?;
                        }
                        end if end == c => break,
                        '\n' => return None,
                        // Interpolation in Ruby, Perl and PHP.
                        '#' | '$' | '@' | '{' if language == Language::Other => return None,
                        _ => {}
                    }
                }
                tokens.push(Token::Text);
            }
            ' ' | '\t' => {}
            '\n' => tokens.push(Token::Sign(c)),
            // Regular expressions, templates, decorators, sigils and commands start with what is not listed.
            '+' | '-' | '*' | '(' | ')' | ',' | ';' | '=' | '<' | '>' | '!' if language != Language::Other => {
                tokens.push(Token::Sign(c));
            }
            '/' | '%' | '[' | ']' | ':' | '?' | '&' | '|' | '^' | '{' | '}' if language == Language::Python => {
                tokens.push(Token::Sign(c));
            }
            '%' | '?' | ':' | '&' | '|' | '^' | '{' | '}' if language == Language::JavaScript => {
                tokens.push(Token::Sign(c));
            }
            // A division: a value stands before it.
            '/' if language == Language::JavaScript => match tokens.last() {
                Some(Token::Number | Token::Sign(')')) => tokens.push(Token::Sign(c)),
                _ => return None,
            },
            '+' | '-' | '*' | '(' | ')' | ',' | ';' if language == Language::Other => tokens.push(Token::Sign(c)),
            _ => return None,
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_and_printing_is_harmless() {
        for code in [
            "print(sum(range(10)))",
            "print('a', 1 + 2)",
            "for i in range(3): print(i)",
            "x = 2\nprint(x ** 8)",
            "print([n*n for n in range(9) if n % 2])",
        ] {
            assert!(is_harmless(Language::Python, code), "{code}");
        }
        for code in [
            "console.log(1 + 2)",
            "1+1",
            "console.log(Math.max(1, 2))",
            "const a = 3; console.log(a * 2)",
            "console.log('x', (4) / 2)",
        ] {
            assert!(is_harmless(Language::JavaScript, code), "{code}");
        }
        for code in ["puts 1 + 2", "print 6*7", "echo 1+1;"] {
            assert!(is_harmless(Language::Other, code), "{code}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for code in [
            "import os",
            "print(open('x').read())",
            "__import__('os')",
            "eval('1')",
            "exec('x')",
            "print(().__class__)",
            "print(f'{1}')",
            "getattr(a, 'b')",
            "globals()",
            "print(x)",
            "print('\\x41')",
            "[c for c in ().__class__.__base__]",
            "input()",
            "print('a' 'b')",
            "@x",
            "lambda: 1",
            "breakpoint()",
            "help()",
            "print(1);import os",
            "vars()",
            "u'x'",
        ] {
            assert!(!is_harmless(Language::Python, code), "{code}");
        }
        for code in [
            "require('fs')",
            "process.env",
            "fetch('x')",
            "import('fs')",
            "console.log(process)",
            "eval('1')",
            "new Function('x')",
            "globalThis",
            "console.log(`x`)",
            "this.constructor",
            "console['log'](1)",
            "[].filter.constructor",
            "a => a",
            "x = y",
        ] {
            assert!(!is_harmless(Language::JavaScript, code), "{code}");
        }
        for code in [
            "system('id')",
            "puts `id`",
            "puts %x(id)",
            "print \"#{1}\"",
            "open('x')",
            "print <F>",
            "puts File.read('x')",
            "p $x",
            "exec 'id'",
        ] {
            assert!(!is_harmless(Language::Other, code), "{code}");
        }
    }
}
