//! Isolated worktrees: making them, taking them up again, checking that they are what they should be.

use std::path::{Path, PathBuf};

use super::collect::{bring_over, snapshot_commit};
use super::error::{At, GitError};
use super::failpoint::hit;
use super::run::git;
use super::shadow::{Shadow, one_line_path};
use super::{GitHome, Identity, Prepared, RepoAt, WorktreeAt, WorktreeOrder, include, repo};

/// Names tried before giving up: the wished one, then `-2` to `-50`.
const NAMES: u32 = 50;

/// Makes a worktree, or takes it up again when it is there.
///
/// # Errors
/// [`GitError`] with the reason; nothing in the person's checkout or index is ever touched.
pub fn prepare_worktree(home: &GitHome, order: &WorktreeOrder) -> Result<Prepared, GitError> {
    let shadow = Shadow::open(home, &order.repo)?;
    let base = shadow.base_head()?;
    if let Some(there) = take_up(&shadow, order)? {
        return Ok(there);
    }
    let branch = free_branch(&shadow, order)?;
    let start = start_commit(&shadow, order, &branch, &base)?;
    let dir = free_dir(&order.dir)?;
    make(&shadow, &dir, Some(&branch), &start, &base, &order.identity)?;
    // The branch shows in the person's repository from the beginning, and pins what is borrowed.
    move_branch(&shadow.repo.path, &branch, &start, "agentcraft: work starts")?;
    hit("copy:after-branch");
    let copied = include::copy_included(&shadow, &order.id, &dir, &base)?;
    write_mark(&dir, &branch)?;
    let fork = super::snapshot::fork_point(&shadow, Some(&dir), &start, &base)?;
    Ok(Prepared { dir, branch, fork, head: start, fresh: true, copied })
}

/// A file in the worktree's own git directory that says it was made to the end.
const MARK: &str = "agentcraft-worktree";

fn write_mark(dir: &Path, branch: &str) -> Result<(), GitError> {
    let mark = dir.join(".git").join(MARK);
    std::fs::write(&mark, format!("{branch}\n")).at(&mark)
}

/// The wished directory holds this task's worktree, whole: it is used as it is.
fn take_up(shadow: &Shadow, order: &WorktreeOrder) -> Result<Option<Prepared>, GitError> {
    let dir = &order.dir;
    let Ok(branch) = std::fs::read_to_string(dir.join(".git").join(MARK)) else { return Ok(None) };
    let branch = branch.trim().to_owned();
    if branch != order.branch && !order.own_branches.contains(&branch) {
        return Ok(None);
    }
    if verify_in(shadow, dir).is_err() {
        return Ok(None);
    }
    let Some(head) = shadow.resolve_in_copy(dir, &format!("refs/heads/{branch}"))? else { return Ok(None) };
    let base = shadow.base_head()?;
    mirror_base(shadow, dir, &base)?;
    let fork = super::snapshot::fork_point(shadow, Some(dir), &head, &base)?;
    Ok(Some(Prepared { dir: dir.clone(), branch, fork, head, fresh: false, copied: Vec::new() }))
}

/// The first name that is free, or that this profile made for this task.
fn free_branch(shadow: &Shadow, order: &WorktreeOrder) -> Result<String, GitError> {
    let repo = &shadow.repo.path;
    let check = git(repo).args(["check-ref-format", "--branch"]).arg(&order.branch).output()?;
    if check.code != 0 {
        return Err(GitError::BadBranch { branch: order.branch.clone(), why: check.stderr });
    }
    for number in 1..=NAMES {
        let name = if number == 1 { order.branch.clone() } else { format!("{}-{number}", order.branch) };
        let own = order.own_branches.contains(&name);
        let exists = repo::branch_head(repo, &name)?.is_some();
        if exists {
            let checked_out = repo::checkout_of(repo, &name)?.is_some();
            if own && !checked_out {
                return Ok(name);
            }
            continue;
        }
        if taken_by_case(repo, &name)? {
            continue;
        }
        if let Some(why) = clash(repo, &name)? {
            return Err(GitError::BadBranch { branch: name, why });
        }
        return Ok(name);
    }
    Err(GitError::NoFreeName(order.branch.clone()))
}

