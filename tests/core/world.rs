//! A world for the core: engines, git, tests, clients and a clock, all under the test's hand.
//!
//! Effects wait here until the test (or the random driver) lets them end. A crash throws the core away and starts a
//! new one on what was committed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use agentcraft_tui::foreman::effect::{
    CiOutcome, Collected, MergeOutcome, PreparedWorktree, RepoFacts, WorktreeFacts, WorktreeRef,
};
use agentcraft_tui::foreman::{
    Change, Effect, EffectId, EffectResult, Foreman, Input, Output, Settings, State, World as Seen,
};
use agentcraft_tui::policy::{Ask, ScopeKey, ToolCall, Verdict};
use agentcraft_tui::protocol::*;
use agentcraft_tui::turn::*;

pub const ME: ClientId = ClientId(1);

/// A branch of the simulated repository: a list of commits, each with the files it changed.
#[derive(Clone, Debug, Default)]
pub struct Branch {
    pub commits: Vec<String>,
    pub files: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Git {
    pub base: Vec<String>,
    pub base_files: BTreeSet<String>,
    pub branches: BTreeMap<String, Branch>,
    /// Uncommitted files per worktree directory.
    pub dirs: BTreeMap<PathBuf, BTreeSet<String>>,
    /// Branches a base commit was forked from: branch -> number of base commits.
    pub forks: BTreeMap<String, usize>,
    /// Marks of merges that happened, with the merged head.
    pub merged: BTreeMap<String, String>,
    pub merge_log: Vec<(String, String)>,
    pub dirty: bool,
    pub counter: u64,
}

impl Git {
    fn commit_id(&mut self) -> String {
        self.counter += 1;
        format!("{:040x}", self.counter)
    }
}

/// A turn that an engine plays.
#[derive(Debug)]
pub struct Play {
    pub spec: TurnSpec,
    pub answers: BTreeMap<RequestId, ToolAnswer>,
    pub verdicts: BTreeMap<RequestId, CallVerdict>,
    pub stopping: bool,
    pub requests: u32,
}

pub struct World {
    pub settings: Settings,
    pub core: Foreman,
    /// What is on disk.
    pub stored: State,
    pub now: EpochMs,
    pub effects: BTreeMap<EffectId, Effect>,
    pub turns: BTreeMap<TurnId, Play>,
    pub git: Git,
    /// All that was told to everyone, in order.
    pub told: Vec<ServerMessage>,
    pub replies: Vec<ServerMessage>,
    pub trace: Vec<String>,
    /// Verdict of the judge for calls with this command.
    pub verdicts: BTreeMap<String, Verdict>,
    pub ci: CiOutcome,
    pub ids: BTreeMap<&'static str, BTreeSet<String>>,
    sequence: u64,
    /// Every effect id ever started, with how often in this life.
    pub started: BTreeMap<EffectId, u32>,
}

pub fn pass() -> CiOutcome {
    CiOutcome::Finished {
        command: "sh test/run.sh".into(),
        passed: true,
        duration_ms: 1200,
        output: "ok".into(),
        summary: Some("tests 3, pass 3, fail 0".into()),
        failures: vec![],
    }
}

pub fn fail() -> CiOutcome {
    CiOutcome::Finished {
        command: "sh test/run.sh".into(),
        passed: false,
        duration_ms: 1200,
        output: "not ok 1 - tags".into(),
        summary: Some("tests 3, pass 2, fail 1".into()),
        failures: vec!["tags".into()],
    }
}

impl World {
    pub fn new(settings: Settings) -> Self {
        let state = State::default();
        let mut git = Git::default();
        let first = git.commit_id();
        git.base.push(first);
        let mut world = Self {
            core: Foreman::new(settings.clone(), state.clone()),
            settings,
            stored: state,
            now: 1_000_000,
            effects: BTreeMap::new(),
            turns: BTreeMap::new(),
            git,
            told: vec![],
            replies: vec![],
            trace: vec![],
            verdicts: BTreeMap::new(),
            ci: pass(),
            ids: BTreeMap::new(),
            sequence: 0,
            started: BTreeMap::new(),
        };
        world.wake();
        world
    }

    pub fn settings() -> Settings {
        Settings {
            user_name: "Ada".into(),
            worktrees: "/w/worktrees".into(),
            scratch: "/w/scratch".into(),
            memory: "/w/memory".into(),
            ..Settings::default()
        }
    }

