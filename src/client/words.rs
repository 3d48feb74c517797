//! Words of a console line: quoting, and the nearest known word to a mistyped one.

/// Splits off the first word; quotes (single or double) keep blanks together. Gives back the word and the rest as
/// typed, without the blanks between.
pub(crate) fn first_word(line: &str) -> (String, &str) {
    let line = line.trim_start();
    let mut word = String::new();
    let mut quote: Option<char> = None;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => return (word, line.get(at..).unwrap_or_default().trim_start()),
            None => word.push(c),
        }
    }
    if quote.is_some() {
        // A quote that never closes is an apostrophe.
        return match line.find(char::is_whitespace) {
            Some(at) => {
                (line.get(..at).unwrap_or_default().to_owned(), line.get(at..).unwrap_or_default().trim_start())
            }
            None => (line.to_owned(), ""),
        };
    }
    (word, "")
}

/// Takes one pair of quotes around a whole text off.
pub(crate) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\''] {
        if text.len() >= 2
            && let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote))
            && !inner.contains(quote)
        {
            return inner;
        }
    }
    text
}

/// The known word that is nearest to a mistyped one, if it is near.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 2.max(candidate.chars().count() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words (insert, delete, replace).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (j, y) in b.iter().enumerate() {
            let up = row.get(j + 1).copied().unwrap_or(0);
            let cost = usize::from(x != *y);
            left = (diagonal + cost).min(left + 1).min(up + 1);
            diagonal = up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_together_and_apostrophes_stay() {
        assert_eq!(first_word("\"my repo\" rest"), ("my repo".to_owned(), "rest"));
        assert_eq!(first_word("don't do it"), ("don't".to_owned(), "do it"));
        assert_eq!(first_word("  word"), ("word".to_owned(), ""));
        assert_eq!(unquoted("'a b'"), "a b");
        assert_eq!(unquoted("it's"), "it's");
    }

    #[test]
    fn a_mistyped_word_finds_its_neighbour() {
        assert_eq!(nearest("/anser", ["/answer", "/agents", "/spawn"]), Some("/answer"));
        assert_eq!(nearest("kitt", ["kit", "wren"]), Some("kit"));
        assert_eq!(nearest("/frobnicate", ["/answer", "/agents"]), None);
    }
}
