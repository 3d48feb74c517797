//! Looking at a repository of the person's. Never takes a lock, never writes.

use std::path::{Path, PathBuf};

use super::error::{At, GitError};
use super::run::{git, path_of};
use super::shadow::Shadow;
use super::snapshot;
use super::{GitHome, RepoAt, RepoView, WorktreeAt};

/// Head of a branch, full hex.
pub(crate) fn branch_head(repo: &Path, branch: &str) -> Result<Option<String>, GitError> {
    git(repo)
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("refs/heads/{branch}^{{commit}}"))
        .maybe()
}

/// A checkout of the repository: the main one or a linked worktree.
pub(crate) struct Checkout {
    pub(crate) path: PathBuf,
    /// Its own git directory.
    pub(crate) git_dir: PathBuf,
}

/// Every checkout, with the branch it is on.
pub(crate) fn checkouts(repo: &Path) -> Result<Vec<(PathBuf, Option<String>)>, GitError> {
    let out = git(repo).args(["worktree", "list", "--porcelain", "-z"]).run()?;
    let mut all: Vec<(PathBuf, Option<String>)> = Vec::new();
    for line in out.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            all.push((path_of(path), None));
        } else if let Some(name) = line.strip_prefix(b"branch refs/heads/")
            && let Some(last) = all.last_mut()
        {
            last.1 = Some(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(all)
}

/// The checkout that has this branch, if one has.
pub(crate) fn checkout_of(repo: &Path, branch: &str) -> Result<Option<Checkout>, GitError> {
    for (path, on) in checkouts(repo)? {
        if on.as_deref() == Some(branch) && path.is_dir() {
            let git_dir = git(&path).args(["rev-parse", "--absolute-git-dir"]).line()?;
            return Ok(Some(Checkout { path, git_dir: git_dir.into() }));
        }
    }
    Ok(None)
}

/// An operation of the person's that is in progress in a checkout, in words.
pub(crate) fn in_progress(git_dir: &Path) -> Option<&'static str> {
    [
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase or am"),
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("BISECT_LOG", "a bisect"),
    ]
    .into_iter()
    .find(|(name, _)| git_dir.join(name).exists())
    .map(|(_, words)| words)
}

/// A rebase of this branch is in progress in some checkout (its HEAD is detached meanwhile).
pub(crate) fn being_rebased(repo: &Path, branch: &str) -> Result<bool, GitError> {
    for (path, _) in checkouts(repo)? {
        if !path.is_dir() {
            continue;
        }
        let git_dir = PathBuf::from(git(&path).args(["rev-parse", "--absolute-git-dir"]).line()?);
        for place in ["rebase-merge/head-name", "rebase-apply/head-name"] {
            if let Ok(name) = std::fs::read_to_string(git_dir.join(place))
                && name.trim() == format!("refs/heads/{branch}")
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Tracked files of a checkout with uncommitted changes; untracked ones do not count.
pub(crate) fn dirty_files(checkout: &Path) -> Result<Vec<String>, GitError> {
    let out = git(checkout).args(["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"]).run()?;
    Ok(super::run::nul_fields(&out)
        .filter_map(|entry| entry.get(3..))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect())
}

/// Looks at a path that the person wants connected.
///
/// # Errors
/// Each way in which it can't be: missing, not a repository, not its root, no commit, detached, a kind that is not
/// supported.
pub fn inspect(path: &Path) -> Result<RepoView, GitError> {
    let shown = path.display().to_string();
    let real = path.canonicalize().map_err(|_| GitError::NotFound(shown))?;
    if !real.is_dir() {
        return Err(GitError::NotGit(real));
    }
    let Some(root) = git(&real).args(["rev-parse", "--show-toplevel"]).maybe()? else {
        return Err(GitError::NotGit(real));
    };
    let root = PathBuf::from(root);
    let root = root.canonicalize().at(&root)?;
    if root != real {
        return Err(GitError::NotRoot { path: real, root });
    }
    let Some(head) = git(&real).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).maybe()? else {
        return Err(GitError::NoCommits(real));
    };
    let Some(branch) = git(&real).args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()? else {
        return Err(GitError::Detached(real));
    };
    unsupported(&real)?;
    let dirty = !dirty_files(&real)?.is_empty();
    Ok(RepoView { path: real, branch, head: Some(head), dirty, health: None, worktrees: Vec::new() })
}

/// Kinds of repositories whose borrowed copies would be half-working.
fn unsupported(repo: &Path) -> Result<(), GitError> {
    if git(repo).args(["rev-parse", "--is-shallow-repository"]).line()? == "true" {
        return Err(GitError::Unsupported(format!(
            "{} is a shallow clone: run `git fetch --unshallow` there first",
            repo.display()
        )));
    }
    if let Some(partial) = git(repo).args(["config", "--get", "extensions.partialClone"]).maybe()? {
        return Err(GitError::Unsupported(format!(
            "{} is a partial clone of {partial}: objects that are not there can't be borrowed; make a full clone",
            repo.display()
        )));
    }
    Ok(())
}

/// Looks at a connected repository: base head, dirty flag, health, statistics of the worktrees.
///
/// # Errors
/// When the repository can't be looked at at all; what only keeps it from being worked on is its `health`.
pub fn refresh(home: &GitHome, repo: &RepoAt, worktrees: &[WorktreeAt]) -> Result<RepoView, GitError> {
    if !repo.path.is_dir() {
        return Err(GitError::NotFound(format!("the repository's folder {}", repo.path.display())));
    }
    let head = branch_head(&repo.path, &repo.base)?;
    let health = head.is_none().then(|| format!("its base branch {} is gone", repo.base));
    let dirty = match checkout_of(&repo.path, &repo.base)? {
        Some(checkout) => dirty_files(&checkout.path).map_or(true, |files| !files.is_empty()),
        None => false,
    };
    let mut seen = Vec::new();
    if head.is_some() {
        let shadow = Shadow::open(home, repo)?;
        for worktree in worktrees {
            // A worktree that can't be trusted has no numbers; using it says why.
            if worktree.live
                && let Ok(stats) = snapshot::stats(&shadow, worktree)
            {
                seen.push(stats);
            }
        }
    }
    Ok(RepoView { path: repo.path.clone(), branch: repo.base.clone(), head, dirty, health, worktrees: seen })
}