    fn wake(&mut self) {
        self.input(Input::MemoryRead(self.stored.memory.values().cloned().collect()));
        self.input(Input::Observed(Seen::default()));
    }

    pub fn state(&self) -> &State {
        self.core.state()
    }

    /// Handles one input: core, commit, publish, effects.
    pub fn input(&mut self, input: Input) {
        self.trace.push(format!("{} {}", self.now, short(&input)));
        let outputs = self.core.handle(self.now, input);
        self.commit(&outputs);
        self.publish(&outputs);
        self.start(outputs);
    }

    /// Handles an input and dies before the commit.
    pub fn input_and_die_uncommitted(&mut self, input: Input) {
        self.trace.push(format!("{} (dies before commit) {}", self.now, short(&input)));
        let _lost = self.core.handle(self.now, input);
        self.crash();
    }

    /// Handles an input, commits and tells, and dies before any effect starts.
    pub fn input_and_die_committed(&mut self, input: Input) {
        self.trace.push(format!("{} (dies after commit) {}", self.now, short(&input)));
        let outputs = self.core.handle(self.now, input);
        self.commit(&outputs);
        self.publish(&outputs);
        self.crash();
    }

    fn commit(&mut self, outputs: &[Output]) {
        for output in outputs {
            if let Output::Change(change) = output {
                self.stored.apply(change);
                self.note_ids(change);
            }
        }
    }

    fn note_ids(&mut self, change: &Change) {
        let (kind, id) = match change {
            Change::Goal(goal) => ("goal", goal.id.to_string()),
            Change::Task(task) => ("task", task.id.to_string()),
            Change::Decision(decision) => ("decision", decision.id.to_string()),
            _ => return,
        };
        self.ids.entry(kind).or_default().insert(id);
    }

