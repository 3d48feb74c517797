//! The scripted goal, from the first word to the last merge.

use std::collections::BTreeSet;

use agentcraft_tui::foreman::{AutoAnswer, Settings};
use agentcraft_tui::protocol::*;

use super::studio::{Make, Studio, git};

const GOAL: &str = "Add #tags to pocket-notes";

fn automatic() -> Make {
    let make = Make::default();
    Make {
        settings: Settings {
            auto_answer: AutoAnswer { demo: true, delay_ms: 1, retry_ms: 1, ..AutoAnswer::default() },
            ..make.settings
        },
        ..make
    }
}

/// The happy path: nine tasks, seven done, two cancelled, five merges; every state, station, status and message type
/// occurs; the base branch holds the work and its tests are green.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_runs_to_its_end_by_itself() {
    let home = tempfile::tempdir().unwrap();
    let mut studio = Studio::open(home.path(), automatic()).await;
    let repo = home.path().join("pocket-notes");
    studio.add_repo(&repo).await;
    let goal = studio.goal(GOAL).await;
    studio
        .until("the goal to be done", |mirror| {
            mirror.goals.get(&goal).is_some_and(|goal| goal.status == GoalStatus::Done)
        })
        .await;
    let tasks = &studio.mirror.tasks;
    let cancelled: Vec<&str> =
        tasks.values().filter(|task| task.status == TaskStatus::Cancelled).map(|task| task.id.as_str()).collect();
    assert_eq!((tasks.len(), cancelled), (9, vec!["t7", "t9"]), "{}", studio.picture());
    assert_eq!(studio.mirror.goals[&goal].progress, 1.0);
    let merges = studio
        .heard
        .iter()
        .filter(|message| matches!(message, ServerMessage::FeedAdd { item } if item.kind == FeedKind::Merge && item.text.starts_with("Merged")))
        .count();
    assert_eq!(merges, 5, "{}", studio.picture());
    let mut states = BTreeSet::new();
    let mut stations = BTreeSet::new();
    let mut statuses = BTreeSet::new();
    let mut ci = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for message in &studio.heard {
        match message {
            ServerMessage::AgentUpsert { agent } => {
                states.insert(agent.state);
                stations.insert(agent.station);
            }
            ServerMessage::TaskUpsert { task } => {
                statuses.insert(task.status);
                ci.insert(task.ci);
            }
            ServerMessage::AgentLog { entries, .. } => kinds.extend(entries.iter().map(|entry| entry.kind)),
            _ => {}
        }
    }
    assert_eq!(states, AgentState::ALL.iter().copied().collect());
    assert_eq!(stations, Station::ALL.iter().copied().collect());
    assert_eq!(statuses, TaskStatus::ALL.iter().copied().collect());
    assert_eq!(kinds, LogKind::ALL.iter().copied().collect());
    assert!(ci.contains(&CiStatus::Fail) && ci.contains(&CiStatus::Pass));
    // The person's checkout: on main, clean, five merges with two parents, green.
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    assert_eq!(git(&repo, &["rev-list", "--count", "--merges", "--first-parent", "main"]), "5");
    assert_eq!(git(&repo, &["log", "-1", "--format=%an <%ae>", "main"]), "Demo Author <demo@example.com>");
    let tests = std::process::Command::new("sh").arg("test/run.sh").current_dir(&repo).output().unwrap();
    assert!(tests.status.success(), "{}", String::from_utf8_lossy(&tests.stdout));
    studio.close().await;
}

