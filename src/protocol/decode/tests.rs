use super::*;
use crate::protocol::{GoalSubmit, OptionChoice, limits};

#[track_caller]
fn refused(text: &str, issues: &str) {
    let rejection = decode_client(text).expect_err(text);
    assert_eq!(rejection.issues, issues, "{text}");
}

#[track_caller]
fn refused_by_a_client(text: &str, issues: &str) {
    let rejection = decode_server(text).expect_err(text);
    assert_eq!(rejection.issues, issues, "{text}");
}

#[track_caller]
fn accepted(text: &str) -> ClientEnvelope {
    decode_client(text).unwrap_or_else(|rejection| panic!("{text}: {rejection}"))
}

#[test]
fn issues_name_the_place() {
    refused_by_a_client(
        r##"{"v":1,"type":"task.upsert","task":{"id":"t1","title":"x","status":"todo","deps":["t2","t3",4],"priority":0,"ci":"pass","createdBy":"user","createdAt":1,"updatedAt":2}}"##,
        "task.deps[2]: expected a string, got 4",
    );
    refused_by_a_client(
        r##"{"v":1,"type":"task.upsert","task":{"id":"t1","title":"x","status":"started","deps":[],"priority":0.5,"ci":"pass","createdBy":"user","createdAt":-1,"updatedAt":2,"goalId":null}}"##,
        "task.createdAt: expected an integer from 0 to 9007199254740991, got -1; task.goalId: expected a string, got null; \
         task.priority: expected an integer, got 0.5; \
         task.status: expected one of todo, doing, review, done, blocked, cancelled, got \"started\"",
    );
}

