//! What `update` wants done outside the model. The loop in `mod.rs` is the only doer.

use std::path::PathBuf;

use super::highlight::HighlightJob;
use crate::protocol::ClientMessage;

/// An errand.
#[derive(Clone, Debug, PartialEq)]
pub enum Cmd {
    /// Send to the Foreman; `Msg::Sent` comes back with the token.
    Send {
        token: u64,
        message: ClientMessage,
    },
    /// To the clipboard, by OSC 52.
    Copy(String),
    /// A notice of the desktop (OSC 9 and 777) and the bell. Both texts are cleaned and on one line.
    Notice {
        title: String,
        body: String,
    },
    /// The window's title.
    Title(String),
    /// Append to the history file.
    Remember(String),
    /// Read the subdirectories of a directory, for completing a path.
    List(PathBuf),
    /// Colour a file of a diff on the worker.
    Highlight(HighlightJob),
    Suspend,
    /// Forget what the terminal shows and draw all of it.
    Redraw,
    Leave,
}
