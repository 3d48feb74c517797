use proptest::prelude::*;

use super::*;
use crate::protocol::{
    Ack, Agent, AgentLogs, AgentRole, AgentState, AuthStatus, BackendName, Diff, DiffStats, ErrorReply, FeedItem,
    FeedKind, ForemanStatus, Goal, GoalStatus, LogEntry, LogKind, Notify, NotifyLevel, Snapshot, Station,
};

fn agent(id: u8, version: usize) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::AgentUpsert { agent: agent_entity(id, version) })
}

fn agent_entity(id: u8, version: usize) -> Agent {
    Agent {
        id: format!("a{id}").into(),
        name: "Kit".to_owned(),
        role: AgentRole::Worker,
        title: None,
        color: "#112233".to_owned().try_into().unwrap(),
        accent: None,
        skin: "kit".to_owned(),
        state: AgentState::Idle,
        activity: version.to_string(),
        station: Station::Desk,
        task_id: None,
        repo_id: None,
        worktree: None,
        paused: false,
        active: true,
    }
}

fn goal(id: u8, version: usize) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::GoalUpsert {
        goal: Goal {
            id: GoalId::nth(u64::from(id)),
            text: version.to_string(),
            progress: 0.0,
            status: GoalStatus::Active,
            repo_id: None,
            created_at: 1,
            updated_at: 1,
        },
    })
}

fn status(version: usize) -> ForemanStatus {
    ForemanStatus {
        version: version.to_string(),
        backend: BackendName::Sim,
        auth: AuthStatus::Ok,
        message: None,
        account: None,
        speed: None,
        showcase: None,
        cost_usd: None,
        user_name: None,
    }
}

fn feed(version: usize) -> Arc<Outgoing> {
    let item = FeedItem { ts: 1, kind: FeedKind::System, text: version.to_string(), agent_id: None, to: None };
    Outgoing::new(ServerMessage::FeedAdd { item })
}

fn log(version: usize) -> Arc<Outgoing> {
    let entries = vec![LogEntry { ts: 1, kind: LogKind::Text, text: version.to_string() }];
    Outgoing::new(ServerMessage::AgentLog { agent_id: "a1".into(), entries })
}

fn notify(text: &str) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::Notify(Notify {
        level: NotifyLevel::Info,
        text: text.to_owned(),
        decision_id: None,
        ts: 1,
    }))
}

fn ack(re: usize) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::Ack(Ack { re: re.to_string(), ok: true, error: None, result: None }))
}

fn diff(text: &str) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::Diff(Box::new(Diff {
        request_id: "r".to_owned(),
        repo_id: "demo".into(),
        worktree: "w".into(),
        base: None,
        branch: None,
        files: Vec::new(),
        stats: DiffStats::default(),
        truncated: false,
        error: Some(text.to_owned()),
    })))
}

/// What a client knows: the test's own, smallest mirror. Entities by kind and id, appends in order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    entities: BTreeMap<Entity, ServerMessage>,
    appended: Vec<ServerMessage>,
}

impl Known {
    fn hear(&mut self, message: &ServerMessage) {
        match kind(message) {
            Kind::Upsert(entity) => {
                self.entities.insert(entity, message.clone());
            }
            Kind::Append => self.appended.push(message.clone()),
            Kind::Snapshot => {
                let ServerMessage::Snapshot(snapshot) = message else { unreachable!() };
                self.entities.clear();
                for agent in &snapshot.agents {
                    self.hear(&ServerMessage::AgentUpsert { agent: agent.clone() });
                }
                for goal in &snapshot.goals {
                    self.hear(&ServerMessage::GoalUpsert { goal: goal.clone() });
                }
                self.hear(&ServerMessage::ForemanStatus { status: snapshot.foreman.clone() });
                self.appended = snapshot.feed.iter().cloned().map(|item| ServerMessage::FeedAdd { item }).collect();
                for AgentLogs { agent_id, entries } in &snapshot.logs {
                    self.appended.extend(entries.iter().map(|entry| ServerMessage::AgentLog {
                        agent_id: agent_id.clone(),
                        entries: vec![entry.clone()],
                    }));
                }
            }
            Kind::Diff | Kind::Answer => {}
        }
    }

