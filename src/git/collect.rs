//! Taking an agent's work in: commit what is uncommitted, bring the branch over, count and show it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::bring::{Load, bring_over, pin};
use super::copy::Copy;
use super::diff::{Change, changes, fork_of, fork_ref, prompt_text};
use super::error::GitError;
use super::failpoint::hit;
use super::include::Protected;
use super::lens::Lens;
use super::manifest::{Manifest, Notes, copy_index};
use super::person::{Person, as_path, is_oid, short, text};
use super::run::{failed, require_git};
use super::{CollectedWork, GitHome, HeadAt, Identity, RepoAt, WorktreeAt, WorktreeStats};

/// Most names in [`CollectedWork::names`].
const NAMES: usize = 200;

/// Commits what is uncommitted in a worktree, brings its branch over into the person's repository, counts and shows.
///
/// A worktree that is not live, or whose directory is gone, is counted by its branch in the person's repository.
/// Calling it again without new work makes no commit.
///
/// # Errors
/// [`GitError::Tampered`], [`GitError::Secret`], [`GitError::BranchInUse`], or git's own refusal. Nothing is lost: what
/// the agent has stays in its directory.
pub fn collect(
    home: &GitHome,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    message: &str,
    identity: &Identity,
) -> Result<CollectedWork, GitError> {
    take(home, repo, worktree, message, identity).map(|taken| taken.work)
}

/// What [`take`] found.
pub(crate) struct Taken {
    pub work: CollectedWork,
    /// There are nested repositories in the directory that no commit of ours can hold.
    pub holds_repositories: bool,
}

/// As [`collect`], with what the removal of the directory needs to know besides.
pub(crate) fn take(
    home: &GitHome,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    message: &str,
    identity: &Identity,
) -> Result<Taken, GitError> {
    require_git()?;
    let person = Person::open(&repo.path)?;
    let base = person.base_head(&repo.base)?;
    if !worktree.live || worktree.dir.symlink_metadata().is_err() {
        let work = from_branch(home, &person, worktree, &base)?;
        return Ok(Taken { work, holds_repositories: false });
    }
    let mut view = View::open(home, &person, worktree)?;
    let tip = view.tip(&person, worktree)?;
    let snapshot = view.snapshot(&tip)?;
    let mut head = tip.clone();
    let committed = view.tree_of(&tip)? != snapshot.tree;
    let merging: Vec<String> = match &view.head {
        HeadAt::Branch(branch) if *branch == worktree.branch => view.pending_merge(&tip)?,
        HeadAt::Branch(_) | HeadAt::Detached(_) => Vec::new(),
    };
    if committed || !merging.is_empty() {
        let message = view.message(worktree, message);
        hit("collect.commit.before");
        head = view.commit(&snapshot.tree, &tip, &merging, &message, identity)?;
        hit("collect.commit.after");
    }
    view.bring(home, &person, worktree, &base, &head, None)?;
    if head != tip || view.copy.branch(&worktree.branch)?.as_deref() != Some(&head) {
        hit("copy.ref.before");
        view.copy.write_branch(&worktree.branch, &head)?;
        hit("copy.ref.after");
    }
    if view.head == HeadAt::Branch(worktree.branch.clone()) && (committed || !merging.is_empty()) {
        hit("copy.index.before");
        view.copy.write_index(&view.lens.index())?;
        hit("copy.index.after");
        view.copy.clear_operation()?;
    }
    mirror_base(home, &person, &view.copy, &repo.base, &base)?;
    view.keep_index();

    let fork = person.merge_base(&base, &head)?.unwrap_or_else(|| worktree.fork.clone());
    if fork != worktree.fork && fork != head {
        // The agent merged the base: later diffs of the finished worktree begin there.
        person.call().args(["update-ref", &fork_ref(home, worktree), &fork]).bytes()?;
    }
    // Merged already: what it brought is told, not that nothing is left.
    let fork = if fork == head { fork_of(home, &person, worktree, &head)? } else { fork };
    let changes = changes(&view.lens, &fork, &head)?;
    let mut notes = Vec::new();
    if !snapshot.left_out.is_empty() {
        notes.push(format!("left out of the commit: {}", snapshot.left_out.join(", ")));
    }
    let work = CollectedWork {
        facts: stats(worktree, ahead(&person, &base, &head)?, &changes),
        diff: prompt_text(&view.lens, &fork, &head)?,
        names: changes.iter().take(NAMES).map(|c| text(&c.path)).collect(),
        head,
        committed,
        notes,
    };
    Ok(Taken { work, holds_repositories: snapshot.holds_repositories })
}

