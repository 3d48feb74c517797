//! The signs of the screen, as data: a Unicode set and an ASCII set with the same meanings.
//!
//! Every sign is one column wide and of a width that terminals agree on. Knows no colour and no model.

use crate::protocol::{AgentState, CiStatus, DecisionKind, FeedKind, TaskStatus};

/// Which set of signs is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlyphSet {
    Unicode,
    Ascii,
}

/// A set of signs by meaning.
#[derive(Clone, Copy, Debug)]
pub struct Glyphs {
    pub set: GlyphSet,
    pub ellipsis: &'static str,
    /// Left edge that carries an agent's colour.
    pub bar: &'static str,
    pub dot: &'static str,
    pub separator: &'static str,
    pub pointer: &'static str,
    pub full: &'static str,
    pub empty: &'static str,
    pub up: &'static str,
    pub down: &'static str,
    pub waits: &'static str,
    pub ok: &'static str,
    pub fail: &'static str,
    pub running: &'static str,
    pub paused: &'static str,
    pub off: &'static str,
    pub warn: &'static str,
    pub tool: &'static str,
    pub arrow: &'static str,
    pub horizontal: &'static str,
    pub vertical: &'static str,
    /// Corners: top left, top right, bottom left, bottom right.
    pub corners: [&'static str; 4],
    pub thumb: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    set: GlyphSet::Unicode,
    ellipsis: "…",
    bar: "▎",
    dot: "●",
    separator: "·",
    pointer: "›",
    full: "━",
    empty: "─",
    up: "↑",
    down: "↓",
    waits: "◷",
    ok: "✓",
    fail: "✗",
    running: "▸",
    paused: "‖",
    off: "–",
    warn: "!",
    tool: "›",
    arrow: "→",
    horizontal: "─",
    vertical: "│",
    corners: ["╭", "╮", "╰", "╯"],
    thumb: "┃",
};

const ASCII: Glyphs = Glyphs {
    set: GlyphSet::Ascii,
    ellipsis: "~",
    bar: "|",
    dot: "*",
    separator: "-",
    pointer: ">",
    full: "=",
    empty: "-",
    up: "^",
    down: "v",
    waits: "@",
    ok: "+",
    fail: "x",
    running: ">",
    paused: "=",
    off: "-",
    warn: "!",
    tool: ">",
    arrow: ">",
    horizontal: "-",
    vertical: "|",
    corners: ["+", "+", "+", "+"],
    thumb: "#",
};

impl Glyphs {
    /// The set's signs.
    pub const fn of(set: GlyphSet) -> Self {
        match set {
            GlyphSet::Unicode => UNICODE,
            GlyphSet::Ascii => ASCII,
        }
    }

    const fn pick(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.set {
            GlyphSet::Unicode => unicode,
            GlyphSet::Ascii => ascii,
        }
    }

    /// The shape of an agent's state: distinct without colour.
    pub const fn state(&self, state: AgentState) -> &'static str {
        match state {
            AgentState::Idle => self.pick("○", "o"),
            AgentState::Thinking => self.pick("◔", "~"),
            AgentState::Reading => self.pick("◑", "r"),
            AgentState::Editing => self.pick("◕", "e"),
            AgentState::Running => self.pick("▸", ">"),
            AgentState::Testing => self.pick("◈", "t"),
            AgentState::WaitingUser => self.pick("◆", "?"),
            AgentState::Blocked => self.pick("■", "#"),
            AgentState::Done => self.pick("✓", "+"),
            AgentState::Error => self.pick("✗", "x"),
        }
    }

    /// The mark of a column of the wall.
    pub const fn status(&self, status: TaskStatus) -> &'static str {
        match status {
            TaskStatus::Todo => self.pick("○", "o"),
            TaskStatus::Doing => self.pick("◑", ">"),
            TaskStatus::Review => self.pick("◇", "?"),
            TaskStatus::Done => self.pick("✓", "+"),
            TaskStatus::Blocked => self.pick("■", "#"),
            TaskStatus::Cancelled => self.pick("–", "-"),
        }
    }

    /// A test result; empty while there is none.
    pub const fn ci(&self, ci: CiStatus) -> &'static str {
        match ci {
            CiStatus::Unknown => "",
            CiStatus::Running => self.running,
            CiStatus::Pass => self.ok,
            CiStatus::Fail => self.fail,
        }
    }

    /// The mark of a kind of decision.
    pub const fn decision(&self, kind: DecisionKind) -> &'static str {
        match kind {
            DecisionKind::Question => self.pick("?", "?"),
            DecisionKind::Permission => self.pick("◆", "!"),
            DecisionKind::Merge => self.pick("⋔", "Y"),
        }
    }

    /// The mark of a line of the feed.
    pub const fn feed(&self, kind: FeedKind) -> &'static str {
        match kind {
            FeedKind::Goal => self.pick("◎", "@"),
            FeedKind::Plan => self.pick("≡", "="),
            FeedKind::Task => self.pick("▪", "-"),
            FeedKind::Message => self.pick("»", "\""),
            FeedKind::Decision => self.pick("◆", "?"),
            FeedKind::Merge => self.pick("⋔", "Y"),
            FeedKind::Ci => self.pick("◈", "t"),
            FeedKind::Memory => self.pick("§", "m"),
            FeedKind::System => self.pick("·", "."),
            FeedKind::Error => self.pick("✗", "x"),
            FeedKind::User => self.pick("›", ">"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::text::width;

    /// A sign of two columns would shift all that stands right of it.
    #[test]
    fn every_sign_is_one_column() {
        for set in [GlyphSet::Unicode, GlyphSet::Ascii] {
            let g = Glyphs::of(set);
            let mut all = vec![
                g.ellipsis,
                g.bar,
                g.dot,
                g.separator,
                g.pointer,
                g.full,
                g.empty,
                g.up,
                g.down,
                g.waits,
                g.ok,
                g.fail,
                g.running,
                g.paused,
                g.off,
                g.warn,
                g.tool,
                g.arrow,
                g.horizontal,
                g.vertical,
                g.thumb,
            ];
            all.extend(g.corners);
            all.extend(AgentState::ALL.iter().map(|s| g.state(*s)));
            all.extend(TaskStatus::ALL.iter().map(|s| g.status(*s)));
            all.extend(DecisionKind::ALL.iter().map(|s| g.decision(*s)));
            all.extend(FeedKind::ALL.iter().map(|s| g.feed(*s)));
            for sign in all {
                assert_eq!(width(sign), 1, "{sign:?}");
                assert!(set == GlyphSet::Unicode || sign.is_ascii(), "{sign:?}");
            }
        }
    }

    /// States must be told apart without colour.
    #[test]
    fn states_have_distinct_shapes() {
        for set in [GlyphSet::Unicode, GlyphSet::Ascii] {
            let g = Glyphs::of(set);
            let shapes: std::collections::BTreeSet<_> = AgentState::ALL.iter().map(|s| g.state(*s)).collect();
            assert_eq!(shapes.len(), AgentState::ALL.len());
        }
    }
}
