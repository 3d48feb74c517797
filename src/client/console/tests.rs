use super::*;
use crate::protocol::decode::decode_server;
use crate::protocol::{DecisionAnswer, ServerMessage};

/// Two agents, one task, and three open decisions, one of each kind.
fn mirror() -> Mirror {
    let text = r##"{"v":1,"type":"snapshot","foreman":{"version":"1","backend":"sim","auth":"ok"},
    "agents":[
      {"id":"marlow","name":"Marlow","role":"lead","color":"#D97757","skin":"marlow","state":"idle","activity":"","station":"lounge","paused":false,"active":true},
      {"id":"kit","name":"Kit","role":"worker","color":"#2FA3A0","skin":"kit","state":"idle","activity":"","station":"lounge","paused":false,"active":true}],
    "tasks":[{"id":"t2","title":"Tags","status":"review","assignee":"kit","deps":[],"repoId":"demo","priority":0,"worktree":"kit-t2","ci":"pass","createdBy":"marlow","createdAt":1,"updatedAt":1}],
    "decisions":[
      {"id":"d1","agentId":"kit","kind":"permission","question":"run it?","options":["Allow once","Always allow for this agent","Deny"],"status":"open","createdAt":1},
      {"id":"d2","agentId":"marlow","kind":"merge","question":"merge?","options":["Merge","Request changes","Reject"],"status":"open","taskId":"t2","repoId":"demo","worktree":"kit-t2","createdAt":2},
      {"id":"d3","agentId":"marlow","kind":"question","question":"which?","options":["Only open notes (recommended)","Include completed notes"],"status":"open","createdAt":3}],
    "repos":[{"id":"demo","name":"demo","path":"/x","branch":"main","dirty":false,"worktrees":[{"id":"kit-t2","agentId":"kit","taskId":"t2","branch":"agentcraft/kit/t2-tags","base":"main","path":"/w","status":"active","ahead":1,"files":1,"additions":1,"deletions":0}],"ci":"pass"}],
    "memory":[],"goals":[],"feed":[],"logs":[]}"##;
    match decode_server(text) {
        Ok(ServerMessage::Snapshot(snapshot)) => Mirror::from_snapshot(*snapshot),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(line: &str, shown: Option<&str>, expected: Result<&str, &str>) {
    let mirror = mirror();
    let shown = shown.map(DecisionId::from);
    let context = ConsoleContext { mirror: &mirror, shown_decision: shown.as_ref() };
    match (parse(line, &context), expected) {
        (Ok(ConsoleLine::Send(message)), Ok(wanted)) => {
            let got = serde_json::to_value(&message).unwrap();
            let wanted: serde_json::Value = serde_json::from_str(wanted).unwrap();
            assert_eq!(got, wanted, "{line}");
        }
        (Err(reason), Err(wanted)) => assert!(reason.contains(wanted), "{line}: {reason}"),
        (got, wanted) => panic!("{line}: {got:?}, wanted {wanted:?}"),
    }
}

#[test]
fn plain_text_is_a_goal_also_over_several_lines() {
    check("add tags", None, Ok(r#"{"type":"goal.submit","text":"add tags"}"#));
    check("add tags\nand tests", None, Ok(r#"{"type":"goal.submit","text":"add tags\nand tests"}"#));
    check("   ", None, Err("type a goal"));
}

#[test]
fn messages_go_to_one_or_to_all() {
    check("@kit, please hurry", None, Ok(r#"{"type":"user.message","to":"kit","text":"please hurry"}"#));
    check("@KIT hi", None, Ok(r#"{"type":"user.message","to":"kit","text":"hi"}"#));
    check("@all hi", None, Ok(r#"{"type":"user.message","to":"all","text":"hi"}"#));
    check("@kitt hi", None, Err("did you mean @kit?"));
    check("@kit", None, Err("what shall @kit hear?"));
}

#[test]
fn answers_take_a_number_a_label_or_words() {
    check("/answer d2 Merge", None, Ok(r#"{"type":"decision.answer","decisionId":"d2","option":"Merge"}"#));
    check("/answer 1", Some("d2"), Ok(r#"{"type":"decision.answer","decisionId":"d2","option":"Merge"}"#));
    check(
        "/a d1 3 too risky",
        None,
        Ok(r#"{"type":"decision.answer","decisionId":"d1","option":"Deny","text":"too risky"}"#),
    );
    check(
        "/a d2 request changes export it",
        None,
        Ok(r#"{"type":"decision.answer","decisionId":"d2","option":"Request changes","text":"export it"}"#),
    );
    check("/a d2 request changes", None, Err("say what to change"));
    check(
        "/a d3 neither, count both",
        None,
        Ok(r#"{"type":"decision.answer","decisionId":"d3","text":"neither, count both"}"#),
    );
    check(
        "/a d3 include",
        None,
        Ok(r#"{"type":"decision.answer","decisionId":"d3","option":"Include completed notes"}"#),
    );
    check("/answer Merge", None, Err("which one?"));
    check("/answer d9 Merge", None, Err("no decision d9"));
    check("/answer d2 7", None, Err("no option 7"));
}

/// A slip of the finger must not grant or merge: the label's first word has to be there whole.
#[test]
fn a_prefix_never_grants_or_merges() {
    check("/a d2 m", None, Err("type it whole"));
    check("/a d1 a", None, Err("is not one of"));
    check("/a d1 al", None, Err("is not one of"));
    check("/a d2 rej", None, Ok(r#"{"type":"decision.answer","decisionId":"d2","option":"Reject"}"#));
    check("/a d2 mergeit", None, Err("is not one of"));
}

#[test]
fn steering_lines_are_checked_before_they_are_sent() {
    check("/pause @kit", None, Ok(r#"{"type":"agent.action","agentId":"kit","action":"pause"}"#));
    check("/spawn kit t2", None, Ok(r#"{"type":"agent.action","agentId":"kit","action":"spawn","arg":"t2"}"#));
    check("/spawn kit t9", None, Err("no task t9"));
    check(
        "/task t2 reassign @kit",
        None,
        Ok(r#"{"type":"task.action","taskId":"t2","action":"reassign","arg":"kit"}"#),
    );
    check("/task t2 prioritise", None, Err("did you mean prioritize?"));
    check("/task t2 prioritize high", None, Err("not a whole number"));
    check("/repo add \"/home/me/my répo\"", None, Ok(r#"{"type":"repo.add","path":"/home/me/my répo"}"#));
    check("/diff d2", None, Ok(r#"{"type":"diff.request","requestId":"console","repoId":"demo","worktree":"kit-t2"}"#));
    check(
        "/diff @kit",
        None,
        Ok(r#"{"type":"diff.request","requestId":"console","repoId":"demo","worktree":"kit-t2"}"#),
    );
    check("/anser d2 Merge", None, Err("did you mean /answer?"));
}

#[test]
fn the_preview_says_what_enter_will_do() {
    let mirror = mirror();
    let context = ConsoleContext { mirror: &mirror, shown_decision: None };
    assert_eq!(preview("/answer d2 Merge", &context), "answers d2: Merge");
    assert_eq!(preview("/stop @kit", &context), "sends kit off shift");
    assert_eq!(preview("/frobnicate", &context), "no command /frobnicate; /help lists them");
}

/// What was closed elsewhere says so.
#[test]
fn a_closed_decision_says_how_it_was_closed() {
    let mut mirror = mirror();
    if let Some(decision) = mirror.decisions.get_mut("d2") {
        decision.status = DecisionStatus::Answered;
        decision.answer = Some(DecisionAnswer { option: Some("Merge".into()), text: None, ts: 5 });
    }
    let context = ConsoleContext { mirror: &mirror, shown_decision: None };
    assert_eq!(parse("/answer d2 Merge", &context).unwrap_err(), "decision d2 is already answered");
}

#[test]
fn completion_offers_what_fits_at_the_cursor() {
    let mirror = mirror();
    let shown = DecisionId::from("d2");
    let context = ConsoleContext { mirror: &mirror, shown_decision: Some(&shown) };
    let texts = |line: &str| -> Vec<String> {
        super::super::complete::complete(line, line.len(), &context).into_iter().map(|found| found.text).collect()
    };
    assert_eq!(texts("/ans"), ["/answer"]);
    assert_eq!(texts("@k"), ["@kit"]);
    assert_eq!(texts("/answer d2 R"), ["Request changes", "Reject"]);
    assert_eq!(texts("/answer M"), ["Merge"]);
    assert_eq!(texts("/task t2 re"), ["reassign", "retry"]);
    assert_eq!(texts("/diff kit"), ["kit-t2"]);
}
