//! Where keys go: the panes in their order, and the places that the key map speaks of.

/// A pane that can have the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pane {
    Wall,
    Monitors,
    Podium,
    Feed,
    Console,
}

impl Pane {
    /// Every pane in the order of Tab.
    pub const ORDER: [Self; 5] = [Self::Wall, Self::Monitors, Self::Podium, Self::Feed, Self::Console];

    /// The next pane in the order of Tab, round and round.
    pub fn next(self) -> Self {
        match self {
            Self::Wall => Self::Monitors,
            Self::Monitors => Self::Podium,
            Self::Podium => Self::Feed,
            Self::Feed => Self::Console,
            Self::Console => Self::Wall,
        }
    }

    /// The pane before.
    pub fn previous(self) -> Self {
        match self {
            Self::Wall => Self::Console,
            Self::Monitors => Self::Wall,
            Self::Podium => Self::Monitors,
            Self::Feed => Self::Podium,
            Self::Console => Self::Feed,
        }
    }

    /// The title on its edge.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Wall => "Tasks",
            Self::Monitors => "Agents",
            Self::Podium => "Decisions",
            Self::Feed => "Feed",
            Self::Console => "Console",
        }
    }
}

/// A place with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Works wherever no text is written.
    Everywhere,
    /// Works even while a text is written.
    Always,
    Wall,
    Monitors,
    Podium,
    /// The podium's text field.
    Answer,
    Feed,
    Console,
    Diff,
    /// The text field of a remark on a line.
    Remark,
    TaskCard,
    AgentCard,
    Library,
    /// A page of text: help, status, repositories.
    Page,
    Palette,
    Picker,
    Leaving,
}

impl Place {
    /// The heading in the help.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Everywhere => "Everywhere",
            Self::Always => "Always, also while writing",
            Self::Wall => "Task Wall",
            Self::Monitors => "Agents",
            Self::Podium => "Decisions",
            Self::Answer => "Writing an answer",
            Self::Feed => "Feed",
            Self::Console => "Console",
            Self::Diff => "Diff",
            Self::Remark => "Writing a remark",
            Self::TaskCard => "Task card",
            Self::AgentCard => "Agent card",
            Self::Library => "Memory",
            Self::Page => "Pages",
            Self::Palette => "Palette",
            Self::Picker => "Choosing",
            Self::Leaving => "Leaving",
        }
    }

    /// Whether plain characters are text here.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Answer | Self::Remark | Self::Console | Self::Palette)
    }
}

impl From<Pane> for Place {
    fn from(pane: Pane) -> Self {
        match pane {
            Pane::Wall => Self::Wall,
            Pane::Monitors => Self::Monitors,
            Pane::Podium => Self::Podium,
            Pane::Feed => Self::Feed,
            Pane::Console => Self::Console,
        }
    }
}
