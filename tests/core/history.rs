//! Random histories from a seed: engines, git, tests, the person and crashes in any order; invariants after each step,
//! and liveness at the end: when the chaos is over and the person answers everything, every goal reaches its end.

use agentcraft_tui::foreman::effect::{CiOutcome, MergeOutcome, PrepareFailure};
use agentcraft_tui::foreman::{Effect, EffectResult, Input};
use agentcraft_tui::protocol::*;
use agentcraft_tui::turn::*;
use fastrand::Rng;

use super::invariants::{self, Counts};
use super::world::{World, ask_verdict, fail, pass};

const AGENTS: [&str; 6] = ["marlow", "juniper", "kit", "wren", "rowan", "tove"];

/// Weights of this seed's kinds of trouble, so that seeds differ in character.
struct Swarm {
    crash: u32,
    person: u32,
    failures: u32,
    ask: u32,
}

fn pick<T: Clone>(rng: &mut Rng, items: &[T]) -> Option<T> {
    if items.is_empty() { None } else { Some(items[rng.usize(..items.len())].clone()) }
}

/// One random step of the world.
fn step(world: &mut World, rng: &mut Rng, swarm: &Swarm) {
    let total = 40 + 30 + swarm.person + swarm.crash + 10;
    let mut roll = rng.u32(..total);
    let mut take = |weight: u32| {
        if roll < weight {
            roll = u32::MAX;
            true
        } else {
            roll = roll.saturating_sub(weight);
            false
        }
    };
    if take(40) {
        engine_step(world, rng, swarm);
    } else if take(30) {
        effect_step(world, rng, swarm);
    } else if take(swarm.person) {
        person_step(world, rng);
    } else if take(swarm.crash) {
        crash_step(world, rng);
    } else {
        let within = [500, 5_000, 120_000, 3_600_000][rng.usize(..4)];
        world.sleep(within);
    }
}

fn crash_step(world: &mut World, rng: &mut Rng) {
    let input = match pick(rng, &world.effects.keys().copied().collect::<Vec<_>>()) {
        Some(id) if rng.bool() => {
            let effect = world.effects[&id].clone();
            // The effect happened in the world, its result never arrived in time.
            let result = world.result(&effect);
            Input::Done { effect: id, result }
        }
        _ => Input::Tick,
    };
    match rng.u8(..3) {
        0 => world.crash(),
        1 => world.input_and_die_uncommitted(input),
        _ => world.input_and_die_committed(input),
    }
}

fn effect_step(world: &mut World, rng: &mut Rng, swarm: &Swarm) {
    let Some(id) = pick(rng, &world.effects.keys().copied().collect::<Vec<_>>()) else { return };
    if rng.u32(..100) >= swarm.failures {
        world.ci = if rng.u8(..4) == 0 { fail() } else { pass() };
        world.run_effect(id);
        return;
    }
    let effect = world.effects.remove(&id).unwrap();
    let result = match &effect {
        Effect::PrepareWorktree(_) => EffectResult::WorktreePrepared(Err(match rng.u8(..3) {
            0 => PrepareFailure::Passing("the disk is slow".into()),
            1 => PrepareFailure::Lasting("the base branch is gone".into()),
            _ => PrepareFailure::Setup { reason: "exit 1".into(), output: "npm ERR!".into() },
        })),
        Effect::PrepareCopy { .. } => EffectResult::CopyPrepared(Err("no space".into())),
        Effect::Collect { .. } => EffectResult::Collected(Err("its git directory was tampered with".into())),
        Effect::RunCi { .. } => EffectResult::CiRun(match rng.bool() {
            true => CiOutcome::NoCommand,
            false => CiOutcome::Broken("sh is missing".into()),
        }),
        Effect::Merge(order) => {
            if world.git.merged.contains_key(&order.mark) {
                world.result(&effect)
            } else {
                EffectResult::Merged(match rng.u8(..3) {
                    0 => MergeOutcome::Conflict { files: vec!["a.txt".into()] },
                    _ => MergeOutcome::Refused { reason: "uncommitted changes".into() },
                })
            }
        }
        Effect::Abandon { .. } => EffectResult::Abandoned(Err("tampered".into())),
        Effect::WriteMemory(_) => EffectResult::MemoryWritten(Err("disk full".into())),
        _ => EffectResult::Crashed("a task panicked".into()),
    };
    world.input(Input::Done { effect: id, result });
}

