//! Looking at a person's repository: may it be connected, where is its base branch, is anything uncommitted.
//!
//! Takes no lock of theirs: git runs without optional locks, and nothing here writes outside our own refs.

use std::path::{Path, PathBuf};

use super::collect::stats_of;
use super::error::GitError;
use super::person::{Checkout, Person, is_oid, text};
use super::run::{Call, failed, require_git};
use super::{GitHome, RepoAt, RepoView, WorktreeAt};

/// Looks at a path that the person wants connected.
///
/// # Errors
/// The path does not exist; is not in a repository with a checkout; is not a repository root; has no commits; has a
/// detached HEAD; is of a form that agents cannot borrow from (shallow, partial clone). Each has its own text.
pub fn inspect(path: &Path) -> Result<RepoView, GitError> {
    require_git()?;
    let path = expanded(path);
    if !path.exists() {
        return Err(GitError::NoPath(path));
    }
    let person = Person::open(&path)?;
    let symbolic = person.call().args(["symbolic-ref", "--quiet", "HEAD"]).maybe()?;
    let Some(branch) = symbolic.as_deref().and_then(|name| name.strip_prefix("refs/heads/")) else {
        return Err(GitError::Detached(person.path));
    };
    let Some(head) = person.branch_head(branch)? else { return Err(GitError::NoCommits(person.path)) };
    if let Some(refusal) = person.unsupported()? {
        return Err(refusal);
    }
    let dirty = is_dirty(&person.path);
    let here = person.checkouts_of(branch)?;
    let health = health(&person, branch, &here)?;
    let branch = branch.to_owned();
    Ok(RepoView { path: person.path, branch, head: Some(head), dirty, health, worktrees: Vec::new() })
}

/// Looks at a connected repository again, and at the worktrees in it.
///
/// A repository that is gone or unusable is no error: [`RepoView::health`] says so. Worktrees whose statistics cannot
/// be had (gone, tampered with) are left out. Commits that agents made meanwhile are brought over.
///
/// # Errors
/// git itself is missing or too old.
pub fn refresh(home: &GitHome, repo: &RepoAt, worktrees: &[WorktreeAt]) -> Result<RepoView, GitError> {
    require_git()?;
    let mut view = RepoView {
        path: repo.path.clone(),
        branch: repo.base.clone(),
        head: None,
        dirty: false,
        health: None,
        worktrees: Vec::new(),
    };
    let person = match Person::open(&repo.path) {
        Ok(person) => person,
        Err(error) => {
            view.health = Some(error.to_string());
            return Ok(view);
        }
    };
    view.path.clone_from(&person.path);
    match look(&person, &repo.base) {
        Ok((head, dirty, health)) => (view.head, view.dirty, view.health) = (head, dirty, health),
        Err(error) => view.health = Some(error.to_string()),
    }
    if let Some(head) = &view.head {
        view.worktrees = worktrees.iter().filter_map(|wt| stats_of(home, &person, repo, wt, head).ok()).collect();
    }
    Ok(view)
}

fn look(person: &Person, base: &str) -> Result<(Option<String>, bool, Option<String>), GitError> {
    if let Some((head, dirty)) = look_once(person, base)? {
        let here = [Checkout {
            path: person.path.clone(),
            branch: Some(base.to_owned()),
            head: Some(head.clone()),
            is_there: true,
        }];
        return Ok((Some(head), dirty, health(person, base, &here)?));
    }
    let here = person.checkouts_of(base)?;
    let head = match here.first().and_then(|checkout| checkout.head.clone()) {
        Some(head) => Some(head),
        None => person.branch_head(base)?,
    };
    if head.is_none() {
        let gone = GitError::NoBase { path: person.path.clone(), branch: base.to_owned() };
        return Ok((None, false, Some(gone.to_string())));
    }
    let dirty = here.iter().any(|checkout| checkout.is_there && is_dirty(&checkout.path));
    Ok((head, dirty, health(person, base, &here)?))
}

/// The common case by one call, for polls: the only checkout there is has the base branch. None: look closer.
fn look_once(person: &Person, base: &str) -> Result<Option<(String, bool)>, GitError> {
    if person.common_dir.join("worktrees").symlink_metadata().is_ok() {
        return Ok(None);
    }
    let call =
        person.call().args(["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--no-renames"]);
    let done = call.finish()?;
    if done.code != Some(0) {
        return Ok(None);
    }
    let (mut head, mut branch, mut dirty) = (None, None, false);
    for entry in done.stdout.split(|b| *b == 0).filter(|entry| !entry.is_empty()) {
        if let Some(oid) = entry.strip_prefix(b"# branch.oid ") {
            head = Some(text(oid)).filter(|oid| is_oid(oid));
        } else if let Some(name) = entry.strip_prefix(b"# branch.head ") {
            branch = Some(text(name));
        } else if !entry.starts_with(b"# ") {
            dirty = true;
        }
    }
    Ok(head.filter(|_| branch.as_deref() == Some(base)).map(|head| (head, dirty)))
}

/// What stands in the way of work or a merge just now, in words. `here`: the checkouts that have the base branch.
fn health(person: &Person, base: &str, here: &[Checkout]) -> Result<Option<String>, GitError> {
    if let Some(refusal) = person.shallow() {
        return Ok(Some(refusal.to_string()));
    }
    if let Some(what) = person.operation_on(base) {
        return Ok(Some(format!("{what} of {base} is in progress; finish it before merging")));
    }
    for checkout in here {
        if !checkout.is_there {
            return Ok(Some(missing(base, checkout)));
        }
        if let Some(what) = Person::operation(&person.git_dir_of(checkout)?) {
            let at = checkout.path.display();
            return Ok(Some(format!("{what} is in progress in {at}; finish it before merging")));
        }
    }
    if here.is_empty() && person.call().args(["symbolic-ref", "--quiet", "HEAD"]).maybe()?.is_none() {
        let at = person.path.display();
        return Ok(Some(format!("HEAD is detached in {at}; check out a branch before merging")));
    }
    Ok(None)
}

/// Why a checkout that is not there stands in the way: its files could not follow.
pub(crate) fn missing(base: &str, checkout: &Checkout) -> String {
    let at = checkout.path.display();
    format!("{base} is checked out in {at}, which is not there; bring it back, or drop it with: git worktree prune")
}

/// Uncommitted changes of tracked files; a checkout that cannot be read counts as dirty.
pub(crate) fn is_dirty(checkout: &Path) -> bool {
    changed_files(Call::in_dir(checkout)).map_or(true, |files| !files.is_empty())
}

/// Tracked files with uncommitted changes, as `call` (git in a checkout) sees them.
pub(crate) fn changed_files(call: Call) -> Result<Vec<String>, GitError> {
    let done = call.args(["status", "--porcelain", "-z", "--untracked-files=no", "--no-renames"]).finish()?;
    if done.code != Some(0) {
        return Err(failed("git status".to_owned(), &done));
    }
    let names = done.stdout.split(|b| *b == 0).filter(|entry| !entry.is_empty());
    Ok(names.map(|entry| text(entry.get(3..).unwrap_or(entry))).collect())
}

/// `~` and relative paths made absolute.
fn expanded(path: &Path) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let path = match path.strip_prefix("~") {
        Ok(rest) => home().map_or_else(|| path.to_owned(), |home| home.join(rest)),
        Err(_) => path.to_owned(),
    };
    std::path::absolute(&path).unwrap_or(path)
}
