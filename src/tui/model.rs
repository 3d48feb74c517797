//! All that the screen knows: the mirror of the Foreman's state, and what is only the screen's own (focus, selection,
//! drafts, overlays, toasts). Changed by `update` alone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use ratatui::layout::Size;
use tui_textarea::TextArea;

use super::UiOptions;
use super::diff_model::DiffUi;
use super::focus::{Pane, Place};
use super::glyphs::{GlyphSet, Glyphs};
use super::msg::{Now, TerminalFocus};
use super::theme::{Depth, Theme, ThemeName};
use crate::client::Mirror;
use crate::client::console::Places;
use crate::protocol::{AgentId, DecisionId, EpochMs, MemoryId, NotifyLevel, TaskId};

/// The screen's state.
pub struct Model {
    pub now: Now,
    pub size: Size,
    pub zone: TimeZone,
    pub theme: Theme,
    pub glyphs: Glyphs,
    pub options: UiOptions,
    pub link: LinkState,
    pub mirror: Option<Mirror>,
    pub focus: Pane,
    /// The pane that had the keys before the console.
    pub before_console: Pane,
    pub zoom: Option<Pane>,
    /// What lies over the panes; the last is on top and has the keys.
    pub overlays: Vec<Overlay>,
    pub wall: WallUi,
    pub monitors: MonitorsUi,
    pub podium: PodiumUi,
    pub feed: FeedUi,
    pub console: ConsoleUi,
    pub toasts: Vec<Toast>,
    pub terminal_focus: TerminalFocus,
    pub attention: Attention,
    /// Messages on their way, by our token.
    pub pending: BTreeMap<u64, Pending>,
    /// Tokens by the correlation id that the link gave.
    pub correlation: BTreeMap<String, u64>,
    pub next_token: u64,
    /// When the last key came, for telling typing from a burst.
    pub last_key_ms: Option<u64>,
    /// The title that the window was given last.
    pub title: String,
    /// Something visible has changed since the last frame.
    pub dirty: bool,
    pub leaving: Option<Leaving>,
}

/// Why the screen ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    Asked,
}

/// The state of the link to the Foreman.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    Connecting,
    Up,
    /// Over for good; nothing will come any more.
    Ended(String),
    /// Lost; `retry_at_ms` is on the monotonic clock.
    Down {
        why: String,
        retry_at_ms: u64,
    },
}

/// The wall's own state.
#[derive(Clone, Debug, Default)]
pub struct WallUi {
    pub selected: Option<TaskId>,
}

/// The monitors' own state.
#[derive(Clone, Debug, Default)]
pub struct MonitorsUi {
    pub selected: Option<AgentId>,
    /// Lines scrolled back from the end; absent: it follows.
    pub back: BTreeMap<AgentId, usize>,
    /// Only the selected one is shown.
    pub single: bool,
}

/// The feed's own state.
#[derive(Clone, Debug, Default)]
pub struct FeedUi {
    /// The chosen line, counted from the newest; none: it follows.
    pub selected: Option<usize>,
}

/// The podium's own state.
#[derive(Default)]
pub struct PodiumUi {
    pub shown: Option<DecisionId>,
    /// Keys before this moment (monotonic) are not taken.
    pub guard_until_ms: u64,
    /// The chosen option of the shown decision.
    pub choice: Option<usize>,
    /// The person chose it; else it is the recommended one.
    pub by_hand: bool,
    /// The person has touched the shown decision, so it stays although a more pressing one comes.
    pub engaged: bool,
    /// Reject was sent once and wants its second Enter.
    pub rejecting: bool,
    /// The text field has the keys.
    pub writing: bool,
    pub text: TextArea<'static>,
    /// Lines the context is scrolled by.
    pub scroll: usize,
    /// Answers that were begun, or came back, by decision.
    pub drafts: BTreeMap<DecisionId, Draft>,
    /// Answers on their way, by decision: the token of each.
    pub answering: BTreeMap<DecisionId, u64>,
    /// A line about what just happened here, until a moment (monotonic).
    pub notice: Option<(String, u64)>,
}

/// A begun answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub choice: Option<usize>,
    pub text: String,
    /// Why the Foreman refused it.
    pub refused: Option<String>,
}

/// The console bar's own state.
#[derive(Default)]
pub struct ConsoleUi {
    pub text: TextArea<'static>,
    /// Lines sent before, oldest first.
    pub history: Vec<String>,
    /// Where in the history Up has come to.
    pub recalled: Option<usize>,
    /// What stood there before the history was asked.
    pub stash: String,
    pub echo: Echo,
    /// What relative paths and `~` mean, and the directory that is being completed.
    pub places: Option<Places>,
    /// The directory that was asked for last.
    pub listing_asked: Option<PathBuf>,
    /// An Enter that came in a burst, and until when (monotonic) it may turn out to be part of a paste.
    pub held_enter: Option<u64>,
    /// The burst that goes on has held a line break: it is a paste, and none of its Enters sends.
    pub pasting: bool,
}

/// What the console's right end says about the last line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    #[default]
    None,
    Sending(u64),
    Done(String),
    Refused(String),
}

/// A short message at the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    pub level: NotifyLevel,
    pub text: String,
    /// Monotonic ms.
    pub until_ms: u64,
}