fn engine_step(world: &mut World, rng: &mut Rng, swarm: &Swarm) {
    if rng.u8(..4) == 0 {
        world.end_stopped();
    }
    let Some(turn) = pick(rng, &world.turns.keys().copied().collect::<Vec<_>>()) else { return };
    let play = &world.turns[&turn];
    if play.stopping {
        if rng.bool() {
            world.end(turn, TurnEnd::Stopped);
        } else {
            // What a stopped turn still says is ignored.
            world.event(turn, TurnEvent::Log(vec![(LogKind::Text, "late words".into())]));
            let request = world.request(turn);
            world.event(turn, TurnEvent::Tool { request, tool: AgentTool::ListTasks });
        }
        return;
    }
    let spec = play.spec.clone();
    let lead = spec.role == AgentRole::Lead;
    let goal_tasks: Vec<TaskId> = spec.brief.board.iter().map(|task| task.id.clone()).collect();
    match rng.u8(..12) {
        0 => world.event(turn, TurnEvent::Log(vec![(LogKind::Tool, "Read src/lib.rs".into())])),
        1 => world.event(
            turn,
            TurnEvent::State { state: AgentState::Reading, station: Some(Station::Library), activity: None },
        ),
        2 if rng.u32(..10) < swarm.ask => {
            let command = ["npm install x", "curl y", "make"][rng.usize(..3)];
            world.ask(turn, command);
        }
        3 if rng.u32(..10) < swarm.ask => {
            let options = if rng.bool() { vec!["Yes".into(), "No".into()] } else { vec![] };
            world.tool(turn, AgentTool::AskUser { question: "Which way?".into(), options, context: None });
        }
        4 => {
            let to = AGENTS[rng.usize(..6)].into();
            world.tool(turn, AgentTool::SendMessage { to, text: "how is it going?".into() });
        }
        5 => {
            world.tool(
                turn,
                AgentTool::WriteMemory {
                    title: "Plan: things".into(),
                    body: "# Plan".into(),
                    scope: MemoryScope::Shared,
                    mode: MemoryMode::Replace,
                },
            );
        }
        6 | 7 if lead && spec.job == Job::Plan => {
            let deps = pick(rng, &goal_tasks).into_iter().collect();
            let assignee = rng.bool().then(|| AGENTS[rng.usize(1..6)].to_owned());
            world.tool(
                turn,
                AgentTool::CreateTask {
                    title: "Do a thing".into(),
                    description: String::new(),
                    deps,
                    assignee,
                    priority: rng.i64(-2..3),
                },
            );
        }
        6 | 7 if spec.job == Job::Review => {
            let task_id = spec.brief.task.as_ref().unwrap().task.id.clone();
            if rng.u8(..4) == 0 {
                let status = Some([ToolStatus::Doing, ToolStatus::Blocked, ToolStatus::Cancelled][rng.usize(..3)]);
                world.tool(turn, AgentTool::UpdateTask(update(task_id, status)));
            } else {
                world.tool(turn, AgentTool::RequestMerge { task_id, summary: "looks good".into() });
            }
        }
        6 | 7 if !lead && spec.brief.task.is_some() => {
            let file = ["a.txt", "b.txt", "conflict.txt"][rng.usize(..3)];
            if spec.job == Job::Work {
                world.edit(turn, file);
            }
            let task_id = spec.brief.task.as_ref().unwrap().task.id.clone();
            let status =
                [ToolStatus::Review, ToolStatus::Review, ToolStatus::Blocked, ToolStatus::Doing][rng.usize(..4)];
            world.tool(turn, AgentTool::UpdateTask(update(task_id, Some(status))));
        }
        8 => world.event(turn, TurnEvent::Cost { total_usd: rng.f64() }),
        9 => {
            let end = match rng.u32(..100) {
                roll if roll < swarm.failures => TurnEnd::Failed(TurnFailure {
                    reason: "error_max_turns".into(),
                    retry_after_ms: rng.bool().then_some(3_000),
                    auth: false,
                }),
                _ => TurnEnd::Completed { text: "done".into() },
            };
            world.end(turn, end);
        }
        10 => {
            // An end twice, and words after it.
            world.end(turn, TurnEnd::Completed { text: "done".into() });
            world.event(turn, TurnEvent::Ended(TurnEnd::Completed { text: "again".into() }));
            world.event(turn, TurnEvent::Touched);
        }
        _ => {
            if !lead && spec.job == Job::Work {
                world.edit(turn, "a.txt");
            }
        }
    }
}

