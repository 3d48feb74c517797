//! The pictures in `screenshots/`: drawn by the real views from protocol messages, and checked to be fresh.
//!
//! `UPDATE_SCREENSHOTS=1 cargo test --test screen screenshots` draws them anew.

use std::path::PathBuf;

use agentcraft_tui::client::LinkEvent;
use agentcraft_tui::protocol::{Notify, NotifyLevel, ServerMessage};
use agentcraft_tui::tui::UiOptions;
use agentcraft_tui::tui::theme::{Depth, ThemeName};
use ratatui::layout::Size;

use crate::fixture;
use crate::stage::{LARGE, MIDDLE, SMALL, Stage, options};
use crate::svg;

fn light() -> UiOptions {
    UiOptions { theme: Some(ThemeName::Light), ..options() }
}

fn plain() -> UiOptions {
    UiOptions { no_color: true, depth: Depth::None, ..options() }
}

fn with_diff(size: Size, options: UiOptions) -> Stage {
    let mut stage = Stage::with_options(size, fixture::busy(), options);
    stage.keys("n ] ] d");
    stage.answer_diff();
    stage
}

fn all() -> Vec<(&'static str, Stage)> {
    let busy = |size, options| Stage::with_options(size, fixture::busy(), options);
    let mut podium = busy(MIDDLE, options());
    podium.keys("n 2");
    let mut merge = Stage::with(MIDDLE, fixture::deciding(vec![fixture::merge()]));
    merge.keys("n 2 t");
    merge.type_text("Please keep the old name exported as well");
    let mut card = busy(MIDDLE, options());
    card.keys("w Enter");
    let mut library = busy(MIDDLE, options());
    library.keys("M Enter");
    let mut help = busy(MIDDLE, options());
    help.keys("n ?");
    let mut palette = busy(MIDDLE, options());
    palette.keys("Ctrl-p t a g");
    let mut tabs = busy(Size { width: 60, height: 15 }, options());
    tabs.keys("n");
    let mut single = busy(MIDDLE, options());
    single.keys("a Down Space z");
    let mut lost = busy(MIDDLE, options());
    lost.keys(":");
    lost.type_text("@kit please also handle tags inside links");
    lost.server(ServerMessage::Notify(Notify {
        level: NotifyLevel::Info,
        text: "Merged agentcraft/kit/t2-tag-parser into main".to_owned(),
        decision_id: None,
        ts: fixture::NOON,
    }));
    lost.link(LinkEvent::Down { why: "the Foreman closed the connection".to_owned(), retry_in_ms: 4_000 });
    let mut remarks = with_diff(MIDDLE, options());
    remarks.keys("j j j j j j j c");
    remarks.type_text("Does \\p{L} cover combining marks? See the test for é.");
    remarks.keys("Enter j j j j j j j j c");
    remarks.type_text("A comment on why trimming is needed, please");
    vec![
        ("busy-120x36", busy(MIDDLE, options())),
        ("busy-120x36-light", busy(MIDDLE, light())),
        ("busy-80x24", busy(SMALL, options())),
        ("busy-200x60", busy(LARGE, options())),
        ("busy-120x36-no-color", busy(MIDDLE, plain())),
        ("fresh-120x36", Stage::with(MIDDLE, fixture::fresh())),
        ("podium-permission", podium),
        ("podium-request-changes", merge),
        ("diff-120x36", with_diff(MIDDLE, options())),
        ("diff-120x36-light", with_diff(MIDDLE, light())),
        ("diff-remarks", remarks),
        ("diff-80x24", with_diff(SMALL, options())),
        ("task-card", card),
        ("memory", library),
        ("help", help),
        ("palette", palette),
        ("tabs-60x15", tabs),
        ("tower-70x50", busy(Size { width: 70, height: 50 }, options())),
        ("disconnected", lost),
        ("one-agent", single),
    ]
}

#[test]
fn screenshots_are_fresh() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("screenshots");
    let update = std::env::var_os("UPDATE_SCREENSHOTS").is_some();
    let mut stale = Vec::new();
    for (name, stage) in all() {
        let (buffer, cursor) = stage.buffer();
        let ground = if stage.model.theme.name() == ThemeName::Light { &svg::LIGHT } else { &svg::DARK };
        let drawn = svg::picture(&buffer, cursor, ground);
        let path = dir.join(format!("{name}.svg"));
        if update {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&path, drawn).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(drawn.as_str()) {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "stale pictures {stale:?}: draw them with UPDATE_SCREENSHOTS=1");
}
