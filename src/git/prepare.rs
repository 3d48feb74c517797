//! Making a worktree: a working copy with its own git directory that borrows the repository's objects.
//!
//! It is built aside and put in place with one rename. Notes about it are written first, so that a second run after a
//! kill takes up the same name and branch. The person's checkout and index are only read.

use std::path::{Path, PathBuf};

use super::bring::pin;
use super::collect::{dir_name, mirror_base};
use super::copy::{Copy, alternates, lies_below};
use super::error::GitError;
use super::failpoint::hit;
use super::include::copy_included;
use super::manifest::{MAKING, Manifest, Notes, copy_index, write_whole};
use super::names::{Branches, Free, candidates};
use super::person::Person;
use super::run::{Call, require_git};
use super::{GitHome, Identity, PrepareError, Prepared, WorktreeOrder};

/// Makes a worker's worktree, or takes up the one that is there.
///
/// # Errors
/// [`PrepareError::Passing`] for what may go by itself (disk, a lock, a slow git); [`PrepareError::Lasting`] for what
/// needs the person (repository or base gone, unsupported form, a branch where our directory of branches must be).
pub fn prepare_worktree(home: &GitHome, order: &WorktreeOrder) -> Result<Prepared, PrepareError> {
    make(home, order).map_err(PrepareError::from)
}

impl From<GitError> for PrepareError {
    fn from(error: GitError) -> Self {
        let text = error.to_string();
        match error {
            GitError::Failed { .. }
            | GitError::TimedOut { .. }
            | GitError::TooMuch { .. }
            | GitError::Disk { .. }
            | GitError::NoGit(_) => Self::Passing(text),
            GitError::OldGit { .. }
            | GitError::NoPath(_)
            | GitError::NotGit(_)
            | GitError::NotRoot { .. }
            | GitError::NoCommits(_)
            | GitError::Detached(_)
            | GitError::Unsupported { .. }
            | GitError::NoBase { .. }
            | GitError::NoBranch { .. }
            | GitError::Tampered { .. }
            | GitError::Secret { .. }
            | GitError::BranchInUse { .. }
            | GitError::Other(_) => Self::Lasting(text),
        }
    }
}

fn make(home: &GitHome, order: &WorktreeOrder) -> Result<Prepared, GitError> {
    require_git()?;
    let person = Person::open(&order.repo.path)?;
    if let Some(refusal) = person.unsupported()? {
        return Err(refusal);
    }
    if !order.branch.starts_with("agentcraft/") {
        return Err(GitError::Other(format!("{} is not a branch name of AgentCraft's", order.branch)));
    }
    if !lies_below(&home.worktrees, &order.dir) {
        return Err(GitError::Other(format!("{} does not lie below AgentCraft's own directory", order.dir.display())));
    }
    let base = person.base_head(&order.repo.base)?;
    let dir = match place(home, &person, order, &base)? {
        Place::There(prepared) => return Ok(*prepared),
        Place::Free(dir) => dir,
    };
    let notes = Notes::of(&dir)?;
    let half_made = notes.load().filter(|m| is_same(home, &person, order, m)).map(|m| m.branch);
    let choice = choose(&person, order, half_made.as_deref(), &base)?;

    hit("prepare.manifest.before");
    let mut manifest = Manifest {
        profile: home.profile.clone(),
        repo: person.path.clone(),
        id: order.id.to_string(),
        wished: order.branch.clone(),
        branch: choice.branch.clone(),
        fork: choice.fork.clone(),
        start: choice.start.clone(),
        secrets: Vec::new(),
    };
    let _ = std::fs::remove_file(notes.index());
    notes.save(&manifest)?;
    hit("prepare.manifest.after");
    pin(home, &person, &dir_name(&dir), &[&base, &choice.fork])?;
    hit("prepare.pin.after");

    let plan = Plan {
        base_branch: &order.repo.base,
        base: &base,
        branch: Some((&choice.branch, &choice.start)),
        identity: &order.identity,
    };
    let made = build(&person, &dir, &plan)?;
    let included = copy_included(&person, &base, &made)?;
    manifest.secrets.clone_from(&included.secrets);
    notes.save(&manifest)?;
    hit("prepare.include.after");

    hit("prepare.branch.before");
    let old = choice.old.clone().unwrap_or_else(|| "0".repeat(base.len()));
    if choice.old.as_deref() != Some(&choice.start) {
        let full = format!("refs/heads/{}", choice.branch);
        let message = "agentcraft: worktree made";
        person.call().args(["update-ref", "--create-reflog", "-m", message, &full, &choice.start, &old]).bytes()?;
    }
    hit("prepare.branch.after");
    put_in_place(&made, &dir)?;
    Ok(Prepared {
        dir,
        branch: choice.branch,
        fork: choice.fork,
        head: choice.start,
        copied: included.secrets.iter().map(|s| super::person::text(&s.path)).collect(),
        reused: false,
        notes: included.notes,
    })
}