fn update(task_id: TaskId, status: Option<ToolStatus>) -> UpdateTask {
    UpdateTask {
        task_id,
        status,
        summary: Some("what was done".into()),
        blocked_reason: None,
        assignee: None,
        title: None,
        description: None,
        deps: None,
    }
}

fn person_step(world: &mut World, rng: &mut Rng) {
    let tasks: Vec<TaskId> = world.state().tasks.keys().cloned().collect();
    match rng.u8(..12) {
        0 if world.state().goals.len() < 4 => {
            world.client(ClientMessage::GoalSubmit(GoalSubmit { text: "another goal".into(), repo_id: None }));
        }
        1..=5 => {
            let decisions: Vec<DecisionId> = world.state().decisions.keys().cloned().collect();
            if let Some(id) = pick(rng, &decisions) {
                let options = world.state().decisions[&id].options.clone();
                match pick(rng, &options) {
                    Some(option) => world.answer(id.as_str(), &option),
                    None => world.answer_text(id.as_str(), None, "as you like"),
                };
            }
        }
        6 => {
            if let Some(task) = pick(rng, &tasks) {
                let action = TaskActionKind::ALL[rng.usize(..4)];
                world.task_action(task.as_str(), action, Some(AGENTS[rng.usize(..6)]));
            }
        }
        7 | 8 => {
            let action = AgentActionKind::ALL[rng.usize(..4)];
            let arg = pick(rng, &tasks).filter(|_| rng.u8(..3) == 0);
            world.agent_action(AGENTS[rng.usize(..6)], action, arg.as_ref().map(TaskId::as_str));
        }
        9 => {
            world.message(["all", "kit", "marlow", "wren"][rng.usize(..4)], "how far are you?");
        }
        10 => world.git.dirty = !world.git.dirty,
        _ => {
            world.client(ClientMessage::Hello(Hello { mod_version: "1".into(), protocol: 1, client: None }));
        }
    }
}

/// The chaos is over: the person brings everybody back, answers everything, and engines do their job.
fn calm_down(world: &mut World) -> Result<(), String> {
    world.git.dirty = false;
    world.ci = pass();
    for agent in AGENTS {
        world.agent_action(agent, AgentActionKind::Resume, None);
    }
    for _ in 0..600 {
        world.end_stopped();
        world.run_effects();
        for id in world.open() {
            let Some(decision) = world.state().decisions.get(&id) else { continue };
            match decision.options.first().cloned() {
                Some(option) => world.answer(id.as_str(), &option),
                None => world.answer_text(id.as_str(), None, "yes"),
            };
            world.run_effects();
        }
        let turns: Vec<TurnId> = world.turns.keys().copied().collect();
        for turn in turns {
            let Some(play) = world.turns.get(&turn) else { continue };
            if play.stopping {
                continue;
            }
            let spec = play.spec.clone();
            match (spec.role, spec.job, spec.brief.task.as_ref()) {
                (AgentRole::Worker, Job::Work, Some(task)) => {
                    let file = format!("{}.txt", task.task.id);
                    world.edit(turn, &file);
                    // A conflict is resolved by taking the base in.
                    let branch = task.task.branch.clone().unwrap_or_default();
                    if let Some(branch) = world.git.branches.get_mut(&branch) {
                        branch.files.retain(|file| !file.starts_with("conflict"));
                    }
                    world.tool(turn, AgentTool::UpdateTask(update(task.task.id.clone(), Some(ToolStatus::Review))));
                }
                (AgentRole::Lead, Job::Plan, _) if spec.brief.board.is_empty() => {
                    world.tool(
                        turn,
                        AgentTool::CreateTask {
                            title: "The thing".into(),
                            description: String::new(),
                            deps: vec![],
                            assignee: None,
                            priority: 0,
                        },
                    );
                }
                _ => {}
            }
            world.complete(turn);
            world.run_effects();
        }
        let blocked: Vec<TaskId> = world
            .state()
            .tasks
            .values()
            .filter(|task| task.status == TaskStatus::Blocked)
            .map(|task| task.id.clone())
            .collect();
        for task in blocked {
            world.task_action(task.as_str(), TaskActionKind::Retry, None);
        }
        let stuck: Vec<TaskId> = world
            .state()
            .tasks
            .values()
            .filter(|task| task.status == TaskStatus::Todo)
            .filter(|task| task.deps.iter().any(|dep| world.state().tasks[dep].status == TaskStatus::Cancelled))
            .map(|task| task.id.clone())
            .collect();
        for task in stuck {
            world.task_action(task.as_str(), TaskActionKind::Cancel, None);
        }
        let over = world
            .state()
            .goals
            .values()
            .all(|goal| matches!(goal.status, GoalStatus::Done | GoalStatus::Cancelled | GoalStatus::Failed));
        if over && world.turns.is_empty() && world.effects.is_empty() {
            return Ok(());
        }
        world.sleep(120_000);
    }
    let state = world.state();
    Err(format!(
        "not over after the chaos: goals {:?}, tasks {:?}, stages {:?}, turns {:?}",
        state.goals.values().map(|goal| (&goal.id, goal.status)).collect::<Vec<_>>(),
        state.tasks.values().map(|task| (&task.id, task.status, &task.assignee, &task.deps)).collect::<Vec<_>>(),
        state.task_work.iter().map(|(id, work)| (id, &work.stage, work.not_before)).collect::<Vec<_>>(),
        state.turns.values().map(|turn| (turn.id, &turn.agent, turn.job, &turn.phase)).collect::<Vec<_>>(),
    ))
}

