//! The help: the key map, that of the place one came from first.

use ratatui::text::Line;

use super::super::focus::Place;
use super::super::keys::{KEYMAP, spelled};
use super::super::model::Model;
use super::paint::{line, span};

/// The order of the other places.
const ORDER: [Place; 17] = [
    Place::Everywhere,
    Place::Always,
    Place::Podium,
    Place::Answer,
    Place::Console,
    Place::Wall,
    Place::Monitors,
    Place::Feed,
    Place::Diff,
    Place::Remark,
    Place::TaskCard,
    Place::AgentCard,
    Place::Library,
    Place::Palette,
    Place::Picker,
    Place::Leaving,
    Place::Page,
];

pub(super) fn lines(model: &Model, from: Place) -> Vec<Line<'static>> {
    let t = &model.theme;
    let mut lines = Vec::new();
    let mut places = vec![from];
    places.extend(ORDER.into_iter().filter(|p| *p != from));
    for place in places {
        let mut bindings = KEYMAP.iter().filter(|b| b.place == place).peekable();
        if bindings.peek().is_none() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(line(place.title(), t.title(super::super::theme::Focused::Yes)));
        for binding in bindings {
            lines.push(Line::from(vec![
                span(&format!("  {:<26}", spelled(binding)), t.key()),
                span(binding.what, t.text()),
            ]));
        }
        if place == Place::Console {
            for (what, does) in COMMANDS {
                lines.push(Line::from(vec![span(&format!("  {what:<26}"), t.info()), span(does, t.text())]));
            }
        }
        if place == Place::Podium {
            for rule in RULES {
                lines.push(line(&format!("  {rule}"), t.muted()));
            }
        }
    }
    lines
}

/// What the console takes, by example.
const COMMANDS: [(&str, &str); 11] = [
    ("any text", "a goal for the lead"),
    ("@name text", "a message to an agent; @all to everyone"),
    ("/answer [d2] 1 [text]", "answer a decision by number, label or text"),
    ("/diff kit-t2 or d2", "the diff of a worktree or a merge decision"),
    ("/repo add PATH", "connect a repository"),
    ("/pause /resume /stop @name", "steer an agent"),
    ("/spawn @name [t3]", "bring an agent in"),
    ("/task t3 retry", "also cancel, reassign NAME, prioritize [N]"),
    ("/status /agents /tasks", "pages about what is"),
    ("/decisions /feed /memory", "more of them"),
    ("/quit", "leave"),
];

/// How the podium protects from slips.
const RULES: [&str; 4] = [
    "A question starts on the recommended option; a permission and a merge on none.",
    "For a third of a second after a decision appears, keys are not taken.",
    "Keys that come in a burst (a paste) never answer.",
    "Reject asks twice; Request changes wants its text.",
];
