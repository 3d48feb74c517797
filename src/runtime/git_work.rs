//! The git room's functions in the core's words: each takes an effect's fields and gives its result.
//!
//! Blocking; called on threads that may block.

use crate::foreman::effect::{
    AgentIdentity, Collected, DiffOrder, MergeOrder, MergeOutcome, MergeStyle, PrepareFailure, PrepareWorktree,
    PreparedWorktree, RepoFacts, RepoRef, WorktreeFacts, WorktreeRef,
};
use crate::git::{
    self, CollectedWork, GitHome, Identity, MergeRequest, MergeResult, PrepareError, RepoAt, RepoView, WorktreeAt,
    WorktreeOrder, WorktreeStats,
};
use crate::protocol::{Diff, DiffStats};
use std::path::{Path, PathBuf};

pub(crate) fn repo_at(repo: &RepoRef) -> RepoAt {
    let RepoRef { id, path, base } = repo;
    RepoAt { id: id.clone(), path: path.clone(), base: base.clone() }
}

pub(crate) fn worktree_at(worktree: &WorktreeRef) -> WorktreeAt {
    let WorktreeRef { id, agent, task, dir, branch, fork, live } = worktree;
    WorktreeAt {
        id: id.clone(),
        agent: agent.clone(),
        task: task.clone(),
        dir: dir.clone(),
        branch: branch.clone(),
        fork: fork.clone(),
        live: *live,
    }
}

pub(crate) fn identity(identity: &AgentIdentity) -> Identity {
    let AgentIdentity { name, email } = identity;
    Identity { name: name.clone(), email: email.clone() }
}

fn facts(view: RepoView) -> RepoFacts {
    let RepoView { path, branch, head, dirty, health, worktrees } = view;
    RepoFacts { path, branch, head, dirty, health, worktrees: worktrees.into_iter().map(stats).collect() }
}

fn stats(stats: WorktreeStats) -> WorktreeFacts {
    let WorktreeStats { id, ahead, files, additions, deletions } = stats;
    WorktreeFacts { id, ahead, files, additions, deletions }
}

fn collected(worktree: &WorktreeRef, work: CollectedWork) -> Collected {
    let CollectedWork { head, facts, diff, names, committed: _, notes } = work;
    say_notes(&worktree.dir, &notes);
    Collected { head, facts: stats(facts), diff, names }
}

fn say_notes(dir: &Path, notes: &[String]) {
    for note in notes {
        tracing::warn!(worktree = %dir.display(), "{note}");
    }
}

pub(crate) fn inspect(path: &str) -> Result<RepoFacts, String> {
    git::inspect(&expand_home(path)).map(facts).map_err(|error| error.to_string())
}

/// `~` and `~/...` are the person's home.
fn expand_home(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

pub(crate) fn refresh(home: &GitHome, repo: &RepoRef, worktrees: &[WorktreeRef]) -> Result<RepoFacts, String> {
    let worktrees: Vec<WorktreeAt> = worktrees.iter().map(worktree_at).collect();
    git::refresh(home, &repo_at(repo), &worktrees).map(facts).map_err(|error| error.to_string())
}

pub(crate) fn prepare(home: &GitHome, order: &PrepareWorktree) -> Result<PreparedWorktree, PrepareFailure> {
    let PrepareWorktree { repo, agent, task, id, branch, dir, start, own_branches, setup: _, identity: who } = order;
    let order = WorktreeOrder {
        repo: repo_at(repo),
        agent: agent.clone(),
        task: task.clone(),
        id: id.clone(),
        branch: branch.clone(),
        dir: dir.clone(),
        start: start.clone(),
        own_branches: own_branches.clone(),
        identity: identity(who),
    };
    match git::prepare_worktree(home, &order) {
        Ok(made) => {
            let git::Prepared { dir, branch, fork, head, copied, reused: _, notes } = made;
            say_notes(&dir, &notes);
            Ok(PreparedWorktree { dir, branch, fork, head, copied, setup_output: None })
        }
        Err(PrepareError::Passing(reason)) => Err(PrepareFailure::Passing(reason)),
        Err(PrepareError::Lasting(reason)) => Err(PrepareFailure::Lasting(reason)),
    }
}

pub(crate) fn prepare_copy(home: &GitHome, repo: &RepoRef, dir: &Path) -> Result<PathBuf, String> {
    git::prepare_lead_copy(home, &repo_at(repo), dir).map_err(|error| error.to_string())
}

pub(crate) fn collect(
    home: &GitHome,
    repo: &RepoRef,
    worktree: &WorktreeRef,
    message: &str,
    who: &AgentIdentity,
) -> Result<Collected, String> {
    git::collect(home, &repo_at(repo), &worktree_at(worktree), message, &identity(who))
        .map(|work| collected(worktree, work))
        .map_err(|error| error.to_string())
}

pub(crate) fn abandon(
    home: &GitHome,
    repo: &RepoRef,
    worktree: &WorktreeRef,
    message: &str,
    who: &AgentIdentity,
) -> Result<Collected, String> {
    git::abandon(home, &repo_at(repo), &worktree_at(worktree), message, &identity(who))
        .map(|work| collected(worktree, work))
        .map_err(|error| error.to_string())
}

pub(crate) fn merge(home: &GitHome, order: &MergeOrder) -> MergeOutcome {
    let MergeOrder { repo, worktree, decision, task, head, message, style, sign, mark } = order;
    let request = MergeRequest {
        repo: repo_at(repo),
        worktree: worktree_at(worktree),
        decision: decision.clone(),
        task: task.clone(),
        head: head.clone(),
        message: message.clone(),
        style: match style {
            MergeStyle::Merge => git::MergeStyle::Merge,
            MergeStyle::Squash => git::MergeStyle::Squash,
        },
        sign: *sign,
        mark: mark.clone(),
    };
    match git::merge(home, &request) {
        Ok(MergeResult::Merged { commit, files }) => MergeOutcome::Merged { commit, files },
        Ok(MergeResult::Empty) => MergeOutcome::Empty,
        Ok(MergeResult::Conflict { files }) => MergeOutcome::Conflict { files },
        Ok(MergeResult::Refused { reason }) => MergeOutcome::Refused { reason },
        Err(error) => MergeOutcome::Refused { reason: error.to_string() },
    }
}

/// A diff that could not be made carries the reason.
pub(crate) fn diff(home: &GitHome, repo: &RepoRef, worktree: &WorktreeRef, order: &DiffOrder) -> Diff {
    let made = git::diff(home, &repo_at(repo), &worktree_at(worktree), order.path.as_deref());
    let (request_id, repo_id, id) = (order.request_id.clone(), repo.id.clone(), worktree.id.clone());
    match made {
        Ok(diff) => {
            let git::WireDiff { base, branch, files, stats, truncated } = diff;
            Diff {
                request_id,
                repo_id,
                worktree: id,
                base: Some(base),
                branch: Some(branch),
                files,
                stats,
                truncated,
                error: None,
            }
        }
        Err(error) => Diff {
            request_id,
            repo_id,
            worktree: id,
            base: None,
            branch: None,
            files: Vec::new(),
            stats: DiffStats::default(),
            truncated: false,
            error: Some(error.to_string()),
        },
    }
}

pub(crate) fn verify(home: &GitHome, repo: &RepoRef, worktree: &WorktreeRef) -> Result<(), String> {
    git::verify(home, &repo_at(repo), &worktree_at(worktree)).map(|_| ()).map_err(|error| error.to_string())
}
