//! What must hold after every step, one function each. Each counts how often its precondition held: an invariant that
//! never had anything to say proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use agentcraft_tui::foreman::state::{Stage, TurnPhase, Waiter};
use agentcraft_tui::protocol::*;
use agentcraft_tui::turn::Job;

use super::world::World;

/// How often each invariant's precondition held.
pub type Counts = BTreeMap<&'static str, u64>;

pub fn check(world: &World, counts: &mut Counts) -> Result<(), String> {
    one_turn_per_agent(world, counts)?;
    merges_were_answered(world, counts)?;
    no_orphan_decision(world, counts)?;
    told_is_stored(world, counts)?;
    nothing_waits_for_nothing(world, counts)?;
    concurrency(world, counts)?;
    stopped_agents_rest(world, counts)?;
    progress_formula(world, counts)?;
    Ok(())
}

fn count(counts: &mut Counts, name: &'static str) {
    *counts.entry(name).or_default() += 1;
}

/// Nobody is in two places: one live turn per worker, one per goal for the lead.
fn one_turn_per_agent(world: &World, counts: &mut Counts) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for turn in world.state().turns.values() {
        if turn.phase == TurnPhase::Wanted {
            continue;
        }
        count(counts, "one turn per agent");
        let key = (turn.agent.clone(), (turn.agent.as_str() == "marlow").then(|| turn.goal.clone()));
        if !seen.insert(key) {
            return Err(format!("{} has two turns at once", turn.agent));
        }
    }
    Ok(())
}

/// Git merged only what an answered *Merge* named, exactly that commit, and at most once per decision.
fn merges_were_answered(world: &World, counts: &mut Counts) -> Result<(), String> {
    let mut decisions = BTreeSet::new();
    for (decision, head) in &world.git.merge_log {
        count(counts, "merges were answered");
        if !decisions.insert(decision) {
            return Err(format!("{decision} was merged twice"));
        }
        let Some(record) = world.stored.decisions.get(decision.as_str()) else { continue };
        let answered = record.status == DecisionStatus::Answered
            && record.answer.as_ref().and_then(|answer| answer.option.as_deref()) == Some(label::MERGE);
        if !answered {
            return Err(format!("{decision} was merged but is {} {:?}", record.status, record.answer));
        }
        if let Some(Waiter::Merge { head: reviewed }) = world.stored.waiters.get(decision.as_str())
            && reviewed != head
        {
            return Err(format!("{decision} reviewed {reviewed} but merged {head}"));
        }
    }
    Ok(())
}

/// An open decision has somebody who waits for it.
fn no_orphan_decision(world: &World, counts: &mut Counts) -> Result<(), String> {
    let state = world.state();
    for decision in state.decisions.values().filter(|decision| decision.status == DecisionStatus::Open) {
        count(counts, "no orphan decision");
        let id = &decision.id;
        let fine = match state.waiters.get(id) {
            None => false,
            Some(Waiter::Question { turn, .. }) => turn.is_none_or(|turn| {
                matches!(state.turns.get(&turn).map(|turn| &turn.phase), Some(TurnPhase::Running(_)))
            }),
            Some(Waiter::Permission { turn: Some(turn), .. }) => {
                matches!(state.turns.get(turn).map(|turn| &turn.phase), Some(TurnPhase::Running(_)))
            }
            // After a restart: the resumed turn asks again, or the answer to a question resumes it first.
            Some(Waiter::Permission { turn: None, .. }) => {
                state.turns.values().any(|turn| turn.agent == decision.agent_id)
                    || state.waiters.iter().any(|(other, waiter)| {
                        matches!(waiter, Waiter::Question { turn: None, .. })
                            && state.decisions.get(other).is_some_and(|other| {
                                other.status == DecisionStatus::Open && other.agent_id == decision.agent_id
                            })
                    })
            }
            Some(Waiter::Merge { .. }) => decision.task_id.as_ref().is_some_and(|task| {
                matches!(state.task_work.get(task).map(|work| &work.stage), Some(Stage::Deciding { decision }) if decision == id)
            }),
        };
        if !fine {
            return Err(format!(
                "{id} ({}) is open and nobody waits for it: {:?}",
                decision.kind,
                state.waiters.get(id)
            ));
        }
    }
    Ok(())
}

/// What is in memory is what is on disk, so what was told is.
fn told_is_stored(world: &World, counts: &mut Counts) -> Result<(), String> {
    count(counts, "told is stored");
    if world.state() == &world.stored { Ok(()) } else { Err("state in memory and on disk differ".into()) }
}

