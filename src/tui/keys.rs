//! The one key map, as data. The help, the hints and the palette read this table, so they cannot lie.
//!
//! A [`Key`] is what the terminal sent, in our own words; [`find`] says what it means in a place. Knows no model.

use super::focus::{Pane, Place};

/// A key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Char(char),
    F(u8),
    Enter,
    Esc,
    Tab,
    Backspace,
    Delete,
    Insert,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
}

/// A pressed key. `shift` is false for characters, whose case says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

impl Key {
    /// A key without modifiers.
    pub const fn plain(code: Code) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    /// A character without modifiers.
    pub const fn char(c: char) -> Self {
        Self::plain(Code::Char(c))
    }

    /// A character with Ctrl.
    pub const fn ctrl(c: char) -> Self {
        Self { code: Code::Char(c), ctrl: true, alt: false, shift: false }
    }

    /// The character that it writes, if it writes one.
    pub const fn written(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// Its name as the key map spells it: `j`, `Ctrl-p`, `Shift-Tab`, `Alt-Enter`.
    pub fn name(self) -> String {
        let mut name = String::new();
        if self.ctrl {
            name.push_str("Ctrl-");
        }
        if self.alt {
            name.push_str("Alt-");
        }
        if self.shift {
            name.push_str("Shift-");
        }
        match self.code {
            Code::Char(' ') => name.push_str("Space"),
            Code::Char(c) => name.push(c),
            Code::F(n) => name.push_str(&format!("F{n}")),
            Code::Enter => name.push_str("Enter"),
            Code::Esc => name.push_str("Esc"),
            Code::Tab => name.push_str("Tab"),
            Code::Backspace => name.push_str("Backspace"),
            Code::Delete => name.push_str("Delete"),
            Code::Insert => name.push_str("Insert"),
            Code::Left => name.push_str("Left"),
            Code::Right => name.push_str("Right"),
            Code::Up => name.push_str("Up"),
            Code::Down => name.push_str("Down"),
            Code::Home => name.push_str("Home"),
            Code::End => name.push_str("End"),
            Code::PageUp => name.push_str("PageUp"),
            Code::PageDown => name.push_str("PageDown"),
        }
        name
    }
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    Suspend,
    Redraw,
    Help,
    Palette,
    Focus(Pane),
    FocusNext,
    FocusPrevious,
    Zoom,
    Maximise,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Top,
    Bottom,
    /// Enter: open the selected, send the answer, take the choice.
    Confirm,
    /// Esc: leave this, one step.
    Back,
    Diff,
    Library,
    Repos,
    Status,
    Theme,
    PauseAll,
    Copy,
    /// A digit of the podium; the key says which.
    Choose,
    WriteText,
    NextDecision,
    PreviousDecision,
    Retry,
    CancelTask,
    Reassign,
    Prioritise,
    PauseAgent,
    StopAgent,
    SpawnAgent,
    Message,
    NextFile,
    PreviousFile,
    NextHunk,
    PreviousHunk,
    WholeFile,
    ShiftLeft,
    ShiftRight,
    ToggleFiles,
    AnswerIt,
    /// Write a remark on a line of a diff.
    Remark,
    /// Take the remarks to the decision as a request for changes.
    RequestChanges,
    /// Send what is written.
    Submit,
    NewLine,
    Complete,
    HistoryUp,
    HistoryDown,
}

/// Whether a binding shows in the hint line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    Shown(&'static str),
    Hidden,
}

/// A line of the key map.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub place: Place,
    /// Key names; the first is the one shown.
    pub keys: &'static [&'static str],
    pub action: Action,
    /// What it does, for the help and the palette.
    pub what: &'static str,
    pub hint: Hint,
}

const fn shown(
    place: Place,
    keys: &'static [&'static str],
    action: Action,
    what: &'static str,
    hint: &'static str,
) -> Binding {
    Binding { place, keys, action, what, hint: Hint::Shown(hint) }
}

const fn bind(place: Place, keys: &'static [&'static str], action: Action, what: &'static str) -> Binding {
    Binding { place, keys, action, what, hint: Hint::Hidden }
}