/// What the person's repository holds of a worktree whose directory is gone.
pub(crate) fn from_branch(
    home: &GitHome,
    person: &Person,
    worktree: &WorktreeAt,
    base: &str,
) -> Result<CollectedWork, GitError> {
    let head = person
        .branch_head(&worktree.branch)?
        .ok_or_else(|| GitError::NoBranch { path: person.path.clone(), branch: worktree.branch.clone() })?;
    require_fork(worktree)?;
    let lens = Lens::new(home, person, None)?;
    let fork = fork_of(home, person, worktree, &head)?;
    let changes = changes(&lens, &fork, &head)?;
    Ok(CollectedWork {
        facts: stats(worktree, ahead(person, base, &head)?, &changes),
        diff: prompt_text(&lens, &fork, &head)?,
        names: changes.iter().take(NAMES).map(|c| text(&c.path)).collect(),
        head,
        committed: false,
        notes: Vec::new(),
    })
}

/// The recorded base commit goes to git as an argument: it must be one.
pub(crate) fn require_fork(worktree: &WorktreeAt) -> Result<(), GitError> {
    if is_oid(&worktree.fork) {
        return Ok(());
    }
    Err(GitError::Other(format!("worktree {} has no recorded base commit ({:?})", worktree.id, worktree.fork)))
}

/// Statistics for a poll: uncommitted work counts, the agent's files and index are not touched. Commits that the agent
/// made are brought over on the way; if that is refused now, it is tried and reported when the work is collected.
pub(crate) fn stats_of(
    home: &GitHome,
    person: &Person,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    base: &str,
) -> Result<WorktreeStats, GitError> {
    if !worktree.live || worktree.dir.symlink_metadata().is_err() {
        return from_branch(home, person, worktree, base).map(|work| work.facts);
    }
    let mut view = View::open(home, person, worktree)?;
    let tip = view.tip(person, worktree)?;
    let snapshot = view.snapshot(&tip)?;
    // Only forward: a poll that runs beside a collection may hold an older head. What a rewrite dropped is collected.
    if let Some(old) = person.branch_head(&worktree.branch)?
        && old != tip
        && view.is_ancestor(&old, &tip)?
    {
        let _ = view.bring(home, person, worktree, base, &tip, Some(&old));
    }
    let _ = mirror_base(home, person, &view.copy, &repo.base, base);
    view.keep_index();
    if snapshot.is_clean
        && let Some([ahead, files, additions, deletions]) = view.notes.counts(base, &tip)
    {
        return Ok(WorktreeStats { id: worktree.id.clone(), ahead, files, additions, deletions });
    }
    let fork = view.merge_base(base, &tip)?.unwrap_or_else(|| worktree.fork.clone());
    let changes = changes(&view.lens, &fork, &snapshot.tree)?;
    let ahead = view.lens.call().args(["rev-list", "--count", &format!("{base}..{tip}")]).text()?;
    let stats = stats(worktree, ahead.parse().unwrap_or(0), &changes);
    if snapshot.is_clean {
        view.notes.note_counts(base, &tip, [stats.ahead, stats.files, stats.additions, stats.deletions]);
    }
    Ok(stats)
}

fn stats(worktree: &WorktreeAt, ahead: u32, changes: &[Change]) -> WorktreeStats {
    WorktreeStats {
        id: worktree.id.clone(),
        ahead,
        files: u32::try_from(changes.len()).unwrap_or(u32::MAX),
        additions: changes.iter().map(|c| c.additions).fold(0, u32::saturating_add),
        deletions: changes.iter().map(|c| c.deletions).fold(0, u32::saturating_add),
    }
}