    fn snapshot(&self) -> Arc<Outgoing> {
        let mut snapshot = Snapshot {
            foreman: status(0),
            agents: Vec::new(),
            tasks: Vec::new(),
            decisions: Vec::new(),
            repos: Vec::new(),
            memory: Vec::new(),
            goal: None,
            goals: Vec::new(),
            feed: Vec::new(),
            logs: Vec::new(),
        };
        for message in self.entities.values().chain(&self.appended).cloned() {
            match message {
                ServerMessage::AgentUpsert { agent } => snapshot.agents.push(agent),
                ServerMessage::GoalUpsert { goal } => snapshot.goals.push(goal),
                ServerMessage::ForemanStatus { status } => snapshot.foreman = status,
                ServerMessage::FeedAdd { item } => snapshot.feed.push(item),
                ServerMessage::AgentLog { agent_id, entries } => snapshot.logs.push(AgentLogs { agent_id, entries }),
                other => unreachable!("{other:?}"),
            }
        }
        Outgoing::new(ServerMessage::Snapshot(Box::new(snapshot)))
    }

    /// Feed and log order among themselves is lost in a snapshot, as on the real wire.
    fn sorted(mut self) -> Self {
        self.appended.sort_by_key(|message| matches!(message, ServerMessage::AgentLog { .. }));
        self
    }
}

#[derive(Clone, Debug)]
enum Step {
    Agent(u8),
    Goal(u8),
    Status,
    Feed,
    Log,
    Ack,
    Read(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u8..3).prop_map(Step::Agent),
        3 => (0_u8..3).prop_map(Step::Goal),
        1 => Just(Step::Status),
        2 => Just(Step::Feed),
        2 => Just(Step::Log),
        2 => Just(Step::Ack),
        2 => (1_u8..4).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 0..80)
}

fn message(step: &Step, number: usize) -> Option<Arc<Outgoing>> {
    Some(match step {
        Step::Agent(id) => agent(*id, number),
        Step::Goal(id) => goal(*id, number),
        Step::Status => Outgoing::new(ServerMessage::ForemanStatus { status: status(number) }),
        Step::Feed => feed(number),
        Step::Log => log(number),
        Step::Ack => ack(number),
        Step::Read(_) => return None,
    })
}

/// Hears a message; an ack must find exactly what the full stream had told when the ack was pushed.
fn hear(known: &mut Known, outgoing: &Outgoing, promised: &BTreeMap<String, Known>) {
    if let ServerMessage::Ack(ack) = outgoing.message() {
        assert_eq!(known, &promised[&ack.re], "at ack {}", ack.re);
    }
    known.hear(outgoing.message());
}

proptest! {
    /// A client that reads the coalesced stream, at any pace, ends up knowing what the full stream tells, and at each
    /// ack knows exactly what was told before it.
    #[test]
    fn coalescing_loses_nothing_and_reorders_no_ack(steps in steps()) {
        let mut outbox = Outbox::new(usize::MAX);
        let mut full = Known::default();
        let mut known = Known::default();
        let mut promised = BTreeMap::new();
        let mut acks_pushed = Vec::new();
        let mut acks_heard = Vec::new();
        let mut read = |outbox: &mut Outbox, known: &mut Known, promised: &BTreeMap<String, Known>| {
            let Some(outgoing) = outbox.pop() else { return false };
            if let ServerMessage::Ack(ack) = outgoing.message() {
                acks_heard.push(ack.re.clone());
            }
            hear(known, &outgoing, promised);
            true
        };
        for (number, step) in steps.iter().enumerate() {
            match message(step, number) {
                Some(outgoing) => {
                    if let ServerMessage::Ack(ack) = outgoing.message() {
                        promised.insert(ack.re.clone(), full.clone());
                        acks_pushed.push(ack.re.clone());
                    }
                    full.hear(outgoing.message());
                    outbox.push(outgoing).unwrap();
                }
                None => {
                    let Step::Read(count) = step else { unreachable!() };
                    for _ in 0..*count {
                        read(&mut outbox, &mut known, &promised);
                    }
                }
            }
        }
        while read(&mut outbox, &mut known, &promised) {}
        prop_assert_eq!(known, full);
        prop_assert_eq!(acks_heard, acks_pushed);
        prop_assert_eq!(outbox.bytes(), 0);
        prop_assert!(outbox.replaceable.is_empty());
    }

    /// A client that falls behind a small bound is made whole by snapshots; every ack still comes, after what it
    /// promises, and memory stays bounded.
    #[test]
    fn overflow_then_resync_makes_whole(steps in steps(), bound in 1_500_usize..6_000) {
        let mut outbox = Outbox::new(bound);
        let mut full = Known::default();
        full.hear(&ServerMessage::ForemanStatus { status: status(0) });
        let mut known = full.clone();
        let mut acks_pushed = Vec::new();
        let mut acks_heard = Vec::new();
        let mut largest = 0;
        let mut read = |outbox: &mut Outbox, known: &mut Known| {
            let Some(outgoing) = outbox.pop() else { return false };
            if let ServerMessage::Ack(ack) = outgoing.message() {
                acks_heard.push(ack.re.clone());
            }
            known.hear(outgoing.message());
            true
        };
        for (number, step) in steps.iter().enumerate() {
            match message(step, number) {
                Some(outgoing) => {
                    if let ServerMessage::Ack(ack) = outgoing.message() {
                        acks_pushed.push(ack.re.clone());
                    }
                    full.hear(outgoing.message());
                    if outbox.push(outgoing).is_err() {
                        let snapshot = full.snapshot();
                        largest = largest.max(cost(&snapshot));
                        outbox.resync(snapshot);
                    }
                    prop_assert!(outbox.bytes() <= bound * 4 + largest);
                }
                None => {
                    read(&mut outbox, &mut known);
                }
            }
        }
        while read(&mut outbox, &mut known) {}
        prop_assert_eq!(known.sorted(), full.sorted());
        if acks_pushed.len() * cost(&ack(99)) <= bound {
            prop_assert_eq!(acks_heard, acks_pushed);
        }
    }
}

