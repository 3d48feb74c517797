//! The console bar: sending, acks and refusals in place, history, pastes.

use std::collections::BTreeMap;

use agentcraft_tui::protocol::*;
use agentcraft_tui::tui::cmd::Cmd;
use agentcraft_tui::tui::focus::Pane;
use agentcraft_tui::tui::model::{Echo, content};
use agentcraft_tui::tui::msg::Msg;

use crate::fixture;
use crate::stage::{MIDDLE, Stage};

fn goals(stage: &Stage) -> Vec<String> {
    stage
        .sends()
        .into_iter()
        .filter_map(|m| match m {
            ClientMessage::GoalSubmit(goal) => Some(goal.text),
            _ => None,
        })
        .collect()
}

fn console() -> Stage {
    let mut stage = Stage::with(MIDDLE, fixture::calm());
    stage.keys(":");
    stage
}

/// On a fresh start the console has the keys, and a habitual `:` does not become part of the goal.
#[test]
fn a_fresh_screen_waits_for_a_goal() {
    let mut stage = Stage::with(MIDDLE, fixture::fresh());
    assert_eq!(stage.model.focus, Pane::Console);
    stage.keys(":");
    stage.type_text("add a flag");
    stage.keys("Enter");
    assert_eq!(goals(&stage), ["add a flag"]);
}

/// After Enter the console keeps the keys and says in the same spot what became of the line.
#[test]
fn the_ack_shows_where_the_line_was() {
    let mut stage = console();
    stage.type_text("add a flag");
    stage.keys("Enter");
    assert_eq!(stage.model.focus, Pane::Console);
    assert_eq!(content(&stage.model.console.text), "");
    stage.shows("sending");
    let result = BTreeMap::from([("goalId".to_owned(), serde_json::Value::from("g2"))]);
    let re = format!("c{}", stage.last_token());
    stage.server(ServerMessage::Ack(Ack { re, ok: true, error: None, result: Some(result) }));
    stage.shows("goal g2 is with the lead");
    stage.type_text("x");
    stage.hides("goal g2 is with the lead");
}

/// A refusal puts the text back, unless another was begun; then the history still has it.
#[test]
fn a_refusal_puts_the_text_back() {
    let mut stage = console();
    stage.type_text("add a flag");
    stage.keys("Enter");
    stage.refuse("no repo connected");
    assert_eq!(content(&stage.model.console.text), "add a flag");
    stage.shows("no repo connected");
    stage.keys("Enter");
    stage.type_text("other");
    stage.refuse("no repo connected");
    assert_eq!(content(&stage.model.console.text), "other");
    stage.keys("Up");
    assert_eq!(content(&stage.model.console.text), "add a flag");
    stage.keys("Down");
    assert_eq!(content(&stage.model.console.text), "other");
}

/// A pasted text of several lines is one message, and only Enter sends it.
#[test]
fn a_paste_is_one_message() {
    let mut stage = console();
    stage.msg(Msg::Paste("first\r\nsecond\rthird".to_owned()));
    assert_eq!(goals(&stage), Vec::<String>::new());
    stage.keys("Enter");
    assert_eq!(goals(&stage), ["first\nsecond\nthird"]);
}

/// A terminal without bracketed paste replays it as keys: a burst with line breaks inside sends nothing.
#[test]
fn a_replayed_paste_sends_nothing() {
    let mut stage = console();
    stage.burst("a Enter b Enter c Enter");
    stage.wait(1_000);
    assert_eq!(goals(&stage), Vec::<String>::new());
    assert_eq!(content(&stage.model.console.text), "a\nb\nc\n");
}

/// A line and its Enter from a script, at once: it is sent a moment later.
#[test]
fn a_scripted_line_is_sent() {
    let mut stage = console();
    stage.burst("g o Enter");
    assert_eq!(goals(&stage), Vec::<String>::new());
    stage.wait(100);
    assert_eq!(goals(&stage), ["go"]);
}