/// Notices of the desktop: at most one in a while, several become one.
#[derive(Clone, Debug, Default)]
pub struct Attention {
    /// When the last was given (monotonic ms).
    pub last_ms: Option<u64>,
    /// Decisions that wait to be told of.
    pub waiting: Vec<(DecisionId, String)>,
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pending {
    Console {
        line: String,
    },
    Answer {
        decision: DecisionId,
        draft: Draft,
    },
    /// An action from a card; the words say which.
    Action {
        what: String,
    },
    Diff {
        request: String,
    },
}

/// What can lie over the panes: one stack, one enum.
pub enum Overlay {
    Page(Page),
    Diff(Box<DiffUi>),
    Task(TaskCard),
    Agent(AgentCard),
    Library(Library),
    Palette(Box<PaletteUi>),
    Picker(Picker),
    Leaving,
}

/// A page of text that scrolls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub kind: PageKind,
    pub scroll: usize,
}

/// What a page shows; the text is made when it is drawn, so it is never stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Help(Place),
    Status,
    Repos,
    Agents,
    Tasks,
    Decisions,
    Feed,
}

/// The card of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCard {
    pub task: TaskId,
    pub scroll: usize,
    /// Cancel was pressed once.
    pub cancelling: bool,
}

/// The card of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard {
    pub agent: AgentId,
    pub scroll: usize,
    /// Stop was pressed once.
    pub stopping: bool,
}

/// The memory library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    pub selected: usize,
    /// The note that is read, and its scroll.
    pub reading: Option<MemoryId>,
    pub scroll: usize,
}

/// The palette.
#[derive(Default)]
pub struct PaletteUi {
    pub query: TextArea<'static>,
    pub selected: usize,
}

/// A choice among a few things, for an action that needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picker {
    pub purpose: PickerPurpose,
    pub selected: usize,
}

/// What is chosen for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickerPurpose {
    Reassign(TaskId),
    SpawnFor(AgentId),
}

impl Model {
    /// The model before anything is known.
    pub fn new(options: UiOptions, size: Size, zone: TimeZone) -> Self {
        let depth = if options.no_color { Depth::None } else { options.depth };
        Self {
            now: Now::default(),
            size,
            zone,
            theme: Theme::new(options.theme.unwrap_or(ThemeName::Dark), depth),
            glyphs: Glyphs::of(if options.ascii { GlyphSet::Ascii } else { GlyphSet::Unicode }),
            link: LinkState::Connecting,
            mirror: None,
            focus: Pane::Console,
            before_console: Pane::Wall,
            zoom: None,
            overlays: Vec::new(),
            wall: WallUi::default(),
            monitors: MonitorsUi::default(),
            podium: PodiumUi::default(),
            feed: FeedUi::default(),
            console: ConsoleUi::default(),
            toasts: Vec::new(),
            terminal_focus: TerminalFocus::Unknown,
            attention: Attention::default(),
            pending: BTreeMap::new(),
            correlation: BTreeMap::new(),
            next_token: 1,
            last_key_ms: None,
            title: String::new(),
            dirty: true,
            leaving: None,
            options,
        }
    }

    /// The place that has the keys: the top overlay, else the pane or its text field.
    pub fn place(&self) -> Place {
        match self.overlays.last() {
            Some(Overlay::Page(_)) => Place::Page,
            Some(Overlay::Diff(diff)) if diff.writing.is_some() => Place::Remark,
            Some(Overlay::Diff(_)) => Place::Diff,
            Some(Overlay::Task(_)) => Place::TaskCard,
            Some(Overlay::Agent(_)) => Place::AgentCard,
            Some(Overlay::Library(_)) => Place::Library,
            Some(Overlay::Palette(_)) => Place::Palette,
            Some(Overlay::Picker(_)) => Place::Picker,
            Some(Overlay::Leaving) => Place::Leaving,
            None if self.focus == Pane::Podium && self.podium.writing => Place::Answer,
            None => self.focus.into(),
        }
    }

    /// The next moment (monotonic ms) at which something changes by itself; none: nothing will.
    pub fn next_deadline(&self) -> Option<u64> {
        let toasts = self.toasts.iter().map(|t| t.until_ms);
        let notice = self.podium.notice.iter().map(|(_, until)| *until);
        let guard = (self.podium.guard_until_ms > self.now.mono_ms).then_some(self.podium.guard_until_ms);
        let attention = self.attention_due();
        let retry = match &self.link {
            LinkState::Down { retry_at_ms, .. } if *retry_at_ms > self.now.mono_ms => {
                // The countdown shows whole seconds.
                let left = retry_at_ms - self.now.mono_ms;
                Some(self.now.mono_ms + if left.is_multiple_of(1000) { 1000 } else { left % 1000 })
            }
            LinkState::Down { .. } | LinkState::Connecting | LinkState::Up | LinkState::Ended(_) => None,
        };
        let held = self.console.held_enter;
        toasts.chain(held).chain(notice).chain(guard).chain(attention).chain(retry).min()
    }

    /// Clock time of a moment, `HH:MM`.
    pub fn clock(&self, at: EpochMs) -> String {
        i64::try_from(at)
            .ok()
            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
            .map(|t| t.to_zoned_datetime(self.zone.clone()).strftime("%H:%M").to_string())
            .unwrap_or_default()
    }
}

pub use super::field::{content, field};