fn ahead(person: &Person, base: &str, head: &str) -> Result<u32, GitError> {
    let count = person.call().args(["rev-list", "--count", &format!("{base}..{head}")]).text()?;
    Ok(count.parse().unwrap_or(0))
}

/// The working tree of a copy as a tree object.
pub(crate) struct Snapshot {
    pub tree: String,
    /// Files that may not be committed, and nested repositories.
    pub left_out: Vec<String>,
    pub holds_repositories: bool,
    /// The working tree is as the commit.
    pub is_clean: bool,
}

/// A verified copy seen through a [`Lens`].
pub(crate) struct View {
    pub copy: Copy,
    pub lens: Lens,
    pub head: HeadAt,
    notes: Notes,
    protected: Protected,
}

impl View {
    pub(crate) fn open(home: &GitHome, person: &Person, worktree: &WorktreeAt) -> Result<Self, GitError> {
        if !worktree.branch.starts_with("agentcraft/") {
            return Err(GitError::Other(format!("{} is not a branch of AgentCraft's", worktree.branch)));
        }
        require_fork(worktree)?;
        let manifest = Notes::of(&worktree.dir)?.load();
        Self::open_at(home, person, &worktree.dir, &worktree.fork, manifest.as_ref())
    }

    pub(crate) fn open_at(
        home: &GitHome,
        person: &Person,
        dir: &Path,
        fork: &str,
        manifest: Option<&Manifest>,
    ) -> Result<Self, GitError> {
        let copy = Copy::verified(home, person, dir)?;
        let head = copy.head()?;
        let notes = Notes::of(dir)?;
        let mut lens = Lens::new(home, person, Some(&copy.objects()))?;
        if notes.exclude().is_file() {
            lens.set_excludes(notes.exclude());
        }
        copy_index(&notes.index(), &lens.index())?;
        let protected = Protected::of(person, fork, manifest)?;
        Ok(Self { copy, lens, head, notes, protected })
    }

    /// The head of the worktree's own branch: in the copy, else (the agent deleted it) in the person's repository.
    pub(crate) fn tip(&self, person: &Person, worktree: &WorktreeAt) -> Result<String, GitError> {
        let own = match self.copy.branch(&worktree.branch)? {
            Some(oid) => Some(oid),
            None => person.branch_head(&worktree.branch)?,
        };
        let tip = own.unwrap_or_else(|| worktree.fork.clone());
        if !self.is_commit(&tip)? {
            return Err(GitError::Tampered {
                dir: self.copy.dir.clone(),
                why: format!("its branch {} names {}, which is no commit", worktree.branch, short(&tip)),
            });
        }
        Ok(tip)
    }

    fn is_commit(&self, oid: &str) -> Result<bool, GitError> {
        let done = self.lens.call().args(["cat-file", "-t", oid]).finish()?;
        Ok(done.code == Some(0) && done.stdout == b"commit\n")
    }

    fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.lens.call().args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).text()
    }

    fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool, GitError> {
        Ok(self.lens.call().args(["merge-base", "--is-ancestor", older, newer]).maybe()?.is_some())
    }

    fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        self.lens.call().args(["merge-base", one, other]).maybe()
    }

    /// Writes the working tree (tracked and untracked, ignored files left out) as a tree into the temporary store.
    pub(crate) fn snapshot(&mut self, tip: &str) -> Result<Snapshot, GitError> {
        let dir = self.copy.dir.clone();
        // Keeps the cached file times of entries that are as before. An index of ours that is damaged is made anew.
        // All calls that write the index see the real files: git looks at those that changed in the very second in which
        // the index was written, which their times do not tell.
        let tree = || self.lens.with_tree(&dir);
        if tree().args(["read-tree", "--reset", tip]).finish()?.code != Some(0) {
            let _ = std::fs::remove_file(self.lens.index());
            tree().args(["read-tree", tip]).bytes()?;
        }
        let listed = self
            .lens
            .with_tree(&dir)
            .args(["ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard"])
            .cap(256 << 20)
            .bytes()?;
        let (mut update, mut remove) = (Vec::new(), Vec::new());
        let mut left_out = Vec::new();
        let mut holds_repositories = false;
        for entry in listed.split(|b| *b == 0) {
            let (Some(tag), Some(path)) = (entry.first(), entry.get(2..)) else { continue };
            let meta = dir.join(as_path(path)).symlink_metadata();
            let is_new = *tag == b'?';
            if path.ends_with(b"/") {
                left_out.push(format!("{} (a repository of its own)", text(path)));
                holds_repositories = true;
            } else if is_new && self.protected.is_secret_path(path) {
                left_out.push(text(path));
            } else if meta.as_ref().is_ok_and(|m| m.is_file() && self.protected.may_be_secret(m.len()))
                && self.protected.is_secret_content(&self.content_id(path)?)
            {
                left_out.push(format!("{} (a copy of a file that may not be committed)", text(path)));
            } else if meta.is_ok_and(|m| m.is_dir()) {
                if !self.is_gitlink(path)? {
                    remove.extend(path);
                    remove.push(0);
                }
            } else {
                update.extend(path);
                update.push(0);
            }
        }
        let call = |args: &[&str], input| {
            let done = self.lens.with_tree(&dir).arg("update-index").args(args).args(["-z", "--stdin"]).input(input);
            let done = done.finish()?;
            if done.code == Some(0) { Ok(()) } else { Err(failed("git update-index".to_owned(), &done)) }
        };
        let is_clean = update.is_empty() && remove.is_empty();
        if !remove.is_empty() {
            call(&["--force-remove"], remove)?;
        }
        if !update.is_empty() {
            call(&["--add", "--remove", "--replace"], update)?;
        }
        let tree = if is_clean { self.tree_of(tip)? } else { tree().arg("write-tree").text()? };
        Ok(Snapshot { tree, left_out, holds_repositories, is_clean })
    }

    fn content_id(&self, path: &[u8]) -> Result<String, GitError> {
        let call = self.lens.with_tree(&self.copy.dir);
        call.args(["hash-object", "--no-filters", "--"]).arg(as_path(path)).text()
    }

    fn is_gitlink(&self, path: &[u8]) -> Result<bool, GitError> {
        let entry = self.lens.call().args(["ls-files", "-s", "-z", "--"]).arg(as_path(path)).bytes()?;
        Ok(entry.starts_with(b"160000 "))
    }

    /// Parents that a merge begun in the copy would record; those that the branch has already do not count.
    fn pending_merge(&self, tip: &str) -> Result<Vec<String>, GitError> {
        let mut parents = Vec::new();
        for oid in self.copy.merge_heads()? {
            if self.is_commit(&oid)? && !self.is_ancestor(&oid, tip)? {
                parents.push(oid);
            }
        }
        Ok(parents)
    }

    fn message(&self, worktree: &WorktreeAt, message: &str) -> String {
        let message = message.replace('\0', "");
        let message = message.trim();
        match &self.head {
            HeadAt::Branch(branch) if *branch == worktree.branch => message.to_owned(),
            HeadAt::Branch(branch) => format!("{message}\n\nSnapshot: HEAD was on the branch {branch}."),
            HeadAt::Detached(oid) => format!("{message}\n\nSnapshot: HEAD was detached at {oid}."),
        }
    }

    fn commit(
        &self,
        tree: &str,
        tip: &str,
        merging: &[String],
        message: &str,
        identity: &Identity,
    ) -> Result<String, GitError> {
        let mut call = self
            .lens
            .call()
            .env("GIT_AUTHOR_NAME", &identity.name)
            .env("GIT_AUTHOR_EMAIL", &identity.email)
            .env("GIT_COMMITTER_NAME", &identity.name)
            .env("GIT_COMMITTER_EMAIL", &identity.email)
            .args(["commit-tree", tree, "-p", tip]);
        for parent in merging {
            call = call.args(["-p", parent]);
        }
        call.args(["-F", "-"]).input(format!("{message}\n")).text()
    }

    /// Brings the branch over, and pins what a rebase or reset in the copy has dropped.
    pub(crate) fn bring(
        &self,
        home: &GitHome,
        person: &Person,
        worktree: &WorktreeAt,
        base: &str,
        tip: &str,
        from: Option<&str>,
    ) -> Result<(), GitError> {
        let name = dir_name(&self.copy.dir);
        let mut known = vec![base.to_owned(), worktree.fork.clone()];
        let load = Load {
            branch: Some(&worktree.branch),
            tip: Some(tip),
            from,
            pins: Vec::new(),
            known: known.clone(),
            protected: Some(&self.protected),
        };
        bring_over(home, person, &self.lens, &name, &load)?;
        known.push(tip.to_owned());
        for pin in self.dropped(person, &worktree.branch, tip, &known)? {
            let load = Load {
                branch: None,
                tip: None,
                from: None,
                pins: vec![pin],
                known: known.clone(),
                protected: Some(&self.protected),
            };
            match bring_over(home, person, &self.lens, &name, &load) {
                // Dropped for that very reason, one may hope: it must not get into the person's repository.
                Ok(()) | Err(GitError::Secret { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Former heads in the copy that nothing leads to any more and that the person's repository has not.
    pub(crate) fn dropped(
        &self,
        person: &Person,
        branch: &str,
        tip: &str,
        known: &[String],
    ) -> Result<Vec<String>, GitError> {
        let mut heads: Vec<String> = Vec::new();
        if let HeadAt::Detached(oid) = &self.head {
            heads.push(oid.clone());
        }
        if let HeadAt::Branch(other) = &self.head {
            heads.extend(self.copy.branch(other)?);
        }
        heads.extend(self.copy.former_heads(branch));
        heads.retain(|oid| oid != tip && !known.contains(oid));
        if heads.is_empty() {
            return Ok(heads);
        }
        let ask: String = heads.iter().map(|oid| format!("{oid}\n")).collect();
        let said =
            self.lens.call().arg("cat-file").arg("--batch-check=%(objectname) %(objecttype)").input(ask).text()?;
        let heads: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(" commit")).collect();
        let mut range: String = heads.iter().map(|oid| format!("{oid}\n")).collect();
        for oid in known.iter().map(String::as_str).chain([tip]) {
            range.push_str(&format!("^{oid}\n"));
        }
        let kept = person.call().args(["for-each-ref", "--format=%(objectname)", "refs/agentcraft/keep/"]).text()?;
        for oid in kept.lines() {
            range.push_str(&format!("^{oid}\n"));
        }
        let loose = self.lens.call().args(["rev-list", "--stdin"]).cap(64 << 20).input(range).text()?;
        let loose: Vec<&str> = loose.lines().filter(|oid| heads.contains(oid)).collect();
        if loose.len() < 2 {
            return Ok(loose.into_iter().map(str::to_owned).collect());
        }
        let few = self.lens.call().args(["merge-base", "--independent"]).args(&loose).text()?;
        Ok(few.lines().map(str::to_owned).collect())
    }

    /// Keeps the index with its file times for the next look.
    pub(crate) fn keep_index(&self) {
        let _ = copy_index(&self.lens.index(), &self.notes.index());
    }
}

/// Lets the copy see the base branch where it is now, unless the agent sits on its own branch of that name.
pub(crate) fn mirror_base(
    home: &GitHome,
    person: &Person,
    copy: &Copy,
    branch: &str,
    base: &str,
) -> Result<(), GitError> {
    if copy.head()? == HeadAt::Branch(branch.to_owned()) || copy.branch(branch)?.as_deref() == Some(base) {
        return Ok(());
    }
    pin(home, person, &dir_name(&copy.dir), &[base])?;
    copy.write_branch(branch, base)
}

/// The last part of a worktree's path, for ref names.
pub(crate) fn dir_name(dir: &Path) -> String {
    text(dir.file_name().unwrap_or_default().as_bytes())
}
