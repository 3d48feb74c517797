//! "Did you mean": the known word nearest to a mistyped one. Pure.

/// The candidate that `typed` most likely meant, if one is near enough to be worth saying.
///
/// Near is: `typed` begins it (at least two letters), or few letters differ (one in three, two swapped count once).
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = typed.to_lowercase();
    if wanted.is_empty() {
        return None;
    }
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let known = candidate.to_lowercase();
            if known.starts_with(&wanted) && wanted.chars().count() >= 2 {
                return Some((0, candidate));
            }
            let distance = distance(&wanted, &known);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete, replace or swap with their neighbour to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, a) in from.iter().enumerate() {
        let mut this = vec![row + 1];
        for (column, b) in to.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&last, column) + usize::from(a != b);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&this, column) + 1);
            let swapped = row > 0 && column > 0 && from.get(row - 1) == Some(b) && to.get(column - 1) == Some(a);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            this.push(best);
        }
        before = std::mem::replace(&mut last, this);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: Option<&str>) {
        let known = ["answer", "agents", "pause", "resume", "decisions", "status"];
        assert_eq!(nearest(typed, known), expected, "{typed}");
    }

    /// A slip of a letter or two finds the word, something else finds nothing.
    #[test]
    fn finds_the_word_that_was_meant() {
        check("anwser", Some("answer"));
        check("puase", Some("pause"));
        check("decision", Some("decisions"));
        check("stat", Some("status"));
        check("Agent", Some("agents"));
        check("xyz", None);
        check("", None);
        check("merge", None);
    }

    /// Two swapped letters count as one slip.
    #[test]
    fn counts_slips() {
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }
}
