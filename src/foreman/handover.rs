//! Giving worktrees up: hand-over to another worker, cancel, reject, merged. The work is committed first, the branch
//! stays, and nothing is removed while a turn still works in it.

use super::effect::{Effect, EffectResult, WorktreeRef};
use super::roster::AgentPatch;
use super::state::{Stage, StopWhy, TurnPhase};
use super::{EffectId, Step};
use crate::protocol::{
    AgentId, AgentState, FeedKind, NotifyLevel, RepoId, Station, TaskId, TaskStatus, WorktreeStatus,
};

impl Step<'_> {
    /// A worktree as git effects need it.
    pub(crate) fn worktree_ref(&self, repo: &RepoId, id: &crate::protocol::WorktreeId) -> Option<WorktreeRef> {
        let worktree = self.state.repos.get(repo)?.worktrees.iter().find(|at| at.id == *id)?;
        let work = self.state.repo_work.get(repo)?.worktrees.get(id)?;
        Some(WorktreeRef {
            id: id.clone(),
            agent: worktree.agent_id.clone(),
            task: worktree.task_id.clone()?,
            dir: worktree.path.clone().into(),
            branch: worktree.branch.clone(),
            fork: work.fork.clone(),
            live: work.live,
        })
    }

    /// The task's worktree goes to the next worker, who continues from its branch.
    pub(crate) fn hand_over(&mut self, id: &TaskId, message: &str) {
        let Some(task) = self.state.tasks.get(id).cloned() else { return };
        let Some(worktree) = self.active_worktree_of(&task) else { return };
        self.edit_work(id, |work| {
            work.former.retain(|agent| *agent != worktree.agent_id);
            work.former.push(worktree.agent_id.clone());
            work.start = Some(worktree.branch.clone());
        });
        self.give_up_worktree(id, message);
    }

    /// Commits what is in the task's worktree and removes its directory as soon as no turn works in it.
    pub(crate) fn give_up_worktree(&mut self, id: &TaskId, message: &str) {
        let Some(task) = self.state.tasks.get(id).cloned() else { return };
        if self.live_worktree_of(&task).is_some() && !matches!(self.stage(id), Stage::Preparing { .. }) {
            self.set_stage(id, Stage::Quieting { message: message.to_owned() });
        }
    }

    /// Worktrees that wait to be given up and that no turn works in any more.
    pub(crate) fn release_quiet_worktrees(&mut self) {
        let waiting: Vec<(TaskId, String)> = self
            .state
            .task_work
            .iter()
            .filter_map(|(id, work)| match &work.stage {
                Stage::Quieting { message } => Some((id.clone(), message.clone())),
                _ => None,
            })
            .collect();
        for (id, message) in waiting {
            let Some(task) = self.state.tasks.get(&id).cloned() else { continue };
            let Some(worktree) = self.live_worktree_of(&task) else {
                self.set_stage(&id, Stage::Board);
                continue;
            };
            let busy = self.turns_of_task(&id).into_iter().any(|turn| {
                self.state.turns.get(&turn).is_some_and(|turn| {
                    turn.agent == worktree.agent_id
                        && matches!(turn.phase, TurnPhase::Running(_) | TurnPhase::Stopping { .. })
                })
            });
            if busy {
                // Nothing may work in it any more, whoever started it.
                for turn in self.turns_of_task(&id) {
                    if self.state.turns.get(&turn).is_some_and(|turn| turn.agent == worktree.agent_id) {
                        self.stop_turn(turn, StopWhy::Task);
                    }
                }
                continue;
            }
            let refs = task
                .repo_id
                .as_ref()
                .and_then(|repo| Some((self.repo_ref(repo)?, self.worktree_ref(repo, &worktree.id)?)));
            let Some((repo, at)) = refs else {
                self.set_stage(&id, Stage::Board);
                continue;
            };
            let identity = self.identity(&worktree.agent_id);
            let effect = self.want(Effect::Abandon { repo, worktree: at, message, identity });
            self.set_stage(&id, Stage::Abandoning { effect });
        }
    }

    /// A worktree was given up, or could not be.
    pub(crate) fn on_abandoned(&mut self, effect: EffectId, repo: &RepoId, at: &WorktreeRef, result: EffectResult) {
        let task = &at.task;
        let expected = self.stage(task) == Stage::Abandoning { effect };
        match result {
            EffectResult::Abandoned(Ok(collected)) => {
                self.close_worktree(repo, at);
                self.edit_repo_work(repo, |work| {
                    if let Some(work) = work.worktrees.get_mut(&at.id) {
                        work.head.clone_from(&collected.head);
                    }
                });
                self.show_worktree_facts(repo, &collected.facts);
                if collected.facts.ahead == 0 {
                    // Nothing to continue from.
                    self.edit_work(task, |work| {
                        if work.start.as_deref() == Some(at.branch.as_str()) {
                            work.start = None;
                        }
                    });
                }
            }
            EffectResult::Abandoned(Err(reason)) | EffectResult::Crashed(reason) => {
                // The directory stays where it is: what is in it may be the only copy.
                self.close_worktree(repo, at);
                let line = format!("{}: its directory was left in place: {reason} ({})", at.id, at.dir.display());
                self.feed(FeedKind::Error, Some(at.agent.as_str()), &line);
                self.notify(NotifyLevel::Warn, &line, None);
            }
            _ => {}
        }
        if expected {
            self.set_stage(task, Stage::Board);
        }
        self.refresh_soon(repo, super::repos::SOON_MS);
    }

    fn close_worktree(&mut self, repo: &RepoId, at: &WorktreeRef) {
        self.edit_repo(repo, |record| {
            if let Some(worktree) = record.worktrees.iter_mut().find(|worktree| worktree.id == at.id)
                && worktree.status == WorktreeStatus::Active
            {
                worktree.status = WorktreeStatus::Abandoned;
            }
        });
        self.edit_repo_work(repo, |work| {
            if let Some(work) = work.worktrees.get_mut(&at.id) {
                work.live = false;
            }
        });
    }

    // Off shift and back.

    /// The person sends an agent off shift.
    pub(crate) fn stop_agent(&mut self, agent: &AgentId) {
        let mut work = self.state.agent_work.get(agent).cloned().unwrap_or_default();
        work.stopped = true;
        self.put(super::Change::AgentWork(agent.clone(), work));
        let name = self.display_name(agent.as_str());
        self.withdraw_agent_decisions(agent, &format!("{name} was stopped"));
        let turns: Vec<_> = self.state.turns.values().filter(|turn| turn.agent == *agent).map(|turn| turn.id).collect();
        for turn in turns {
            self.stop_turn(turn, StopWhy::Stop);
        }
        let mut patch = AgentPatch::doing(AgentState::Idle, Station::Lounge, "stopped - off shift").free();
        patch.active = Some(false);
        patch.paused = Some(false);
        self.patch_agent(agent, patch);
        if *agent == super::roster::lead() {
            self.close_planning_goals(&format!("{name} was stopped while planning"));
            let reviews: Vec<TaskId> = self
                .state
                .task_work
                .iter()
                .filter(|(_, work)| work.stage == Stage::Reviewing)
                .map(|(id, _)| id.clone())
                .collect();
            for task in reviews {
                self.open_merge(&task, None);
            }
            return;
        }
        self.board_tasks_of(agent, &format!("{name} was stopped"));
    }

    /// What a worker had in hand goes back to the board.
    fn board_tasks_of(&mut self, agent: &AgentId, why: &str) {
        let tasks: Vec<TaskId> = self
            .state
            .tasks
            .values()
            .filter(|task| task.assignee.as_ref() == Some(agent))
            .filter(|task| {
                task.status == TaskStatus::Doing
                    || matches!(self.stage(&task.id), Stage::Preparing { worker, .. } if worker == *agent)
            })
            .map(|task| task.id.clone())
            .collect();
        for id in tasks {
            self.edit_task(&id, |task| {
                task.status = TaskStatus::Todo;
                task.assignee = None;
            });
            self.feed(FeedKind::Task, Some(agent.as_str()), &format!("{id} is back on the board: {why}"));
            // One that is still being made is given up when it is there.
            if !matches!(self.stage(&id), Stage::Preparing { .. }) {
                self.hand_over(&id, &format!("agentcraft: {id} work in progress ({why})"));
            }
        }
    }

    /// Withdraws the open questions and permissions of an agent, also those whose turn is gone.
    fn withdraw_agent_decisions(&mut self, agent: &AgentId, why: &str) {
        let open: Vec<_> = self
            .state
            .decisions
            .values()
            .filter(|decision| {
                decision.agent_id == *agent
                    && decision.status == crate::protocol::DecisionStatus::Open
                    && decision.kind != crate::protocol::DecisionKind::Merge
            })
            .map(|decision| decision.id.clone())
            .collect();
        for id in open {
            self.withdraw_decision(&id, why);
        }
    }

    /// A stopped agent is back.
    pub(crate) fn back_on_shift(&mut self, agent: &AgentId) {
        let mut work = self.state.agent_work.get(agent).cloned().unwrap_or_default();
        let was_stopped = work.stopped;
        work.stopped = false;
        if *agent != super::roster::lead() && !self.settings.team.contains(agent) {
            work.spawned = true;
        }
        self.put(super::Change::AgentWork(agent.clone(), work));
        let mut patch = AgentPatch::doing(AgentState::Idle, Station::Lounge, "ready");
        patch.active = Some(true);
        patch.paused = Some(false);
        self.patch_agent(agent, patch);
        if was_stopped {
            let name = self.display_name(agent.as_str());
            self.feed(FeedKind::System, Some(agent.as_str()), &format!("{name} is back on shift"));
        }
    }
}
