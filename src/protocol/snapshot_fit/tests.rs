use super::*;
use crate::protocol::limits::MAX_FRAME_BYTES;
use crate::protocol::{
    AgentLogs, AuthStatus, BackendName, CiStatus, Decision, DecisionId, DecisionKind, ForemanStatus, GoalId, LogKind,
    MemoryEntry, Repo, ServerMessage, Task, TaskId, TaskStatus, Worktree, encode_server,
};

fn empty() -> Snapshot {
    Snapshot {
        foreman: ForemanStatus {
            version: "0".to_owned(),
            backend: BackendName::Sim,
            auth: AuthStatus::Ok,
            message: None,
            account: None,
            speed: None,
            showcase: None,
            cost_usd: None,
            user_name: None,
        },
        agents: Vec::new(),
        tasks: Vec::new(),
        decisions: Vec::new(),
        repos: Vec::new(),
        memory: Vec::new(),
        goal: None,
        goals: Vec::new(),
        feed: Vec::new(),
        logs: Vec::new(),
    }
}

fn entry(ts: EpochMs, bytes: usize) -> LogEntry {
    LogEntry { ts, kind: LogKind::Text, text: "x".repeat(bytes) }
}

fn feed(ts: EpochMs, bytes: usize) -> FeedItem {
    FeedItem { ts, kind: FeedKind::System, text: "x".repeat(bytes), agent_id: None, to: None }
}

fn decision(number: u64, status: DecisionStatus, bytes: usize) -> Decision {
    Decision {
        id: DecisionId::nth(number),
        agent_id: "kit".into(),
        kind: DecisionKind::Question,
        question: "x".repeat(bytes),
        options: Vec::new(),
        context: None,
        status,
        answer: None,
        task_id: None,
        repo_id: None,
        worktree: None,
        tool: None,
        created_at: number,
    }
}

fn task(number: u64, goal: u64, bytes: usize) -> Task {
    Task {
        id: TaskId::nth(number),
        title: "x".repeat(bytes),
        description: None,
        status: TaskStatus::Done,
        assignee: None,
        deps: Vec::new(),
        repo_id: None,
        goal_id: Some(GoalId::nth(goal)),
        priority: 0,
        branch: None,
        worktree: None,
        ci: CiStatus::Pass,
        blocked_reason: None,
        summary: None,
        created_by: "user".to_owned(),
        created_at: number,
        updated_at: number,
    }
}

fn goal(number: u64, status: GoalStatus) -> Goal {
    Goal {
        id: GoalId::nth(number),
        text: "x".repeat(500),
        progress: 1.0,
        status,
        repo_id: None,
        created_at: number,
        updated_at: number,
    }
}

/// A snapshot with about 1,000 bytes of everything that can go, twice, and of everything that can't.
fn full() -> Snapshot {
    let log = |agent: &str, first| AgentLogs {
        agent_id: agent.into(),
        entries: vec![entry(first, 500), entry(first + 10, 500)],
    };
    Snapshot {
        logs: vec![log("kit", 105), log("wren", 100)],
        feed: vec![feed(200, 500), feed(210, 500)],
        decisions: vec![
            decision(1, DecisionStatus::Answered, 500),
            decision(2, DecisionStatus::Open, 500),
            decision(3, DecisionStatus::Cancelled, 500),
        ],
        tasks: vec![task(1, 1, 500), task(2, 2, 500), task(3, 1, 500)],
        goals: vec![goal(1, GoalStatus::Done), goal(2, GoalStatus::Active), goal(3, GoalStatus::Failed)],
        goal: Some(goal(3, GoalStatus::Failed)),
        ..empty()
    }
}

/// Fits the full snapshot after `bytes` too many.
fn cut(bytes: usize) -> (Snapshot, String) {
    let size = json_bytes(&full());
    let (snapshot, words) = fit_within(full(), size - bytes);
    let words = words.unwrap();
    assert_eq!(snapshot.feed.last().unwrap().text, words);
    let mut without_note = snapshot.clone();
    without_note.feed.pop();
    assert!(json_bytes(&without_note) <= size - bytes, "{words}");
    (snapshot, words)
}

#[test]
fn what_fits_is_untouched() {
    let (snapshot, words) = fit(full());
    assert_eq!((snapshot, words), (full(), None));
}

