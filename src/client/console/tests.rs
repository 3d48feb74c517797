use super::*;
use crate::client::sample;
use crate::protocol::{AnswerDecision, ClientMessage, OptionChoice};

/// The JSON of the message a line gives, or the error's words behind `!`.
fn read_with(line: &str, shown: Option<&str>, places: Option<&Places>) -> String {
    let mirror = Mirror::from_snapshot(sample::snapshot());
    let shown = shown.map(DecisionId::from);
    let mut context = ConsoleContext::new(&mirror, shown.as_ref());
    context.places = places;
    match parse(line, &context) {
        Ok(ConsoleLine::Send(message)) => serde_json::to_string(&message).expect("a message is JSON"),
        Ok(ConsoleLine::Local(command)) => format!("{command:?}"),
        Err(error) => format!("!{error}"),
    }
}

fn check(line: &str, expected: &str) {
    assert_eq!(read_with(line, None, None), expected, "{line}");
}

fn check_refused(line: &str, words: &str) {
    let found = read_with(line, None, None);
    assert!(found.starts_with('!') && found.contains(words), "{line}: {found}");
}

fn check_shown(shown: &str, line: &str, option: Option<&str>, text: Option<&str>) {
    let expected = ClientMessage::DecisionAnswer(AnswerDecision {
        decision_id: shown.into(),
        option: option.map(|label| OptionChoice::Label(label.to_owned())),
        text: text.map(str::to_owned),
    });
    let expected = serde_json::to_string(&expected).expect("a message is JSON");
    assert_eq!(read_with(line, Some(shown), None), expected, "{line}");
}

fn check_shown_refused(shown: &str, line: &str, words: &str) {
    let found = read_with(line, Some(shown), None);
    assert!(found.starts_with('!') && found.contains(words), "{line}: {found}");
}

