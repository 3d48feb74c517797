//! Answering: the order, the guard, bursts, asking twice, texts, refusals, and what happens elsewhere.

use agentcraft_tui::client::LinkEvent;
use agentcraft_tui::protocol::*;
use agentcraft_tui::tui::cmd::Cmd;
use agentcraft_tui::tui::msg::Msg;

use crate::fixture::{deciding, merge, permission, question};
use crate::stage::{MIDDLE, Stage};

fn only(decision: Decision) -> Stage {
    let mut stage = Stage::with(MIDDLE, deciding(vec![decision]));
    stage.keys("n");
    stage
}

fn label(text: &str) -> Option<OptionChoice> {
    Some(OptionChoice::Label(text.to_owned()))
}

fn closed(mut decision: Decision, option: &str) -> ServerMessage {
    decision.status = DecisionStatus::Answered;
    decision.answer = Some(DecisionAnswer { option: Some(option.to_owned()), text: None, ts: 1 });
    ServerMessage::DecisionUpsert { decision }
}

/// Permissions come before questions, questions before merges, the oldest first within a kind.
#[test]
fn the_order_is_permissions_questions_merges() {
    let mut older = permission();
    older.id = "d9".into();
    older.created_at -= 600_000;
    let mut stage = Stage::with(MIDDLE, deciding(vec![merge(), question(), permission(), older]));
    let order: Vec<String> = stage.model.open_decisions().iter().map(|d| d.id.to_string()).collect();
    assert_eq!(order, ["d9", "d3", "d4", "d2"]);
    assert_eq!(stage.model.podium.shown, Some("d9".into()));
    stage.keys("n ]");
    assert_eq!(stage.model.podium.shown, Some("d3".into()));
    stage.keys("[ [");
    assert_eq!(stage.model.podium.shown, Some("d2".into()));
}

/// A digit chooses and sends nothing; Enter sends the option by its label.
#[test]
fn digits_choose_and_enter_sends() {
    let mut stage = only(permission());
    stage.keys("1");
    assert_eq!(stage.answers(), []);
    stage.keys("3 Enter");
    assert_eq!(stage.answers(), [AnswerDecision { decision_id: "d3".into(), option: label("Deny"), text: None }]);
    stage.shows("answering");
}

/// Nothing is chosen beforehand for a permission and a merge, so Enter alone grants and merges nothing.
#[test]
fn enter_alone_grants_nothing() {
    for decision in [permission(), merge()] {
        let mut stage = only(decision);
        assert_eq!(stage.model.podium.choice, None);
        stage.keys("Enter Enter Enter");
        assert_eq!(stage.answers(), []);
        stage.shows("Choose first: 1 to 3");
    }
}

/// A question starts on its recommended option, and Enter takes it.
#[test]
fn a_question_starts_on_the_recommended_option() {
    let mut stage = only(question());
    assert_eq!(stage.model.podium.choice, Some(0));
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].option, label("Only open notes (recommended)"));
}

/// A digit beyond the options chooses nothing; digits elsewhere choose nothing.
#[test]
fn only_existing_options_can_be_chosen() {
    let mut stage = only(permission());
    stage.keys("4 9 Enter");
    assert_eq!(stage.answers(), []);
    stage.keys("w 1 Enter Esc");
    assert_eq!(stage.model.podium.choice, None);
    assert_eq!(stage.answers(), []);
}

/// For 350 ms after a decision has appeared, no key answers it.
#[test]
fn the_guard_ignores_keys_after_an_appearance() {
    let mut stage = Stage::with(MIDDLE, deciding(vec![]));
    stage.keys("n");
    stage.server(ServerMessage::DecisionUpsert { decision: permission() });
    stage.keys("1 1 1 Enter");
    assert_eq!(stage.model.podium.choice, None);
    stage.wait(350);
    stage.keys("1 Enter");
    assert_eq!(stage.answers().len(), 1);
}

