//! Snapshots of the screen's text in its meaningful states, at three sizes. The names say the state.

use agentcraft_tui::client::LinkEvent;
use agentcraft_tui::protocol::*;
use agentcraft_tui::tui::UiOptions;
use agentcraft_tui::tui::theme::Depth;
use ratatui::layout::Size;

use crate::fixture;
use crate::stage::{LARGE, MIDDLE, SMALL, Stage, options};

fn snap(name: &str, stage: &Stage) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, stage.text());
    });
}

#[test]
fn busy_at_three_sizes() {
    for (name, size) in [("busy_80x24", SMALL), ("busy_120x36", MIDDLE), ("busy_200x60", LARGE)] {
        snap(name, &Stage::busy(size));
    }
}

#[test]
fn small_shapes() {
    snap("tabs_60x15", &Stage::busy(Size { width: 60, height: 15 }));
    snap("tower_70x50", &Stage::busy(Size { width: 70, height: 50 }));
}

#[test]
fn first_minute() {
    snap("connecting", &Stage::dark(MIDDLE, options()));
    snap("fresh", &Stage::with(MIDDLE, fixture::fresh()));
    let mut planning = fixture::fresh();
    planning.goals = vec![Goal { status: GoalStatus::Planning, progress: 0.0, ..fixture::busy().goals[0].clone() }];
    snap("planning", &Stage::with(MIDDLE, planning));
}

#[test]
fn podium_states() {
    let only = |decision| Stage::with(SMALL, fixture::deciding(vec![decision]));
    let mut stage = only(fixture::permission());
    stage.keys("n");
    snap("podium_permission", &stage);
    stage.keys("2");
    snap("podium_permission_chosen", &stage);
    stage.keys("Enter");
    snap("podium_answering", &stage);
    stage.refuse("d3 is no longer open");
    snap("podium_answer_refused", &stage);
    let mut stage = only(fixture::question());
    stage.keys("n");
    snap("podium_question", &stage);
    let mut stage = Stage::with(MIDDLE, fixture::deciding(vec![fixture::merge()]));
    stage.keys("n 2 t");
    stage.type_text("Keep the old name exported, and say in the README why it is there at all");
    snap("podium_request_changes", &stage);
    let mut refused = fixture::merge();
    refused.context = Some(
        "2 files changed\n\nMerge refused: your checkout of main has uncommitted changes in src/tags.ts".to_owned(),
    );
    let mut stage = Stage::with(MIDDLE, fixture::deciding(vec![refused]));
    stage.keys("n 3 Enter");
    stage.wait(500);
    snap("podium_merge_refused_rejecting", &stage);
}

#[test]
fn overlays() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("n ] ] d");
    snap("diff_loading", &stage);
    stage.answer_diff();
    snap("diff", &stage);
    stage.keys("] ]");
    snap("diff_further_files", &stage);
    let mut stage = Stage::busy(SMALL);
    stage.keys("n ] ] d");
    stage.answer_diff();
    snap("diff_80x24", &stage);
    stage.keys("Tab");
    snap("diff_files_80x24", &stage);
    for (name, keys) in [
        ("task_card", "w Enter"),
        ("task_card_cancelling", "w Enter x"),
        ("reassign", "w Enter a"),
        ("agent_card", "a l l l w a Enter"),
        ("one_agent", "a l Space z"),
        ("library", "M"),
        ("help_of_the_podium", "n ?"),
        ("palette", "Ctrl-p m e r g e"),
        ("repositories", "R"),
        ("status", "S"),
        ("leaving", "q"),
        ("feed_zoomed", "f z"),
    ] {
        let mut stage = Stage::busy(MIDDLE);
        stage.keys(keys);
        snap(name, &stage);
    }
}

/// A file that was cut is fetched whole by its path, and takes the place of its cut self.
#[test]
fn a_cut_file_is_fetched_whole() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("n ] ] d");
    stage.answer_diff();
    stage.keys("] w");
    let request = match stage.sends().pop() {
        Some(ClientMessage::DiffRequest(request)) => request,
        other => panic!("{other:?}"),
    };
    assert_eq!(request.path.as_deref(), Some("test/tags.test.ts"));
    stage.shows("fetching");
    let mut whole = fixture::diff(&request.request_id);
    let mut file = whole.files.remove(1);
    let line = file.hunks[0].lines[0].clone();
    file.hunks[0].lines =
        (1..=420u32).map(|n| DiffLine { text: format!("line {n}"), new_no: Some(n), ..line.clone() }).collect();
    whole.files = vec![file];
    stage.server(ServerMessage::Diff(Box::new(whole)));
    stage.hides("cut here");
    stage.shows("line 12");
    assert!(stage.text().contains("src/tags.ts"), "the other files are still there");
}

#[test]
fn link_down() {
    let mut stage = Stage::busy(MIDDLE);
    stage.link(LinkEvent::Down { why: "the Foreman closed the connection".to_owned(), retry_in_ms: 4_000 });
    snap("link_down", &stage);
    let mut failed = fixture::busy();
    failed.foreman.auth = AuthStatus::Failed;
    failed.foreman.message = Some("Not logged in: run `claude` once, then retry".to_owned());
    snap("auth_failed_80x24", &Stage::with(SMALL, failed));
}

#[test]
fn ascii_and_no_color() {
    let options = UiOptions { ascii: true, no_color: true, depth: Depth::None, ..options() };
    snap("ascii_120x36", &Stage::with_options(MIDDLE, fixture::busy(), options));
}

/// Remarks on lines are collected, shown under their lines, and become the text of *Request changes*; nothing is sent
/// until the person sends it.
#[test]
fn remarks_become_a_request_for_changes() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("n ] ] d");
    stage.answer_diff();
    stage.keys("c");
    stage.shows("A remark belongs to a line");
    stage.wait(10_000);
    stage.keys("j j j j j c");
    stage.type_text("why not \\p{M} too? q n 1");
    stage.keys("Enter");
    stage.shows("why not \\p{M} too? q n 1");
    stage.shows("1 remark");
    stage.keys("n j j c");
    stage.type_text("second");
    stage.keys("Enter");
    snap("diff_remarks", &stage);
    stage.keys("r");
    assert_eq!(stage.answers(), []);
    stage.wait(500);
    stage.keys("Enter");
    let answers = stage.answers();
    assert_eq!(answers[0].option, Some(OptionChoice::Label("Request changes".to_owned())));
    insta::assert_snapshot!("request_text", answers[0].text.as_deref().unwrap());
}
