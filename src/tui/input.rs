//! Our keys in the words of the text field, and the text field's editing.

use tui_textarea::{Input, Key as FieldKey, TextArea};

use super::keys::{Code, Key};

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
