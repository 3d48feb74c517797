//! Giving worktrees up: the branch stays, the directory goes when all that it holds is safe.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::collect::{Taken, dir_name, from_branch, take};
use super::copy::lies_below;
use super::error::GitError;
use super::failpoint::hit;
use super::manifest::{MAKING, Notes, REMOVING};
use super::person::Person;
use super::run::require_git;
use super::{CollectedWork, GitHome, Identity, RepoAt, WorktreeAt};

/// Collects a worktree a last time and removes its directory. The branch stays. Again: nothing more happens.
///
/// A directory that was tampered with, or that holds nested repositories, is left where it is; a note says so.
///
/// # Errors
/// As [`super::collect`]; the directory is then still there.
pub fn abandon(
    home: &GitHome,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    message: &str,
    identity: &Identity,
) -> Result<CollectedWork, GitError> {
    require_git()?;
    let person = Person::open(&repo.path)?;
    if worktree.dir.symlink_metadata().is_err() {
        let base = person.base_head(&repo.base)?;
        return from_branch(home, &person, worktree, &base);
    }
    let message = if message.trim().is_empty() { "(abandoned)" } else { message };
    let live = WorktreeAt { live: true, ..worktree.clone() };
    match take(home, repo, &live, message, identity) {
        Ok(Taken { mut work, holds_repositories: false }) => {
            if let Err(error) = remove_directory(home, &worktree.dir) {
                work.notes.push(format!("the directory is not removed yet: {error}"));
            }
            Ok(work)
        }
        Ok(Taken { mut work, holds_repositories: true }) => {
            work.notes.push(format!("{} is kept, it holds repositories of their own", worktree.dir.display()));
            Ok(work)
        }
        Err(tampered @ GitError::Tampered { .. }) => {
            let base = person.base_head(&repo.base)?;
            let mut work = from_branch(home, &person, worktree, &base)?;
            work.notes.push(format!("{tampered}; the directory is left in place"));
            Ok(work)
        }
        Err(error) => Err(error),
    }
}

/// Moves a directory out of the way in one step, then deletes it. What cannot be deleted now is swept later.
fn remove_directory(home: &GitHome, dir: &Path) -> Result<(), GitError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if !lies_below(&home.worktrees, dir) {
        return Err(GitError::Other(format!("{} does not lie below AgentCraft's own directory", dir.display())));
    }
    let removing = dir.with_file_name(REMOVING);
    std::fs::create_dir_all(&removing).map_err(|e| GitError::disk("create", &removing, &e))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let doomed = removing.join(format!("{}-{}-{number}", dir_name(dir), std::process::id()));
    hit("remove.move.before");
    std::fs::rename(dir, &doomed).map_err(|e| GitError::disk("move", dir, &e))?;
    hit("remove.move.after");
    Notes::of(dir)?.remove();
    delete(&doomed)?;
    hit("remove.delete.after");
    Ok(())
}

/// Deletes a tree, also one whose directories were made read-only. Links are removed, not followed.
fn delete(dir: &Path) -> Result<(), GitError> {
    if std::fs::remove_dir_all(dir).is_ok() {
        return Ok(());
    }
    open_up(dir);
    match std::fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        // Somebody else removes it at the same time.
        Err(_) if dir.symlink_metadata().is_err() => Ok(()),
        Err(e) => Err(GitError::disk("remove", dir, &e)),
    }
}

fn open_up(dir: &Path) {
    if !dir.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Finishes removals that were cut short, throws away what killed runs left of our own making, and names directories
/// that no known worktree (or lead's copy) accounts for. Those are left alone: they may hold work.
pub fn sweep(home: &GitHome, known: &[PathBuf]) -> Vec<String> {
    let mut said = Vec::new();
    let own = format!("{}-", std::process::id());
    for entry in entries(&home.scratch.join("tmp")) {
        if !dir_name(&entry).starts_with(&own) {
            let _ = std::fs::remove_dir_all(&entry);
        }
    }
    for repo in entries(&home.worktrees) {
        for entry in entries(&repo) {
            let name = dir_name(&entry);
            if name == REMOVING || name == MAKING {
                for doomed in entries(&entry) {
                    // A worktree that this process makes at this moment.
                    if name == MAKING && dir_name(&doomed) == std::process::id().to_string() {
                        continue;
                    }
                    if let Err(error) = delete(&doomed) {
                        said.push(error.to_string());
                    }
                }
            } else if !name.starts_with('.') && !known.contains(&entry) {
                said.push(format!("{} belongs to no known worktree; it is left in place", entry.display()));
            }
        }
    }
    said
}

/// Real directories in `dir`, in order.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
