//! Goals: from the text a person typed to "done", and the progress between.

use super::Step;
use super::change::Change;
use super::roster::{AgentPatch, lead};
use super::state::{Counter, GoalWork, State};
use super::text::truncate;
use crate::protocol::{
    AgentId, AgentState, FeedKind, Goal, GoalId, GoalStatus, LogKind, NotifyLevel, RepoId, Station, Task, TaskStatus,
    text,
};
use crate::turn::{Cause, Job};

/// Longest goal, characters.
const GOAL_CHARS: usize = 16_000;

/// Tasks of a goal, in id order.
pub(crate) fn tasks_of<'a>(state: &'a State, goal: &'a GoalId) -> impl Iterator<Item = &'a Task> {
    state.tasks.values().filter(move |task| task.goal_id.as_ref() == Some(goal))
}

/// Mean over the tasks that are not cancelled, three decimals: done 1, review 0.75, doing 0.4, the rest 0.
pub(crate) fn progress<'a>(tasks: impl Iterator<Item = &'a Task>) -> f64 {
    let mut sum = 0_u32;
    let mut live = 0_u32;
    for task in tasks {
        // Hundredths, so that the sum is exact.
        sum += match task.status {
            TaskStatus::Done => 100,
            TaskStatus::Review => 75,
            TaskStatus::Doing => 40,
            TaskStatus::Todo | TaskStatus::Blocked => 0,
            TaskStatus::Cancelled => continue,
        };
        live += 1;
    }
    if live == 0 {
        return 0.0;
    }
    (f64::from(sum) * 10.0 / f64::from(live)).round() / 1000.0
}