/// The next decision after an answer has a guard of its own: a doubled key must not grant it.
#[test]
fn the_guard_covers_the_next_one_too() {
    let mut second = permission();
    second.id = "d8".into();
    second.created_at += 1;
    let mut stage = Stage::with(MIDDLE, deciding(vec![permission(), second]));
    stage.keys("n 1 Enter");
    assert_eq!(stage.model.podium.shown, Some("d8".into()), "the next one is shown at once");
    stage.keys("1 Enter 1 Enter");
    assert_eq!(stage.answers().len(), 1);
    stage.wait(400);
    stage.keys("1 Enter");
    assert_eq!(stage.answers().len(), 2);
}

/// A more pressing decision takes the place of one that nobody has touched, and its guard protects it.
#[test]
fn a_permission_takes_the_place_of_an_untouched_merge() {
    let mut stage = only(merge());
    stage.server(ServerMessage::DecisionUpsert { decision: permission() });
    assert_eq!(stage.model.podium.shown, Some("d3".into()));
    stage.keys("1 Enter");
    assert_eq!(stage.answers(), []);
}

/// A decision that the person is busy with stays.
#[test]
fn a_touched_decision_stays() {
    let mut stage = only(merge());
    stage.keys("2");
    stage.server(ServerMessage::DecisionUpsert { decision: permission() });
    assert_eq!(stage.model.podium.shown, Some("d2".into()));
    stage.keys("Esc");
    assert_eq!(stage.model.podium.shown, Some("d3".into()), "Esc goes back to the most pressing");
}

/// Keys that arrive in one moment are a paste: they answer nothing and leave nothing chosen.
#[test]
fn a_burst_answers_nothing() {
    let mut stage = only(permission());
    stage.burst("1 Enter");
    assert_eq!(stage.answers(), []);
    assert_eq!(stage.model.podium.choice, None);
    stage.shows("Keys came in a burst");
    stage.burst("1 2 3 Enter Enter Enter");
    stage.keys("Enter");
    assert_eq!(stage.answers(), []);
}

/// A bracketed paste over the podium is no answer either.
#[test]
fn a_paste_answers_nothing() {
    let mut stage = only(permission());
    stage.msg(Msg::Paste("1\n".to_owned()));
    stage.keys("Enter");
    assert_eq!(stage.answers(), []);
}

/// Reject asks twice, the second Enter not within the guard, and any other key takes it back.
#[test]
fn reject_asks_twice() {
    let mut stage = only(merge());
    stage.keys("3 Enter");
    assert_eq!(stage.answers(), []);
    stage.keys("Enter Enter");
    assert_eq!(stage.answers(), [], "a held Enter is no second thought");
    stage.wait(400);
    stage.shows("Enter again rejects");
    stage.keys("Down 3 Enter");
    assert_eq!(stage.answers(), [], "another key takes the first Enter back");
    stage.wait(400);
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].option, label("Reject"));
}

/// Request changes wants its text; in the text, digits and letters are text.
#[test]
fn request_changes_wants_its_text() {
    let mut stage = only(merge());
    stage.keys("2 Enter");
    assert_eq!(stage.answers(), []);
    stage.shows("Say what should change");
    stage.keys("Enter");
    assert_eq!(stage.answers(), []);
    stage.type_text("use 2 spaces, n not q");
    stage.keys("Enter");
    assert_eq!(
        stage.answers(),
        [AnswerDecision {
            decision_id: "d2".into(),
            option: label("Request changes"),
            text: Some("use 2 spaces, n not q".to_owned())
        }]
    );
}

/// A text to a question stands for itself, unless an option was chosen by hand.
#[test]
fn a_text_of_ones_own_answers_a_question() {
    let mut stage = only(question());
    stage.keys("t");
    stage.type_text("both");
    stage.keys("Enter");
    assert_eq!(
        stage.answers()[0],
        AnswerDecision { decision_id: "d4".into(), option: None, text: Some("both".to_owned()) }
    );
    let mut stage = only(question());
    stage.keys("2 t");
    stage.type_text("but sorted");
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].option, label("Include completed notes"));
}

/// A question without options is answered by text alone.
#[test]
fn a_question_without_options() {
    let mut open = question();
    open.options.clear();
    let mut stage = only(open);
    stage.keys("Enter");
    assert!(stage.model.podium.writing);
    stage.type_text("ada@example.org");
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].text.as_deref(), Some("ada@example.org"));
}

