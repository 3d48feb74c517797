//! Foreign text made fit for a grid of cells: cleaning, measuring, cutting, wrapping.
//!
//! Widths are columns as the terminal library counts them. Nothing here knows the model or a colour. Every text that
//! comes from an agent, a file or a message goes through [`clean`] or [`lines`] before it is drawn.

use std::borrow::Cow;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// What a tab becomes; real tab stops would depend on the place.
const TAB: &str = "    ";

/// Characters that would move the cursor, reorder or hide text: controls and the format characters of bidirectional
/// text, byte order marks, language tags.
pub const fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// The text on one line, without anything that a terminal would obey. Line breaks and tabs become blanks; other unsafe
/// characters vanish, whole escape sequences with them.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\t' => out.push_str(TAB),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push(' '),
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_csi(&mut rest),
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Drops what follows an ESC: a CSI or a string sequence to its end, or the one next character.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_csi(rest);
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            // A string sequence ends with BEL or ESC \; a text without an end is dropped up to its line's end.
            rest.next();
            while let Some(&c) = rest.peek() {
                if c == '\n' {
                    return;
                }
                rest.next();
                if c == '\u{7}' || c == '\u{9c}' {
                    return;
                }
                if c == '\u{1b}' {
                    if rest.peek() == Some(&'\\') {
                        rest.next();
                    }
                    return;
                }
            }
        }
        Some(c) if c.is_ascii_graphic() => {
            rest.next();
        }
        _ => {}
    }
}

fn skip_csi(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(&c) = rest.peek() {
        match c {
            ' '..='?' => {
                rest.next();
            }
            '@'..='~' => {
                rest.next();
                return;
            }
            _ => return,
        }
    }
}

/// The cleaned lines of a text of several lines.
pub fn lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split('\n').map(|line| clean(line.strip_suffix('\r').unwrap_or(line)))
}

/// Columns of a cleaned text.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(|g| usize::from(g.cell_width())).sum()
}

/// The longest start of `text` that fits into `columns`, and its own columns.
pub fn take(text: &str, columns: usize) -> (&str, usize) {
    if text.is_ascii() {
        let end = text.len().min(columns);
        return (text.get(..end).unwrap_or(text), end);
    }
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let wide = usize::from(grapheme.cell_width());
        if used + wide > columns {
            return (text.get(..at).unwrap_or(text), used);
        }
        used += wide;
    }
    (text, used)
}

/// `text` within `columns`, ending in `ellipsis` when it was cut.
pub fn fit<'a>(text: &'a str, columns: usize, ellipsis: &str) -> Cow<'a, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mark = width(ellipsis);
    if columns < mark {
        return Cow::Borrowed(take(text, columns).0);
    }
    let (kept, _) = take(text, columns - mark);
    Cow::Owned(format!("{}{ellipsis}", kept.trim_end()))
}

/// Breaks one cleaned line at blanks into lines of at most `columns`; a longer word is broken where it must be. Never
/// empty; an empty text gives one empty line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_indented(text, columns, 0)
}

/// As [`wrap`], with every line after the first shortened by `indent` columns (and not padded).
pub fn wrap_indented(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut out: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_word_bounds() {
        let room = if out.is_empty() { columns } else { columns.saturating_sub(indent).max(1) };
        let wide = width(word);
        if used + wide <= room {
            line.push_str(word);
            used += wide;
            continue;
        }
        if word.chars().all(char::is_whitespace) {
            // A blank at the edge is where the line breaks.
            out.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0;
            continue;
        }
        if used > 0 && wide <= columns.saturating_sub(indent) {
            // Take along what hangs on the word without a blank, such as an opening quote.
            let tail = line
                .char_indices()
                .rev()
                .find(|(_, c)| c.is_whitespace())
                .map_or(0, |(at, blank)| at + blank.len_utf8());
            let hung = if tail > 0 && width(line.get(tail..).unwrap_or("")) + wide <= columns.saturating_sub(indent) {
                line.split_off(tail.min(line.len()))
            } else {
                String::new()
            };
            out.push(std::mem::take(&mut line).trim_end().to_owned());
            used = width(&hung) + wide;
            line = hung;
            line.push_str(word);
            continue;
        }
        for grapheme in word.graphemes(true) {
            let room = if out.is_empty() { columns } else { columns.saturating_sub(indent).max(1) };
            let wide = usize::from(grapheme.cell_width());
            if used + wide > room && used > 0 {
                out.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push_str(grapheme);
            used += wide;
        }
    }
    if !line.is_empty() || out.is_empty() {
        out.push(line.trim_end().to_owned());
    }
    out
}

/// The cleaned text of several lines wrapped to `columns`.
pub fn wrap_all(text: &str, columns: usize) -> Vec<String> {
    lines(text).flat_map(|line| wrap(&line, columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escape sequences, carriage returns and marks that reorder text do not survive; what can be read does.
    #[test]
    fn controls_vanish() {
        let check = |input: &str, expect: &str| assert_eq!(clean(input), expect, "{input:?}");
        check("plain", "plain");
        check("a\u{1b}[31mred\u{1b}[0m b", "ared b");
        check("\u{1b}]0;title\u{7}after", "after");
        check("\u{1b}]52;c;aGk=\u{1b}\\after", "after");
        check("\u{9b}2Jx", "x");
        check("bell\u{7}", "bell");
        check("a\r\nb", "a b");
        check("over\rwrite", "over write");
        check("tab\there", "tab    here");
        check("evil\u{202e}txt.exe", "eviltxt.exe");
        check("zero\u{200b}width", "zerowidth");
        check("\u{1b}", "");
        check("\u{1b}]unterminated\nnext", " next");
    }

    #[test]
    fn widths_are_columns() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("日本"), 4);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(fit("日本語", 5, "…"), "日本…");
        assert_eq!(fit("hello world", 7, "…"), "hello…");
        assert_eq!(fit("hello", 5, "…"), "hello");
        assert_eq!(fit("hello", 0, "…"), "");
    }

    #[test]
    fn wrapping_keeps_words_and_breaks_giants() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("run `npm install` now", 10), ["run `npm", "install`", "now"]);
        for line in wrap("日本語のテキスト and words", 5) {
            assert!(width(&line) <= 5, "{line}");
        }
    }
}