fn is_same(home: &GitHome, person: &Person, order: &WorktreeOrder, manifest: &Manifest) -> bool {
    manifest.profile == home.profile
        && manifest.repo == person.path
        && manifest.id == order.id.as_str()
        && manifest.wished == order.branch
}

enum Place {
    /// The worktree is there and sound.
    There(Box<Prepared>),
    Free(PathBuf),
}

/// A directory for the worktree. What lies at the wished place and is not this very worktree may hold work: it stays,
/// and a number is put behind the name.
fn place(home: &GitHome, person: &Person, order: &WorktreeOrder, base: &str) -> Result<Place, GitError> {
    let name = dir_name(&order.dir);
    for candidate in candidates(&name) {
        let dir = order.dir.with_file_name(&candidate);
        if dir.symlink_metadata().is_err() {
            return Ok(Place::Free(dir));
        }
        let Some(manifest) = Notes::of(&dir)?.load().filter(|m| is_same(home, person, order, m)) else { continue };
        let Ok(copy) = Copy::verified(home, person, &dir) else { continue };
        mirror_base(home, person, &copy, &order.repo.base, base)?;
        let head = match copy.branch(&manifest.branch)? {
            Some(head) => head,
            None => person.branch_head(&manifest.branch)?.unwrap_or_else(|| manifest.start.clone()),
        };
        return Ok(Place::There(Box::new(Prepared {
            dir,
            branch: manifest.branch,
            fork: manifest.fork,
            head,
            copied: Vec::new(),
            reused: true,
            notes: Vec::new(),
        })));
    }
    Err(GitError::Other(format!(
        "{} and its numbered siblings are all taken by other directories; move them away",
        order.dir.display()
    )))
}

/// The branch a worktree gets.
struct Choice {
    branch: String,
    /// Its head in the person's repository; none when it is to be made.
    old: Option<String>,
    /// Where the work starts.
    start: String,
    /// Where it left the base.
    fork: String,
}

fn choose(person: &Person, order: &WorktreeOrder, half_made: Option<&str>, base: &str) -> Result<Choice, GitError> {
    let from = match &order.start {
        Some(branch) => Some(
            person
                .branch_head(branch)?
                .ok_or_else(|| GitError::NoBranch { path: person.path.clone(), branch: branch.clone() })?,
        ),
        None => None,
    };
    let branches = Branches::of(person)?;
    for branch in candidates(&order.branch) {
        let is_ours = half_made == Some(&branch) || order.own_branches.contains(&branch);
        let (old, start) = if branches.has(&branch) {
            if !is_ours || branches.is_in_use(&branch) {
                continue;
            }
            let Some(old) = person.branch_head(&branch)? else { continue };
            let start = match &from {
                Some(from) if person.is_ancestor(&old, from)? => from.clone(),
                Some(from) if person.is_ancestor(from, &old)? => old.clone(),
                Some(_) => continue,
                // All of it is on the base already: new work starts at the base.
                None if person.is_ancestor(&old, base)? => base.to_owned(),
                None => old.clone(),
            };
            (Some(old), start)
        } else {
            match branches.free(&branch) {
                Free::Yes => {}
                Free::No => continue,
                Free::Never(by) => {
                    return Err(GitError::Other(format!(
                        "the branch {by} in {} stands where AgentCraft's branches belong; rename it: git branch -m {by} \
                         other-name",
                        person.path.display()
                    )));
                }
            }
            (None, from.clone().unwrap_or_else(|| base.to_owned()))
        };
        let fork = person
            .merge_base(base, &start)?
            .ok_or_else(|| GitError::Other(format!("{branch} has no common history with {}", order.repo.base)))?;
        return Ok(Choice { branch, old, start, fork });
    }
    Err(GitError::Other(format!(
        "{} and its numbered siblings are all taken by other branches; rename or delete some",
        order.branch
    )))
}

/// What a copy is built from.
pub(crate) struct Plan<'a> {
    pub base_branch: &'a str,
    pub base: &'a str,
    /// A branch of its own and where it starts; none: HEAD on the base branch.
    pub branch: Option<(&'a str, &'a str)>,
    pub identity: &'a Identity,
}

