//! What an agent is told at the start of a turn, and where the turn works. Facts only; engines make the words.

use std::path::PathBuf;

use super::Step;
use super::change::Change;
use super::effect::RepoRef;
use super::goals::tasks_of;
use super::roster::lead;
use super::state::Turn;
use super::text::truncate;
use crate::protocol::{AgentId, CiStatus, MemoryId, Task};
use crate::turn::{Brief, GoalBrief, Job, RepoBrief, ReviewBrief, TaskBrief};

/// Text of the plan note in a brief, characters.
const PLAN_CHARS: usize = 3000;

impl Step<'_> {
    /// The turn works in its task's worktree (and not in a read-only copy).
    pub(crate) fn works_in_task(&self, turn: &Turn) -> bool {
        turn.agent != lead()
            && turn.task.as_ref().and_then(|task| self.state.tasks.get(task)).is_some_and(|task| {
                self.active_worktree_of(task).is_some_and(|worktree| worktree.agent_id == turn.agent)
            })
    }

    /// Working directory of a turn.
    pub(crate) fn dir_of_turn(&self, turn: &Turn) -> Option<PathBuf> {
        if self.works_in_task(turn) {
            let task = turn.task.as_ref().and_then(|task| self.state.tasks.get(task))?;
            return Some(self.active_worktree_of(task)?.path.into());
        }
        let repo = self.repo_of_turn(turn)?;
        let subject = turn.goal.as_ref().map_or("copy", |goal| goal.as_str());
        Some(self.settings.worktrees.join(repo.as_str()).join(format!("{}-{subject}", turn.agent)))
    }

    pub(crate) fn repo_ref_of_turn(&self, turn: &Turn) -> Option<RepoRef> {
        self.repo_ref(&self.repo_of_turn(turn)?)
    }

    /// Everything the agent is told; its unread messages count as read from now on.
    pub(crate) fn brief(&mut self, turn: &Turn, repo: &RepoRef) -> Brief {
        let mut inbox = turn.inbox.clone();
        inbox.extend(self.take_inbox(&turn.agent));
        if inbox != turn.inbox {
            let mut started = turn.clone();
            started.inbox.clone_from(&inbox);
            self.put(Change::Turn(Box::new(started)));
        }
        let demo = self.state.repo_work.get(&repo.id).is_some_and(|work| work.demo);
        let goal = turn.goal.as_ref().and_then(|goal| self.state.goals.get(goal));
        let goal_work = turn.goal.as_ref().and_then(|goal| self.state.goal_work.get(goal));
        let task = turn.task.as_ref().and_then(|task| self.state.tasks.get(task));
        let work = turn.task.as_ref().and_then(|task| self.state.task_work.get(task)).cloned().unwrap_or_default();
        let plan = goal_work
            .and_then(|work| work.plan.as_ref())
            .and_then(|plan: &MemoryId| self.state.memory.get(plan))
            .map(|note| truncate(&note.body, PLAN_CHARS));
        let mut answered = Vec::new();
        if task.is_none() || turn.agent == lead() {
            answered.extend(goal_work.map(|work| work.answered.clone()).unwrap_or_default());
        }
        answered.extend(work.answered.iter().cloned());
        let names = |agents: &[AgentId]| -> Vec<String> {
            agents.iter().map(|agent| self.display_name(agent.as_str())).collect()
        };
        let review = (turn.job == Job::Review).then(|| {
            let mut workers = work.former.clone();
            workers.extend(task.and_then(|task| task.assignee.clone()).filter(|agent| !work.former.contains(agent)));
            ReviewBrief {
                diff: work.diff.clone(),
                files: work.files,
                additions: work.additions,
                deletions: work.deletions,
                ci_output: task.filter(|task| task.ci == CiStatus::Fail).and_then(|_| work.ci_output.clone()),
                workers: names(&workers),
            }
        });
        let former: Vec<AgentId> = work.former.iter().filter(|agent| **agent != turn.agent).cloned().collect();
        Brief {
            user_name: self.settings.user_name.clone(),
            cause: turn.cause.clone(),
            goal: goal.map(|goal| GoalBrief { id: goal.id.clone(), text: goal.text.clone() }),
            repo: RepoBrief { id: repo.id.clone(), base: repo.base.clone(), demo },
            task: task.map(|task: &Task| TaskBrief { task: task.clone(), former: names(&former) }),
            board: turn.goal.as_ref().map(|goal| tasks_of(self.state, goal).cloned().collect()).unwrap_or_default(),
            plan,
            answered,
            inbox,
            review,
        }
    }
}