/// By hand: d1 is the permission, d2 the first merge; denied and sent back once, the words of both arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_decisions_are_the_permission_and_the_first_merge() {
    let home = tempfile::tempdir().unwrap();
    let mut studio = Studio::open(home.path(), Make::default()).await;
    let repo = home.path().join("pocket-notes");
    studio.add_repo(&repo).await;
    studio.goal(GOAL).await;
    studio.until_open("d1").await;
    assert_eq!(studio.mirror.decisions["d1"].kind, DecisionKind::Permission);
    assert!(
        studio.mirror.decisions["d1"].context.as_ref().unwrap().contains("\"Always allow for this agent\" covers:")
    );
    studio.answer("d1", label::DENY, Some("no new dependency")).await;
    studio.until_open("d2").await;
    let d2 = studio.mirror.decisions["d2"].clone();
    assert_eq!((d2.kind, d2.task_id.as_ref().unwrap().as_str()), (DecisionKind::Merge, "t2"));
    studio
        .until("the note about the denial", |mirror| {
            mirror.memory.get("shared/decisions").is_some_and(|note| note.body.contains("denied"))
        })
        .await;
    let before = git(&repo, &["rev-parse", "main"]);
    let ack = studio.answer("d2", label::REQUEST_CHANGES, Some("Mention the pattern")).await;
    assert!(ack.ok);
    // Marlow may be asking about t4 meanwhile; the second review of t2 comes after that answer.
    studio
        .until("the question", |mirror| {
            mirror.decisions.values().any(|decision| decision.kind == DecisionKind::Question)
        })
        .await;
    let question = studio.mirror.decisions.values().find(|decision| decision.kind == DecisionKind::Question);
    let question = question.map(|decision| decision.id.to_string()).unwrap();
    assert!(studio.answer(&question, "Include completed notes", None).await.ok);
    studio
        .until("t2 to be offered again", |mirror| {
            mirror.decisions.values().any(|decision| {
                decision.id.as_str() != "d2"
                    && decision.task_id.as_ref().is_some_and(|task| task.as_str() == "t2")
                    && decision.status == DecisionStatus::Open
            })
        })
        .await;
    assert_eq!(git(&repo, &["rev-parse", "main"]), before);
    let again = studio
        .mirror
        .decisions
        .values()
        .find(|decision| {
            decision.task_id.as_ref().is_some_and(|task| task.as_str() == "t2")
                && decision.status == DecisionStatus::Open
        })
        .unwrap()
        .id
        .to_string();
    let ack = studio.answer(&again, label::MERGE, None).await;
    assert!(ack.ok);
    studio.until("t2 to be merged", |mirror| mirror.tasks["t2"].status == TaskStatus::Done).await;
    assert_eq!(git(&repo, &["rev-list", "--parents", "-1", "main"]).split(' ').count(), 3);
    assert!(git(&repo, &["show", "main:lib/tags.sh"]).contains("Review note: Mention the pattern"));
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    studio.close().await;
}

/// A restart while a permission is open: the same decision is still open, its answer reaches the resumed turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_survives_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let mut studio = Studio::open(home.path(), Make::default()).await;
    studio.add_repo(&home.path().join("pocket-notes")).await;
    studio.goal(GOAL).await;
    studio.until_open("d1").await;
    let question = studio.mirror.decisions["d1"].question.clone();
    studio.restart().await;
    assert_eq!(studio.mirror.decisions["d1"].status, DecisionStatus::Open);
    assert_eq!(studio.mirror.decisions["d1"].question, question);
    assert!(studio.answer("d1", label::DENY, None).await.ok);
    studio.until_open("d2").await;
    assert_eq!(studio.mirror.decisions["d2"].kind, DecisionKind::Merge);
    studio
        .until("the note about the denial", |mirror| {
            mirror.memory.get("shared/decisions").is_some_and(|note| note.body.contains("denied"))
        })
        .await;
    studio.close().await;
}

