//! Committing what is in a worktree, bringing its branch over into the repository, and giving the worktree up.

use std::path::Path;

use super::copy::{mirror_base, move_branch, verify_in};
use super::error::{At, GitError};
use super::failpoint::hit;
use super::run::git;
use super::shadow::Shadow;
use super::snapshot::{self, ScratchIndex};
use super::{CollectedWork, GitHome, Identity, RepoAt, WorktreeAt, repo};

/// Commits everything uncommitted on the worktree's own branch and brings the branch over, checked.
///
/// # Errors
/// [`GitError::Tampered`] when the worktree is not what it should be; else what git said. Nothing is lost then.
pub fn collect(
    home: &GitHome,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    message: &str,
    identity: &Identity,
) -> Result<CollectedWork, GitError> {
    let shadow = Shadow::open(home, repo)?;
    verify_in(&shadow, &worktree.dir)?;
    let before = shadow.head_in_copy(worktree)?.unwrap_or_else(|| worktree.fork.clone());
    let head = snapshot_commit(&shadow, worktree, &before, message, identity)?;
    bring_over(&shadow, &worktree.dir, &head)?;
    publish_branch(&shadow, worktree, &head)?;
    if let Ok(base) = shadow.base_head() {
        mirror_base(&shadow, &worktree.dir, &base)?;
    }
    report(&shadow, Some(&worktree.dir), worktree, &head)
}

/// The branch in the repository goes to the collected head; what a rebase or reset dropped stays pinned.
fn publish_branch(shadow: &Shadow, worktree: &WorktreeAt, head: &str) -> Result<(), GitError> {
    let repo = &shadow.repo.path;
    if let Some(old) = repo::branch_head(repo, &worktree.branch)?
        && old != head
    {
        let kept = git(repo).args(["merge-base", "--is-ancestor"]).args([&old, head]).output()?.code == 0;
        if !kept {
            shadow.pin(&format!("{}-former", worktree.id), &old)?;
        }
    }
    move_branch(repo, &worktree.branch, head, "agentcraft: work brought over")?;
    hit("bring:after-ref");
    Ok(())
}

fn report(shadow: &Shadow, dir: Option<&Path>, worktree: &WorktreeAt, head: &str) -> Result<CollectedWork, GitError> {
    let from = snapshot::fork_point(shadow, dir, head, &worktree.fork)?;
    let stats = snapshot::numbers(shadow, dir, worktree, &from, head, head)?;
    let (diff, names) = snapshot::prompt_diff(shadow, dir, &from, head)?;
    Ok(CollectedWork { head: head.to_owned(), stats, diff, names })
}

/// Commits the worktree's files onto its own branch when they differ from it; gives back the branch's head.
///
/// HEAD elsewhere (detached, another branch): the files are committed onto the own branch all the same, the message
/// says where HEAD was, and HEAD, index and the other branch stay as they are.
pub(crate) fn snapshot_commit(
    shadow: &Shadow,
    worktree: &WorktreeAt,
    parent: &str,
    message: &str,
    identity: &Identity,
) -> Result<String, GitError> {
    let dir = &worktree.dir;
    hit("collect:before-commit");
    let place = shadow.place(&worktree.id)?;
    let index = ScratchIndex::new(&place)?;
    let tree = snapshot::tree(shadow, worktree, &index)?;
    let own = format!("refs/heads/{}", worktree.branch);
    let at = shadow.head_name_in_copy(dir)?;
    let on_own = at.as_deref() == Some(own.as_str());
    let git_dir = dir.join(".git");
    let merging = on_own
        .then(|| std::fs::read_to_string(git_dir.join("MERGE_HEAD")).ok())
        .flatten()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .filter(|id| id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let parent_tree = shadow
        .with_objects_of(shadow.git(), dir)
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("{parent}^{{tree}}"))
        .line()?;
    if tree == parent_tree && merging.is_none() {
        index.keep(&place)?;
        return Ok(parent.to_owned());
    }
    let mut text = message.to_owned();
    if !on_own && !worktree.branch.is_empty() {
        let place = at.as_deref().map_or("detached", |name| name.trim_start_matches("refs/heads/"));
        text.push_str(&format!("\n\nThe worktree's HEAD was elsewhere ({place}) when this was committed."));
    }
    let mut commit = Shadow::signed_by(shadow.with_objects_of(shadow.git(), dir), identity).args([
        "commit-tree",
        &tree,
        "-p",
        parent,
    ]);
    if let Some(other) = &merging {
        commit = commit.args(["-p", other]);
    }
    let commit = commit.args(["-F", "-"]).stdin(text).line()?;
    hit("collect:after-objects");
    if worktree.branch.is_empty() {
        return Ok(commit);
    }
    git(dir)
        .env("GIT_DIR", &git_dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["update-ref", "--no-deref", "-m", "agentcraft: work committed"])
        .args([own.as_str(), &commit, parent])
        .run()?;
    hit("collect:after-ref");
    if on_own {
        // The agent's index shows what was committed, not its reversal.
        let fresh = git_dir.join("index.agentcraft");
        std::fs::copy(index.path(), &fresh).at(&fresh)?;
        let target = git_dir.join("index");
        std::fs::rename(&fresh, &target).at(&target)?;
        for done in ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"] {
            // Gone already is as good.
            let _absent = std::fs::remove_file(git_dir.join(done));
        }
    }
    hit("collect:after-index");
    index.keep(&place)?;
    Ok(commit)
}

