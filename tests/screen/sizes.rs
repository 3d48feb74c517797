//! Every size and depth: nothing panics, nothing overlaps, nothing foreign reaches the terminal.

use agentcraft_tui::protocol::*;
use agentcraft_tui::tui::UiOptions;
use agentcraft_tui::tui::layout::{Shape, areas, shape};
use agentcraft_tui::tui::msg::Msg;
use agentcraft_tui::tui::text::is_unsafe;
use agentcraft_tui::tui::theme::{Depth, ThemeName};
use ratatui::layout::{Rect, Size};
use ratatui::style::Color;

use crate::fixture;
use crate::stage::{MIDDLE, Stage, options};

fn sizes() -> impl Iterator<Item = Size> {
    let widths = (60..=200).step_by(7).chain([75, 76, 109, 110, 200]);
    widths.flat_map(|width| {
        (15..=60).step_by(3).chain([19, 20, 31, 32, 33, 34]).map(move |height| Size { width, height })
    })
}

/// Panes fill the body, stay inside it and never overlap, at every size from 60x15 to 200x60.
#[test]
fn panes_tile_the_body() {
    let mut stage = Stage::busy(MIDDLE);
    for size in sizes() {
        stage.msg(Msg::Resize(size));
        let areas = areas(size, &stage.model);
        assert_ne!(areas.shape, Shape::TooSmall, "{size:?}");
        let total: u32 = areas.panes.iter().map(|(_, a)| a.area()).sum::<u32>() + areas.tabs.map_or(0, Rect::area);
        assert_eq!(total, areas.body.area(), "{size:?}: {areas:?}");
        for (n, (_, a)) in areas.panes.iter().enumerate() {
            assert_eq!(a.intersection(areas.body), *a, "{size:?}");
            for (_, b) in &areas.panes[n + 1..] {
                assert!(a.intersection(*b).is_empty(), "{size:?}");
            }
        }
        assert_eq!(areas.goal.height + areas.body.height + areas.console.height + areas.hints.height, size.height);
    }
}

/// Every overlay draws at every size, from one cell up.
#[test]
fn everything_draws_at_every_size() {
    let states = [
        "w",
        "n 2 t",
        "w Enter",
        "w Enter a",
        "a Enter",
        "a Space",
        "M Enter",
        "?",
        "Ctrl-p",
        "R",
        "n ] ] d",
        "f k k",
        "q",
        ": x",
    ];
    for keys in states {
        let mut stage = Stage::busy(MIDDLE);
        stage.keys(keys);
        if keys.ends_with('d') {
            stage.answer_diff();
        }
        let tiny = [(1, 1), (2, 2), (5, 60), (200, 3), (59, 15), (60, 14), (300, 80)];
        let all = sizes().step_by(11).chain(tiny.map(|(width, height)| Size { width, height }));
        for size in all {
            stage.msg(Msg::Resize(size));
            stage.buffer();
        }
    }
}

/// Below 60x15 a sentence says what is needed, and who waits.
#[test]
fn too_small_says_so() {
    let mut stage = Stage::busy(MIDDLE);
    stage.msg(Msg::Resize(Size { width: 50, height: 10 }));
    stage.shows("agentcraft needs 60x15; this is 50x10.");
    stage.shows("3 need you.");
}

/// The shapes change where the layout document says.
#[test]
fn shapes_by_size() {
    let check = |width, height, expect| assert_eq!(shape(Size { width, height }), expect, "{width}x{height}");
    check(120, 36, Shape::Full);
    check(200, 60, Shape::Full);
    check(80, 24, Shape::Compact);
    check(120, 24, Shape::Compact);
    check(60, 15, Shape::Tabs);
    check(70, 50, Shape::Tower);
    check(59, 60, Shape::TooSmall);
    check(200, 14, Shape::TooSmall);
}