/// Any goal in any repository: a real plan, a permission first, then a merge into the person's own branch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goal_in_the_persons_own_repository() {
    let home = tempfile::tempdir().unwrap();
    let repo = home.path().join("my répo");
    std::fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q", "-b", "trunk"]);
    git(&repo, &["config", "user.name", "Ada L"]);
    git(&repo, &["config", "user.email", "ada@example.com"]);
    std::fs::write(repo.join("README.md"), "# mine\n").unwrap();
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-qm", "start"]);
    std::fs::write(repo.join("untracked.txt"), "keep me").unwrap();
    let mut studio = Studio::open(home.path(), Make::default()).await;
    studio.add_repo(&repo).await;
    let goal = studio.goal("Make it friendlier for newcomers").await;
    studio.until_open("d1").await;
    assert_eq!(studio.mirror.decisions["d1"].kind, DecisionKind::Permission);
    assert!(studio.answer("d1", label::ALLOW_ONCE, None).await.ok);
    studio.until_open("d2").await;
    assert_eq!(studio.mirror.decisions["d2"].kind, DecisionKind::Merge);
    for _ in 0..3 {
        studio
            .until("a merge to decide or the end", |mirror| {
                !mirror.open_decisions().is_empty() || mirror.goals[&goal].status == GoalStatus::Done
            })
            .await;
        let open: Vec<String> = studio.mirror.open_decisions().iter().map(|decision| decision.id.to_string()).collect();
        for id in open {
            assert!(studio.answer(&id, label::MERGE, None).await.ok);
            studio
                .until("the merge", |mirror| {
                    mirror.decisions.get(id.as_str()).is_none_or(|decision| decision.status != DecisionStatus::Open)
                })
                .await;
        }
    }
    studio.until("the goal to be done", |mirror| mirror.goals[&goal].status == GoalStatus::Done).await;
    assert_eq!(git(&repo, &["rev-list", "--count", "--merges", "--first-parent", "trunk"]), "3");
    assert_eq!(git(&repo, &["log", "-1", "--format=%an %cn", "trunk"]), "Ada L Ada L");
    assert_eq!(git(&repo, &["status", "--porcelain"]), "?? untracked.txt");
    assert!(repo.join("docs/REPOSITORY-MAP.md").is_file() && !repo.join("layout-scratch").exists());
    studio.close().await;
}

/// The two showcases hold exactly their states, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn showcases_hold_their_states() {
    use AgentState::{Blocked, Done, Editing, Error, Idle, Reading, Running, Testing, Thinking, WaitingUser};
    let busy = [
        ("marlow", WaitingUser, Station::User),
        ("juniper", Editing, Station::Desk),
        ("kit", Testing, Station::Testbench),
        ("wren", Idle, Station::Lounge),
        ("rowan", Reading, Station::Library),
        ("tove", Thinking, Station::Desk),
    ];
    let late = [
        ("marlow", Thinking, Station::Meeting),
        ("juniper", Running, Station::Terminal),
        ("kit", Done, Station::Lounge),
        ("wren", Blocked, Station::Desk),
        ("rowan", Error, Station::Library),
        ("tove", Editing, Station::Desk),
    ];
    for (name, until, states) in [("busy", 2, busy), ("late", 6, late)] {
        let home = tempfile::tempdir().unwrap();
        let make = automatic();
        let make = Make {
            showcase: Some(name.into()),
            settings: Settings {
                auto_answer: AutoAnswer { until: Some(until), ..make.settings.auto_answer },
                ..make.settings
            },
            ..make
        };
        let mut studio = Studio::open(home.path(), make).await;
        studio.add_repo(&home.path().join("pocket-notes")).await;
        studio.goal(GOAL).await;
        let there = |mirror: &agentcraft_tui::client::Mirror| {
            states.iter().all(|(id, state, station)| {
                mirror
                    .agents
                    .iter()
                    .any(|agent| agent.id.as_str() == *id && agent.state == *state && agent.station == *station)
            })
        };
        studio.until(&format!("the showcase {name}"), there).await;
        assert_eq!(studio.mirror.foreman.showcase, Some(true));
        assert_eq!(studio.mirror.foreman.message.as_deref(), Some("Showcase (static)"));
        let count = |status: TaskStatus| studio.mirror.tasks.values().filter(|task| task.status == status).count();
        if name == "busy" {
            let open: Vec<&str> = studio.mirror.open_decisions().iter().map(|decision| decision.id.as_str()).collect();
            assert_eq!(open, ["d4", "d3"], "a question, then a merge");
            let wall = [TaskStatus::Todo, TaskStatus::Doing, TaskStatus::Review, TaskStatus::Done, TaskStatus::Blocked];
            assert_eq!(wall.map(count), [3, 2, 1, 2, 1], "{}", studio.picture());
        } else {
            assert_eq!(studio.mirror.open_decisions().len(), 0, "{}", studio.picture());
            let merged = studio.mirror.repos["pocket-notes"]
                .worktrees
                .iter()
                .filter(|worktree| worktree.status == WorktreeStatus::Merged)
                .count();
            assert_eq!(merged, 4, "{}", studio.picture());
        }
        studio.restart().await;
        studio.until(&format!("the showcase {name} after a restart"), there).await;
        studio.close().await;
    }
}
