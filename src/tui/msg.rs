//! What can happen to the screen. `update` is the only reader.

use ratatui::layout::{Position, Size};

use super::keys::Key;
use crate::client::LinkEvent;
use crate::client::console::Listing;
use crate::protocol::EpochMs;

/// The two clocks of one moment: durations come from `mono_ms`, shown times from `wall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the screen began; never goes back.
    pub mono_ms: u64,
    pub wall: EpochMs,
}

/// Something that happened.
#[derive(Debug)]
pub enum Msg {
    Key(Key),
    /// A bracketed paste: one text, whatever is in it.
    Paste(String),
    Mouse(Mouse),
    Resize(Size),
    TerminalFocus(TerminalFocus),
    Link(Box<LinkEvent>),
    /// A message went out (or not) under this token; the text is its correlation id or why it could not go.
    Sent {
        token: u64,
        result: Result<String, String>,
    },
    /// A deadline of the model has passed.
    Tick,
    /// The screen is back from the shell.
    Resumed,
    /// Something outside the team failed; the text is for the person.
    Trouble(String),
    /// The subdirectories of a directory that completion asked for.
    Listed(Listing),
    /// A highlighted file of a diff has come back from the worker.
    Highlighted(super::highlight::Highlighted),
}

/// Whether the terminal is looked at. Unknown counts as not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalFocus {
    Unknown,
    Focused,
    Unfocused,
}

/// A mouse event, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    pub at: Position,
    pub kind: MouseKind,
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    Press,
    WheelUp,
    WheelDown,
}