/// Brings a commit and all it needs from a worktree into the repository, as a pack whose objects are checked as
/// `transfer.fsckObjects` does.
pub(crate) fn bring_over(shadow: &Shadow, dir: &Path, head: &str) -> Result<(), GitError> {
    let repo = &shadow.repo.path;
    let there = git(repo).args(["cat-file", "-e"]).arg(format!("{head}^{{commit}}")).output()?;
    if there.code == 0 {
        // A commit is written after all it needs, and a pack is moved in whole.
        return Ok(());
    }
    hit("bring:before-pack");
    let base = shadow.base_head()?;
    let wanted = format!("{head}\n^{base}\n");
    let pack = shadow
        .with_objects_of(shadow.git(), dir)
        .args(["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"])
        .stdin(wanted)
        .run()?;
    git(repo)
        .args(["-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true"])
        .args(["index-pack", "--stdin", "--strict", "--fix-thin"])
        .stdin(pack)
        .run()?;
    hit("bring:after-pack");
    git(repo).args(["cat-file", "-e"]).arg(format!("{head}^{{commit}}")).run()?;
    Ok(())
}

/// Collects a last time, then removes the directory; the branch stays. A directory that is gone already is fine.
///
/// # Errors
/// [`GitError::Tampered`]: the directory is left where it is, for it may be the only copy.
pub fn abandon(
    home: &GitHome,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    message: &str,
    identity: &Identity,
) -> Result<CollectedWork, GitError> {
    let shadow = Shadow::open(home, repo)?;
    let removing = worktree.dir.with_extension("removing");
    if removing.exists() {
        // A removal that was cut short: everything in it was collected before.
        remove(&removing)?;
    }
    if worktree.dir.symlink_metadata().is_err() {
        let head = repo::branch_head(&repo.path, &worktree.branch)?
            .ok_or_else(|| GitError::MissingBranch { branch: worktree.branch.clone(), repo: repo.path.clone() })?;
        return report(&shadow, None, worktree, &head);
    }
    let collected = collect(home, repo, worktree, message, identity)?;
    if let Some(nested) = nested_repository(&worktree.dir, 0) {
        return Err(GitError::Tampered {
            dir: worktree.dir.clone(),
            why: format!("it holds another repository ({nested}) whose work would be lost"),
        });
    }
    pin_other_branches(&shadow, worktree)?;
    hit("abandon:before-remove");
    std::fs::rename(&worktree.dir, &removing).at(&worktree.dir)?;
    hit("abandon:half-removed");
    remove(&removing)?;
    Ok(collected)
}

/// Other branches (and stashes) that the agent made in its copy are kept too.
fn pin_other_branches(shadow: &Shadow, worktree: &WorktreeAt) -> Result<(), GitError> {
    let out = git(&worktree.dir)
        .env("GIT_DIR", worktree.dir.join(".git"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["for-each-ref", "--format=%(objectname)", "refs/heads", "refs/tags", "refs/stash"])
        .run()?;
    for id in String::from_utf8_lossy(&out).lines().take(200) {
        let commit = shadow
            .with_objects_of(shadow.git(), &worktree.dir)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{id}^{{commit}}"))
            .maybe()?;
        let Some(commit) = commit else { continue };
        let known = git(&shadow.repo.path).args(["cat-file", "-e"]).arg(format!("{commit}^{{commit}}")).output()?;
        if known.code != 0 {
            bring_over(shadow, &worktree.dir, &commit)?;
            shadow.pin(&format!("{}-other", worktree.id), &commit)?;
        }
    }
    Ok(())
}

/// A repository inside the worktree, which a commit holds by name only.
fn nested_repository(dir: &Path, depth: u32) -> Option<String> {
    if depth > 12 {
        return None;
    }
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if !kind.is_dir() || (depth == 0 && entry.file_name() == ".git") {
            continue;
        }
        let name = entry.file_name();
        // What package managers put there is theirs, not work.
        if name == "node_modules" || name == "target" || name == ".venv" {
            continue;
        }
        if path.join(".git").exists() {
            return Some(path.display().to_string());
        }
        if let Some(found) = nested_repository(&path, depth + 1) {
            return Some(found);
        }
    }
    None
}

/// Finishes removals that were cut short: directories that were moved aside after everything in them was collected.
/// Gives back what could not be removed, in words.
pub fn sweep(home: &GitHome) -> Vec<String> {
    let mut left = Vec::new();
    let entries = |dir: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(dir).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    };
    for repo in entries(&home.worktrees) {
        for dir in entries(&repo) {
            if dir.extension().is_some_and(|extension| extension == "removing")
                && let Err(error) = remove(&dir)
            {
                left.push(error.to_string());
            }
        }
    }
    left
}

fn remove(dir: &Path) -> Result<(), GitError> {
    let mut last = Ok(());
    for _ in 0..3 {
        last = std::fs::remove_dir_all(dir);
        if last.is_ok() || !dir.exists() {
            return Ok(());
        }
    }
    last.at(dir)
}
