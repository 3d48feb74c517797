//! A small team in the middle of its work, for tests of this room.

use crate::protocol::Snapshot;

/// Agents marlow (lead), juniper, kit and wren (off shift); tasks t1 done, t2 in review, t3 being worked on, t10 to
/// do; d1 answered, d2 a merge, d3 a permission, d4 a question with options, d5 one without.
pub(crate) fn snapshot() -> Snapshot {
    let agent = |id: &str, name: &str, role: &str, active: bool| {
        serde_json::json!({
            "id": id, "name": name, "role": role, "color": "#2E78C6", "skin": id, "state": "idle", "activity": "",
            "station": "desk", "paused": false, "active": active,
        })
    };
    let task = |id: &str, title: &str, status: &str, assignee: Option<&str>| {
        let mut task = serde_json::json!({
            "id": id, "title": title, "status": status, "deps": [], "repoId": "demo-app", "goalId": "g1",
            "priority": 0, "ci": "unknown", "createdBy": "marlow", "createdAt": 10, "updatedAt": 20,
        });
        if let Some(assignee) = assignee {
            task["assignee"] = assignee.into();
            task["worktree"] = format!("{assignee}-{id}").into();
        }
        task
    };
    let decision = |id: &str, kind: &str, agent: &str, options: &[&str], created: u64| {
        serde_json::json!({
            "id": id, "agentId": agent, "kind": kind, "question": format!("question {id}"), "options": options,
            "status": "open", "createdAt": created,
        })
    };
    let mut answered = decision("d1", "permission", "kit", &["Allow once", "Always allow for this agent", "Deny"], 1);
    answered["status"] = "answered".into();
    answered["answer"] = serde_json::json!({ "option": "Deny", "ts": 2 });
    let mut merge = decision("d2", "merge", "marlow", &["Merge", "Request changes", "Reject"], 2);
    merge["taskId"] = "t2".into();
    merge["repoId"] = "demo-app".into();
    merge["worktree"] = "kit-t2".into();
    let worktree = |agent: &str, task: &str| {
        serde_json::json!({
            "id": format!("{agent}-{task}"), "agentId": agent, "taskId": task, "branch": format!("agentcraft/{agent}/{task}-x"),
            "base": "main", "path": format!("/tmp/{agent}-{task}"), "status": "active", "ahead": 1, "files": 2,
            "additions": 45, "deletions": 0,
        })
    };
    let snapshot = serde_json::json!({
        "foreman": { "version": "0.1.0", "backend": "sim", "auth": "ok", "userName": "Ada" },
        "agents": [
            agent("marlow", "Marlow", "lead", true), agent("juniper", "Juniper", "worker", true),
            agent("kit", "Kit", "worker", true), agent("wren", "Wren", "worker", false),
        ],
        "tasks": [
            task("t1", "Explore", "done", None), task("t2", "Tag parser", "review", Some("kit")),
            task("t3", "List by tag", "doing", Some("juniper")), task("t10", "Read me", "todo", None),
        ],
        "decisions": [
            answered, merge,
            decision("d3", "permission", "juniper", &["Allow once", "Always allow for this agent", "Deny"], 3),
            decision("d4", "question", "marlow", &["Only open notes (recommended)", "Include completed notes"], 4),
            decision("d5", "question", "kit", &[], 5),
        ],
        "repos": [{
            "id": "demo-app", "name": "demo-app", "path": "/tmp/demo-app", "branch": "main", "dirty": false, "ci": "pass",
            "worktrees": [worktree("kit", "t2"), worktree("juniper", "t3")],
        }],
        "memory": [{ "id": "shared/plan", "scope": "shared", "title": "Plan", "body": "# Plan", "updated": 3 }],
        "goal": { "id": "g1", "text": "Add tags", "progress": 0.25, "status": "active", "createdAt": 1, "updatedAt": 2 },
        "goals": [
            { "id": "g1", "text": "Add tags", "progress": 0.25, "status": "active", "createdAt": 1, "updatedAt": 2 },
        ],
        "feed": [{ "ts": 1, "kind": "goal", "text": "New goal: Add tags", "agentId": "user" }],
        "logs": [
            { "agentId": "marlow", "entries": [{ "ts": 1, "kind": "text", "text": "reading" }] },
            { "agentId": "juniper", "entries": [] }, { "agentId": "kit", "entries": [] },
            { "agentId": "wren", "entries": [] },
        ],
    });
    serde_json::from_value(snapshot).expect("the sample is a snapshot")
}
