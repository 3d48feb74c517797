use super::*;
use crate::client::sample;
use crate::protocol::{FeedKind, LogKind};

fn feed(number: usize) -> FeedItem {
    FeedItem { ts: number as u64, kind: FeedKind::System, text: format!("line {number}"), agent_id: None, to: None }
}

/// A view built from a snapshot gives that snapshot back.
#[test]
fn snapshot_survives() {
    let snapshot = sample::snapshot();
    assert_eq!(Mirror::from_snapshot(snapshot.clone()).snapshot(), snapshot);
}

/// Feed, logs and closed decisions keep what a snapshot would hold, the newest of them; open decisions stay.
#[test]
fn retention_is_the_snapshots() {
    let mut mirror = Mirror::from_snapshot(sample::snapshot());
    for number in 0..FEED_KEPT + 50 {
        mirror.apply(&ServerMessage::FeedAdd { item: feed(number) });
    }
    for number in 0..LOG_KEPT + 50 {
        let entries = vec![LogEntry { ts: number as u64, kind: LogKind::Text, text: number.to_string() }];
        mirror.apply(&ServerMessage::AgentLog { agent_id: "kit".into(), entries });
    }
    let open = mirror.open_decisions().len();
    let template = mirror.decisions.values().next().expect("the sample has decisions").clone();
    for number in 100..150 {
        let id = DecisionId::nth(number);
        let decision = Decision { id, status: DecisionStatus::Answered, ..template.clone() };
        mirror.apply(&ServerMessage::DecisionUpsert { decision });
    }
    let snapshot = mirror.snapshot();
    assert_eq!(snapshot.feed.len(), FEED_KEPT);
    assert_eq!(snapshot.feed.last(), Some(&feed(FEED_KEPT + 49)));
    assert_eq!(mirror.logs["kit"].len(), LOG_KEPT);
    let kit = snapshot.logs.iter().find(|logs| logs.agent_id.as_str() == "kit").expect("kit has a log");
    assert_eq!(kit.entries.len(), LOG_IN_SNAPSHOT);
    assert_eq!(kit.entries.last().map(|entry| entry.text.clone()), Some((LOG_KEPT + 49).to_string()));
    assert_eq!(mirror.open_decisions().len(), open, "open decisions are never dropped");
    assert_eq!(mirror.decisions.len(), open + CLOSED_DECISIONS_KEPT);
    assert!(mirror.decisions.contains_key("d149"));
}

/// Upserts replace the whole entity at its place; a new repository becomes the default of a new goal.
#[test]
fn upserts_replace() {
    let mut mirror = Mirror::from_snapshot(sample::snapshot());
    let before: Vec<AgentId> = mirror.agents.iter().map(|agent| agent.id.clone()).collect();
    let mut kit = mirror.agent_named("@Kit").expect("kit is there").clone();
    kit.activity = "elsewhere".to_owned();
    mirror.apply(&ServerMessage::AgentUpsert { agent: kit });
    assert_eq!(mirror.agents.iter().map(|agent| agent.id.clone()).collect::<Vec<_>>(), before);
    assert_eq!(mirror.agent_named("KIT").map(|agent| agent.activity.as_str()), Some("elsewhere"));

    let old = mirror.default_repo().expect("a repository").clone();
    mirror.apply(&ServerMessage::RepoUpsert { repo: Repo { id: "aaa".into(), ..old.clone() } });
    assert_eq!(mirror.default_repo().map(|repo| repo.id.as_str()), Some("aaa"));
    mirror.apply(&ServerMessage::RepoUpsert { repo: Repo { dirty: true, ..old } });
    assert_eq!(mirror.default_repo().map(|repo| repo.id.as_str()), Some("aaa"), "an update is no new repository");
}

/// Permissions come before questions, questions before merges, the oldest of a kind first.
#[test]
fn decisions_are_offered_in_order() {
    let mirror = Mirror::from_snapshot(sample::snapshot());
    let order: Vec<&str> = mirror.open_decisions().iter().map(|decision| decision.id.as_str()).collect();
    assert_eq!(order, ["d3", "d4", "d5", "d2"]);
}