/// Sent lines go to the history file, the same line twice in a row only once.
#[test]
fn the_history_remembers() {
    let mut stage = console();
    for line in ["one", "one", "two"] {
        stage.type_text(line);
        stage.keys("Enter");
        stage.ack();
    }
    let remembered: Vec<_> = stage
        .cmds
        .iter()
        .filter_map(|c| match c {
            Cmd::Remember(line) => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(remembered, ["one", "two"]);
    stage.keys("Up Up Up");
    assert_eq!(content(&stage.model.console.text), "one");
}

/// What cannot be read is refused in place and stays in the console.
#[test]
fn a_bad_line_stays() {
    let mut stage = console();
    stage.type_text("/nonsense");
    stage.keys("Enter");
    assert!(matches!(stage.model.console.echo, Echo::Refused(_)));
    assert_eq!(content(&stage.model.console.text), "/nonsense");
    assert_eq!(stage.sends(), []);
}

/// A long text wraps upwards, and the words about Enter keep a row of their own.
#[test]
fn a_long_text_wraps() {
    let mut stage = console();
    stage.msg(Msg::Paste("word ".repeat(60)));
    let area = agentcraft_tui::tui::layout::areas(MIDDLE, &stage.model).console;
    assert!(area.height > 2, "{area:?}");
    stage.shows("Enter ");
}

/// The right end says what Enter will do while one types, a ghost shows how the word goes on, and Tab takes it.
#[test]
fn the_right_end_and_the_ghost() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys(":");
    stage.type_text("/answer d2 Mer");
    stage.shows("/answer d2 Merge");
    stage.keys("Tab");
    assert_eq!(content(&stage.model.console.text).trim_end(), "/answer d2 Merge");
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].decision_id.as_str(), "d2");
    stage.type_text("@ki");
    stage.keys("Right");
    assert_eq!(content(&stage.model.console.text).trim_end(), "@kit");
}

/// `/answer` without an id means the decision on the podium.
#[test]
fn answer_without_an_id_means_the_shown_one() {
    let mut stage = Stage::busy(MIDDLE);
    stage.keys("n ] ] :");
    assert_eq!(stage.model.podium.shown, Some("d2".into()));
    stage.type_text("/answer Merge");
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].decision_id.as_str(), "d2");
}

/// Local commands open their pages; a diff opens by worktree or decision.
#[test]
fn local_commands_open_pages() {
    for (line, words) in [
        ("/status", "engine"),
        ("/agents", "Refactorer"),
        ("/tasks", "Stretch"),
        ("/decisions", "withdrawn"),
        ("/feed", "planned 9 tasks"),
        ("/memory", "Regex notes"),
        ("/memory kit/regex-notes", "flag"),
        ("/help", "write to the team"),
        ("/diff d2", "asking for the diff"),
        ("/diff kit-t5", "asking for the diff"),
    ] {
        let mut snapshot = fixture::busy();
        snapshot.decisions[0].status = DecisionStatus::Cancelled;
        let mut stage = Stage::with(MIDDLE, snapshot);
        stage.keys(":");
        stage.type_text(line);
        stage.keys("Enter");
        stage.shows(words);
        stage.keys("Esc");
        assert_eq!(stage.model.focus, Pane::Console, "{line} came from the console and goes back there");
    }
}

/// Completing a path asks for its directory once, aside.
#[test]
fn paths_are_completed() {
    use agentcraft_tui::client::console::Listing;
    let mut stage = console();
    stage.type_text("/repo add ~/po");
    let asked: Vec<_> = stage.cmds.iter().filter(|c| matches!(c, Cmd::List(_))).collect();
    assert_eq!(asked, [&Cmd::List("/home/ada".into())]);
    stage.msg(Msg::Listed(Listing {
        dir: "/home/ada".into(),
        names: vec!["pocket-notes".to_owned(), "src".to_owned()],
    }));
    stage.shows("~/pocket-notes");
}
