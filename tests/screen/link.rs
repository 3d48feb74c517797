//! The link: going down, coming back, drafts that survive.

use agentcraft_tui::client::LinkEvent;
use agentcraft_tui::tui::focus::Pane;
use agentcraft_tui::tui::model::content;

use crate::fixture;
use crate::stage::{MIDDLE, Stage};

/// Down shows the reason and counts to the next try; Up rebuilds everything and keeps what was being written.
#[test]
fn down_and_up_again() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys(":");
    stage.type_text("half a thought");
    stage.link(LinkEvent::Down { why: "connection refused".to_owned(), retry_in_ms: 3_000 });
    stage.shows("connection refused, again in 3 s");
    stage.wait(1_100);
    stage.shows("again in 2 s");
    let mut later = fixture::busy();
    later.tasks.truncate(2);
    stage.link(LinkEvent::Up(Box::new(later)));
    stage.hides("connection refused");
    stage.shows("2 of 2 done");
    assert_eq!(content(&stage.model.console.text), "half a thought");
    assert_eq!(stage.model.focus, Pane::Console);
}

/// A console line that was on its way when the connection went comes back with the reason.
#[test]
fn a_line_on_its_way_comes_back() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys(":");
    stage.type_text("do it");
    stage.keys("Enter");
    stage.link(LinkEvent::Down { why: "gone".to_owned(), retry_in_ms: 250 });
    assert_eq!(content(&stage.model.console.text), "do it");
    stage.shows("before the Foreman answered");
}

/// A diff that waited is asked for again on the new connection.
#[test]
fn a_waiting_diff_is_asked_for_again() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("w d");
    assert_eq!(stage.sends().len(), 1);
    stage.link(LinkEvent::Up(Box::new(fixture::busy())));
    assert_eq!(stage.sends().len(), 2);
    stage.answer_diff();
    stage.shows("src/tags.ts");
}

/// Nothing that happens by itself: an idle screen has no deadline, so it never wakes up.
#[test]
fn an_idle_screen_sleeps() {
    let mut stage = Stage::busy(MIDDLE);
    stage.wait(60_000);
    assert_eq!(stage.model.next_deadline(), None);
    stage.keys("n");
    stage.wait(60_000);
    assert_eq!(stage.model.next_deadline(), None);
}
