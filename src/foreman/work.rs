//! Starting work on a task: the worker, its worktree, its first turn.

use super::effect::{AgentIdentity, Effect, EffectResult, PrepareFailure, PrepareWorktree, PreparedWorktree};
use super::roster::AgentPatch;
use super::schedule::start_pause;
use super::state::{Stage, WorktreeWork};
use super::tasks::Transition;
use super::text::branch_slug;
use super::{EffectId, Step};
use crate::protocol::{
    AgentId, AgentState, FeedKind, LogKind, NotifyLevel, Station, Task, TaskId, TaskStatus, Worktree, WorktreeId,
    WorktreeStatus,
};
use crate::turn::{Cause, Job};

/// Id of a worker's worktree for a task.
pub(crate) fn worktree_id(agent: &AgentId, task: &TaskId) -> WorktreeId {
    WorktreeId(format!("{agent}-{task}"))
}

impl Step<'_> {
    /// Author and committer of an agent's commits.
    pub(crate) fn identity(&self, agent: &AgentId) -> AgentIdentity {
        AgentIdentity {
            name: format!("AgentCraft {}", self.display_name(agent.as_str())),
            email: format!("{agent}@agentcraft.local"),
        }
    }

    /// Gives a ready task to a worker: its worktree is made first.
    pub(crate) fn start_work(&mut self, id: &TaskId, worker: &AgentId) {
        let Some(task) = self.state.tasks.get(id).cloned() else { return };
        // Another agent's worktree is given up first; its branch is the start.
        if self.active_worktree_of(&task).is_some_and(|worktree| worktree.agent_id != *worker) {
            self.edit_task(id, |task| task.assignee = Some(worker.clone()));
            let name = self.display_name(worker.as_str());
            self.hand_over(id, &format!("agentcraft: {id} work in progress (handed to {name})"));
            return;
        }
        let Some(repo) = task.repo_id.as_ref().and_then(|repo| self.repo_ref(repo)) else {
            self.force_status(id, TaskStatus::Blocked, Some("its repository is not connected any more"));
            self.tell_blocked(id);
            return;
        };
        let worktree = worktree_id(worker, id);
        let work = self.state.task_work.get(id).cloned().unwrap_or_default();
        let own_branches = self.branches_to_take_up(&task);
        let branch = self
            .state
            .repos
            .get(&repo.id)
            .and_then(|repo| repo.worktrees.iter().find(|at| at.id == worktree && at.status != WorktreeStatus::Merged))
            .map_or_else(|| format!("agentcraft/{worker}/{id}-{}", branch_slug(&task.title)), |at| at.branch.clone());
        if task.assignee.as_ref() != Some(worker) {
            self.edit_task(id, |task| task.assignee = Some(worker.clone()));
        }
        let order = PrepareWorktree {
            dir: self.settings.worktrees.join(repo.id.as_str()).join(worktree.as_str()),
            setup: self.settings.setup.get(&repo.path).cloned(),
            repo,
            agent: worker.clone(),
            task: id.clone(),
            id: worktree,
            branch,
            start: work.start,
            own_branches,
            identity: self.identity(worker),
        };
        let effect = self.want(Effect::PrepareWorktree(Box::new(order)));
        self.set_stage(id, Stage::Preparing { effect, worker: worker.clone() });
        self.patch_agent_state(worker, AgentState::Thinking, Station::Desk, &format!("starting {id}"));
    }

    /// Branches that this profile made for this task and that may be continued: those not merged yet.
    fn branches_to_take_up(&self, task: &Task) -> Vec<String> {
        task.repo_id
            .as_ref()
            .and_then(|repo| self.state.repos.get(repo))
            .map(|repo| {
                repo.worktrees
                    .iter()
                    .filter(|at| at.task_id.as_ref() == Some(&task.id) && at.status != WorktreeStatus::Merged)
                    .map(|at| at.branch.clone())
                    .collect()
            })
            .unwrap_or_default()
    }

    /// The worktree is there, or not.
    pub(crate) fn on_prepared(&mut self, effect: EffectId, order: &PrepareWorktree, result: EffectResult) {
        let id = &order.task;
        let expected = self.stage(id) == Stage::Preparing { effect, worker: order.agent.clone() };
        match result {
            EffectResult::WorktreePrepared(Ok(prepared)) => {
                self.record_worktree(order, &prepared);
                if expected {
                    self.set_stage(id, Stage::Board);
                }
                let still_its_work = expected
                    && self.is_active(&order.agent)
                    && self.state.tasks.get(id).is_some_and(|task| {
                        task.status == TaskStatus::Todo && task.assignee.as_ref() == Some(&order.agent)
                    });
                if still_its_work {
                    self.work_starts(order, &prepared);
                } else {
                    // Cancelled, stopped or given to somebody else meanwhile: nothing is lost, the copy goes.
                    self.give_up_worktree(id, &format!("agentcraft: {id} work in progress"));
                }
            }
            _ if !expected => {}
            EffectResult::WorktreePrepared(Err(PrepareFailure::Passing(reason))) | EffectResult::Crashed(reason) => {
                self.set_stage(id, Stage::Board);
                self.start_failed(order, &reason);
            }
            EffectResult::WorktreePrepared(Err(PrepareFailure::Setup { reason, output })) => {
                self.set_stage(id, Stage::Board);
                self.log(&order.agent, LogKind::Error, &output);
                self.block_start(order, &format!("setup failed: {reason}"));
            }
            EffectResult::WorktreePrepared(Err(PrepareFailure::Lasting(reason))) => {
                self.set_stage(id, Stage::Board);
                self.block_start(order, &reason);
            }
            _ => self.set_stage(id, Stage::Board),
        }
    }

    /// A start that may work later: the task stays on the board, the pause grows.
    fn start_failed(&mut self, order: &PrepareWorktree, reason: &str) {
        let failures = self.state.task_work.get(&order.task).map_or(0, |work| work.start_failures) + 1;
        let pause = start_pause(failures);
        let at = self.now + pause;
        self.edit_work(&order.task, |work| {
            work.start_failures = failures;
            work.not_before = Some(at);
        });
        let line = format!("could not start {}: {reason}; next try in {} s", order.task, pause / 1000);
        self.log(&order.agent, LogKind::Error, &line);
        self.rest(&order.agent, "waiting to start");
        if failures == 3 {
            self.notify(NotifyLevel::Warn, &line, None);
        }
    }

    fn block_start(&mut self, order: &PrepareWorktree, reason: &str) {
        self.log(&order.agent, LogKind::Error, &format!("{} can't start: {reason}", order.task));
        self.force_status(&order.task, TaskStatus::Blocked, Some(reason));
        self.rest(&order.agent, "ready");
        self.tell_blocked(&order.task);
    }

    fn record_worktree(&mut self, order: &PrepareWorktree, prepared: &PreparedWorktree) {
        let repo = &order.repo.id;
        self.edit_repo(repo, |record| {
            let worktree = Worktree {
                id: order.id.clone(),
                agent_id: order.agent.clone(),
                task_id: Some(order.task.clone()),
                branch: prepared.branch.clone(),
                base: order.repo.base.clone(),
                path: prepared.dir.display().to_string(),
                status: WorktreeStatus::Active,
                ahead: 0,
                files: 0,
                additions: 0,
                deletions: 0,
            };
            match record.worktrees.iter_mut().find(|at| at.id == order.id) {
                Some(at) => {
                    let fresh = at.status != WorktreeStatus::Active || at.branch != worktree.branch;
                    if fresh {
                        *at = worktree;
                    } else {
                        at.path = worktree.path;
                    }
                }
                None => record.worktrees.push(worktree),
            }
        });
        self.edit_repo_work(repo, |work| {
            work.worktrees.insert(
                order.id.clone(),
                WorktreeWork { fork: prepared.fork.clone(), head: prepared.head.clone(), merged: None, live: true },
            );
        });
        self.edit_task(&order.task, |task| {
            task.branch = Some(prepared.branch.clone());
            task.worktree = Some(order.id.clone());
        });
        if !prepared.copied.is_empty() {
            let line = format!("{}: copied {} into the worktree", order.task, prepared.copied.join(", "));
            self.feed(FeedKind::System, Some(order.agent.as_str()), &line);
        }
        if let Some(output) = &prepared.setup_output {
            self.log(&order.agent, LogKind::Tool, "setup");
            self.log(&order.agent, LogKind::Result, output);
        }
        self.refresh_soon(repo, super::repos::SOON_MS);
    }

    fn work_starts(&mut self, order: &PrepareWorktree, prepared: &PreparedWorktree) {
        let (id, agent) = (&order.task, &order.agent);
        if let Err(reason) = self.set_status(id, TaskStatus::Doing, Transition::Checked, None) {
            self.log(agent, LogKind::Error, &reason);
            self.rest(agent, "ready");
            return;
        }
        let former = self.state.task_work.get(id).and_then(|work| work.former.last().cloned());
        let cause = self.state.task_work.get(id).and_then(|work| work.cause.clone());
        let cause = match (cause, former) {
            (Some(cause), _) => cause,
            (None, Some(former)) if former != *agent => {
                let branch = order.start.clone().unwrap_or_else(|| prepared.branch.clone());
                let from = self.display_name(former.as_str());
                self.feed(
                    FeedKind::Task,
                    Some(agent.as_str()),
                    &format!("{} continues {id} from {from}'s branch", self.display_name(agent.as_str())),
                );
                Cause::HandOver { from, branch }
            }
            (None, Some(_)) => Cause::Restarted,
            (None, None) => Cause::Start,
        };
        self.edit_work(id, |work| {
            work.cause = None;
            work.start_failures = 0;
            work.not_before = None;
        });
        let mut patch = AgentPatch::doing(AgentState::Thinking, Station::Desk, &format!("starting {id}"));
        patch.task = Some(Some(id.clone()));
        patch.repo = Some(Some(order.repo.id.clone()));
        patch.worktree = Some(Some(order.id.clone()));
        self.patch_agent(agent, patch);
        let title = self.state.tasks.get(id).map(|task| task.title.clone()).unwrap_or_default();
        let line = format!("{} started {id}: {title}", self.display_name(agent.as_str()));
        self.feed(FeedKind::Task, Some(agent.as_str()), &line);
        self.want_turn(agent.clone(), Job::Work, Some(id.clone()), None, cause, 0);
    }

    /// The task's worktree, while it is active.
    pub(crate) fn active_worktree_of(&self, task: &Task) -> Option<Worktree> {
        let repo = self.state.repos.get(task.repo_id.as_ref()?)?;
        let id = task.worktree.as_ref()?;
        repo.worktrees.iter().find(|at| at.id == *id && at.status == WorktreeStatus::Active).cloned()
    }

    /// The task's worktree, while its directory is there (a merged one until it is removed).
    pub(crate) fn live_worktree_of(&self, task: &Task) -> Option<Worktree> {
        let repo = self.state.repos.get(task.repo_id.as_ref()?)?;
        let work = self.state.repo_work.get(&repo.id)?;
        let id = task.worktree.as_ref()?;
        let live = work.worktrees.get(id).is_some_and(|work| work.live);
        repo.worktrees.iter().find(|at| at.id == *id && live).cloned()
    }
}
