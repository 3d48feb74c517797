//! Splitting a line into words, some of them quoted.

use std::borrow::Cow;

/// One word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Without its quotes.
    pub(super) text: Cow<'a, str>,
    /// It stood in quotes, hence was set off on purpose.
    pub(super) quoted: bool,
}

/// The first word of `text` and what follows it, both without blanks around them.
///
/// `"a b"` and `'a b'` are one word when the closing quote ends it; inside double quotes `\"` and `\\` stand for the
/// sign itself. A quote that nothing closes is an ordinary sign.
pub(super) fn first(text: &str) -> Option<(Word<'_>, &str)> {
    let text = text.trim_start();
    let open = text.chars().next()?;
    if matches!(open, '"' | '\'')
        && let Some((inner, rest)) = quoted(text, open)
    {
        return Some((Word { text: inner, quoted: true }, rest.trim()));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    Some((Word { text: Cow::Borrowed(word), quoted: false }, rest.trim()))
}

fn quoted(text: &str, quote: char) -> Option<(Cow<'_, str>, &str)> {
    let body = text.get(1..)?;
    let mut plain = String::new();
    let mut escaped = false;
    for (at, sign) in body.char_indices() {
        if escaped {
            if !matches!(sign, '"' | '\\') {
                plain.push('\\');
            }
            plain.push(sign);
            escaped = false;
        } else if sign == '\\' && quote == '"' {
            escaped = true;
        } else if sign == quote {
            let rest = body.get(at + 1..)?;
            return rest.chars().next().is_none_or(char::is_whitespace).then_some((Cow::Owned(plain), rest));
        } else {
            plain.push(sign);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, word: &str, is_quoted: bool, rest: &str) {
        let (found, after) = first(text).expect("a word");
        assert_eq!((found.text.as_ref(), found.quoted, after), (word, is_quoted, rest), "{text}");
    }

    /// Quotes join words only when they close at a word's end.
    #[test]
    fn words_and_quotes() {
        check("  one two  ", "one", false, "two");
        check("\"Request changes\" please", "Request changes", true, "please");
        check("'a b' c", "a b", true, "c");
        check("\"say \\\"hi\\\"\"", "say \"hi\"", true, "");
        check("\"C:\\dir\"", "C:\\dir", true, "");
        check("'tis the season", "'tis", false, "the season");
        check("\"open end", "\"open", false, "end");
        check("\"a\"b c", "\"a\"b", false, "c");
        check("é ü", "é", false, "ü");
        assert_eq!(first("  \n "), None);
    }
}
