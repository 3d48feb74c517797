//! The screen of a start: what it is told, and how its end is heard.

use std::io::IsTerminal;
use std::path::Path;

use tokio::task::JoinHandle;

use super::error::CliError;
use crate::client::Link;
use crate::config::{Options, Theme};
use crate::tui::theme::ThemeName;
use crate::tui::{UiError, UiExit, UiOptions, run};

/// Where the console's lines are remembered, in the profile's directory.
const HISTORY: &str = "console-history";

/// Whose Foreman a screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of this process: leaving ends it.
    Ours,
    /// One that lives elsewhere: leaving closes only the screen.
    Another,
}

/// There is a terminal to draw on and to read keys from.
pub(super) fn need_terminal() -> Result<(), CliError> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() { Ok(()) } else { Err(CliError::NoTerminal) }
}

/// What the screen is told: the terminal's own answers, with what the person said over them.
pub(super) fn options(options: &Options, owner: Owner, profile_dir: &Path) -> UiOptions {
    let wish = &options.screen;
    let detected = UiOptions::detect(|name| std::env::var(name).ok());
    UiOptions {
        ascii: wish.ascii.unwrap_or(detected.ascii),
        no_color: wish.color.map_or(detected.no_color, |color| !color),
        theme: wish.theme.map_or(detected.theme, |theme| {
            Some(match theme {
                Theme::Dark => ThemeName::Dark,
                Theme::Light => ThemeName::Light,
            })
        }),
        mouse: wish.mouse.unwrap_or(detected.mouse),
        read_only: wish.read_only,
        attached: owner == Owner::Another,
        notify: options.notify,
        history: Some(profile_dir.join(HISTORY)),
        ..detected
    }
}

/// Shows the screen on a thread of its own.
pub(super) fn show(link: Link, options: UiOptions) -> JoinHandle<Result<UiExit, UiError>> {
    tokio::task::spawn_blocking(move || run(link, options))
}