/// Everything that is not final has an effect, a turn, a timer, an open decision, or says what the person can do.
fn nothing_waits_for_nothing(world: &World, counts: &mut Counts) -> Result<(), String> {
    let state = world.state();
    for task in state.tasks.values() {
        let stage = state.task_work.get(&task.id).map(|work| work.stage.clone()).unwrap_or_default();
        let has_turn = |job: Option<Job>| {
            state
                .turns
                .values()
                .any(|turn| turn.task.as_ref() == Some(&task.id) && job.is_none_or(|job| turn.job == job))
        };
        let question = state
            .decisions
            .values()
            .any(|decision| decision.status == DecisionStatus::Open && decision.task_id.as_ref() == Some(&task.id));
        let effect = |id| state.effects.contains_key(id);
        let staged = match &stage {
            Stage::Board => None,
            Stage::Preparing { effect: id, .. }
            | Stage::Abandoning { effect: id }
            | Stage::Collecting { effect: id }
            | Stage::Testing { effect: id }
            | Stage::Merging { effect: id, .. } => Some(effect(id)),
            Stage::Quieting { .. } => Some(has_turn(None)),
            Stage::Reviewing => Some(has_turn(Some(Job::Review))),
            Stage::Deciding { decision } => {
                Some(state.decisions.get(decision).is_some_and(|decision| decision.status == DecisionStatus::Open))
            }
        };
        if staged == Some(false) {
            return Err(format!("{} is {stage:?} but nothing comes of it", task.id));
        }
        match task.status {
            TaskStatus::Doing => {
                count(counts, "doing goes on");
                if staged.is_none() && !has_turn(None) && !question {
                    return Err(format!("{} is doing but nobody does it", task.id));
                }
            }
            TaskStatus::Review => {
                count(counts, "review goes on");
                if staged.is_none() && !has_turn(None) {
                    return Err(format!("{} is in review but nobody looks", task.id));
                }
            }
            TaskStatus::Blocked => {
                count(counts, "blocked says why");
                if task.blocked_reason.as_deref().unwrap_or_default().is_empty() {
                    return Err(format!("{} is blocked without a reason", task.id));
                }
            }
            TaskStatus::Todo | TaskStatus::Done | TaskStatus::Cancelled => {}
        }
    }
    for goal in state.goals.values().filter(|goal| goal.status == GoalStatus::Planning) {
        count(counts, "planning goes on");
        let planned = state.turns.values().any(|turn| turn.goal.as_ref() == Some(&goal.id));
        let question = state.waiters.iter().any(|(id, waiter)| {
            matches!(waiter, Waiter::Question { goal: Some(at), .. } if *at == goal.id)
                && state.decisions.get(id).is_some_and(|decision| decision.status == DecisionStatus::Open)
        });
        if !planned && !question {
            return Err(format!("{} is planning but nobody plans", goal.id));
        }
    }
    Ok(())
}

/// No more workers work at once than configured.
fn concurrency(world: &World, counts: &mut Counts) -> Result<(), String> {
    let working = world
        .state()
        .turns
        .values()
        .filter(|turn| turn.agent.as_str() != "marlow")
        .filter(|turn| matches!(&turn.phase, TurnPhase::Running(running) if running.working_since.is_some()))
        .count();
    if working == world.settings.max_concurrent {
        count(counts, "concurrency");
    }
    if working > world.settings.max_concurrent {
        return Err(format!("{working} worker turns work at once"));
    }
    Ok(())
}

/// An agent off shift has no running turn and shows none of its work.
fn stopped_agents_rest(world: &World, counts: &mut Counts) -> Result<(), String> {
    let state = world.state();
    for agent in state.agents.values().filter(|agent| !agent.active) {
        count(counts, "stopped agents rest");
        let runs =
            state.turns.values().any(|turn| turn.agent == agent.id && matches!(turn.phase, TurnPhase::Running(_)));
        if runs || agent.task_id.is_some() {
            return Err(format!("{} is off shift and works", agent.id));
        }
    }
    Ok(())
}

/// Progress is the mean over the tasks that are not cancelled.
fn progress_formula(world: &World, counts: &mut Counts) -> Result<(), String> {
    let state = world.state();
    for goal in state.goals.values().filter(|goal| goal.status == GoalStatus::Active) {
        count(counts, "progress formula");
        let live: Vec<&Task> = state
            .tasks
            .values()
            .filter(|task| task.goal_id.as_ref() == Some(&goal.id) && task.status != TaskStatus::Cancelled)
            .collect();
        let sum: f64 = live
            .iter()
            .map(|task| match task.status {
                TaskStatus::Done => 1.0,
                TaskStatus::Review => 0.75,
                TaskStatus::Doing => 0.4,
                _ => 0.0,
            })
            .sum();
        let mean = if live.is_empty() { 0.0 } else { sum / live.len() as f64 };
        if (goal.progress - mean).abs() > 0.001 {
            return Err(format!("{} has progress {} instead of {mean}", goal.id, goal.progress));
        }
    }
    Ok(())
}