impl Step<'_> {
    /// Takes a goal in and wants the lead's plan turn.
    pub(crate) fn submit_goal(&mut self, words: &str, repo: Option<&RepoId>) -> Result<GoalId, String> {
        let repo = match repo {
            Some(id) if self.state.repos.contains_key(id) => id.clone(),
            Some(id) => return Err(format!("no repo \"{id}\"")),
            None => self
                .newest_repo()
                .ok_or("no repo connected yet: connect one with `/repo add <path>`, then type the goal again")?,
        };
        if let Some(health) = self.state.repo_work.get(&repo).and_then(|work| work.health.clone()) {
            return Err(format!("{repo} can't be worked on: {health}"));
        }
        let id = GoalId::nth(self.count(Counter::Goal));
        let words = truncate(text::clean(words).trim(), GOAL_CHARS);
        self.put(Change::Goal(Goal {
            id: id.clone(),
            text: words.clone(),
            progress: 0.0,
            status: GoalStatus::Planning,
            repo_id: Some(repo),
            created_at: self.now,
            updated_at: self.now,
        }));
        self.put(Change::GoalWork(id.clone(), GoalWork::default()));
        self.feed(FeedKind::Goal, Some("user"), &format!("New goal: {words}"));
        let lead = lead();
        if self.state.agent_work.get(&lead).is_some_and(|work| work.stopped) {
            self.back_on_shift(&lead);
        }
        self.patch_agent_state(&lead, AgentState::Thinking, Station::Meeting, "reading the goal");
        self.want_turn(lead, Job::Plan, None, Some(id.clone()), Cause::Start, 0);
        self.show_engine_status();
        Ok(id)
    }

    /// Changes a goal; broadcasts only a real change.
    pub(crate) fn edit_goal(&mut self, id: &GoalId, edit: impl FnOnce(&mut Goal)) {
        let Some(old) = self.state.goals.get(id) else { return };
        let mut goal = old.clone();
        edit(&mut goal);
        let moved = (goal.progress - old.progress).abs() > 1e-6;
        if moved || goal.status != old.status {
            goal.updated_at = self.now;
            self.put(Change::Goal(goal));
        }
    }

    pub(crate) fn edit_goal_work(&mut self, id: &GoalId, edit: impl FnOnce(&mut GoalWork)) {
        let mut work = self.state.goal_work.get(id).cloned().unwrap_or_default();
        edit(&mut work);
        self.put(Change::GoalWork(id.clone(), work));
    }

    /// Status and progress of every goal follow from its tasks.
    pub(crate) fn review_goals(&mut self) {
        let goals: Vec<GoalId> = self.state.goals.keys().cloned().collect();
        for id in goals {
            self.review_goal(&id);
        }
    }

    fn review_goal(&mut self, id: &GoalId) {
        let Some(goal) = self.state.goals.get(id).cloned() else { return };
        let total = tasks_of(self.state, id).count();
        let live = tasks_of(self.state, id).filter(|task| task.status != TaskStatus::Cancelled).count();
        let complete = live > 0
            && tasks_of(self.state, id).all(|task| matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled));
        let mut status = goal.status;
        if status == GoalStatus::Active && total > 0 && live == 0 {
            self.edit_goal(id, |goal| {
                goal.status = GoalStatus::Cancelled;
                goal.progress = 0.0;
            });
            self.feed(FeedKind::Goal, None, &format!("Goal closed, every task was cancelled: {}", goal.text));
            self.show_engine_status();
            return;
        }
        if status == GoalStatus::Cancelled && live > 0 {
            status = GoalStatus::Active;
        }
        match status {
            GoalStatus::Cancelled | GoalStatus::Failed | GoalStatus::Planning => return,
            GoalStatus::Active | GoalStatus::Done => {}
        }
        let progress = if complete { 1.0 } else { progress(tasks_of(self.state, id)) };
        let status = if complete { GoalStatus::Done } else { GoalStatus::Active };
        self.edit_goal(id, |goal| {
            goal.status = status;
            goal.progress = progress;
        });
        let announced = self.state.goal_work.get(id).is_some_and(|work| work.announced);
        if complete && !announced {
            self.edit_goal_work(id, |work| work.announced = true);
            self.goal_complete(id, &goal);
        } else if !complete && announced {
            self.edit_goal_work(id, |work| work.announced = false);
        }
    }

    fn goal_complete(&mut self, id: &GoalId, goal: &Goal) {
        self.feed(FeedKind::Goal, None, &format!("Goal complete: {}", goal.text));
        self.notify(NotifyLevel::Info, &format!("Goal complete: {}", goal.text), None);
        let lead = lead();
        if self.is_active(&lead) {
            self.say(&lead, Some("user"), &format!("All done with {id}: {}", truncate(&goal.text, 120)));
        }
        let others =
            self.state.goals.values().any(|other| matches!(other.status, GoalStatus::Active | GoalStatus::Planning));
        if !others {
            let agents: Vec<AgentId> = self.state.agents.keys().cloned().collect();
            for agent in agents {
                if !self.is_active(&agent) || self.state.turns.values().any(|turn| turn.agent == agent) {
                    continue;
                }
                let station = if agent == lead { Station::Meeting } else { Station::Lounge };
                self.patch_agent(&agent, AgentPatch::doing(AgentState::Done, station, "goal done").free());
            }
        }
        self.show_engine_status();
    }

    /// The lead's turn on a planning goal ended: the plan is what is on the board.
    pub(crate) fn planning_ended(&mut self, id: &GoalId, plan_job: bool, failure: Option<&str>) {
        if self.state.goals.get(id).is_none_or(|goal| goal.status != GoalStatus::Planning) {
            return;
        }
        let total = u32::try_from(tasks_of(self.state, id).count()).unwrap_or(u32::MAX);
        if total > 0 {
            self.edit_goal(id, |goal| goal.status = GoalStatus::Active);
            let line = format!("Marlow planned the goal into {}", super::text::count(total, "task"));
            self.feed(FeedKind::Plan, Some(lead().as_str()), &line);
        } else if let Some(reason) = failure {
            self.edit_goal(id, |goal| goal.status = GoalStatus::Failed);
            self.feed(FeedKind::Error, Some(lead().as_str()), &format!("Planning {id} failed: {reason}"));
            self.notify(NotifyLevel::Warn, &format!("Planning {id} failed: {reason}"), None);
        } else if plan_job {
            self.close_goal(id, "the plan has no task");
        }
        self.show_engine_status();
    }

    /// A goal ends without work, said so.
    pub(crate) fn close_goal(&mut self, id: &GoalId, why: &str) {
        let Some(goal) = self.state.goals.get(id).cloned() else { return };
        self.edit_goal(id, |goal| {
            goal.status = GoalStatus::Cancelled;
            goal.progress = 0.0;
        });
        let line = format!("Goal closed ({why}): {}", goal.text);
        self.feed(FeedKind::Goal, Some(lead().as_str()), &line);
        self.notify(NotifyLevel::Info, &line, None);
    }

    /// The lead went off shift: goals it was still planning end, with the tasks it had made of them so far.
    pub(crate) fn close_planning_goals(&mut self, why: &str) {
        let planning: Vec<GoalId> = self
            .state
            .goals
            .values()
            .filter(|goal| goal.status == GoalStatus::Planning)
            .map(|goal| goal.id.clone())
            .collect();
        for goal in planning {
            let tasks: Vec<_> = tasks_of(self.state, &goal)
                .filter(|task| task.status != TaskStatus::Cancelled)
                .map(|task| task.id.clone())
                .collect();
            for task in tasks {
                self.cancel_task(&task);
            }
            self.close_goal(&goal, why);
            self.log(&lead(), LogKind::Text, &format!("{goal} closed: {why}"));
        }
    }
}
