//! The lead's copy: a scratch copy of a goal at the base head, made once and refreshed before each turn.

use std::path::{Path, PathBuf};

use super::bring::{Load, bring_over, pin};
use super::collect::{View, dir_name};
use super::copy::lies_below;
use super::error::GitError;
use super::manifest::{Manifest, Notes};
use super::names::candidates;
use super::person::Person;
use super::prepare::{Plan, build, put_in_place};
use super::run::require_git;
use super::{GitHome, Identity, RepoAt};

/// Makes or refreshes the lead's copy at `dir`: own git directory, HEAD on the base branch, files as at the base head.
///
/// Changes of tracked files and new files in it are thrown away (it is a scratch copy), ignored files stay. Commits
/// made in it are pinned in the person's repository first. A copy that was tampered with is moved aside, not deleted.
///
/// # Errors
/// Repository or base gone, unsupported form, disk, git.
pub fn prepare_lead_copy(home: &GitHome, repo: &RepoAt, dir: &Path) -> Result<PathBuf, GitError> {
    require_git()?;
    let person = Person::open(&repo.path)?;
    if let Some(refusal) = person.unsupported()? {
        return Err(refusal);
    }
    if !lies_below(&home.worktrees, dir) {
        return Err(GitError::Other(format!("{} does not lie below AgentCraft's own directory", dir.display())));
    }
    let base = person.base_head(&repo.base)?;
    let notes = Notes::of(dir)?;
    let name = dir_name(dir);
    if dir.symlink_metadata().is_ok() {
        let known = notes.load().filter(|m| m.profile == home.profile && m.repo == person.path && m.id == name);
        match known.map(|manifest| refresh(home, &person, repo, dir, &base, &manifest)) {
            Some(Ok(())) => return Ok(dir.to_owned()),
            Some(Err(GitError::Tampered { .. })) | None => set_aside(dir)?,
            Some(Err(error)) => return Err(error),
        }
    }
    let _ = std::fs::remove_file(notes.index());
    pin(home, &person, &name, &[&base])?;
    notes.save(&Manifest {
        profile: home.profile.clone(),
        repo: person.path.clone(),
        id: name,
        wished: repo.base.clone(),
        branch: repo.base.clone(),
        fork: base.clone(),
        start: base.clone(),
        secrets: Vec::new(),
    })?;
    let identity = Identity { name: "AgentCraft Lead".to_owned(), email: "lead@agentcraft.local".to_owned() };
    let made = build(&person, dir, &Plan { base_branch: &repo.base, base: &base, branch: None, identity: &identity })?;
    put_in_place(&made, dir)?;
    Ok(dir.to_owned())
}

fn refresh(
    home: &GitHome,
    person: &Person,
    repo: &RepoAt,
    dir: &Path,
    base: &str,
    manifest: &Manifest,
) -> Result<(), GitError> {
    let view = View::open_at(home, person, dir, base, Some(manifest))?;
    let known = vec![base.to_owned(), manifest.fork.clone()];
    let mut pins = view.dropped(person, &repo.base, base, &known)?;
    if let Some(own) = view.copy.branch(&repo.base)?
        && !person.is_ancestor(&own, base).unwrap_or(false)
    {
        pins.push(own);
    }
    let load = Load { branch: None, tip: None, from: None, pins, known, protected: None };
    bring_over(home, person, &view.lens, &dir_name(dir), &load)?;
    pin(home, person, &dir_name(dir), &[base])?;
    view.lens.with_tree(dir).args(["read-tree", "--reset", "-u", base]).bytes()?;
    view.lens.with_tree(dir).args(["clean", "-f", "-d", "-q"]).bytes()?;
    view.copy.write_branch(&repo.base, base)?;
    view.copy.write_head(&repo.base)?;
    view.copy.write_index(&view.lens.index())?;
    view.copy.clear_operation()?;
    view.keep_index();
    Ok(())
}

/// Moves what lies in the way to a name of its own; it may hold work.
fn set_aside(dir: &Path) -> Result<(), GitError> {
    let name = format!("{}-set-aside", dir_name(dir));
    for candidate in candidates(&name) {
        let to = dir.with_file_name(candidate);
        if to.symlink_metadata().is_err() {
            return std::fs::rename(dir, &to).map_err(|e| GitError::disk("move aside", dir, &e));
        }
    }
    Err(GitError::Other(format!("{} is in the way; move it elsewhere", dir.display())))
}