    fn publish(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Change(change) => self.told.extend(change.to_message()),
                Output::Reply { message, .. } => self.replies.push(message.clone()),
                Output::Effect(..) => {}
            }
        }
    }

    fn start(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let Output::Effect(id, effect) = output else { continue };
            match effect {
                Effect::StartTurn(spec) => {
                    assert!(
                        !self.turns.contains_key(&spec.turn),
                        "turn {:?} started twice\n{}",
                        spec.turn,
                        self.trace.join("\n")
                    );
                    self.turns.insert(
                        spec.turn,
                        Play {
                            spec: *spec,
                            answers: BTreeMap::new(),
                            verdicts: BTreeMap::new(),
                            stopping: false,
                            requests: 0,
                        },
                    );
                }
                Effect::TellTurn { turn, command } => {
                    let Some(play) = self.turns.get_mut(&turn) else { continue };
                    match command {
                        TurnCommand::Answer { request, answer } => {
                            play.answers.insert(request, answer);
                        }
                        TurnCommand::Verdict { request, verdict } => {
                            play.verdicts.insert(request, verdict);
                        }
                        TurnCommand::Message(_) => {}
                        TurnCommand::Stop => play.stopping = true,
                    }
                }
                other => {
                    *self.started.entry(id).or_default() += 1;
                    self.effects.insert(id, other);
                }
            }
        }
    }

    /// The process dies and starts again.
    pub fn crash(&mut self) {
        self.trace.push(format!("{} crash", self.now));
        self.effects.clear();
        self.turns.clear();
        self.started.clear();
        self.core = Foreman::new(self.settings.clone(), self.stored.clone());
        self.wake();
    }

    // Clients.

    pub fn client(&mut self, message: ClientMessage) -> Ack {
        self.sequence += 1;
        let id = format!("c{}", self.sequence);
        let before = self.replies.len();
        let envelope = ClientEnvelope { id: Some(id.clone()), message };
        self.input(Input::Client { from: ME, envelope });
        self.replies[before..]
            .iter()
            .find_map(|reply| match reply {
                ServerMessage::Ack(ack) if ack.re == id => Some(ack.clone()),
                _ => None,
            })
            .unwrap_or(Ack { re: id, ok: true, error: Some("no ack yet".into()), result: None })
    }

    pub fn refused(&mut self, message: ClientMessage) -> String {
        let ack = self.client(message);
        assert!(!ack.ok, "expected a refusal");
        ack.error.unwrap()
    }

    pub fn accepted(&mut self, message: ClientMessage) -> Ack {
        let ack = self.client(message);
        assert!(ack.ok, "refused: {:?}\n{}", ack.error, self.trace.join("\n"));
        ack
    }

    pub fn connect_repo(&mut self) {
        self.client(ClientMessage::RepoAdd(RepoAdd { path: "/r/demo-app".into() }));
        self.run_effects();
    }

    pub fn goal(&mut self, text: &str) -> GoalId {
        let ack = self.accepted(ClientMessage::GoalSubmit(GoalSubmit { text: text.into(), repo_id: None }));
        self.run_effects();
        GoalId::from(ack.result.unwrap()["goalId"].as_str().unwrap())
    }

    pub fn answer(&mut self, decision: &str, option: &str) -> Ack {
        self.client(ClientMessage::DecisionAnswer(AnswerDecision {
            decision_id: decision.into(),
            option: Some(OptionChoice::Label(option.into())),
            text: None,
        }))
    }

    pub fn answer_text(&mut self, decision: &str, option: Option<&str>, text: &str) -> Ack {
        self.client(ClientMessage::DecisionAnswer(AnswerDecision {
            decision_id: decision.into(),
            option: option.map(|option| OptionChoice::Label(option.into())),
            text: Some(text.into()),
        }))
    }

    pub fn agent_action(&mut self, agent: &str, action: AgentActionKind, arg: Option<&str>) -> Ack {
        self.client(ClientMessage::AgentAction(AgentAction {
            agent_id: agent.into(),
            action,
            arg: arg.map(Into::into),
        }))
    }

    pub fn task_action(&mut self, task: &str, action: TaskActionKind, arg: Option<&str>) -> Ack {
        self.client(ClientMessage::TaskAction(TaskAction { task_id: task.into(), action, arg: arg.map(Into::into) }))
    }

    pub fn message(&mut self, to: &str, text: &str) -> Ack {
        self.client(ClientMessage::UserMessage(UserMessage { to: to.into(), text: text.into() }))
    }

    // Engine.

    pub fn turn_of(&self, agent: &str) -> Option<TurnId> {
        self.turns.values().find(|play| play.spec.agent.as_str() == agent && !play.stopping).map(|play| play.spec.turn)
    }

    #[track_caller]
    pub fn must_turn(&self, agent: &str) -> TurnId {
        self.turn_of(agent).unwrap_or_else(|| panic!("{agent} has no turn\n{}", self.trace.join("\n")))
    }

    pub fn spec(&self, turn: TurnId) -> &TurnSpec {
        &self.turns[&turn].spec
    }

    pub fn event(&mut self, turn: TurnId, event: TurnEvent) {
        self.input(Input::Turn { turn, event });
    }

    pub fn request(&mut self, turn: TurnId) -> RequestId {
        let play = self.turns.get_mut(&turn).unwrap();
        play.requests += 1;
        RequestId(format!("r{}", play.requests))
    }

    /// Calls an own tool; the answer, if it came at once.
    pub fn tool(&mut self, turn: TurnId, tool: AgentTool) -> Option<ToolAnswer> {
        let request = self.request(turn);
        self.event(turn, TurnEvent::Tool { request: request.clone(), tool });
        self.turns.get(&turn).and_then(|play| play.answers.get(&request)).cloned()
    }

    pub fn ask(&mut self, turn: TurnId, command: &str) -> RequestId {
        let request = self.request(turn);
        let call = ToolCall { tool: "Bash".into(), input: serde_json::json!({ "command": command }) };
        self.event(turn, TurnEvent::Asked { request: request.clone(), call });
        request
    }

    pub fn verdict(&self, turn: TurnId, request: &RequestId) -> Option<CallVerdict> {
        self.turns.get(&turn).and_then(|play| play.verdicts.get(request)).cloned()
    }

    /// Edits a file in a worker's worktree.
    pub fn edit(&mut self, turn: TurnId, file: &str) {
        let dir = self.spec(turn).dir.clone();
        self.git.dirs.entry(dir).or_default().insert(file.into());
        self.event(turn, TurnEvent::Touched);
    }

    pub fn end(&mut self, turn: TurnId, end: TurnEnd) {
        self.turns.remove(&turn);
        self.event(turn, TurnEvent::Ended(end));
    }

    pub fn complete(&mut self, turn: TurnId) {
        self.end(turn, TurnEnd::Completed { text: "done".into() });
    }

    /// Turns that were told to stop end.
    pub fn end_stopped(&mut self) {
        let stopping: Vec<TurnId> =
            self.turns.values().filter(|play| play.stopping).map(|play| play.spec.turn).collect();
        for turn in stopping {
            self.end(turn, TurnEnd::Stopped);
        }
    }

    // Effects.

    /// Ends every waiting effect, and those that follow, until none is left.
    pub fn run_effects(&mut self) {
        while let Some(id) = self.effects.keys().next().copied() {
            self.run_effect(id);
        }
    }

    pub fn run_effect(&mut self, id: EffectId) {
        let Some(effect) = self.effects.remove(&id) else { return };
        let result = self.result(&effect);
        self.input(Input::Done { effect: id, result });
    }

    fn facts(&self, at: &WorktreeRef) -> WorktreeFacts {
        let branch = self.git.branches.get(&at.branch).cloned().unwrap_or_default();
        let mut files = branch.files.clone();
        files.extend(self.git.dirs.get(&at.dir).cloned().unwrap_or_default());
        WorktreeFacts {
            id: at.id.clone(),
            ahead: branch.commits.len() as u32,
            files: files.len() as u32,
            additions: files.len() as u32 * 3,
            deletions: 0,
        }
    }

    fn collect(&mut self, at: &WorktreeRef) -> Collected {
        let files = self.git.dirs.get(&at.dir).cloned().unwrap_or_default();
        if !files.is_empty() {
            let id = self.git.commit_id();
            let branch = self.git.branches.entry(at.branch.clone()).or_default();
            branch.commits.push(id);
            branch.files.extend(files);
            if let Some(dir) = self.git.dirs.get_mut(&at.dir) {
                dir.clear();
            }
        }
        let facts = self.facts(at);
        let head = self.git.branches.get(&at.branch).and_then(|branch| branch.commits.last().cloned());
        Collected { head: head.unwrap_or_else(|| at.fork.clone()), facts, diff: "diff".into(), names: vec![] }
    }

    /// What the outside gives back for an effect.
    pub fn result(&mut self, effect: &Effect) -> EffectResult {
        match effect {
            Effect::Judge { call, .. } => {
                let command = call.input["command"].as_str().unwrap_or_default();
                EffectResult::Judged(self.verdicts.get(command).cloned().unwrap_or(Verdict::Allow))
            }
            Effect::InspectRepo { path } => EffectResult::RepoInspected(if path.contains("missing") {
                Err(format!("{path} does not exist"))
            } else {
                Ok(self.repo_facts(path.into(), vec![]))
            }),
            Effect::RefreshRepo { repo, worktrees } => {
                let worktrees = worktrees.iter().map(|at| self.facts(at)).collect();
                EffectResult::RepoRefreshed(Ok(self.repo_facts(repo.path.clone(), worktrees)))
            }
            Effect::PrepareWorktree(order) => {
                let fork = self.git.base.last().cloned().unwrap();
                let mut branch = order.branch.clone();
                if self.git.branches.contains_key(&branch) && !order.own_branches.contains(&branch) {
                    branch = format!("{branch}-2");
                }
                let start =
                    order.start.as_ref().and_then(|start| self.git.branches.get(start)).cloned().unwrap_or_default();
                let base_len = self.git.base.len();
                self.git.forks.entry(branch.clone()).or_insert(base_len);
                let made = self.git.branches.entry(branch.clone()).or_insert(start);
                let head = made.commits.last().cloned().unwrap_or_else(|| fork.clone());
                self.git.dirs.entry(order.dir.clone()).or_default();
                EffectResult::WorktreePrepared(Ok(PreparedWorktree {
                    dir: order.dir.clone(),
                    branch,
                    fork,
                    head,
                    copied: vec![],
                    setup_output: None,
                }))
            }
            Effect::PrepareCopy { dir, .. } => EffectResult::CopyPrepared(Ok(dir.clone())),
            Effect::Collect { worktree, .. } => EffectResult::Collected(Ok(self.collect(worktree))),
            Effect::RunCi { .. } => EffectResult::CiRun(self.ci.clone()),
            Effect::Merge(order) => EffectResult::Merged(self.merge(order)),
            Effect::Abandon { worktree, .. } => {
                let collected = self.collect(worktree);
                self.git.dirs.remove(&worktree.dir);
                EffectResult::Abandoned(Ok(collected))
            }
            Effect::Diff { repo, worktree, request, .. } => EffectResult::DiffMade(Box::new(Diff {
                request_id: request.request_id.clone(),
                repo_id: repo.id.clone(),
                worktree: worktree.id.clone(),
                base: Some(repo.base.clone()),
                branch: Some(worktree.branch.clone()),
                files: vec![],
                stats: DiffStats::default(),
                truncated: false,
                error: None,
            })),
            Effect::WriteMemory(order) => EffectResult::MemoryWritten(Ok(MemoryEntry {
                id: MemoryId(format!("{}/{}", order.scope, order.slug)),
                scope: order.scope.clone(),
                title: order.title.clone(),
                body: order.body.clone(),
                updated: self.now,
                author: Some(order.author.clone()),
            })),
            Effect::StartTurn(_) | Effect::TellTurn { .. } => unreachable!("not an effect with a result"),
        }
    }

    fn merge(&mut self, order: &agentcraft_tui::foreman::effect::MergeOrder) -> MergeOutcome {
        if let Some(head) = self.git.merged.get(&order.mark) {
            assert_eq!(*head, order.head);
            return MergeOutcome::Merged { commit: self.git.base.last().cloned().unwrap(), files: 1 };
        }
        if self.git.dirty {
            return MergeOutcome::Refused {
                reason: "the checkout has uncommitted changes: commit or stash them".into(),
            };
        }
        let branch = self.git.branches.get(&order.worktree.branch).cloned().unwrap_or_default();
        if branch.commits.is_empty() {
            return MergeOutcome::Empty;
        }
        if branch.files.iter().any(|file| file.starts_with("conflict") && self.git.base_files.contains(file)) {
            let files: Vec<String> = branch.files.iter().filter(|file| file.starts_with("conflict")).cloned().collect();
            return MergeOutcome::Conflict { files };
        }
        let commit = self.git.commit_id();
        self.git.base.push(commit.clone());
        self.git.base_files.extend(branch.files);
        self.git.merged.insert(order.mark.clone(), order.head.clone());
        self.git.merge_log.push((order.decision.to_string(), order.head.clone()));
        MergeOutcome::Merged { commit, files: 1 }
    }

    fn repo_facts(&self, path: PathBuf, worktrees: Vec<WorktreeFacts>) -> RepoFacts {
        RepoFacts {
            path,
            branch: "main".into(),
            head: self.git.base.last().cloned(),
            dirty: self.git.dirty,
            health: None,
            worktrees,
        }
    }

    // Time.

    /// Goes to the next time at which the core wants to be woken, if it is within `within` ms.
    pub fn sleep(&mut self, within: u64) -> bool {
        match self.core.next_wakeup() {
            Some(at) if at <= self.now + within => {
                self.now = self.now.max(at);
                self.input(Input::Tick);
                true
            }
            _ => {
                self.now += within;
                false
            }
        }
    }

    // Looking.

    pub fn agent(&self, id: &str) -> &Agent {
        &self.state().agents[id]
    }

    pub fn task(&self, id: &str) -> &Task {
        &self.state().tasks[id]
    }

    pub fn decision(&self, id: &str) -> &Decision {
        &self.state().decisions[id]
    }

    pub fn open(&self) -> Vec<DecisionId> {
        self.state()
            .decisions
            .values()
            .filter(|decision| decision.status == DecisionStatus::Open)
            .map(|decision| decision.id.clone())
            .collect()
    }

    pub fn feed(&self) -> String {
        self.state().feed.iter().map(|item| item.text.clone()).collect::<Vec<_>>().join("\n")
    }

    pub fn told_notes(&self) -> Vec<&Notify> {
        self.told
            .iter()
            .filter_map(|message| match message {
                ServerMessage::Notify(notify) => Some(notify),
                _ => None,
            })
            .collect()
    }
}

pub fn ask_verdict(key: &str) -> Verdict {
    Verdict::Ask(Ask {
        reason: "it reaches the network".into(),
        keys: BTreeSet::from([ScopeKey(key.into())]),
        covers: format!("{key} in this worktree"),
    })
}

fn short(input: &Input) -> String {
    let text = format!("{input:?}");
    text.chars().take(260).collect()
}