/// Editing the text, deleting all of it and leaving it sends nothing; the text is kept.
#[test]
fn editing_never_sends() {
    let mut stage = only(merge());
    stage.keys("2 t");
    stage.type_text("abc");
    stage.keys("Left Backspace Delete Home End Backspace Backspace Backspace Up Down");
    stage.type_text("keep me");
    stage.keys("Esc");
    assert_eq!(stage.answers(), []);
    stage.keys("w n t");
    stage.shows("keep me");
}

/// A burst within the text is text; a pasted line break does not send.
#[test]
fn a_paste_into_the_text_sends_nothing() {
    let mut stage = only(merge());
    stage.keys("2 t");
    stage.msg(Msg::Paste("one\ntwo\n".to_owned()));
    stage.burst("x Enter y");
    assert_eq!(stage.answers(), []);
    stage.keys("Enter");
    assert_eq!(stage.answers()[0].text.as_deref(), Some("one\ntwo\nx\ny"));
}

/// What the Foreman refuses comes back with option, text and reason.
#[test]
fn a_refused_answer_comes_back_with_its_text() {
    let mut stage = Stage::with(MIDDLE, deciding(vec![merge(), permission()]));
    stage.keys("n ]");
    stage.wait(400);
    stage.keys("2 t");
    stage.type_text("rename it");
    stage.keys("Enter");
    assert_eq!(stage.model.podium.shown, Some("d3".into()), "the next one is shown meanwhile");
    stage.refuse("the worktree is busy");
    assert_eq!(stage.model.podium.shown, Some("d2".into()));
    assert_eq!(stage.model.podium.choice, Some(1));
    stage.shows("rename it");
    stage.shows("Not taken: the worktree is busy");
    stage.wait(400);
    stage.keys("Enter");
    assert_eq!(stage.answers().len(), 2);
    assert_eq!(stage.answers()[1], stage.answers()[0]);
}

/// A connection that went before the ack gives the answer back too; after the new snapshot it can be sent again.
#[test]
fn a_lost_connection_gives_the_answer_back() {
    let mut stage = only(merge());
    stage.keys("2 t");
    stage.type_text("rename it");
    stage.keys("Enter");
    stage.link(LinkEvent::Down { why: "gone".to_owned(), retry_in_ms: 250 });
    stage.shows("rename it");
    stage.link(LinkEvent::Up(Box::new(deciding(vec![merge()]))));
    stage.shows("rename it");
    assert!(stage.model.podium.answering.is_empty());
}

/// What was answered elsewhere is said, and the next one moves up.
#[test]
fn answered_elsewhere_says_what() {
    let mut stage = Stage::with(MIDDLE, deciding(vec![permission(), merge()]));
    stage.keys("n");
    stage.server(closed(permission(), "Allow once"));
    assert_eq!(stage.model.podium.shown, Some("d2".into()));
    stage.shows("d3 was answered elsewhere:");
    stage.keys("1 Enter");
    assert_eq!(stage.answers(), [], "the guard holds for the one that moved up");
    let mut withdrawn = merge();
    withdrawn.status = DecisionStatus::Cancelled;
    withdrawn.context = Some("x\n(cancelled: Kit was stopped)".to_owned());
    stage.server(ServerMessage::DecisionUpsert { decision: withdrawn });
    stage.shows("d2 was withdrawn: Kit was stopped");
    stage.wait(10_000);
    stage.shows("Nothing waits for you");
}

/// An answer of our own that the Foreman took says nothing of "elsewhere".
#[test]
fn an_own_answer_is_not_elsewhere() {
    let mut stage = only(permission());
    stage.keys("1 Enter");
    stage.server(closed(permission(), "Allow once"));
    stage.ack();
    stage.hides("elsewhere");
    stage.shows("Nothing waits for you");
}

