//! The task graph: creation, dependencies, transitions, readiness, and how the person steers a task.

use std::collections::BTreeSet;

use super::Step;
use super::change::Change;
use super::roster::{AgentPatch, lead};
use super::state::{Counter, Stage, State, StopWhy, TaskWork, TurnPhase};
use super::text::{one_line, truncate};
use crate::protocol::{
    AgentId, AgentState, CiStatus, FeedKind, GoalId, RepoId, Station, Task, TaskActionKind, TaskId, TaskStatus, text,
};

/// Longest title, characters.
const TITLE_CHARS: usize = 200;
/// Longest description or summary, characters.
const TEXT_CHARS: usize = 8000;

/// A new task.
pub(crate) struct NewTask {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) deps: Vec<TaskId>,
    pub(crate) assignee: Option<AgentId>,
    pub(crate) priority: i64,
    pub(crate) repo: Option<RepoId>,
    pub(crate) goal: Option<GoalId>,
    pub(crate) created_by: String,
}

/// Whether the transition table is held to. The person, the lead and repairs may go past it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transition {
    Checked,
    Forced,
}

/// May a task go from one status to another?
fn allowed(from: TaskStatus, to: TaskStatus) -> bool {
    use TaskStatus::{Blocked, Cancelled, Doing, Done, Review, Todo};
    from == to
        || match from {
            Todo => matches!(to, Doing | Blocked | Cancelled | Done),
            Doing => matches!(to, Review | Blocked | Todo | Done | Cancelled),
            Review => matches!(to, Done | Doing | Blocked | Todo | Cancelled),
            Blocked => matches!(to, Todo | Doing | Cancelled | Review),
            Done | Cancelled => matches!(to, Todo),
        }
}

/// Dependencies of a task that are not done.
pub(crate) fn unmet(state: &State, task: &Task) -> Vec<TaskId> {
    task.deps
        .iter()
        .filter(|dep| state.tasks.get(*dep).is_none_or(|dep| dep.status != TaskStatus::Done))
        .cloned()
        .collect()
}

/// Tasks of a goal that could start now, most urgent first.
pub(crate) fn ready(state: &State, goal: &GoalId) -> Vec<TaskId> {
    let mut tasks: Vec<&Task> = state
        .tasks
        .values()
        .filter(|task| task.goal_id.as_ref() == Some(goal) && task.status == TaskStatus::Todo)
        .filter(|task| unmet(state, task).is_empty())
        .collect();
    tasks.sort_by(|a, b| {
        b.priority.cmp(&a.priority).then(a.created_at.cmp(&b.created_at)).then_with(|| a.id.cmp(&b.id))
    });
    tasks.into_iter().map(|task| task.id.clone()).collect()
}

fn list(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}