#[test]
fn the_newest_value_waits_at_the_first_place() {
    let mut outbox = Outbox::new(usize::MAX);
    for message in [agent(1, 1), notify("x"), agent(1, 2), agent(2, 1), agent(1, 3)] {
        outbox.push(message).unwrap();
    }
    assert_eq!(outbox.pop().unwrap().message(), agent(1, 3).message());
    assert_eq!(outbox.pop().unwrap().message(), notify("x").message());
    // The place is gone with its sending: a newer value waits anew.
    outbox.push(agent(1, 4)).unwrap();
    assert_eq!(outbox.pop().unwrap().message(), agent(2, 1).message());
    assert_eq!(outbox.pop().unwrap().message(), agent(1, 4).message());
    assert!(outbox.pop().is_none() && outbox.is_empty());
}

#[test]
fn every_reply_fixes_what_is_before_it() {
    for reply in [ack(1), diff("x"), Known::default().snapshot(), error("x")] {
        let mut outbox = Outbox::new(usize::MAX);
        for message in [agent(1, 1), reply.clone(), agent(1, 2), agent(1, 3)] {
            outbox.push(message).unwrap();
        }
        assert_eq!(outbox.pop().unwrap().message(), agent(1, 1).message());
        assert_eq!(outbox.pop().unwrap().message(), reply.message());
        assert_eq!(outbox.pop().unwrap().message(), agent(1, 3).message());
    }
}

fn error(text: &str) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::Error(ErrorReply { message: text.to_owned(), re: None }))
}

#[test]
fn over_the_bound_nothing_is_taken_but_answers() {
    let mut outbox = Outbox::new(2_000);
    while outbox.push(feed(1)).is_ok() {}
    let waiting = outbox.waiting.len();
    assert_eq!(outbox.push(feed(2)), Err(Overflow));
    assert_eq!(outbox.push(agent(1, 1)), Err(Overflow));
    assert_eq!(outbox.push(ack(7)), Err(Overflow));
    assert_eq!(outbox.waiting.len(), waiting + 1);
    outbox.resync(Known::default().snapshot());
    assert!(matches!(outbox.pop().unwrap().message(), ServerMessage::Snapshot(_)));
    assert_eq!(outbox.pop().unwrap().message(), ack(7).message());
    assert!(outbox.is_empty());
    outbox.push(feed(3)).unwrap();
}

#[test]
fn a_message_larger_than_the_bound_is_sent_alone() {
    let mut outbox = Outbox::new(1_000);
    let large = diff(&"x".repeat(5_000));
    outbox.push(large.clone()).unwrap();
    assert_eq!(outbox.push(feed(1)), Err(Overflow));
    outbox.resync(Known::default().snapshot());
    assert!(matches!(outbox.pop().unwrap().message(), ServerMessage::Snapshot(_)));
    assert!(outbox.pop().is_none(), "a diff too large to keep is asked for again");
}

#[test]
fn answers_without_end_are_bounded_too() {
    let mut outbox = Outbox::new(10_000);
    for number in 0..10_000 {
        let _ = outbox.push(ack(number));
    }
    assert!(outbox.bytes() <= 20_000);
}
