//! Changes as rows and rows as changes.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};

use super::StoreError;
use crate::foreman::change::Change;
use crate::foreman::effect::EffectId;
use crate::foreman::state::{FEED_KEPT, State};
use crate::protocol::{AgentId, LogEntry};

/// What a change does to the tables.
enum Place<'a> {
    /// The newest value of an entity.
    Entity(&'static str, String),
    /// These entities are gone.
    Gone(Vec<(&'static str, String)>),
    Effect(EffectId),
    EffectGone(EffectId),
    Log(&'a AgentId, &'a [LogEntry]),
    Feed,
    /// Only the journal knows it.
    Nowhere,
}

fn place(change: &Change) -> Place<'_> {
    match change {
        Change::Agent(agent) => Place::Entity("agent", agent.id.to_string()),
        Change::Task(task) => Place::Entity("task", task.id.to_string()),
        Change::Decision(decision) => Place::Entity("decision", decision.id.to_string()),
        Change::Repo(repo) => Place::Entity("repo", repo.id.to_string()),
        Change::Goal(goal) => Place::Entity("goal", goal.id.to_string()),
        Change::Status(_) => Place::Entity("status", String::new()),
        Change::AgentWork(id, _) => Place::Entity("agent_work", id.to_string()),
        Change::TaskWork(id, _) => Place::Entity("task_work", id.to_string()),
        Change::GoalWork(id, _) => Place::Entity("goal_work", id.to_string()),
        Change::RepoWork(id, _) => Place::Entity("repo_work", id.to_string()),
        Change::Waiter(id, _) => Place::Entity("waiter", id.to_string()),
        Change::WaiterGone(id) => Place::Gone(vec![("waiter", id.to_string())]),
        Change::DecisionGone(id) => Place::Gone(vec![("decision", id.to_string()), ("waiter", id.to_string())]),
        Change::Turn(turn) => Place::Entity("turn", turn.id.0.to_string()),
        Change::TurnGone(id) => Place::Gone(vec![("turn", id.0.to_string())]),
        Change::EffectWanted(id, _) => Place::Effect(*id),
        Change::EffectGone(id) => Place::EffectGone(*id),
        Change::Message(message) => Place::Entity("message", message.number.to_string()),
        Change::MessageGone(number) => Place::Gone(vec![("message", number.to_string())]),
        Change::Session(key, _) => Place::Entity("session", key.clone()),
        Change::Grant(grant) | Change::GrantGone(grant) => {
            // Three texts of which none can hold a newline by itself except the key, which comes last.
            let id = format!("{}\n{}\n{}", grant.agent, grant.repo, grant.key.0);
            match change {
                Change::Grant(_) => Place::Entity("grant", id),
                _ => Place::Gone(vec![("grant", id)]),
            }
        }
        Change::Counter(counter, _) => Place::Entity("counter", format!("{counter:?}")),
        Change::Log { agent, entries } => Place::Log(agent, entries),
        Change::Feed(_) => Place::Feed,
        Change::Memory(_) | Change::MemoryGone(_) | Change::Say(_) | Change::Notify(_) => Place::Nowhere,
    }
}

/// The JSON of each change, in order. Fails when one would not read back: better now than at the next start.
pub(crate) fn encode(changes: &[Change]) -> Result<Vec<String>, StoreError> {
    changes
        .iter()
        .map(|change| {
            let checked = serde_json::to_string(change).and_then(|json| match change {
                // Plain texts and integers, and many of them.
                Change::Log { .. } | Change::Feed(_) => Ok(json),
                _ => serde_json::from_str::<Change>(&json).map(|_| json),
            });
            checked.map_err(|source| StoreError::Encode { what: name(change), source })
        })
        .collect()
}

fn name(change: &Change) -> String {
    match place(change) {
        Place::Entity(kind, id) => format!("{kind} {id}"),
        Place::Effect(id) | Place::EffectGone(id) => format!("effect {id}"),
        Place::Log(agent, _) => format!("the log of {agent}"),
        Place::Feed => "the feed".to_owned(),
        Place::Gone(_) | Place::Nowhere => "a note or a notice".to_owned(),
    }
}

/// Writes the rows of `changes`; `encoded` is what [`encode`] made of them. Of several values of one entity only the
/// last is written, and only if it differs from what is there.
pub(crate) fn write(tx: &Transaction<'_>, changes: &[Change], encoded: &[String]) -> rusqlite::Result<()> {
    let mut entities: BTreeMap<(&'static str, String), Option<&str>> = BTreeMap::new();
    let mut effects: BTreeMap<EffectId, Option<&str>> = BTreeMap::new();
    let mut fed = false;
    for (change, json) in changes.iter().zip(encoded) {
        match place(change) {
            Place::Entity(kind, id) => {
                entities.insert((kind, id), Some(json));
            }
            Place::Gone(gone) => entities.extend(gone.into_iter().map(|key| (key, None))),
            Place::Effect(id) => {
                effects.insert(id, Some(json));
            }
            Place::EffectGone(id) => {
                effects.insert(id, None);
            }
            Place::Log(agent, entries) => {
                let mut add = tx.prepare_cached("INSERT INTO log (agent, ts, kind, text) VALUES (?1, ?2, ?3, ?4)")?;
                for entry in entries {
                    add.execute(params![agent.as_str(), as_column(entry.ts), entry.kind.as_str(), entry.text])?;
                }
            }
            Place::Feed => {
                tx.prepare_cached("INSERT INTO feed (json) VALUES (?1)")?.execute([json])?;
                fed = true;
            }
            Place::Nowhere => {}
        }
    }
    for ((kind, id), json) in entities {
        match json {
            Some(json) => tx
                .prepare_cached(
                    "INSERT INTO entity (kind, id, json) VALUES (?1, ?2, ?3)
                     ON CONFLICT (kind, id) DO UPDATE SET json = excluded.json WHERE json <> excluded.json",
                )?
                .execute(params![kind, id, json])?,
            None => tx.prepare_cached("DELETE FROM entity WHERE kind = ?1 AND id = ?2")?.execute(params![kind, id])?,
        };
    }
    for (id, json) in effects {
        match json {
            Some(json) => tx
                .prepare_cached(
                    "INSERT INTO effect (id, json) VALUES (?1, ?2)
                     ON CONFLICT (id) DO UPDATE SET json = excluded.json WHERE json <> excluded.json",
                )?
                .execute(params![as_column(id.0), json])?,
            None => tx.prepare_cached("DELETE FROM effect WHERE id = ?1")?.execute([as_column(id.0)])?,
        };
    }
    if fed {
        // Rows are only ever added at the end, so the newest are those with the highest numbers.
        tx.prepare_cached("DELETE FROM feed WHERE seq <= (SELECT max(seq) FROM feed) - ?1")?
            .execute([as_column(FEED_KEPT as u64)])?;
    }
    Ok(())
}

/// SQLite's integers are signed; nothing of ours comes near the end.
pub(crate) fn as_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The changes that make `state` out of an empty one: the other direction of [`State::apply`].
pub(crate) fn changes_of(state: &State) -> Vec<Change> {
    let State {
        agents,
        agent_work,
        goals,
        goal_work,
        tasks,
        task_work,
        decisions,
        waiters,
        repos,
        repo_work,
        memory,
        feed,
        logs,
        messages,
        turns,
        effects,
        sessions,
        grants,
        counters,
        status,
    } = state;
    let mut changes = vec![Change::Status(status.clone())];
    changes.extend(agents.values().cloned().map(Change::Agent));
    changes.extend(agent_work.iter().map(|(id, work)| Change::AgentWork(id.clone(), work.clone())));
    changes.extend(goals.values().cloned().map(Change::Goal));
    changes.extend(goal_work.iter().map(|(id, work)| Change::GoalWork(id.clone(), work.clone())));
    changes.extend(tasks.values().cloned().map(Change::Task));
    changes.extend(task_work.iter().map(|(id, work)| Change::TaskWork(id.clone(), Box::new(work.clone()))));
    changes.extend(decisions.values().cloned().map(Change::Decision));
    changes.extend(waiters.iter().map(|(id, waiter)| Change::Waiter(id.clone(), Box::new(waiter.clone()))));
    changes.extend(repos.values().cloned().map(Change::Repo));
    changes.extend(repo_work.iter().map(|(id, work)| Change::RepoWork(id.clone(), work.clone())));
    changes.extend(memory.values().cloned().map(Change::Memory));
    changes.extend(feed.iter().cloned().map(Change::Feed));
    changes.extend(
        logs.iter().map(|(agent, log)| Change::Log { agent: agent.clone(), entries: log.iter().cloned().collect() }),
    );
    changes.extend(messages.values().cloned().map(Change::Message));
    changes.extend(turns.values().map(|turn| Change::Turn(Box::new(turn.clone()))));
    changes.extend(effects.iter().map(|(id, effect)| Change::EffectWanted(*id, Box::new(effect.clone()))));
    changes.extend(sessions.iter().map(|(key, session)| Change::Session(key.clone(), session.clone())));
    changes.extend(grants.iter().cloned().map(Change::Grant));
    changes.extend(counters.iter().map(|(counter, value)| Change::Counter(*counter, *value)));
    changes
}