impl Step<'_> {
    /// Makes a task on the board.
    pub(crate) fn create_task(&mut self, new: NewTask) -> Result<TaskId, String> {
        let title = truncate(&one_line(&text::clean(&new.title)), TITLE_CHARS);
        if title.is_empty() {
            return Err("a task needs a title".to_owned());
        }
        let mut deps = Vec::new();
        for dep in new.deps {
            if !self.state.tasks.contains_key(&dep) {
                return Err(format!("unknown dependency {dep}"));
            }
            if !deps.contains(&dep) {
                deps.push(dep);
            }
        }
        let id = TaskId::nth(self.count(Counter::Task));
        let description = truncate(text::clean(&new.description).trim(), TEXT_CHARS);
        self.put(Change::Task(Task {
            id: id.clone(),
            title,
            description: (!description.is_empty()).then_some(description),
            status: TaskStatus::Todo,
            assignee: new.assignee,
            deps,
            repo_id: new.repo,
            goal_id: new.goal,
            priority: new.priority,
            branch: None,
            worktree: None,
            ci: CiStatus::Unknown,
            blocked_reason: None,
            summary: None,
            created_by: new.created_by,
            created_at: self.now,
            updated_at: self.now,
        }));
        self.put(Change::TaskWork(id.clone(), Box::default()));
        Ok(id)
    }

    /// Changes fields of a task that need no check.
    pub(crate) fn edit_task(&mut self, id: &TaskId, edit: impl FnOnce(&mut Task)) {
        let Some(mut task) = self.state.tasks.get(id).cloned() else { return };
        edit(&mut task);
        task.updated_at = self.now;
        self.put(Change::Task(task));
    }

    /// Changes the private record of a task.
    pub(crate) fn edit_work(&mut self, id: &TaskId, edit: impl FnOnce(&mut TaskWork)) {
        let mut work = self.state.task_work.get(id).cloned().unwrap_or_default();
        edit(&mut work);
        self.put(Change::TaskWork(id.clone(), Box::new(work)));
    }

    /// Where a task stands between two statuses.
    pub(crate) fn stage(&self, id: &TaskId) -> Stage {
        self.state.task_work.get(id).map(|work| work.stage.clone()).unwrap_or_default()
    }

    pub(crate) fn set_stage(&mut self, id: &TaskId, stage: Stage) {
        if self.stage(id) != stage {
            self.edit_work(id, |work| work.stage = stage);
        }
    }

    /// Replaces the dependencies of a task; cycles are refused.
    pub(crate) fn set_deps(&mut self, id: &TaskId, deps: Vec<TaskId>) -> Result<(), String> {
        for dep in &deps {
            if dep == id {
                return Err(format!("{id} can't depend on itself"));
            }
            if !self.state.tasks.contains_key(dep) {
                return Err(format!("unknown dependency {dep}"));
            }
        }
        if let Some(path) = self.cycle(id, &deps) {
            return Err(format!("that would make a cycle: {}", path.join(" -> ")));
        }
        self.edit_task(id, |task| task.deps = deps);
        Ok(())
    }

    /// A way from one of `deps` back to `id`, if there is one.
    fn cycle(&self, id: &TaskId, deps: &[TaskId]) -> Option<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut stack: Vec<(TaskId, Vec<String>)> =
            deps.iter().map(|dep| (dep.clone(), vec![id.to_string(), dep.to_string()])).collect();
        while let Some((at, path)) = stack.pop() {
            if at == *id {
                return Some(path);
            }
            if !seen.insert(at.clone()) {
                continue;
            }
            for next in self.state.tasks.get(&at).map(|task| task.deps.clone()).unwrap_or_default() {
                let mut longer = path.clone();
                longer.push(next.to_string());
                stack.push((next, longer));
            }
        }
        None
    }

    /// Moves a task; `reason` is for `blocked`.
    pub(crate) fn set_status(
        &mut self,
        id: &TaskId,
        to: TaskStatus,
        transition: Transition,
        reason: Option<&str>,
    ) -> Result<(), String> {
        let Some(task) = self.state.tasks.get(id) else { return Err(format!("no task {id}")) };
        let from = task.status;
        if transition == Transition::Checked {
            if !allowed(from, to) {
                return Err(format!("{id} can't go from {from} to {to}"));
            }
            if to == TaskStatus::Doing {
                if task.assignee.is_none() {
                    return Err(format!("{id} has no assignee"));
                }
                let waiting = unmet(self.state, task);
                if !waiting.is_empty() {
                    return Err(format!("{id} is waiting on {}", list(&waiting)));
                }
            }
            if to == TaskStatus::Done && from != TaskStatus::Done && task.worktree.is_some() {
                return Err(format!("{id} has a worktree: it is done when its merge is approved"));
            }
        }
        let reason = match to {
            TaskStatus::Blocked => Some(
                reason
                    .map(|text| truncate(&one_line(&text::clean(text)), 400))
                    .filter(|text| !text.is_empty())
                    .or_else(|| task.blocked_reason.clone())
                    .unwrap_or_else(|| "blocked".to_owned()),
            ),
            TaskStatus::Todo | TaskStatus::Doing | TaskStatus::Review | TaskStatus::Done | TaskStatus::Cancelled => {
                None
            }
        };
        self.edit_task(id, |task| {
            task.status = to;
            task.blocked_reason = reason;
        });
        Ok(())
    }

    /// Moves a task past the transition table.
    pub(crate) fn force_status(&mut self, id: &TaskId, to: TaskStatus, reason: Option<&str>) {
        // Forced moves of a known task can't be refused; of an unknown one there is nothing to move.
        let _known = self.set_status(id, to, Transition::Forced, reason);
    }

    /// Sets the summary, cut to its bound.
    pub(crate) fn set_summary(&mut self, id: &TaskId, summary: &str) {
        let summary = truncate(text::clean(summary).trim(), TEXT_CHARS);
        if !summary.is_empty() {
            self.edit_task(id, |task| task.summary = Some(summary));
        }
    }

    /// Tasks that list `id` in their dependencies.
    fn dependents(&self, id: &TaskId) -> Vec<TaskId> {
        self.state.tasks.values().filter(|task| task.deps.contains(id)).map(|task| task.id.clone()).collect()
    }

    /// A task will not be done: what waits for it says so instead of waiting in silence.
    pub(crate) fn block_dependents(&mut self, id: &TaskId, word: &str) {
        for dependent in self.dependents(id) {
            if self.state.tasks.get(&dependent).is_some_and(|task| task.status == TaskStatus::Todo) {
                self.force_status(&dependent, TaskStatus::Blocked, Some(&format!("depends on {word} {id}")));
            }
        }
    }

    /// The task is wanted again: what was blocked because of it waits for it as before.
    fn unblock_dependents(&mut self, id: &TaskId) {
        let reasons = [format!("depends on cancelled {id}"), format!("depends on rejected {id}")];
        for dependent in self.dependents(id) {
            let held = self.state.tasks.get(&dependent).is_some_and(|task| {
                task.status == TaskStatus::Blocked
                    && task.blocked_reason.as_ref().is_some_and(|reason| reasons.contains(reason))
            });
            if held {
                self.force_status(&dependent, TaskStatus::Todo, None);
            }
        }
    }

    /// The person steers a task.
    pub(crate) fn task_action(&mut self, id: &TaskId, action: TaskActionKind, arg: Option<&str>) -> Result<(), String> {
        let Some(task) = self.state.tasks.get(id).cloned() else { return Err(format!("no task {id}")) };
        let merging = matches!(self.stage(id), Stage::Merging { .. });
        if merging && action != TaskActionKind::Prioritize {
            return Err(format!("{id} is being merged right now; try again when that is through"));
        }
        match action {
            TaskActionKind::Cancel => {
                self.cancel_task(id);
                self.feed(FeedKind::Task, Some("user"), &format!("{id} cancelled: {}", task.title));
            }
            TaskActionKind::Retry => {
                self.stop_turns_of_task(id, StopWhy::Task);
                self.withdraw_task_decisions(id, "task was put back on the board");
                self.edit_task(id, |task| {
                    task.ci = CiStatus::Unknown;
                    task.status = TaskStatus::Todo;
                    task.blocked_reason = None;
                });
                self.edit_work(id, |work| {
                    work.ci_fixes = 0;
                    work.nudges = 0;
                    work.retries = 0;
                    work.start_failures = 0;
                    work.not_before = None;
                    if !matches!(
                        work.stage,
                        Stage::Preparing { .. } | Stage::Quieting { .. } | Stage::Abandoning { .. }
                    ) {
                        work.stage = Stage::Board;
                    }
                });
                self.unblock_dependents(id);
                self.feed(FeedKind::Task, Some("user"), &format!("{id} queued again: {}", task.title));
            }
            TaskActionKind::Prioritize => {
                let top = self.state.tasks.values().map(|task| task.priority).max().unwrap_or(0).max(0);
                let priority = arg
                    .and_then(|text| text.trim().parse::<f64>().ok())
                    .filter(|number| number.is_finite())
                    .map_or(top + 1, |number| {
                        #[expect(clippy::cast_possible_truncation, reason = "clamped to a range that fits")]
                        let whole = number.trunc().clamp(-1e9, 1e9) as i64;
                        whole
                    });
                self.edit_task(id, |task| task.priority = priority);
                self.feed(FeedKind::Task, Some("user"), &format!("{id} has priority {priority} now"));
            }
            TaskActionKind::Reassign => {
                let Some(arg) = arg.map(str::trim).filter(|arg| !arg.is_empty()) else {
                    return Err("reassign needs an agent id".to_owned());
                };
                let Some(agent) = self.resolve_agent(arg) else { return Err(format!("no agent named \"{arg}\"")) };
                self.reassign(id, &agent)?;
                let name = self.display_name(agent.as_str());
                self.feed(FeedKind::Task, Some("user"), &format!("{id} reassigned to {name}"));
            }
        }
        Ok(())
    }

    /// Gives a task to a worker; a worktree of another agent is handed over.
    pub(crate) fn reassign(&mut self, id: &TaskId, agent: &AgentId) -> Result<(), String> {
        if *agent == lead() {
            return Err("tasks are assigned to workers, not the lead".to_owned());
        }
        let Some(task) = self.state.tasks.get(id).cloned() else { return Err(format!("no task {id}")) };
        let same = task.assignee.as_ref() == Some(agent);
        if !same {
            self.stop_turns_of_others(id, agent);
            self.withdraw_work_decisions(id, "the task went to somebody else");
        }
        let back = task.status == TaskStatus::Doing && !same;
        self.edit_task(id, |task| {
            task.assignee = Some(agent.clone());
            if back {
                task.status = TaskStatus::Todo;
            }
        });
        if back {
            let name = self.display_name(agent.as_str());
            self.hand_over(id, &format!("agentcraft: {id} work in progress (handed to {name})"));
        }
        Ok(())
    }

    /// Cancels a task: its questions, turns and worktree go, its branch stays.
    pub(crate) fn cancel_task(&mut self, id: &TaskId) {
        self.force_status(id, TaskStatus::Cancelled, None);
        self.withdraw_task_decisions(id, "task cancelled");
        self.stop_turns_of_task(id, StopWhy::Task);
        self.edit_work(id, |work| {
            if matches!(
                work.stage,
                Stage::Collecting { .. } | Stage::Testing { .. } | Stage::Reviewing | Stage::Deciding { .. }
            ) {
                work.stage = Stage::Board;
            }
            work.cause = None;
        });
        self.block_dependents(id, "cancelled");
        self.give_up_worktree(id, &format!("agentcraft: {id} work in progress (cancelled)"));
        self.free_agents_of(id, "task cancelled");
    }

    /// Agents that show this task and don't work in a turn of it let go of it.
    pub(crate) fn free_agents_of(&mut self, id: &TaskId, activity: &str) {
        let attached: Vec<AgentId> = self
            .state
            .agents
            .values()
            .filter(|agent| agent.task_id.as_ref() == Some(id))
            .map(|agent| agent.id.clone())
            .collect();
        for agent in attached {
            let busy = self.state.turns.values().any(|turn| {
                turn.agent == agent && turn.task.as_ref() != Some(id) && matches!(turn.phase, TurnPhase::Running(_))
            });
            if busy {
                self.patch_agent(&agent, AgentPatch::default().free());
            } else {
                let patch = AgentPatch::doing(AgentState::Idle, Station::Lounge, activity).free();
                self.patch_agent(&agent, patch);
            }
        }
    }
}