/// A branch whose name is a folder on the way (or below), which no number at the end helps against.
fn clash(repo: &Path, name: &str) -> Result<Option<String>, GitError> {
    let mut at = String::new();
    let parts: Vec<&str> = name.split('/').collect();
    for part in parts.iter().take(parts.len().saturating_sub(1)) {
        if !at.is_empty() {
            at.push('/');
        }
        at.push_str(part);
        if repo::branch_head(repo, &at)?.is_some() {
            return Ok(Some(format!("there is a branch named {at}; rename it with `git branch -m {at} other-name`")));
        }
    }
    Ok(None)
}

/// Another spelling of the same name: the same file where case does not count.
fn taken_by_case(repo: &Path, name: &str) -> Result<bool, GitError> {
    let all = git(repo).args(["for-each-ref", "--format=%(refname:short)", "refs/heads/agentcraft"]).run()?;
    Ok(String::from_utf8_lossy(&all)
        .lines()
        .any(|other| other.eq_ignore_ascii_case(name) || other.starts_with(&format!("{name}/"))))
}

/// Where work starts: the own branch, a former worker's branch, or the base.
fn start_commit(shadow: &Shadow, order: &WorktreeOrder, branch: &str, base: &str) -> Result<String, GitError> {
    let repo = &shadow.repo.path;
    let own = repo::branch_head(repo, branch)?;
    let former = match &order.start {
        Some(start) if start != branch => repo::branch_head(repo, start)?,
        Some(_) | None => None,
    };
    Ok(match (own, former) {
        (Some(own), Some(former)) => {
            // The own branch goes on from the former worker's when nothing of its own would be left behind.
            let ahead = git(repo).args(["merge-base", "--is-ancestor"]).args([&own, &former]).output()?.code == 0;
            if ahead { former } else { own }
        }
        (Some(own), None) => own,
        (None, Some(former)) => former,
        (None, None) => base.to_owned(),
    })
}

