//! From finished work to a merged branch: collect, tests, the lead's review, the merge decision, the merge.
//!
//! The collected head is pinned: tests, review, decision and merge are about exactly that commit.

use super::decisions::{NewDecision, fixed_options};
use super::effect::{CiOutcome, Collected, Effect, EffectResult, MergeOrder, MergeOutcome, WorktreeRef};
use super::roster::{AgentPatch, lead};
use super::state::{Stage, StopWhy, Waiter};
use super::text::{count, one_line, short, truncate};
use super::{EffectId, Step};
use crate::protocol::{
    AgentId, AgentState, CiStatus, Decision, DecisionId, DecisionKind, FeedKind, LogKind, NotifyLevel, RepoId, Station,
    TaskId, TaskStatus, WorktreeStatus,
};
use crate::turn::{Cause, Job};

/// Times that failing tests are sent back to the worker before the person sees them.
const CI_FIXES: u32 = 1;
/// Output of failing tests in the log, lines.
const CI_LOG_LINES: usize = 6;

/// What an unchanged worktree means when it is collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unchanged {
    /// The worker said it is finished: nothing had to be changed.
    Done,
    /// The worker said nothing, twice.
    Blocked,
}

impl Step<'_> {
    /// Work that was handed in by a turn that is gone now, however it ended, is collected.
    pub(crate) fn pick_up_handed_in(&mut self) {
        let handed_in: Vec<TaskId> = self
            .state
            .tasks
            .values()
            .filter(|task| task.status == TaskStatus::Review)
            .filter(|task| self.stage(&task.id) == Stage::Board && self.turns_of_task(&task.id).is_empty())
            .map(|task| task.id.clone())
            .collect();
        for task in handed_in {
            self.collect(&task);
        }
    }

    /// The worker handed its work in.
    pub(crate) fn collect(&mut self, task: &TaskId) {
        self.edit_work(task, |work| work.nudges = 0);
        self.collect_as(task, Unchanged::Done);
    }

    /// The worker stopped without a word; what it left goes to review.
    pub(crate) fn collect_silent(&mut self, task: &TaskId) {
        self.collect_as(task, Unchanged::Blocked);
    }

    fn collect_as(&mut self, task: &TaskId, unchanged: Unchanged) {
        let Some(record) = self.state.tasks.get(task).cloned() else { return };
        let refs = self.active_worktree_of(&record).and_then(|worktree| {
            let repo = record.repo_id.as_ref()?;
            Some((self.repo_ref(repo)?, self.worktree_ref(repo, &worktree.id)?))
        });
        let Some((repo, worktree)) = refs else {
            self.force_status(task, TaskStatus::Blocked, Some("its worktree is gone"));
            self.tell_blocked(task);
            return;
        };
        if unchanged == Unchanged::Done {
            self.force_status(task, TaskStatus::Review, None);
        }
        let identity = self.identity(&worktree.agent);
        let message = format!("{task}: {}", record.title);
        let effect = self.want(Effect::Collect { repo, worktree, message, identity });
        self.set_stage(task, Stage::Collecting { effect });
    }

    /// The work is on its branch in the repository.
    pub(crate) fn on_collected(&mut self, effect: EffectId, repo: &RepoId, at: &WorktreeRef, result: EffectResult) {
        let task = &at.task;
        if self.stage(task) != (Stage::Collecting { effect }) {
            return;
        }
        let collected = match result {
            EffectResult::Collected(Ok(collected)) => collected,
            EffectResult::Collected(Err(reason)) | EffectResult::Crashed(reason) => {
                self.set_stage(task, Stage::Board);
                self.force_status(task, TaskStatus::Blocked, Some(&reason));
                self.tell_blocked(task);
                return;
            }
            _ => return,
        };
        self.remember_collected(repo, at, &collected);
        let handed_in = self.state.tasks.get(task).is_some_and(|task| task.status == TaskStatus::Review);
        if collected.facts.files == 0 {
            self.set_stage(task, Stage::Board);
            if handed_in {
                self.close_unchanged(task, at);
            } else {
                self.force_status(task, TaskStatus::Blocked, Some("worker stopped without changes"));
                self.worker_is_blocked(&at.agent, task);
            }
            return;
        }
        if !handed_in {
            self.force_status(task, TaskStatus::Review, None);
        }
        self.want_ci(task, repo, at);
    }

    fn remember_collected(&mut self, repo: &RepoId, at: &WorktreeRef, collected: &Collected) {
        self.edit_work(&at.task, |work| {
            work.head = Some(collected.head.clone());
            work.files = collected.facts.files;
            work.additions = collected.facts.additions;
            work.deletions = collected.facts.deletions;
            work.diff.clone_from(&collected.diff);
        });
        self.edit_repo_work(repo, |work| {
            if let Some(work) = work.worktrees.get_mut(&at.id) {
                work.head.clone_from(&collected.head);
            }
        });
        self.show_worktree_facts(repo, &collected.facts);
    }

    /// Finished without a changed file: done, without a decision.
    fn close_unchanged(&mut self, task: &TaskId, at: &WorktreeRef) {
        self.force_status(task, TaskStatus::Done, None);
        self.give_up_worktree(task, &format!("agentcraft: {task} (no changes)"));
        self.feed(FeedKind::Task, Some(at.agent.as_str()), &format!("{task} is done, no file had to change"));
        self.notify(NotifyLevel::Info, &format!("{task} is done"), None);
        self.finished(&at.agent, task, "is done");
    }

    // Tests.

    fn want_ci(&mut self, task: &TaskId, repo: &RepoId, at: &WorktreeRef) {
        let Some(repo_ref) = self.repo_ref(repo) else { return };
        self.set_ci(task, repo, CiStatus::Running);
        let command = self.settings.ci.clone();
        let effect = self.want(Effect::RunCi { repo: repo_ref, worktree: at.clone(), task: task.clone(), command });
        self.set_stage(task, Stage::Testing { effect });
    }

    fn set_ci(&mut self, task: &TaskId, repo: &RepoId, ci: CiStatus) {
        self.edit_task(task, |task| task.ci = ci);
        self.edit_repo(repo, |repo| repo.ci = ci);
    }

    /// The tests are through.
    pub(crate) fn on_ci(&mut self, effect: EffectId, repo: &RepoId, task: &TaskId, result: EffectResult) {
        if self.stage(task) != (Stage::Testing { effect }) {
            return;
        }
        let worker = self.state.tasks.get(task).and_then(|task| task.assignee.clone()).unwrap_or_else(lead);
        match result {
            EffectResult::CiRun(CiOutcome::Finished { command, passed, duration_ms, output, summary, .. }) => {
                self.set_ci(task, repo, if passed { CiStatus::Pass } else { CiStatus::Fail });
                self.log(&worker, LogKind::Tool, &format!("CI: {command}"));
                let tail = last_lines(&output, CI_LOG_LINES);
                let seconds = format!("{}.{} s", duration_ms / 1000, duration_ms % 1000 / 100);
                let word = if passed { "passed" } else { "FAILED" };
                let summary = summary.unwrap_or_default();
                let head = one_line(&format!("tests {word} ({seconds}) {summary}"));
                let kind = if passed { LogKind::Result } else { LogKind::Error };
                self.log(&worker, kind, format!("{head}\n{tail}").trim_end());
                let line = format!("{task}: tests {word} ({command})");
                self.feed(FeedKind::Ci, Some(worker.as_str()), &line);
                let fixes = self.state.task_work.get(task).map_or(0, |work| work.ci_fixes);
                let output_kept = (!passed).then(|| output.clone());
                self.edit_work(task, |work| {
                    work.ci_command = Some(command.clone());
                    work.ci_output = output_kept;
                });
                if !passed && fixes < CI_FIXES && self.is_active(&worker) {
                    self.edit_work(task, |work| work.ci_fixes += 1);
                    self.send_back(task, Cause::CiFailed { command, output });
                    return;
                }
            }
            EffectResult::CiRun(CiOutcome::NoCommand) => {
                self.set_ci(task, repo, CiStatus::Unknown);
                self.log(&worker, LogKind::Text, "no test command found for this repository: tests not run");
            }
            EffectResult::CiRun(CiOutcome::Broken(reason)) | EffectResult::Crashed(reason) => {
                self.set_ci(task, repo, CiStatus::Unknown);
                self.feed(FeedKind::Ci, Some(worker.as_str()), &format!("{task}: tests could not run: {reason}"));
            }
            _ => return,
        }
        self.want_review(task);
    }

    // Review.

    fn want_review(&mut self, task: &TaskId) {
        if self.settings.lead_review && self.is_active(&lead()) {
            self.set_stage(task, Stage::Reviewing);
            self.want_turn(lead(), Job::Review, Some(task.clone()), None, Cause::Start, 0);
        } else {
            self.open_merge(task, None);
        }
    }

    /// The lead's review turn ended. Without a verdict the person decides; nothing is merged or lost.
    pub(crate) fn review_ended(&mut self, task: &TaskId, words: &str) {
        if self.stage(task) == Stage::Reviewing {
            let words = truncate(&one_line(words), 300);
            let note = (!words.is_empty()).then(|| format!("Marlow's review: {words}"));
            self.open_merge(task, note.as_deref());
        }
    }

    /// Asks the person to merge the collected commit.
    pub(crate) fn open_merge(&mut self, task: &TaskId, summary: Option<&str>) -> Option<DecisionId> {
        if let Some(open) = self.open_merge_of(task) {
            return Some(open);
        }
        let record = self.state.tasks.get(task)?.clone();
        let work = self.state.task_work.get(task)?.clone();
        let (Some(repo), Some(worktree), Some(branch), Some(head)) =
            (record.repo_id.clone(), record.worktree.clone(), record.branch.clone(), work.head.clone())
        else {
            self.set_stage(task, Stage::Board);
            self.force_status(task, TaskStatus::Blocked, Some("there is no collected work to merge"));
            self.tell_blocked(task);
            return None;
        };
        let base = self.repo_ref(&repo).map(|repo| repo.base).unwrap_or_default();
        let words = summary.map(str::to_owned).or_else(|| record.summary.clone());
        let words = words.unwrap_or_else(|| "Work complete.".to_owned());
        let tests = if record.ci == CiStatus::Unknown { "not run".to_owned() } else { record.ci.to_string() };
        let context = format!(
            "{}\n{}, +{} -{} | tests: {tests}\ncommit {}",
            words.trim(),
            count(work.files, "file"),
            work.additions,
            work.deletions,
            short(&head)
        );
        // Stage first, so that an answer of any kind finds the task deciding.
        let id = self.open_decision(NewDecision {
            agent: lead(),
            kind: DecisionKind::Merge,
            question: format!("Merge {task} \"{}\" ({branch}) into {base}?", record.title),
            options: fixed_options(DecisionKind::Merge),
            context: Some(context),
            task: Some(task.clone()),
            repo: Some(repo),
            worktree: Some(worktree),
            tool: None,
            waiter: Waiter::Merge { head },
        });
        self.set_stage(task, Stage::Deciding { decision: id.clone() });
        if self.is_active(&lead()) && !self.state.turns.values().any(|turn| turn.agent == lead()) {
            let activity = format!("awaiting your review of {task}");
            self.patch_agent_state(&lead(), AgentState::Idle, Station::MergeStation, &activity);
        }
        Some(id)
    }

    /// The work goes back to its worker.
    pub(crate) fn send_back(&mut self, task: &TaskId, cause: Cause) {
        self.withdraw_task_decisions(task, "the work goes on");
        let Some(record) = self.state.tasks.get(task).cloned() else { return };
        let worker = record.assignee.clone().filter(|worker| self.is_active(worker));
        let has_worktree = self.active_worktree_of(&record).is_some();
        match worker {
            Some(worker) if has_worktree => {
                self.set_stage(task, Stage::Board);
                self.force_status(task, TaskStatus::Doing, None);
                let mut patch = AgentPatch::doing(AgentState::Thinking, Station::Desk, &format!("revising {task}"));
                patch.task = Some(Some(task.clone()));
                patch.repo = Some(record.repo_id.clone());
                patch.worktree = Some(record.worktree.clone());
                let busy = self.state.turns.values().any(|turn| turn.agent == worker);
                if !busy {
                    self.patch_agent(&worker, patch);
                }
                self.want_turn(worker, Job::Work, Some(task.clone()), None, cause, 0);
            }
            _ => {
                // Its worker is not there: whoever takes it up is told what was asked for.
                self.set_stage(task, Stage::Board);
                self.edit_task(task, |task| {
                    task.status = TaskStatus::Todo;
                    task.assignee = None;
                });
                self.edit_work(task, |work| work.cause = Some(cause));
                self.hand_over(task, &format!("agentcraft: {task} work in progress (changes requested)"));
            }
        }
    }

    // Merge.

    /// Builds the order of an answered merge; the caller gives the effect's id.
    pub(crate) fn merge_order(
        &self,
        decision: &Decision,
        task: &TaskId,
        head: &str,
    ) -> Result<impl FnOnce(EffectId) -> MergeOrder + use<>, String> {
        let record = self.state.tasks.get(task).ok_or("the task is gone")?.clone();
        let repo = decision.repo_id.as_ref().and_then(|repo| self.repo_ref(repo)).ok_or("the repository is gone")?;
        let worktree = decision
            .worktree
            .as_ref()
            .and_then(|worktree| self.worktree_ref(&repo.id, worktree))
            .ok_or("the worktree is gone")?;
        let mut message = format!("{task}: {}", record.title);
        if let Some(summary) = &record.summary {
            message.push_str(&format!("\n\n{summary}"));
        }
        let (style, sign) = (self.settings.merge_style, self.settings.sign_merges);
        let profile = self.settings.profile_id.clone();
        let (decision, task, head) = (decision.id.clone(), task.clone(), head.to_owned());
        Ok(move |effect: EffectId| MergeOrder {
            repo,
            worktree,
            decision,
            task: Some(task),
            head,
            message,
            style,
            sign,
            mark: format!("{profile}-{effect}"),
        })
    }

    /// Git is through with an answered merge.
    pub(crate) fn on_merged(&mut self, effect: EffectId, order: &MergeOrder, result: EffectResult) {
        let Some(task) = order.task.clone() else { return };
        if self.stage(&task) != (Stage::Merging { decision: order.decision.clone(), effect }) {
            return;
        }
        match result {
            EffectResult::Merged(MergeOutcome::Merged { commit, files }) => {
                self.merge_done(order, &task, &commit, files);
            }
            EffectResult::Merged(MergeOutcome::Empty) => {
                self.set_stage(&task, Stage::Board);
                self.force_status(&task, TaskStatus::Done, None);
                self.give_up_worktree(&task, &format!("agentcraft: {task} (no changes)"));
                self.feed(
                    FeedKind::Merge,
                    Some(lead().as_str()),
                    &format!("{task} is done, there was nothing to merge"),
                );
                self.notify(NotifyLevel::Info, &format!("{task} is done, there was nothing to merge"), None);
                self.finished(&order.worktree.agent, &task, "is done");
            }
            EffectResult::Merged(MergeOutcome::Conflict { files }) => self.merge_conflict(order, &task, files),
            EffectResult::Merged(MergeOutcome::Refused { reason }) | EffectResult::Crashed(reason) => {
                self.set_stage(&task, Stage::Deciding { decision: order.decision.clone() });
                self.reopen_merge(&order.decision, &reason);
            }
            _ => {
                self.set_stage(&task, Stage::Deciding { decision: order.decision.clone() });
                self.reopen_merge(&order.decision, "the merge gave no result");
            }
        }
        self.refresh_soon(&order.repo.id, 0);
    }

    fn merge_done(&mut self, order: &MergeOrder, task: &TaskId, commit: &str, files: u32) {
        self.set_stage(task, Stage::Board);
        self.force_status(task, TaskStatus::Done, None);
        let line = format!(
            "Merged {} into {} ({}, {})",
            order.worktree.branch,
            order.repo.base,
            short(commit),
            count(files, "file")
        );
        self.feed(FeedKind::Merge, Some(lead().as_str()), &line);
        self.notify(NotifyLevel::Info, &line, None);
        self.edit_repo_work(&order.repo.id, |work| {
            if let Some(work) = work.worktrees.get_mut(&order.worktree.id) {
                work.merged = Some(commit.to_owned());
            }
        });
        // What is left in the worktree is committed to its branch, then the directory goes.
        self.stop_turns_of_task(task, StopWhy::Task);
        self.give_up_worktree(task, &format!("agentcraft: {task} (left after the merge)"));
        self.edit_repo(&order.repo.id, |repo| {
            repo.head = Some(short(commit));
            if let Some(at) = repo.worktrees.iter_mut().find(|at| at.id == order.worktree.id) {
                at.status = WorktreeStatus::Merged;
            }
        });
        self.finished(&order.worktree.agent, task, "merged");
    }

    /// The worker of a finished task is free; it shows `done` when nothing on the wall is its own any more.
    fn finished(&mut self, agent: &AgentId, task: &TaskId, word: &str) {
        if !self.is_active(agent) {
            return;
        }
        let shows = self.state.agents.get(agent).is_some_and(|agent| agent.task_id.as_ref() == Some(task));
        let busy = self.state.turns.values().any(|turn| turn.agent == *agent);
        if busy || !shows {
            return;
        }
        let more = self.state.tasks.values().any(|other| {
            other.assignee.as_ref() == Some(agent) && !matches!(other.status, TaskStatus::Done | TaskStatus::Cancelled)
        });
        let state = if more { AgentState::Idle } else { AgentState::Done };
        let patch = AgentPatch::doing(state, Station::Lounge, &format!("{task} {word}")).free();
        self.patch_agent(agent, patch);
    }

    fn merge_conflict(&mut self, order: &MergeOrder, task: &TaskId, files: Vec<String>) {
        let worker = self.state.tasks.get(task).and_then(|task| task.assignee.clone());
        let names = truncate(&files.join(", "), 300);
        let Some(worker) = worker.filter(|worker| self.is_active(worker)) else {
            self.set_stage(task, Stage::Deciding { decision: order.decision.clone() });
            let reason = format!(
                "conflicts with {} in {names}; its worker is off shift: bring one in with /spawn or reassign the task",
                order.repo.base
            );
            self.reopen_merge(&order.decision, &reason);
            return;
        };
        let line = format!("{task} conflicts with {} in {names}: back to its worker", order.repo.base);
        self.feed(FeedKind::Merge, Some(worker.as_str()), &line);
        self.notify(NotifyLevel::Info, &line, None);
        self.send_back(task, Cause::Conflict { base: order.repo.base.clone(), files });
    }
}

fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}