/// A merge that git refused is open again, with its reason in the error's words, and asks from the start.
#[test]
fn a_refused_merge_is_open_again() {
    let mut stage = only(merge());
    stage.keys("1 Enter");
    stage.server(closed(merge(), "Merge"));
    stage.ack();
    let mut again = merge();
    again.context = Some("Merge refused: your checkout has uncommitted changes".to_owned());
    stage.server(ServerMessage::DecisionUpsert { decision: again });
    stage.shows("Merge refused: your checkout has");
    assert_eq!(stage.model.podium.choice, None);
    stage.keys("1 Enter");
    assert_eq!(stage.answers().len(), 1, "guarded");
}

/// `d` asks for the diff of the decision's worktree; `a` comes back to it.
#[test]
fn the_diff_of_a_merge_decision() {
    let mut stage = only(merge());
    stage.keys("d");
    let sends = stage.sends();
    let [ClientMessage::DiffRequest(request)] = sends.as_slice() else { panic!("{sends:?}") };
    assert_eq!((request.repo_id.as_str(), request.worktree.as_str()), ("pocket-notes", "kit-t5"));
    stage.answer_diff();
    stage.shows("src/tags.ts");
    stage.keys("1 Enter");
    assert_eq!(stage.answers(), [], "keys of the diff answer nothing");
    stage.keys("a");
    assert!(stage.model.overlays.is_empty());
    assert_eq!(stage.model.podium.shown, Some("d2".into()));
}

/// When the terminal is not looked at, a decision rings at once; more within twenty seconds become one notice.
#[test]
fn notices_are_joined() {
    let need = |id: &str, text: &str| {
        ServerMessage::Notify(Notify {
            level: NotifyLevel::NeedUser,
            text: text.to_owned(),
            decision_id: Some(id.into()),
            ts: 1,
        })
    };
    let notices = |stage: &Stage| -> Vec<(String, String)> {
        stage
            .cmds
            .iter()
            .filter_map(|c| match c {
                Cmd::Notice { title, body } => Some((title.clone(), body.clone())),
                _ => None,
            })
            .collect()
    };
    let mut stage = Stage::with(MIDDLE, deciding(vec![]));
    stage.server(ServerMessage::DecisionUpsert { decision: permission() });
    stage.server(need("d3", "Wren: npm install"));
    assert_eq!(notices(&stage), [("AgentCraft needs you".to_owned(), "Wren: npm install".to_owned())]);
    stage.server(ServerMessage::DecisionUpsert { decision: question() });
    stage.server(need("d4", "Marlow: count?"));
    stage.server(ServerMessage::DecisionUpsert { decision: merge() });
    stage.server(need("d2", "Kit: merge?"));
    assert_eq!(notices(&stage).len(), 1);
    stage.wait(19_000);
    assert_eq!(notices(&stage).len(), 1);
    stage.wait(2_000);
    assert_eq!(
        notices(&stage)[1],
        ("AgentCraft: 2 decisions waiting".to_owned(), "Marlow: count?; Kit: merge?".to_owned())
    );
    // One who looks needs no bell.
    stage.msg(Msg::TerminalFocus(agentcraft_tui::tui::msg::TerminalFocus::Focused));
    stage.wait(30_000);
    stage.server(need("d3", "again"));
    stage.wait(30_000);
    assert_eq!(notices(&stage).len(), 2);
}

/// A read-only screen answers nothing and keeps what was written.
#[test]
fn a_read_only_screen_sends_no_answer() {
    let options = agentcraft_tui::tui::UiOptions { read_only: true, ..crate::stage::options() };
    let mut stage = Stage::with_options(MIDDLE, deciding(vec![permission()]), options);
    stage.keys("n 1 Enter");
    assert_eq!(stage.sends(), []);
    stage.shows("read-only");
}

/// On a small screen the context may not fit; what *Always* covers is shown all the same once it is chosen.
#[test]
fn always_says_what_it_covers_on_a_small_screen() {
    let mut stage = Stage::with(ratatui::layout::Size { width: 60, height: 15 }, deciding(vec![permission()]));
    stage.keys("n");
    stage.hides("npm install chalk@5 in this repository");
    stage.keys("2");
    stage.shows("Always covers: npm install chalk@5 in this repository");
}
