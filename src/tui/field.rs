//! Text fields: our keys in the words of the editing library, and how a text breaks into rows of a given width.

use tui_textarea::{CursorMove, Input, Key as FieldKey, TextArea};
use unicode_segmentation::UnicodeSegmentation;

use super::keys::{Code, Key};
use super::text;

/// Gives a key to a text field. Keys that would break the line are the key map's business, not the field's.
pub(crate) fn edit(area: &mut TextArea<'_>, key: Key) -> bool {
    let field_key = match key.code {
        Code::Char('m' | 'j') if key.ctrl => return false,
        Code::Char(c) => FieldKey::Char(c),
        Code::Backspace => FieldKey::Backspace,
        Code::Delete => FieldKey::Delete,
        Code::Left => FieldKey::Left,
        Code::Right => FieldKey::Right,
        Code::Up => FieldKey::Up,
        Code::Down => FieldKey::Down,
        Code::Home => FieldKey::Home,
        Code::End => FieldKey::End,
        Code::PageUp => FieldKey::PageUp,
        Code::PageDown => FieldKey::PageDown,
        Code::Enter | Code::Esc | Code::Tab | Code::Insert | Code::F(_) => return false,
    };
    area.input(Input { key: field_key, ctrl: key.ctrl, alt: key.alt, shift: key.shift })
}

/// The whole text of a text field.
pub fn content(area: &TextArea<'_>) -> String {
    area.lines().join("\n")
}

/// A text field holding `text`, the cursor at its end.
pub fn field(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// A text field broken into rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<String>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

/// Breaks a field's text into rows of `width` columns, between graphemes: what is typed does not jump about. The cursor
/// always has a cell of its own.
pub(crate) fn rows(area: &TextArea<'_>, width: usize) -> Rows {
    let width = width.max(2);
    let at = area.cursor();
    let mut out = Rows { rows: Vec::new(), cursor: (0, 0) };
    for (number, line) in area.lines().iter().enumerate() {
        let mut row = String::new();
        let mut used = 0;
        let mut passed = 0;
        let place = |out: &mut Rows, used: usize| out.cursor = (out.rows.len(), used);
        for grapheme in line.graphemes(true) {
            let shown = text::clean(grapheme);
            let wide = text::width(&shown);
            if used + wide > width {
                out.rows.push(std::mem::take(&mut row));
                used = 0;
            }
            if number == at.0 && passed <= at.1 {
                place(&mut out, used);
            }
            passed += grapheme.chars().count();
            row.push_str(&shown);
            used += wide;
        }
        if number == at.0 && passed <= at.1 {
            if used >= width {
                out.rows.push(std::mem::take(&mut row));
                used = 0;
            }
            place(&mut out, used);
        }
        out.rows.push(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor stands where the next character goes, also at the edge and on wide characters.
    #[test]
    fn rows_carry_the_cursor() {
        let check = |text: &str, width: usize, rows_wanted: &[&str], cursor: (usize, usize)| {
            let got = rows(&field(text), width);
            assert_eq!(got.rows, rows_wanted, "{text:?}");
            assert_eq!(got.cursor, cursor, "{text:?}");
        };
        check("", 10, &[""], (0, 0));
        check("abc", 10, &["abc"], (0, 3));
        check("abcdef", 4, &["abcd", "ef"], (1, 2));
        check("abcd", 4, &["abcd", ""], (1, 0));
        check("a\nb", 4, &["a", "b"], (1, 1));
        check("日本語", 4, &["日本", "語"], (1, 2));
        let mut area = field("abcdef");
        area.move_cursor(CursorMove::Head);
        assert_eq!(rows(&area, 4).cursor, (0, 0));
    }
}