#[test]
fn at_most_five_issues_are_told() {
    let rejection = decode_server(r#"{"v":1,"type":"snapshot"}"#).unwrap_err();
    assert_eq!(rejection.issues.split("; ").count(), 5, "{rejection}");
}

#[test]
fn the_envelope_is_strict() {
    refused("[]", "(root): expected an object, got a list");
    refused("null", "(root): expected an object, got null");
    refused("7", "(root): expected an object, got 7");
    refused("{}", "v: missing, expected the number 1; type: missing, expected a message type");
    refused(r#"{"v":1}"#, "type: missing, expected a message type");
    refused(
        r#"{"v":2,"type":"hello"}"#,
        "modVersion: missing, expected a string; protocol: missing, expected the number 1; v: expected the number 1, got 2",
    );
    refused(r#"{"v":"1","type":"goal.submit","text":"x"}"#, "v: expected the number 1, got \"1\"");
    refused(r#"{"v":true,"type":"goal.submit","text":"x"}"#, "v: expected the number 1, got true");
    refused(r#"{"v":1,"type":"goal.submitt","text":"x"}"#, "type: unknown message type \"goal.submitt\"");
    refused(r#"{"v":1,"type":"ack","re":"c1","ok":true}"#, "type: unknown message type \"ack\"");
    refused(r#"{"v":1,"type":["hello"]}"#, "type: expected a string");
    refused(r#"{"v":1,"type":"goal.submit","text":"x","id":""}"#, "id: must not be empty");
    refused(r#"{"v":1,"type":"goal.submit","text":"x","id":null}"#, "id: expected a string, got null");
    refused(r#"{"v":1,"type":"goal.submit","text":"x","id":7}"#, "id: expected a string, got 7");
}

#[test]
fn a_number_is_a_number_however_it_is_written() {
    accepted(r#"{"v":1.0,"type":"hello","modVersion":"","protocol":1.0}"#);
    let envelope = accepted(r#"{"v":1,"type":"decision.answer","decisionId":"d1","option":2.0}"#);
    let ClientMessage::DecisionAnswer(answer) = envelope.message else { panic!("{envelope:?}") };
    assert_eq!(answer.option, Some(OptionChoice::Index(2)));
}

#[test]
fn hello_wants_protocol_one() {
    refused(r#"{"v":1,"type":"hello","modVersion":"x","protocol":2}"#, "protocol: expected the number 1, got 2");
    accepted(r#"{"v":1,"type":"hello","modVersion":"","protocol":1,"role":"viewer","parts":{"deep":[1,null]}}"#);
}

#[test]
fn blank_texts_are_refused() {
    for text in ["", " ", "\\n\\t", "\u{a0}"] {
        let issue = if text.is_empty() { "must not be empty" } else { "must not be blank" };
        refused(&format!(r#"{{"v":1,"type":"goal.submit","text":"{text}"}}"#), &format!("text: {issue}"));
        refused(&format!(r#"{{"v":1,"type":"repo.add","path":"{text}"}}"#), &format!("path: {issue}"));
        refused(
            &format!(r#"{{"v":1,"type":"user.message","to":"{text}","text":"{text}"}}"#),
            &format!("text: {issue}; to: {issue}"),
        );
        refused(
            &format!(r#"{{"v":1,"type":"diff.request","requestId":"{text}","repoId":"r","worktree":"w"}}"#),
            &format!("requestId: {issue}"),
        );
    }
}

#[test]
fn an_option_is_a_label_or_an_index() {
    let answer = |option: &str| format!(r#"{{"v":1,"type":"decision.answer","decisionId":"d1","option":{option}}}"#);
    accepted(&answer("\"Merge\""));
    accepted(&answer("0"));
    for bad in ["-1", "1.5", "null", "true", "[0]", "{}", "5000000000"] {
        let rejection = decode_client(&answer(bad)).expect_err(bad);
        assert!(
            rejection.issues.starts_with("option: expected a string or an integer from 0 to 4294967295, got"),
            "{rejection}"
        );
    }
}

#[test]
fn ranges_colours_and_null_elements() {
    let goal = |progress: &str| {
        format!(
            r#"{{"v":1,"type":"goal.upsert","goal":{{"id":"g1","text":"x","progress":{progress},"status":"active","createdAt":1,"updatedAt":1}}}}"#
        )
    };
    for good in ["0", "1", "1.0", "0.56"] {
        decode_server(&goal(good)).unwrap_or_else(|rejection| panic!("{good}: {rejection}"));
    }
    refused_by_a_client(&goal("1.01"), "goal.progress: expected a number from 0 to 1, got 1.01");
    refused_by_a_client(&goal("-0.1"), "goal.progress: expected a number from 0 to 1, got -0.1");
    refused_by_a_client(
        r#"{"v":1,"type":"agent.log","agentId":"kit","entries":[null]}"#,
        "entries[0]: expected an object, got null",
    );
    refused_by_a_client(
        r#"{"v":1,"type":"agent.upsert","agent":{"id":"kit","name":"Kit","role":"worker","color":"red","skin":"kit","state":"idle","activity":"","station":"desk","paused":false,"active":1}}"#,
        "agent.active: expected true or false, got 1; agent.color: expected a colour #RRGGBB, got \"red\"",
    );
}

#[test]
fn the_correlation_id_of_a_bad_message_is_kept() {
    let re = |text: &str| decode_client(text).expect_err(text).re;
    assert_eq!(re(r#"{"type":"nonsense","id":"c1"}"#).as_deref(), Some("c1"));
    assert_eq!(re(r#"{"v":1,"type":"goal.submit","id":"c2"}"#).as_deref(), Some("c2"));
    assert_eq!(re(r#"{"v":1,"type":"goal.submit","id":7}"#), None);
    assert_eq!(re(r#"{"v":1,"type":"goal.submit","text":"x","id":""}"#), None);
    assert_eq!(re("{\"id\":\"c3\""), None);
    let long = "x".repeat(CORRELATION_ID_CHARS + 1);
    assert_eq!(re(&format!(r#"{{"v":1,"type":"goal.submit","text":"x","id":"{long}"}}"#)), None);
}

#[test]
fn bounds_are_told_with_their_number() {
    let long = "ä".repeat(limits::GOAL_TEXT_CHARS + 1);
    refused(
        &format!(r#"{{"v":1,"type":"goal.submit","text":"{long}"}}"#),
        "text: 20001 characters are over the limit of 20000",
    );
    let fits = "ä".repeat(limits::GOAL_TEXT_CHARS);
    accepted(&format!(r#"{{"v":1,"type":"goal.submit","text":"{fits}"}}"#));
    let huge = format!(r#"{{"v":1,"type":"goal.submit","text":"x","more":"{}"}}"#, "y".repeat(MAX_FRAME_BYTES));
    assert!(decode_client(&huge).unwrap_err().issues.contains("over the limit of 4194304"));
}

#[test]
fn broken_json_is_one_issue() {
    for text in
        ["", "{", "nope", "{\"v\":1,}", "{} {}", "{\"v\":1e999}", "\"\\ud800\"", "{\"a\":\"\u{1}\"}", "\u{feff}{}"]
    {
        let rejection = decode_client(text).expect_err(text);
        assert!(rejection.issues.starts_with("invalid JSON: "), "{text}: {rejection}");
        assert_eq!(rejection.re, None);
    }
}

#[test]
fn depth_and_size_of_what_is_unknown_cost_nothing() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    accepted(&format!(r#"{{"v":1,"type":"goal.submit","x":{deep},"text":"hi"}}"#));
    refused(&format!(r#"{{"v":1,"type":"goal.submit","text":{deep}}}"#), "text: expected a string, got a list");
    refused(&format!(r#"{{"v":1,"type":{deep}}}"#), "type: expected a string");
    refused(&deep, "(root): expected an object, got a list");
    // Where any value is allowed, depth is bounded by the reader.
    let rejection =
        decode_server(&format!(r#"{{"v":1,"type":"ack","re":"c","ok":true,"result":{{"a":{deep}}}}}"#)).unwrap_err();
    assert!(rejection.issues.contains("recursion limit"), "{rejection}");
}

#[test]
fn the_last_of_a_repeated_field_counts() {
    let envelope = accepted(r#"{"type":"hello","text":7,"v":1,"type":"goal.submit","text":"hi"}"#);
    assert_eq!(envelope.message, ClientMessage::GoalSubmit(GoalSubmit { text: "hi".to_owned(), repo_id: None }));
}

#[test]
fn a_strangers_text_in_an_issue_is_clean_and_short() {
    let rejection = decode_client(&format!(r#"{{"v":1,"type":"\u001b[31m{}"}}"#, "x".repeat(500))).unwrap_err();
    assert!(!rejection.issues.contains('\u{1b}') && rejection.issues.len() < 120, "{rejection}");
}

#[test]
fn numbers_that_json_lacks_are_sent_as_zero() {
    let goal = crate::protocol::Goal {
        id: "g1".into(),
        text: "x".to_owned(),
        progress: f64::NAN,
        status: crate::protocol::GoalStatus::Active,
        repo_id: None,
        created_at: 1,
        updated_at: 1,
    };
    let text = encode_server(&ServerMessage::GoalUpsert { goal });
    assert!(text.contains(r#""progress":0.0"#), "{text}");
}
