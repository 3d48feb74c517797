//! Finding log lines by their words.

use crate::protocol::{AgentId, LogEntry};

/// A log line that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHit {
    pub agent: AgentId,
    pub entry: LogEntry,
}

/// A person's words as an FTS5 query: all of them must occur, the last may be the beginning of a word. None when
/// there is nothing to look for.
pub(crate) fn query(words: &str) -> Option<String> {
    let mut terms: Vec<String> = words
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    let last = terms.last_mut()?;
    last.push('*');
    Some(terms.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_the_last_is_a_beginning() {
        assert_eq!(query("fn  pars").as_deref(), Some("\"fn\" \"pars\"*"));
        assert_eq!(query("a\"b OR NOT").as_deref(), Some("\"a\"\"b\" \"OR\" \"NOT\"*"));
        assert_eq!(query(" -- "), None);
    }
}