#[test]
fn the_oldest_log_line_of_all_goes_first() {
    let (snapshot, words) = cut(1);
    assert_eq!(words, "The snapshot was too large to send whole; left out: 1 log line");
    assert_eq!(snapshot.logs[0], full().logs[0]);
    assert_eq!(snapshot.logs[1].entries, full().logs[1].entries[1..]);
    let (snapshot, _) = cut(600);
    assert_eq!(snapshot.logs[0].entries.len(), 1);
}

#[test]
fn then_feed_then_closed_decisions_then_tasks_of_finished_goals() {
    let (snapshot, words) = cut(2_400);
    assert!(words.ends_with("left out: 4 log lines, 1 feed line"), "{words}");
    assert_eq!(snapshot.feed.len(), 2);
    assert_eq!(snapshot.feed[1].ts, 210, "the note is as new as the newest line");
    assert!(snapshot.logs.iter().all(|log| log.entries.is_empty()));
    let (snapshot, words) = cut(3_600);
    assert!(words.ends_with("left out: 4 log lines, 2 feed lines, 1 closed decision"), "{words}");
    assert_eq!(snapshot.decisions.iter().map(|decision| decision.id.as_str()).collect::<Vec<_>>(), ["d2", "d3"]);
    let (snapshot, words) = cut(5_000);
    assert!(words.ends_with("2 closed decisions, 1 task of finished goals"), "{words}");
    assert_eq!(snapshot.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["t2", "t3"]);
}

#[test]
fn what_is_open_is_never_left_out() {
    let (snapshot, words) = fit_within(full(), 10);
    let words = words.unwrap();
    assert!(words.contains("2 tasks of finished goals, 1 finished goal. It is still "), "{words}");
    assert_eq!(snapshot.decisions.len(), 1);
    assert_eq!(snapshot.tasks, [task(2, 2, 500)]);
    assert_eq!(snapshot.goals.iter().map(|goal| goal.id.as_str()).collect::<Vec<_>>(), ["g2", "g3"]);
}

#[test]
fn a_huge_history_becomes_a_frame() {
    let worktree = |number: u64| Worktree {
        id: format!("kit-t{number}").into(),
        agent_id: "kit".into(),
        task_id: Some(TaskId::nth(number)),
        branch: "agentcraft/kit".to_owned(),
        base: "main".to_owned(),
        path: "/".repeat(200),
        status: if number == 7 { WorktreeStatus::Active } else { WorktreeStatus::Merged },
        ahead: 0,
        files: 0,
        additions: 0,
        deletions: 0,
    };
    let note = |number: u64| MemoryEntry {
        id: format!("shared/{number}").into(),
        scope: "shared".to_owned(),
        title: "x".to_owned(),
        body: "\u{1}\"".repeat(3_000),
        updated: number,
        author: None,
    };
    let snapshot = Snapshot {
        logs: vec![AgentLogs { agent_id: "kit".into(), entries: (0..60).map(|ts| entry(ts, 20_000)).collect() }],
        feed: (0..200).map(|ts| feed(ts, 400)).collect(),
        decisions: (0..20).map(|number| decision(number, DecisionStatus::Answered, 50_000)).collect(),
        tasks: (0..20_000).map(|number| task(number, 1, 300)).collect(),
        goals: vec![goal(1, GoalStatus::Done)],
        repos: vec![Repo {
            id: "demo".into(),
            name: "demo".to_owned(),
            path: "/demo".to_owned(),
            branch: "main".to_owned(),
            head: None,
            dirty: false,
            worktrees: (0..20_000).map(worktree).collect(),
            ci: CiStatus::Pass,
        }],
        memory: (0..500).map(note).collect(),
        ..empty()
    };
    let (snapshot, words) = fit(snapshot);
    let text = encode_server(&ServerMessage::Snapshot(Box::new(snapshot.clone())));
    assert!(text.len() <= MAX_FRAME_BYTES, "{}", text.len());
    assert!(text.len() > MAX_FRAME_BYTES / 2, "no more is left out than needed: {}", text.len());
    assert!(snapshot.repos[0].worktrees.iter().any(|worktree| worktree.id.as_str() == "kit-t7"));
    let words = words.unwrap();
    assert!(words.contains("former worktrees") && words.contains("memory note") && !words.contains("still"), "{words}");
    // Again it is a no-op.
    assert_eq!(fit(snapshot).1, None);
}