use Action as A;
use Place as P;

/// The key map. Within a place the first match wins; a place's own keys come before those of everywhere.
pub static KEYMAP: &[Binding] = &[
    // Decisions
    shown(P::Podium, &["1", "2", "3", "4", "5", "6", "7", "8", "9"], A::Choose, "choose an option", "choose"),
    shown(P::Podium, &["Enter"], A::Confirm, "send the chosen answer", "send"),
    shown(P::Podium, &["t", "i"], A::WriteText, "write a text with the answer", "text"),
    shown(P::Podium, &["d"], A::Diff, "open the diff that a merge decision is about", "diff"),
    shown(P::Podium, &["]"], A::NextDecision, "look at the next decision", "next"),
    bind(P::Podium, &["["], A::PreviousDecision, "look at the decision before"),
    shown(P::Answer, &["Enter"], A::Submit, "send the answer with this text", "send"),
    shown(P::Answer, &["Alt-Enter", "Ctrl-j", "Shift-Enter"], A::NewLine, "begin a new line", "new line"),
    shown(P::Answer, &["Esc"], A::Back, "stop writing; the text is kept", "keep for later"),
    // Task Wall
    shown(P::Wall, &["Enter"], A::Confirm, "open the task's card", "card"),
    shown(P::Wall, &["d"], A::Diff, "open the diff of the task's worktree", "diff"),
    // Agents
    shown(P::Monitors, &["Enter"], A::Confirm, "open the agent's card", "card"),
    shown(P::Monitors, &["d"], A::Diff, "open the diff of the agent's worktree", "diff"),
    shown(P::Monitors, &["Space"], A::Maximise, "show one agent only, or all again", "one/all"),
    shown(P::Monitors, &["m"], A::Message, "write to the agent", "message"),
    shown(P::Monitors, &["s"], A::PauseAgent, "pause or resume the agent", "pause"),
    // Feed
    shown(P::Feed, &["Enter"], A::Confirm, "open the card of the agent that a line is about", "card"),
    // Console
    shown(P::Console, &["Enter"], A::Submit, "send the line", "send"),
    shown(P::Console, &["Tab"], A::Complete, "complete the word", "complete"),
    shown(P::Console, &["Up"], A::HistoryUp, "the line before in the history", "history"),
    bind(P::Console, &["Down"], A::HistoryDown, "the next line in the history"),
    bind(P::Console, &["Alt-Enter", "Ctrl-j", "Shift-Enter"], A::NewLine, "begin a new line"),
    shown(P::Console, &["Esc"], A::Back, "leave the console; the draft is kept", "leave"),
    bind(P::Console, &["Shift-Tab"], A::FocusPrevious, "the pane before"),
    // Diff
    shown(P::Diff, &["]", "f"], A::NextFile, "next file", "next file"),
    bind(P::Diff, &["[", "F"], A::PreviousFile, "previous file"),
    shown(P::Diff, &["n"], A::NextHunk, "next hunk", "next hunk"),
    bind(P::Diff, &["N", "p"], A::PreviousHunk, "previous hunk"),
    shown(P::Diff, &["Tab"], A::ToggleFiles, "between the list of files and the lines", "files"),
    shown(P::Diff, &["c"], A::Remark, "write a remark on the line", "remark"),
    shown(
        P::Diff,
        &["r"],
        A::RequestChanges,
        "take the remarks to the decision, as Request changes",
        "request changes",
    ),
    shown(P::Remark, &["Enter"], A::Submit, "keep the remark (an empty one goes away)", "keep"),
    shown(P::Remark, &["Alt-Enter", "Ctrl-j", "Shift-Enter"], A::NewLine, "begin a new line", "new line"),
    shown(P::Remark, &["Esc"], A::Back, "stop writing; the remark stays as it was", "leave it"),
    shown(P::Diff, &["w"], A::WholeFile, "fetch a file whole that was cut", "whole file"),
    shown(P::Diff, &["a"], A::AnswerIt, "go to the decision this diff belongs to", "answer"),
    bind(P::Diff, &["<"], A::ShiftLeft, "shift long lines back"),
    bind(P::Diff, &[">"], A::ShiftRight, "shift long lines to see their end"),
    bind(P::Diff, &["y"], A::Copy, "copy the hunk as a patch"),
    // Cards
    shown(P::TaskCard, &["d"], A::Diff, "open the diff of the task's worktree", "diff"),
    shown(P::TaskCard, &["r"], A::Retry, "put the task back to todo", "retry"),
    shown(P::TaskCard, &["a"], A::Reassign, "give the task to another agent", "reassign"),
    shown(P::TaskCard, &["u", "+"], A::Prioritise, "move the task above all others", "to the top"),
    shown(P::TaskCard, &["x"], A::CancelTask, "cancel the task (asks twice)", "cancel"),
    shown(P::AgentCard, &["m"], A::Message, "write to the agent", "message"),
    shown(P::AgentCard, &["s"], A::PauseAgent, "pause or resume the agent", "pause"),
    shown(P::AgentCard, &["b"], A::SpawnAgent, "bring the agent in", "bring in"),
    shown(P::AgentCard, &["x"], A::StopAgent, "stop the agent (asks twice)", "stop"),
    shown(P::AgentCard, &["d"], A::Diff, "open the diff of the agent's worktree", "diff"),
    // Lists and pages
    shown(P::Library, &["Enter"], A::Confirm, "read the note", "read"),
    shown(P::Picker, &["Enter"], A::Confirm, "take the choice", "take"),
    shown(P::Palette, &["Enter"], A::Submit, "do it", "do"),
    shown(P::Palette, &["Up", "Ctrl-k"], A::Up, "up", "move"),
    bind(P::Palette, &["Down", "Ctrl-n"], A::Down, "down"),
    shown(P::Palette, &["Esc"], A::Back, "close", "close"),
    shown(P::Leaving, &["y", "Enter"], A::Confirm, "leave", "leave"),
    shown(P::Leaving, &["n", "Esc", "q"], A::Back, "stay", "stay"),
    // Everywhere
    shown(P::Everywhere, &[":"], A::Focus(Pane::Console), "write to the team", "console"),
    shown(P::Everywhere, &["?"], A::Help, "this help", "help"),
    bind(P::Everywhere, &["Tab"], A::FocusNext, "the next pane"),
    bind(P::Everywhere, &["Shift-Tab"], A::FocusPrevious, "the pane before"),
    bind(P::Everywhere, &["w"], A::Focus(Pane::Wall), "to the Task Wall"),
    bind(P::Everywhere, &["a"], A::Focus(Pane::Monitors), "to the agents"),
    bind(P::Everywhere, &["n"], A::Focus(Pane::Podium), "to what needs you"),
    bind(P::Everywhere, &["f"], A::Focus(Pane::Feed), "to the feed"),
    bind(P::Everywhere, &["k", "Up"], A::Up, "up"),
    bind(P::Everywhere, &["j", "Down"], A::Down, "down"),
    bind(P::Everywhere, &["h", "Left"], A::Left, "left"),
    bind(P::Everywhere, &["l", "Right"], A::Right, "right"),
    bind(P::Everywhere, &["PageUp", "Ctrl-u", "Ctrl-b"], A::PageUp, "a page up"),
    bind(P::Everywhere, &["PageDown", "Ctrl-d", "Ctrl-f"], A::PageDown, "a page down"),
    bind(P::Everywhere, &["g", "Home"], A::Top, "to the first"),
    bind(P::Everywhere, &["G", "End"], A::Bottom, "to the last"),
    bind(P::Everywhere, &["Enter"], A::Confirm, "open"),
    bind(P::Everywhere, &["Esc"], A::Back, "one step back"),
    shown(P::Everywhere, &["z"], A::Zoom, "give the pane the whole screen", "zoom"),
    bind(P::Everywhere, &["M"], A::Library, "the team's memory"),
    bind(P::Everywhere, &["R"], A::Repos, "repositories and worktrees"),
    bind(P::Everywhere, &["S"], A::Status, "the Foreman's status"),
    bind(P::Everywhere, &["P"], A::PauseAll, "pause the whole team, or let it go on"),
    bind(P::Everywhere, &["y"], A::Copy, "copy the selected (id, text or path)"),
    bind(P::Everywhere, &["T"], A::Theme, "between the dark and the light theme"),
    bind(P::Everywhere, &["q"], A::Quit, "leave"),
    shown(P::Always, &["Ctrl-p"], A::Palette, "the palette: everything by name", "palette"),
    bind(P::Always, &["Ctrl-c"], A::Quit, "leave (asks while agents work)"),
    bind(P::Always, &["Ctrl-z"], A::Suspend, "suspend to the shell"),
    bind(P::Always, &["Ctrl-l"], A::Redraw, "draw the screen anew"),
    bind(P::Always, &["F1"], A::Help, "this help"),
];