/// Builds a copy beside its place. What a killed run left there was never anyone's and is thrown away.
pub(crate) fn build(person: &Person, dir: &Path, plan: &Plan<'_>) -> Result<PathBuf, GitError> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Err(GitError::Other(format!("{} cannot be a worktree's directory", dir.display())));
    };
    // Under our process id: what another process left is swept, what this one makes is not.
    let making = parent.join(MAKING).join(std::process::id().to_string());
    std::fs::create_dir_all(&making).map_err(|e| GitError::disk("create", &making, &e))?;
    let made = making.join(name);
    if made.symlink_metadata().is_ok() {
        std::fs::remove_dir_all(&made).map_err(|e| GitError::disk("remove", &made, &e))?;
    }
    alone(&making, person).args(["init", "-q", "--template=", "-b", plan.base_branch, "--"]).arg(&made).bytes()?;
    hit("prepare.init.after");
    let git = made.join(".git");
    let write = |name: &str, bytes: &[u8]| {
        let path = git.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| GitError::disk("create", parent, &e))?;
        }
        std::fs::write(&path, bytes).map_err(|e| GitError::disk("write", &path, &e))
    };
    write("objects/info/alternates", &alternates(person))?;
    write(&format!("refs/heads/{}", plan.base_branch), format!("{}\n", plan.base).as_bytes())?;
    let (head, start) = plan.branch.unwrap_or((plan.base_branch, plan.base));
    write(&format!("refs/heads/{head}"), format!("{start}\n").as_bytes())?;
    write("HEAD", format!("ref: refs/heads/{head}\n").as_bytes())?;
    let excludes = excludes(person);
    write("info/exclude", &excludes)?;
    let notes = Notes::of(dir)?;
    if let Some(parent) = notes.exclude().parent() {
        std::fs::create_dir_all(parent).map_err(|e| GitError::disk("create", parent, &e))?;
    }
    write_whole(&notes.exclude(), &excludes)?;
    let config = git.join("config");
    let before = std::fs::read(&config).map_err(|e| GitError::disk("read", &config, &e))?;
    write("config", &[before, configuration(plan.identity).into_bytes()].concat())?;
    hit("prepare.checkout.before");
    alone(&made, person).args(["read-tree", "--reset", "-u", start]).bytes()?;
    hit("prepare.checkout.after");
    copy_index(&git.join("index"), &notes.index())?;
    Ok(made)
}

/// Puts a built copy in its place.
pub(crate) fn put_in_place(made: &Path, dir: &Path) -> Result<(), GitError> {
    hit("prepare.place.before");
    std::fs::rename(made, dir).map_err(|e| GitError::disk("move the new worktree to", dir, &e))?;
    for empty in made.ancestors().skip(1).take(2) {
        let _ = std::fs::remove_dir(empty);
    }
    hit("prepare.place.after");
    Ok(())
}

/// git in a copy that no agent has had yet, with nobody's configuration but the copy's.
fn alone(dir: &Path, person: &Person) -> Call {
    Call::in_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_COUNT", "0")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_DEFAULT_HASH", &person.format)
        .env("GIT_DEFAULT_REF_FORMAT", "files")
}

/// The copy's own settings: the agent's name, repository bytes in files, nothing that runs by itself.
fn configuration(identity: &Identity) -> String {
    let value = |text: &str| {
        let inner: String = text
            .chars()
            .filter(|c| !c.is_control())
            .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
            .collect();
        format!("\"{inner}\"")
    };
    format!(
        "[user]\n\tname = {}\n\temail = {}\n[core]\n\tautocrlf = false\n\thooksPath = /dev/null\n\tfsmonitor = false\n\
         [commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
         [protocol]\n\tallow = never\n[push]\n\tdefault = nothing\n[submodule]\n\trecurse = false\n",
        value(&identity.name),
        value(&identity.email)
    )
}

/// The person's ignore patterns that lie outside the tree, so that the same files are ignored in the copy.
fn excludes(person: &Person) -> Vec<u8> {
    const MOST: u64 = 256 * 1024;
    let configured = person.call().args(["config", "--type=path", "--get", "core.excludesFile"]).maybe().ok().flatten();
    let global = configured.map(PathBuf::from).or_else(|| {
        let config = std::env::var_os("XDG_CONFIG_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
        let config = config.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
        config.map(|dir| dir.join("git/ignore"))
    });
    let mut all = Vec::new();
    for file in global.into_iter().chain([person.common_dir.join("info/exclude")]) {
        if file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MOST)
            && let Ok(bytes) = std::fs::read(&file)
        {
            all.extend(bytes);
            all.push(b'\n');
        }
    }
    all
}