/// Each line of the protocol document's console table gives its message.
#[test]
fn the_console_table() {
    check("Add a flag", r#"{"type":"goal.submit","text":"Add a flag"}"#);
    check("@kit cover emoji", r#"{"type":"user.message","to":"kit","text":"cover emoji"}"#);
    check(
        "/answer d2 Request changes Export it.",
        r#"{"type":"decision.answer","decisionId":"d2","option":"Request changes","text":"Export it."}"#,
    );
    check("/answer d3 3", r#"{"type":"decision.answer","decisionId":"d3","option":"Deny"}"#);
    check("/repo add /tmp/demo", r#"{"type":"repo.add","path":"/tmp/demo"}"#);
    check("/pause @kit", r#"{"type":"agent.action","agentId":"kit","action":"pause"}"#);
    check("/resume kit", r#"{"type":"agent.action","agentId":"kit","action":"resume"}"#);
    check("/stop @Juniper", r#"{"type":"agent.action","agentId":"juniper","action":"stop"}"#);
    check("/spawn @wren t10", r#"{"type":"agent.action","agentId":"wren","action":"spawn","arg":"t10"}"#);
    check("/spawn @wren", r#"{"type":"agent.action","agentId":"wren","action":"spawn"}"#);
    check("/task t3 cancel", r#"{"type":"task.action","taskId":"t3","action":"cancel"}"#);
    check("/task T3 retry", r#"{"type":"task.action","taskId":"t3","action":"retry"}"#);
    check("/task t10 prioritize", r#"{"type":"task.action","taskId":"t10","action":"prioritize"}"#);
    check("/task t10 prioritize -3", r#"{"type":"task.action","taskId":"t10","action":"prioritize","arg":"-3"}"#);
    check("/task t10 reassign @Kit", r#"{"type":"task.action","taskId":"t10","action":"reassign","arg":"kit"}"#);
}

/// Local views and their arguments.
#[test]
fn local_commands() {
    check("/status", "Status");
    check("/HELP", "Help");
    check("/q", "Quit");
    check("/memory", "Memory(None)");
    check("/memory plan", "Memory(Some(shared/plan))");
    check("/diff kit-t2", "Diff { repo: demo-app, worktree: kit-t2, of: Worktree }");
    check("/diff d2", "Diff { repo: demo-app, worktree: kit-t2, of: Decision(d2) }");
    check("/diff t3", "Diff { repo: demo-app, worktree: juniper-t3, of: Task(t3) }");
    check("/diff @juniper", "Diff { repo: demo-app, worktree: juniper-t3, of: Worktree }");
    assert_eq!(read_with("/diff", Some("d2"), None), "Diff { repo: demo-app, worktree: kit-t2, of: Decision(d2) }");
    check_refused("/diff t1", "t1 has no worktree");
    check_refused("/diff kit-2", "did you mean kit-t2?");
    check_refused("/diff", "whose changes?");
    check_refused("/memory plann", "did you mean shared/plan?");
    check_refused("/status now", "takes nothing");
}

/// What a script waits for is read with its kind or status.
#[test]
fn waits() {
    check("/wait 1.5", "Wait(Pause(1500))");
    check("/wait d7", "Wait(Decision(d7))");
    check("/wait t2 review", "Wait(Task(t2, Some(Review)))");
    check("/wait decision merge", "Wait(AnyDecision(Some(Merge)))");
    check("/wait goal", "Wait(Goal(None))");
    check("/wait merge", "Wait(Merge)");
    check("/wait diff kit-t2", "Wait(Diff(Some(kit-t2)))");
    check_refused("/wait 1801", "out of range");
    check_refused("/wait -1", "out of range");
    check_refused("/wait t2 ready", "is not one of todo, doing");
    check_refused("/wait gaol", "did you mean goal?");
    check_refused("/wait merge now", "too much");
}

/// A message to everyone goes to everyone, also when it begins with a name.
#[test]
fn to_everyone() {
    check("@all hi", r#"{"type":"user.message","to":"all","text":"hi"}"#);
    check("@ALL: hi", r#"{"type":"user.message","to":"all","text":"hi"}"#);
    check("@all @kit is right", r#"{"type":"user.message","to":"all","text":"@all @kit is right"}"#);
    check("@Kit, one\n two", r#"{"type":"user.message","to":"kit","text":"one\n two"}"#);
    check_refused("@all", "what to tell the team");
    check_refused("@kit", "what to tell Kit");
    check_refused("@kitt hello", "did you mean @kit?");
    check_refused("@types/node is old", "/goal @");
}

/// Any text can be a goal; several lines stay several lines.
#[test]
fn goals() {
    check("one\n\n  two\n", r#"{"type":"goal.submit","text":"one\n\n  two"}"#);
    check("/goal /etc is not ours", r#"{"type":"goal.submit","text":"/etc is not ours"}"#);
    check("/goal @types are old", r#"{"type":"goal.submit","text":"@types are old"}"#);
    check("/goal repo=demo-app Add it", r#"{"type":"goal.submit","text":"Add it","repoId":"demo-app"}"#);
    check_refused("/goal repo=demo Add it", "no repository \"demo\"; connected: demo-app");
    check_refused("/goal", "missing");
    check_refused("  \n ", "nothing to send");
    check_refused(&"x".repeat(GOAL_TEXT_CHARS + 1), "at most 20000");
}

/// Without a repository a goal has nowhere to go, and the person hears what to do.
#[test]
fn a_goal_needs_a_repository() {
    let mut snapshot = sample::snapshot();
    snapshot.repos.clear();
    let mirror = Mirror::from_snapshot(snapshot);
    let context = ConsoleContext::new(&mirror, None);
    assert_eq!(parse("Add it", &context), Err(ConsoleError::NoRepo));
    assert!(preview("Add it", &context).contains("/repo add"));
}

/// Without an id the decision being looked at is meant, and never another one.
#[test]
fn the_shown_decision() {
    check_shown("d4", "/answer 2", Some("Include completed notes"), None);
    check_shown("d3", "/a Deny too risky", Some("Deny"), Some("too risky"));
    check_refused("/answer 2", "which decision? name one: d3, d4, d5, d2");
    check_refused("/answer d1 Deny", "already answered");
    check_refused("/answer d9 Deny", "no decision d9; open: d3, d4, d5, d2");
    check_shown_refused("d1", "/answer 1", "which decision?");
    check_shown_refused("d4", "/answer", "choose one for d4: 1 Only open notes");
}

/// Only the whole label or its number, standing alone, grants a merge or a permission.
#[test]
fn nothing_is_granted_by_accident() {
    check_shown("d2", "/answer merge", Some("Merge"), None);
    check_shown("d2", "/answer 1", Some("Merge"), None);
    check_shown("d2", "/answer \"Merge\" thanks", Some("Merge"), Some("thanks"));
    for line in ["/answer m", "/answer mer", "/answer \"Mer\""] {
        check_shown_refused("d2", line, "in full");
    }
    for line in ["/answer merge conflicts look wrong", "/answer Merge\nlater", "/answer 1 more test please"] {
        check_shown_refused("d2", line, "stands alone");
    }
    for line in ["/answer merged?", "/answer mergee", "/answer looks good", "/answer 4", "/answer 0", "/answer -1"] {
        let found = read_with(line, Some("d2"), None);
        assert!(found.starts_with('!'), "{line}: {found}");
    }
    check_shown("d3", "/answer allow once", Some("Allow once"), None);
    check_shown("d3", "/answer always allow for this agent", Some("Always allow for this agent"), None);
    for line in [
        "/answer allow",
        "/answer a",
        "/answer always",
        "/answer allow once you have checked the address",
        "/answer 1 but only for the tests",
        "/answer 2 no",
        "/answer yes",
    ] {
        let found = read_with(line, Some("d3"), None);
        assert!(found.starts_with('!'), "{line}: {found}");
    }
}

/// Giving up work takes its whole word too; sending back takes the words that say why.
#[test]
fn refusing_is_easy_to_write() {
    check_shown("d2", "/answer reject", Some("Reject"), None);
    check_shown_refused("d2", "/answer rej", "in full");
    check_shown_refused("d2", "/answer reject the second file only", "stands alone");
    check_shown_refused("d2", "/answer re", "not one of");
    check_shown("d2", "/answer req cover emoji", Some("Request changes"), Some("cover emoji"));
    check_shown("d2", "/answer 2 a\nb", Some("Request changes"), Some("a\nb"));
    check_shown("d2", "/answer 'request changes' x", Some("Request changes"), Some("x"));
    check_shown_refused("d2", "/answer 2", "what to change");
    check_shown_refused("d2", "/answer please add tests", "Request changes …");
    check_shown("d3", "/answer d", Some("Deny"), None);
    check_shown("d3", "/answer deny", Some("Deny"), None);
}

/// A question takes an option by label, unique beginning or number; any other words are the answer themselves.
#[test]
fn questions_take_own_words() {
    check_shown("d4", "/answer only open", Some("Only open notes (recommended)"), None);
    check_shown("d4", "/answer include completed notes but last", Some("Include completed notes"), Some("but last"));
    check_shown("d4", "/answer \"incl\" sorted", Some("Include completed notes"), Some("sorted"));
    check_shown("d4", "/answer 1 sorted by name", Some("Only open notes (recommended)"), Some("sorted by name"));
    check_shown("d4", "/answer only if it is cheap", None, Some("only if it is cheap"));
    check_shown("d4", "/answer \"both\" of them", None, Some("\"both\" of them"));
    check_shown("d4", "/answer 10 at most", None, Some("10 at most"));
    check_shown_refused("d4", "/answer 10", "no option 10");
    check_shown("d5", "/answer 3", None, Some("3"));
    check_shown("d5", "/answer\nline one\n  line two", None, Some("line one\n  line two"));
}

/// Mistakes are named, and the nearest right word is offered.
#[test]
fn errors_say_what_to_do() {
    check_refused("/anwser d2 1", "did you mean /answer?");
    check_refused("/usr/bin is full", "/goal TEXT");
    check_refused("/pause", "whom to pause?");
    check_refused("/pause @kitt", "did you mean @kit?");
    check_refused("/pause @kit now", "\"now\" is too much");
    check_refused("/spawn @marlow t3", "Marlow is the lead");
    check_refused("/spawn @wren t99", "no task t99");
    check_refused("/task 3 cancel", "did you mean t3?");
    check_refused("/task t3 cancle", "did you mean cancel?");
    check_refused("/task t3", "what to do with t3?");
    check_refused("/task t3 cancel now", "too much");
    check_refused("/task t3 prioritize high", "no whole number");
    check_refused("/task t3 reassign", "who should get t3?");
    check_refused("/task t3 reassign @marlow", "Marlow is the lead");
    check_refused("/repo", "what to do");
    check_refused("/repo remove x", "can be added");
    check_refused("/repo add", "which directory?");
}

/// Paths may hold blanks and quotes; home and relative ones are worked out where the person is.
#[test]
fn paths() {
    let places = Places { cwd: "/home/ada/work".into(), home: Some("/home/ada".into()), listing: None };
    let check = |line: &str, path: &str| {
        let expected = format!(r#"{{"type":"repo.add","path":"{path}"}}"#);
        assert_eq!(read_with(line, None, Some(&places)), expected, "{line}");
    };
    check("/repo add /tmp/my répo", "/tmp/my répo");
    check("/repo add \"/tmp/my répo\"", "/tmp/my répo");
    check("/repo add ~/src", "/home/ada/src");
    check("/repo add ~", "/home/ada");
    check("/repo add ../other", "/home/ada/other");
    check("/repo add .", "/home/ada/work");
    check("/repo add a/../b", "/home/ada/work/a/../b");
    check_refused("/repo add src", "whole path");
}

/// The preview names a grant as such, and shows usage while a command is being typed.
#[test]
fn previews() {
    let mirror = Mirror::from_snapshot(sample::snapshot());
    let context = ConsoleContext::new(&mirror, None);
    let check = |line: &str, expected: &str| assert_eq!(preview(line, &context), expected, "{line}");
    check("", "");
    check("Add it", "a new goal for Marlow in demo-app");
    check("@wren hi", "tells Wren, who is off shift and reads it later");
    check("/answer d2 Merge", "d2: MERGES t2 into main");
    check("/answer d2 3", "d2: gives t2 up; its branch is kept");
    check("/answer d3 1", "d3: ALLOWS it to Juniper, once");
    check("/answer d5 blue", "d5: answers Kit in your own words");
    check("/answer d4 1", "d4: answers \"Only open notes (recommended)\"");
    check("/task t10 prioritize", "puts t10 on top");
    check("/ans", "/answer [dN] <number|label> [text]");
    assert!(preview("/answer d2 mer", &context).contains("in full"));
    assert!(preview("/xyz", &context).contains("no command /xyz"));
}

/// The first completions of a line, each as the whole line would be.
fn completed(line: &str, shown: Option<&str>, places: Option<&Places>) -> Vec<String> {
    let mirror = Mirror::from_snapshot(sample::snapshot());
    let shown = shown.map(DecisionId::from);
    let mut context = ConsoleContext::new(&mirror, shown.as_ref());
    context.places = places;
    let all = complete(line, line.len(), &context);
    all.iter().map(|completion| format!("{}{}", &line[..completion.start], completion.text)).collect()
}

/// Commands, agents, decisions, options, tasks, worktrees and notes complete where they can stand.
#[test]
fn completion() {
    let first = |line: &str, expected: &str| {
        let all = completed(line, None, None);
        assert_eq!(all.first().map(String::as_str), Some(expected), "{line}: {all:?}");
    };
    first("/an", "/answer ");
    first("/stat", "/status");
    first("@j", "@juniper ");
    first("/pause k", "/pause @kit");
    first("/pause @k", "/pause @kit");
    first("/answer ", "/answer d3 ");
    first("/answer d2 ", "/answer d2 Merge");
    first("/answer d2 req", "/answer d2 Request changes ");
    first("/answer d3 always al", "/answer d3 Always allow for this agent");
    first("/task t1", "/task t10 ");
    first("/task t10 re", "/task t10 reassign ");
    first("/task t10 reassign @", "/task t10 reassign @juniper");
    first("/spawn @w", "/spawn @wren ");
    first("/diff jun", "/diff juniper-t3");
    first("/memory sh", "/memory shared/plan");
    first("/wait goal d", "/wait goal done");
    first("/repo ", "/repo add ");
    assert_eq!(completed("Add it", None, None), Vec::<String>::new());
    assert_eq!(completed("@kit he", None, None), Vec::<String>::new());
    assert_eq!(completed("/answer ", Some("d3"), None).first().map(String::as_str), Some("/answer Allow once"));
    assert_eq!(complete("/ä", 2, &ConsoleContext::new(&Mirror::from_snapshot(sample::snapshot()), None)), []);
}

/// Directories complete from the listing that the line asks for, and from no other.
#[test]
fn directories_complete() {
    let mirror = Mirror::from_snapshot(sample::snapshot());
    let mut places = Places { cwd: "/home/ada/work".into(), home: Some("/home/ada".into()), listing: None };
    let wanted = |line: &str, places: &Places| {
        wanted_listing(line, &ConsoleContext::new(&mirror, None).with_places(places))
            .map(|dir| dir.display().to_string().trim_end_matches('/').to_owned())
    };
    assert_eq!(wanted("/repo add ~/sr", &places).as_deref(), Some("/home/ada"));
    assert_eq!(wanted("/repo add sr", &places).as_deref(), Some("/home/ada/work"));
    assert_eq!(wanted("/repo ad", &places), None);
    let names = vec!["src one".to_owned(), "srv".to_owned(), ".git".to_owned()];
    places.listing = Some(Listing { dir: "/home/ada".into(), names });
    assert_eq!(wanted("/repo add ~/sr", &places), None);
    assert_eq!(completed("/repo add ~/sr", None, Some(&places)), ["/repo add ~/src one/", "/repo add ~/srv/"]);
    assert_eq!(completed("/repo add ~/src o", None, Some(&places)), ["/repo add ~/src one/"]);
    assert_eq!(completed("  /repo  add /home/ada/.", None, Some(&places)), ["  /repo  add /home/ada/.git/"]);
    assert_eq!(completed("/repo add sr", None, Some(&places)), Vec::<String>::new());
}

/// No line makes the reader panic, and whatever is sent fits the wire.
#[test]
fn any_line_is_read_or_refused() {
    use proptest::prelude::*;
    let mirror = Mirror::from_snapshot(sample::snapshot());
    let shown = DecisionId::from("d2");
    let context = ConsoleContext::new(&mirror, Some(&shown));
    let words = prop::sample::select(vec![
        "/answer",
        "/a",
        "d2",
        "d3",
        "merge",
        "Merge",
        "1",
        "\"",
        "'",
        "@kit",
        "@all",
        "/task",
        "t3",
        "/repo",
        "add",
        "~",
        "é",
        "\u{200d}",
        "/wait",
        "/diff",
        "\n",
        ":",
        ",",
        "İ",
        "/goal",
        "repo=",
        "allow once",
        "\\",
    ]);
    let lines = prop::collection::vec(prop_oneof![words.prop_map(str::to_owned), ".{0,3}"], 0..8);
    proptest!(|(parts in lines, gap in "[ ]?")| {
        let line = parts.join(&gap);
        if let Ok(ConsoleLine::Send(message)) = parse(&line, &context) {
            let text = crate::protocol::encode_client(&crate::protocol::ClientEnvelope { id: None, message });
            prop_assert!(crate::protocol::decode_client(&text).is_ok(), "{} gave {}", line, text);
        }
        let _ = preview(&line, &context);
        for cursor in 0..=line.len() {
            for completion in complete(&line, cursor, &context) {
                prop_assert!(line.is_char_boundary(completion.start) && completion.start <= cursor);
            }
        }
    });
}
