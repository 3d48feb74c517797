//! Lines on standard output and standard error. A reader that is gone is no error, a dead terminal neither.

use std::io::{IsTerminal, Write};

use crate::protocol::text::clean;

/// Prints a text and a line's end on standard output; the text comes without control characters.
pub(super) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", clean(text)).and_then(|()| out.flush());
}

/// As [`say`], to the byte: for what programs read.
pub(super) fn say_exactly(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a text and a line's end on standard error; the text comes without control characters.
pub(super) fn complain(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{}", clean(text)).and_then(|()| err.flush());
}

/// Rings the terminal's bell, if standard error is one.
pub(super) fn ring() {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        let _ = err.write_all(b"\x07").and_then(|()| err.flush());
    }
}

/// Asks on the terminal; `None` when there is none, or it closed.
pub(super) fn ask(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{} ", clean(question)).and_then(|()| err.flush()).ok()?;
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer).ok()?;
    (read > 0).then(|| answer.trim().to_lowercase())
}
