//! Placeholder until the wire room's own lands.
use std::borrow::Cow;

/// Text without control characters.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        Cow::Owned(text.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t').collect())
    } else {
        Cow::Borrowed(text)
    }
}