/// What a key means in a place; places that write text know only their own keys and those of [`Place::Always`].
pub fn find(place: Place, key: Key) -> Option<Action> {
    let name = key.name();
    let within = |at: Place| {
        KEYMAP.iter().find(|b| b.place == at && b.keys.contains(&name.as_str())).map(|binding| binding.action)
    };
    within(place)
        .or_else(|| within(Place::Always))
        .or_else(|| if place.writes() || place == Place::Leaving { None } else { within(Place::Everywhere) })
}

/// The hints of a place: key and word, its own first.
pub fn hints(place: Place) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = KEYMAP.iter().filter(move |b| b.place == place);
    let general = KEYMAP
        .iter()
        .filter(move |b| b.place == Place::Always || (b.place == Place::Everywhere && !place.writes()))
        .filter(move |b| place != Place::Leaving && place != b.place);
    own.chain(general).filter_map(|binding| match binding.hint {
        Hint::Shown(word) => binding.keys.first().map(|key| (short(binding, key), word)),
        Hint::Hidden => None,
    })
}

fn short(binding: &Binding, first: &'static str) -> &'static str {
    if binding.action == Action::Choose { "1-9" } else { first }
}

/// How a binding's keys read in the help.
pub fn spelled(binding: &Binding) -> String {
    if binding.action == Action::Choose { "1-9".to_owned() } else { binding.keys.join("  ") }
}

/// The first key of an action that works everywhere, for the palette.
pub fn key_of(action: Action) -> Option<&'static str> {
    KEYMAP
        .iter()
        .filter(|b| matches!(b.place, Place::Everywhere | Place::Always))
        .find(|b| b.action == action)
        .and_then(|b| b.keys.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One key means one thing in one place.
    #[test]
    fn no_key_is_bound_twice_in_a_place() {
        let mut seen = std::collections::BTreeSet::new();
        for binding in KEYMAP {
            for key in binding.keys {
                assert!(seen.insert((binding.place, *key)), "{key} twice in {:?}", binding.place);
            }
        }
    }

    /// Digits choose nowhere but on the podium, and no text field takes a plain character as a command.
    #[test]
    fn digits_choose_only_on_the_podium() {
        for place in [P::Wall, P::Monitors, P::Feed, P::Console, P::Answer, P::Diff, P::Palette, P::TaskCard] {
            assert_eq!(find(place, Key::char('1')), None, "{place:?}");
        }
        assert_eq!(find(P::Podium, Key::char('1')), Some(A::Choose));
        for place in [P::Console, P::Answer, P::Remark, P::Palette] {
            for c in ' '..='~' {
                assert_eq!(find(place, Key::char(c)), None, "{c} in {place:?}");
            }
        }
    }

    /// The console is one key away from everywhere that does not write text.
    #[test]
    fn the_console_is_reachable() {
        for place in [P::Wall, P::Monitors, P::Podium, P::Feed, P::Diff, P::TaskCard, P::AgentCard, P::Library, P::Page]
        {
            assert_eq!(find(place, Key::char(':')), Some(A::Focus(Pane::Console)), "{place:?}");
            assert_eq!(find(place, Key::char('?')), Some(A::Help), "{place:?}");
        }
    }
}