/// The first directory that is not there (or is empty). What is there already may hold work.
fn free_dir(wished: &Path) -> Result<PathBuf, GitError> {
    let name = wished.file_name().unwrap_or_default().to_os_string();
    for number in 1..=NAMES {
        let mut dir = wished.to_owned();
        if number > 1 {
            let mut numbered = name.clone();
            numbered.push(format!("-{number}"));
            dir.set_file_name(numbered);
        }
        let empty = match std::fs::read_dir(&dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if empty || is_unfinished(&dir) {
            return Ok(dir);
        }
    }
    Err(GitError::NoFreeName(wished.display().to_string()))
}

/// A worktree whose making was cut short: no agent ever worked in it, so it may be made again in place.
fn is_unfinished(dir: &Path) -> bool {
    dir.join(".git").join("agentcraft-making").is_file()
        && !dir.join(".git").join(MARK).exists()
        && std::fs::remove_dir_all(dir).is_ok()
}

/// Makes the copy: own git directory, borrowed objects, one branch (or a detached HEAD), files checked out.
fn make(
    shadow: &Shadow,
    dir: &Path,
    branch: Option<&str>,
    start: &str,
    base: &str,
    identity: &Identity,
) -> Result<(), GitError> {
    std::fs::create_dir_all(dir).at(dir)?;
    hit("copy:before-init");
    let making = dir.join(".git");
    std::fs::create_dir_all(&making).at(&making)?;
    let making = making.join("agentcraft-making");
    std::fs::write(&making, "").at(&making)?;
    git(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["init", "--quiet", "--template="])
        .arg(format!("--object-format={}", shadow.format))
        .arg(format!("--initial-branch={}", branch.unwrap_or("agentcraft-detached")))
        .arg(".")
        .run()?;
    hit("copy:after-init");
    let info = dir.join(".git/objects/info");
    std::fs::create_dir_all(&info).at(&info)?;
    let alternates = info.join("alternates");
    std::fs::write(&alternates, format!("{}\n", one_line_path(&shadow.objects)?)).at(&alternates)?;
    for (key, value) in [
        ("user.name", identity.name.as_str()),
        ("user.email", identity.email.as_str()),
        ("core.autocrlf", "false"),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("commit.gpgsign", "false"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("advice.detachedHead", "false"),
    ] {
        git(dir).env("GIT_DIR", dir.join(".git")).args(["config", "--local", key, value]).run()?;
    }
    hit("copy:after-config");
    shadow.pin("base", base)?;
    shadow.pin("base", start)?;
    mirror_base(shadow, dir, base)?;
    if let Some(branch) = branch {
        set_ref(dir, &format!("refs/heads/{branch}"), start)?;
    } else {
        git(dir).env("GIT_DIR", dir.join(".git")).args(["update-ref", "--no-deref", "HEAD", start]).run()?;
    }
    hit("copy:after-refs");
    let index = dir.join(".git/index");
    shadow.git_in(dir, &index).args(["read-tree", "--reset", "-u", "--end-of-options", start]).run()?;
    hit("copy:after-checkout");
    std::fs::remove_file(&making).at(&making)
}

/// The base branch in the copy, so that `git merge <base>` works there; what the agent does to it means nothing.
pub(crate) fn mirror_base(shadow: &Shadow, dir: &Path, base: &str) -> Result<(), GitError> {
    let name = format!("refs/heads/{}", shadow.repo.base);
    if shadow.head_name_in_copy(dir)?.as_deref() == Some(name.as_str()) {
        // The agent sits on it; moving it would look like uncommitted changes.
        return Ok(());
    }
    shadow.pin("base", base)?;
    set_ref(dir, &name, base)
}

fn set_ref(dir: &Path, name: &str, commit: &str) -> Result<(), GitError> {
    git(dir)
        .env("GIT_DIR", dir.join(".git"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["update-ref", "--no-deref", name, commit])
        .run()
        .map(|_| ())
}

/// Moves a branch of the person's repository, only below `agentcraft/`.
pub(crate) fn move_branch(repo: &Path, branch: &str, to: &str, why: &str) -> Result<(), GitError> {
    if !branch.starts_with("agentcraft/") {
        return Err(GitError::BadBranch { branch: branch.to_owned(), why: "it is not an agent's branch".to_owned() });
    }
    if repo::branch_head(repo, branch)?.as_deref() == Some(to) {
        return Ok(());
    }
    if repo::checkout_of(repo, branch)?.is_some() {
        return Err(GitError::BadBranch {
            branch: branch.to_owned(),
            why: "it is checked out in a worktree of yours; switch that one to another branch".to_owned(),
        });
    }
    git(repo)
        .args(["update-ref", "--no-deref", "-m", why])
        .arg(format!("refs/heads/{branch}"))
        .arg(to)
        .run()
        .map(|_| ())
}

/// Makes or refreshes a copy at the base head that nobody is meant to change: for the lead, or a worker without a task.
///
/// What was changed in it all the same is kept under `refs/agentcraft/keep/`, then the files go to the base head.
///
/// # Errors
/// [`GitError`] with the reason.
pub fn prepare_copy(home: &GitHome, repo: &RepoAt, dir: &Path) -> Result<PathBuf, GitError> {
    let shadow = Shadow::open(home, repo)?;
    let base = shadow.base_head()?;
    let identity = Identity { name: "AgentCraft".to_owned(), email: "foreman@agentcraft.local".to_owned() };
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if dir.join(".git").join(MARK).is_file() && verify_in(&shadow, dir).is_ok() {
        keep_changes(&shadow, dir, &name, &identity)?;
        git(dir).env("GIT_DIR", dir.join(".git")).args(["update-ref", "--no-deref", "HEAD", &base]).run()?;
        mirror_base(&shadow, dir, &base)?;
        let index = dir.join(".git/index");
        let _stale = std::fs::remove_file(dir.join(".git/index.lock"));
        shadow.git_in(dir, &index).args(["read-tree", "--reset", "-u", "--end-of-options", &base]).run()?;
        return Ok(dir.to_owned());
    }
    let taken = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !is_unfinished(dir) {
        // Not a copy any more: it is put aside, whatever it holds.
        let mut aside = None;
        for number in 1..=NAMES {
            let candidate = dir.with_file_name(format!("{name}.aside-{number}"));
            if !candidate.exists() {
                aside = Some(candidate);
                break;
            }
        }
        let aside = aside.ok_or_else(|| GitError::NoFreeName(dir.display().to_string()))?;
        std::fs::rename(dir, &aside).at(dir)?;
    }
    make(&shadow, dir, None, &base, &base, &identity)?;
    write_mark(dir, "")?;
    Ok(dir.to_owned())
}

fn keep_changes(shadow: &Shadow, dir: &Path, name: &str, identity: &Identity) -> Result<(), GitError> {
    let Some(head) = shadow.resolve_in_copy(dir, "HEAD")? else { return Ok(()) };
    let at = WorktreeAt {
        id: format!("copy-{name}"),
        dir: dir.to_owned(),
        branch: String::new(),
        fork: head.clone(),
        live: true,
    };
    let commit = snapshot_commit(shadow, &at, &head, "agentcraft: changes in a read-only copy", identity)?;
    let known = git(&shadow.repo.path).args(["cat-file", "-e"]).arg(format!("{commit}^{{commit}}")).output()?;
    if known.code != 0 {
        bring_over(shadow, dir, &commit)?;
        shadow.pin(name, &commit)?;
    }
    Ok(())
}

/// Checks that a worktree is still what the Foreman made: its own git directory, nothing borrowed from elsewhere.
///
/// # Errors
/// [`GitError::Tampered`] with what is wrong.
pub fn verify(home: &GitHome, repo: &RepoAt, worktree: &WorktreeAt) -> Result<(), GitError> {
    verify_in(&Shadow::open(home, repo)?, &worktree.dir)
}

pub(crate) fn verify_in(shadow: &Shadow, dir: &Path) -> Result<(), GitError> {
    let tampered = |why: &str| Err(GitError::Tampered { dir: dir.to_owned(), why: why.to_owned() });
    let is_real_dir =
        |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_dir() && !meta.is_symlink());
    if !is_real_dir(dir) {
        return tampered("its directory is gone or is a link");
    }
    let git_dir = dir.join(".git");
    if !is_real_dir(&git_dir) {
        return tampered("its .git is not its own directory any more");
    }
    for part in ["objects", "refs", "objects/info"] {
        if !is_real_dir(&git_dir.join(part)) {
            return tampered(&format!("its .git/{part} is gone or is a link"));
        }
    }
    for part in ["HEAD", "index", "config", "packed-refs", "objects/info/alternates"] {
        if git_dir.join(part).symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return tampered(&format!("its .git/{part} is a link"));
        }
    }
    if !git_dir.join("HEAD").is_file() {
        return tampered("its .git has no HEAD");
    }
    for part in ["commondir", "gitdir"] {
        if git_dir.join(part).symlink_metadata().is_ok() {
            return tampered(&format!("its .git points elsewhere ({part})"));
        }
    }
    let alternates = std::fs::read_to_string(git_dir.join("objects/info/alternates")).unwrap_or_default();
    if alternates.trim_end() != one_line_path(&shadow.objects)? {
        return tampered("it borrows objects from somewhere else");
    }
    if links_below(&git_dir.join("refs"), 0) {
        return tampered("its refs hold a link");
    }
    Ok(())
}

/// A link somewhere below, in a tree of refs.
fn links_below(dir: &Path, depth: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    if depth > 20 {
        return true;
    }
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_symlink() => true,
        Ok(kind) if kind.is_dir() => links_below(&entry.path(), depth + 1),
        _ => false,
    })
}
