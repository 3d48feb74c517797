//! Arithmetic: what bash evaluates as numbers, and with it every string that a name leads to.
//!
//! Entry point: [`check`].

use std::collections::BTreeSet;

/// Accepts literals, operators and variables known to hold numbers; the error follows "arithmetic".
pub(crate) fn check(text: &str, numbers: &BTreeSet<String>) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        match c {
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '#' && c != '_').unwrap_or(rest.len());
                rest = rest.get(end..).unwrap_or("");
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let (name, after) = rest.split_at_checked(word(rest)).unwrap_or(("", ""));
                if !numbers.contains(name) {
                    return Err("uses a variable whose value is not a known number");
                }
                rest = after;
            }
            '$' => {
                let after = rest.get(1..).unwrap_or("");
                let (name, after) = match after.strip_prefix('{') {
                    Some(braced) => {
                        let (name, after) = braced.split_once('}').ok_or("is not plain")?;
                        // A length is a number whatever the value is.
                        match name.strip_prefix('#') {
                            Some(name) if !name.is_empty() && word(name) == name.len() => {
                                rest = after;
                                continue;
                            }
                            Some(_) | None => (name, after),
                        }
                    }
                    None => match after.chars().next() {
                        Some('#' | '?' | '$') => {
                            rest = after.get(1..).unwrap_or("");
                            continue;
                        }
                        _ => after.split_at_checked(word(after)).unwrap_or(("", "")),
                    },
                };
                if !numbers.contains(name) {
                    return Err("uses a variable whose value is not a known number");
                }
                rest = after;
            }
            ' ' | '\t' | '\n' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '&' | '|' | '^' | '~' | '?'
            | ':' | ',' | '(' | ')' => rest = rest.get(1..).unwrap_or(""),
            _ => return Err("holds more than numbers, names and operators"),
        }
    }
    Ok(())
}

/// The variable that a text sets to a number on every path: `i = 0`, alone or before commas.
pub(crate) fn sets(text: &str) -> Option<&str> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim();
    let plain = !value.starts_with('=') && !text.contains(['?', '|', '&']) && super::lex::is_name(name);
    plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_the_text_are_computed_with() {
        let numbers = BTreeSet::from(["i".to_string()]);
        for text in ["1 + 2", "i++", "$i * 0x1F", "${i}<<2", "(i > 3) ? 1 : 0", "16#ff", "${#x} + 1", ""] {
            assert_eq!(check(text, &numbers), Ok(()), "{text}");
        }
        for text in ["k", "$k", "a[0]", "a[$(id)]", "$(id)", "`id`", "${k:-1}", "\"i\"", "i['x']", "${!i}"] {
            assert!(check(text, &numbers).is_err(), "{text}");
        }
    }
}
