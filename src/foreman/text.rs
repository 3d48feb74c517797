//! Texts: cutting, slugs, branch names. Pure functions of strings.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Cuts to `max` characters; what is longer ends in one ellipsis character.
pub(crate) fn truncate(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Collapses white space to single blanks and trims.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lower-case letters, digits and single dashes, at most `max`; `item` when nothing is left.
pub(crate) fn slugify(text: &str, max: usize) -> String {
    let mut slug = String::new();
    for c in text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let mut slug: String = slug.trim_matches('-').chars().take(max).collect();
    while slug.ends_with('-') {
        slug.pop();
    }
    if slug.is_empty() { "item".to_owned() } else { slug }
}

/// Words that a branch name does not end in.
const STOP_WORDS: [&str; 14] =
    ["a", "an", "the", "and", "or", "for", "of", "to", "in", "on", "with", "by", "at", "from"];

/// The last part of a task's branch: its title without what stands in parentheses and without backticks, cut to 24
/// characters at a word where that leaves at least 8.
pub(crate) fn branch_slug(title: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for c in title.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '`' => {}
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let long = slugify(&plain, 64);
    let mut slug = long.clone();
    if long.len() > 24 {
        // ASCII by construction, so byte positions are characters.
        let head = long.get(..24).unwrap_or(&long);
        let at_word = if long.as_bytes().get(24) == Some(&b'-') { Some(24) } else { head.rfind('-') };
        slug = match at_word {
            Some(at) if at >= 8 => long.get(..at).unwrap_or(head).to_owned(),
            _ => head.trim_end_matches('-').to_owned(),
        };
    }
    while let Some((rest, last)) = slug.rsplit_once('-') {
        if !STOP_WORDS.contains(&last) {
            break;
        }
        slug = rest.to_owned();
    }
    slug
}

/// First 7 characters of a commit id.
pub(crate) fn short(sha: &str) -> String {
    sha.chars().take(7).collect()
}

/// "1 file", "2 files".
pub(crate) fn count(n: u32, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_characters_and_ends_in_one_ellipsis() {
        assert_eq!(truncate("grün", 4), "grün");
        assert_eq!(truncate("grüner", 4), "grü…");
        assert_eq!(truncate("ab", 0), "…");
    }

    #[test]
    fn slugs_strip_accents_and_never_end_in_a_dash() {
        assert_eq!(slugify("Über die Brücke!", 32), "uber-die-brucke");
        assert_eq!(slugify("abc def", 4), "abc");
        assert_eq!(slugify("日本語", 32), "item");
    }

    #[test]
    fn branch_slugs_are_short_and_end_in_a_word_that_means_something() {
        assert_eq!(branch_slug("Tag parser module (src/tags.ts)"), "tag-parser-module");
        assert_eq!(branch_slug("Highlight `#tags` in the list output of notes"), "highlight-tags");
        assert_eq!(branch_slug("Internationalizationandmore things"), "internationalizationandm");
    }
}