fn hostile() -> Snapshot {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}evil\u{200b}\u{9b}31m\r\n日本語 👩‍👩‍👧 e\u{301}\u{301}\u{301} \u{7f}x"
        .repeat(3);
    let mut snapshot = fixture::busy();
    for agent in &mut snapshot.agents {
        agent.name.push_str(&evil);
        agent.activity.clone_from(&evil);
    }
    for task in &mut snapshot.tasks {
        task.title.clone_from(&evil);
        task.blocked_reason = Some(evil.clone());
        task.description = Some(evil.clone());
    }
    for decision in &mut snapshot.decisions {
        decision.question.clone_from(&evil);
        decision.context = Some(evil.clone());
        decision.options = vec![evil.clone(), evil.clone()];
    }
    for item in &mut snapshot.feed {
        item.text.clone_from(&evil);
    }
    for log in &mut snapshot.logs {
        for kind in LogKind::ALL {
            log.entries.push(LogEntry { ts: 1, kind: *kind, text: evil.clone() });
        }
    }
    for note in &mut snapshot.memory {
        note.title.clone_from(&evil);
        note.body = format!("# {evil}\n\n- {evil}\n\n```\n{evil}\n```\n");
    }
    for repo in &mut snapshot.repos {
        repo.name.clone_from(&evil);
        repo.path.clone_from(&evil);
    }
    snapshot.goals[0].text.clone_from(&evil);
    snapshot.foreman.message = Some(evil);
    snapshot
}

/// No control character, no mark that reorders text, gets into a cell, whatever agents say and wherever it is shown.
#[test]
fn nothing_foreign_reaches_the_terminal() {
    for keys in
        ["w", "n 2 t", "w Enter", "a Enter", "a Space", "M Enter", "Ctrl-p", "R", "S", "n ] ] d", "f", "w Enter a"]
    {
        for size in
            [Size { width: 60, height: 15 }, Size { width: 80, height: 24 }, MIDDLE, Size { width: 70, height: 50 }]
        {
            let mut stage = Stage::with(MIDDLE, hostile());
            stage.keys(keys);
            stage.msg(Msg::Paste("\u{1b}[31mpasted\u{7}".to_owned()));
            stage.msg(Msg::Resize(size));
            let (buffer, _) = stage.buffer();
            for cell in &buffer.content {
                assert!(!cell.symbol().chars().any(is_unsafe), "{:?} after {keys} at {size:?}", cell.symbol());
            }
        }
    }
}

/// Wide characters and emoji never break the right edge of a pane.
#[test]
fn edges_stay_where_they_are() {
    let clean = Stage::busy(MIDDLE).buffer().0;
    let dirty = Stage::with(MIDDLE, hostile()).buffer().0;
    let stage = Stage::with(MIDDLE, hostile());
    for (_, area) in areas(MIDDLE, &stage.model).panes {
        for y in area.top() + 1..area.bottom() - 1 {
            for x in [area.left(), area.right() - 1] {
                assert_eq!(dirty[(x, y)].symbol(), "│", "at {x},{y}");
            }
        }
    }
    assert_eq!(clean.area, dirty.area);
}

/// With NO_COLOR no cell has a colour; with 16 colours only the terminal's own; ASCII uses ASCII only.
#[test]
fn depths_keep_their_promise() {
    let colours = |depth: Depth, theme| {
        let options = UiOptions { depth, no_color: depth == Depth::None, theme: Some(theme), ..options() };
        let stage = Stage::with_options(MIDDLE, fixture::busy(), options);
        let buffer = stage.buffer().0;
        buffer.content.iter().flat_map(|c| [c.fg, c.bg]).collect::<std::collections::HashSet<_>>()
    };
    for theme in [ThemeName::Dark, ThemeName::Light] {
        assert_eq!(colours(Depth::None, theme), [Color::Reset].into());
        assert!(colours(Depth::Ansi, theme).iter().all(|c| !matches!(c, Color::Rgb(..) | Color::Indexed(_))));
        assert!(colours(Depth::Indexed, theme).iter().all(|c| !matches!(c, Color::Rgb(..))));
    }
    let ascii = Stage::with_options(MIDDLE, fixture::busy(), UiOptions { ascii: true, ..options() });
    let text = ascii.text();
    assert!(text.is_ascii(), "{}", text.chars().filter(|c| !c.is_ascii()).collect::<String>());
}