/// Plays one history; the error carries a short trace.
fn play(seed: u64, steps: u32, counts: &mut Counts) -> Result<String, String> {
    let mut rng = Rng::with_seed(seed);
    let swarm = Swarm {
        crash: [0, 1, 4, 10][rng.usize(..4)],
        person: [5, 15, 40][rng.usize(..3)],
        failures: [0, 5, 30][rng.usize(..3)],
        ask: [1, 5, 9][rng.usize(..3)],
    };
    let settings = agentcraft_tui::foreman::Settings {
        max_concurrent: rng.usize(1..4),
        lead_review: rng.u8(..4) > 0,
        ..World::settings()
    };
    let mut world = World::new(settings);
    world.verdicts.insert("npm install x".into(), ask_verdict("npm install"));
    world.verdicts.insert("curl y".into(), ask_verdict("net curl y"));
    world.connect_repo();
    world.goal("make it good");
    let fail = |world: &World, problem: &str| {
        let skip = world.trace.len().saturating_sub(25);
        format!("seed {seed}: {problem}\nlast steps:\n{}", world.trace[skip..].join("\n"))
    };
    for _ in 0..steps {
        step(&mut world, &mut rng, &swarm);
        invariants::check(&world, counts).map_err(|problem| fail(&world, &problem))?;
    }
    calm_down(&mut world).map_err(|problem| fail(&world, &problem))?;
    invariants::check(&world, counts).map_err(|problem| fail(&world, &problem))?;
    Ok(format!("{:?}", world.state()))
}

/// Random histories keep every invariant and end.
#[test]
fn random_histories_keep_every_invariant() {
    let seeds: u64 = std::env::var("AGENTCRAFT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let first: u64 = std::env::var("AGENTCRAFT_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut counts = Counts::new();
    for seed in first..first + seeds {
        if let Err(problem) = play(seed, 200, &mut counts) {
            panic!("{problem}");
        }
    }
    if seeds >= 200 {
        for name in [
            "one turn per agent",
            "merges were answered",
            "no orphan decision",
            "told is stored",
            "doing goes on",
            "review goes on",
            "blocked says why",
            "planning goes on",
            "concurrency",
            "stopped agents rest",
            "progress formula",
        ] {
            assert!(counts.get(name).copied().unwrap_or(0) > 0, "the precondition of \"{name}\" never held");
        }
    }
}

/// The same seed gives the same history.
#[test]
fn histories_are_deterministic() {
    for seed in [3, 17, 91] {
        let mut counts = Counts::new();
        assert_eq!(play(seed, 120, &mut counts), play(seed, 120, &mut counts));
    }
}
