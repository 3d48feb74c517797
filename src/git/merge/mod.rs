//! Merging a reviewed commit into the base branch.
//!
//! The commit is made off-tree. Order of writes: objects; a hidden ref that names the merge commit (and so, as its
//! first parent, the base it was made on); under the index lock of the checkout and a prepared update of the base ref,
//! the files; the ref; the index. A run after a kill between any two of them looks at all three and completes only what
//! holds its old or its new content. A base that had the merge and is elsewhere now was moved by the person: refused.

mod checkout;
mod message;
mod transaction;

use super::bring::ref_part;
use super::error::GitError;
use super::failpoint::hit;
use super::inspect::missing;
use super::person::{Checkout, Person, is_oid, short, text};
use super::run::{failed, require_git};
use super::{GitHome, MergeRequest, MergeResult};
use checkout::{Difference, Locked, Partial, Stop, differences, left_locked, left_writing, named, release_left, shown};

/// What git puts at the head of an LFS pointer, and the most bytes a pointer has.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
const LFS_POINTER_BYTES: usize = 1024;

/// Merges exactly the reviewed commit into the base branch; called again with the same mark it never merges twice.
///
/// # Errors
/// git or the disk failed in an unforeseen way. Either nothing of the person's has changed, or the base has moved and the
/// index could not be written: calling again with the same mark finishes it. Everything foreseen is a [`MergeResult`].
pub fn merge(home: &GitHome, request: &MergeRequest) -> Result<MergeResult, GitError> {
    require_git()?;
    let person = match Person::open(&request.repo.path) {
        Ok(person) => person,
        Err(error) => return Ok(MergeResult::Refused { reason: error.to_string() }),
    };
    let merge = Merge {
        home,
        request,
        person: &person,
        base_ref: format!("refs/heads/{}", request.repo.base),
        record: format!("refs/agentcraft/merge/{}", ref_part(&request.mark)),
    };
    let result = merge.run();
    if !matches!(result, Err(Stop::Unfinished(_))) {
        release_left(&person.common_dir, &request.mark);
    }
    match result {
        Ok(result) => Ok(result),
        Err(Stop::Refused(reason)) => Ok(MergeResult::Refused { reason }),
        Err(Stop::Failed(error) | Stop::Unfinished(error)) => Err(error),
    }
}

struct Merge<'a> {
    home: &'a GitHome,
    request: &'a MergeRequest,
    person: &'a Person,
    base_ref: String,
    /// Hidden ref that names the merge commit before anything else changes.
    record: String,
}

/// How an attempt to move the base ended.
enum Landed {
    Done,
    /// The base moved under us.
    Lost,
}

impl Merge<'_> {
    fn run(&self) -> Result<MergeResult, Stop> {
        let request = self.request;
        if !is_oid(&request.head) || self.person.commit(&request.head)?.is_none() {
            return Err(Stop::Refused(format!(
                "the reviewed commit {} is not in the repository",
                short(&request.head)
            )));
        }
        for _ in 0..2 {
            let Some(base) = self.person.branch_head(&request.repo.base)? else {
                let gone = GitError::NoBase { path: self.person.path.clone(), branch: request.repo.base.clone() };
                return Err(Stop::Refused(gone.to_string()));
            };
            let (commit, is_recorded) = match self.recorded(&base)? {
                Recorded::Landed(commit) => return self.merged(&commit),
                Recorded::Waiting(commit) => (commit, true),
                Recorded::Nothing => match self.make(&base)? {
                    Made::Commit(commit) => (commit, false),
                    Made::Result(result) => return Ok(result),
                },
            };
            match self.land(&commit, &base, is_recorded) {
                Ok(Landed::Done) => return self.merged(&commit),
                Ok(Landed::Lost) => self.forget()?,
                Err(Stop::Unfinished(error)) => return Err(Stop::Unfinished(error)),
                Err(stop @ (Stop::Refused(_) | Stop::Failed(_))) => {
                    self.undo(&commit)?;
                    self.forget()?;
                    return Err(stop);
                }
            }
        }
        Err(Stop::Refused(format!("{} moved while it was being merged into; try again", request.repo.base)))
    }

    /// Takes back what a killed run wrote to files.
    fn undo(&self, commit: &str) -> Result<(), Stop> {
        for checkout in self.person.checkouts()?.iter().filter(|checkout| checkout.is_there) {
            let git_dir = self.person.git_dir_of(checkout)?;
            if left_writing(&git_dir, &self.request.mark) {
                let paths = differences(self.person, &format!("{commit}^1"), commit)?;
                Locked::take(self.home, checkout, &git_dir, &self.request.mark)?.take_back(commit, &paths)?;
            }
        }
        Ok(())
    }

    fn merged(&self, commit: &str) -> Result<MergeResult, Stop> {
        let files = differences(self.person, &format!("{commit}^1"), commit)?.len();
        Ok(MergeResult::Merged { commit: commit.to_owned(), files: u32::try_from(files).unwrap_or(u32::MAX) })
    }

    /// What an earlier run of this merge left behind.
    fn recorded(&self, base: &str) -> Result<Recorded, Stop> {
        let Some(commit) = self.person.commit(&self.record)? else {
            let found = message::find(self.person, self.request, base)?;
            return Ok(found.map_or(Recorded::Nothing, Recorded::Landed));
        };
        let Some(old) = self.person.commit(&format!("{commit}^1"))? else {
            return Err(Stop::Refused(format!("the commit {} of an earlier try is damaged", short(&commit))));
        };
        if self.person.is_ancestor(&commit, base)? {
            self.complete(&commit, &old)?;
            return Ok(Recorded::Landed(commit));
        }
        if self.base_had(&commit)? {
            return Err(Stop::Refused(format!(
                "{} had this merge ({}) and was moved away from it since; merge again only if that is what you want",
                self.request.repo.base,
                short(&commit)
            )));
        }
        if base == old {
            return Ok(Recorded::Waiting(commit));
        }
        // Killed before the base moved, and the base has gone on since.
        self.undo(&commit)?;
        self.forget()?;
        Ok(Recorded::Nothing)
    }

    /// The base's reflog names the commit.
    fn base_had(&self, commit: &str) -> Result<bool, GitError> {
        let done =
            self.person.call().args(["log", "-g", "--no-show-signature", "--format=%H", &self.base_ref]).finish()?;
        Ok(done.code == Some(0) && text(&done.stdout).lines().any(|line| line == commit))
    }

    fn make(&self, base: &str) -> Result<Made, Stop> {
        let head = &self.request.head;
        if self.person.is_ancestor(head, base)? {
            return Ok(Made::Result(MergeResult::Empty));
        }
        let call =
            self.person.call().args(["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head]);
        let done = call.finish()?;
        let mut fields = done.stdout.split(|b| *b == 0);
        let tree = text(fields.next().unwrap_or_default());
        let tree = match done.code {
            Some(0) => tree,
            Some(1) if is_oid(&tree) => {
                let mut files: Vec<String> = fields.filter(|name| !name.is_empty()).map(text).collect();
                files.dedup();
                return Ok(Made::Result(MergeResult::Conflict { files }));
            }
            _ => return Err(Stop::Refused(failed("git merge-tree".to_owned(), &done).to_string())),
        };
        if self.person.call().args(["rev-parse", "--verify", &format!("{base}^{{tree}}")]).text()? == tree {
            return Ok(Made::Result(MergeResult::Empty));
        }
        hit("merge.commit.before");
        let commit = message::commit(self.person, self.request, base, &tree);
        let commit = commit.map_err(|error| Stop::Refused(format!("the merge commit could not be made: {error}")))?;
        hit("merge.commit.after");
        Ok(Made::Commit(commit))
    }

    fn land(&self, commit: &str, old: &str, is_recorded: bool) -> Result<Landed, Stop> {
        let base = &self.request.repo.base;
        if let Some(what) = self.person.operation_on(base) {
            return Err(Stop::Refused(format!("{what} of {base} is in progress; finish it first")));
        }
        let paths = differences(self.person, old, commit)?;
        if let Some(found) = paths.iter().find(|path| path.is_submodule()) {
            return Err(Stop::Refused(format!(
                "the branch changes the submodule {}; merge that one by hand",
                shown(&found.path)
            )));
        }
        self.check_lfs(commit, &paths)?;
        let checkouts = self.person.checkouts_of(base)?;
        match checkouts.as_slice() {
            [] => {
                let head = self.person.call().args(["symbolic-ref", "--quiet", "HEAD"]).maybe()?;
                if head.is_none() {
                    let at = self.person.path.display();
                    return Err(Stop::Refused(format!("HEAD is detached in {at}; check out a branch first")));
                }
                self.land_nowhere(commit, old, is_recorded)
            }
            [checkout] if !checkout.is_there => Err(Stop::Refused(missing(base, checkout))),
            [checkout] => self.land_in(checkout, commit, old, is_recorded, &paths),
            [one, two, ..] => Err(Stop::Refused(format!(
                "{base} is checked out twice, in {} and {}; leave it checked out in one place",
                one.path.display(),
                two.path.display()
            ))),
        }
    }

    /// Moves the base while no checkout has it. All checkouts are locked, so that none switches to it meanwhile.
    fn land_nowhere(&self, commit: &str, old: &str, is_recorded: bool) -> Result<Landed, Stop> {
        let checkouts = self.person.checkouts()?;
        let mut held = Vec::new();
        for checkout in checkouts.iter().filter(|checkout| checkout.is_there) {
            let git_dir = self.person.git_dir_of(checkout)?;
            // Where we cannot write, the person cannot switch either.
            if rustix::fs::access(&git_dir, rustix::fs::Access::WRITE_OK).is_ok() {
                held.push(Locked::take(self.home, checkout, &git_dir, &self.request.mark)?);
            }
        }
        if !self.person.checkouts_of(&self.request.repo.base)?.is_empty() {
            return Ok(Landed::Lost);
        }
        self.note(commit, is_recorded)?;
        let Some(update) = self.prepare(&self.person.path, commit, old)? else { return Ok(Landed::Lost) };
        hit("merge.prepared");
        hit("merge.ref.before");
        update.commit()?;
        hit("merge.ref.after");
        Ok(Landed::Done)
    }

    fn land_in(
        &self,
        checkout: &Checkout,
        commit: &str,
        old: &str,
        is_recorded: bool,
        paths: &[Difference],
    ) -> Result<Landed, Stop> {
        let at = checkout.path.display();
        let git_dir = self.person.git_dir_of(checkout)?;
        if let Some(what) = Person::operation(&git_dir) {
            return Err(Stop::Refused(format!("{what} is in progress in {at}; finish it first")));
        }
        let mut locked = Locked::take(self.home, checkout, &git_dir, &self.request.mark)?;
        // Between the look and the lock the person may have switched.
        if !self.person.checkouts_of(&self.request.repo.base)?.contains(checkout) {
            return Ok(Landed::Lost);
        }
        let mut todo = paths.to_vec();
        if is_recorded && locked.is_writing() {
            let survey = locked.survey(commit, paths, Partial::Ours)?;
            let staged = locked.staged(old)?;
            if !survey.other.is_empty() || !survey.foreign.is_empty() || !staged.is_empty() {
                locked.take_back(commit, paths)?;
                let mut names = survey.foreign;
                names.extend(survey.other.iter().map(|d| shown(&d.path)));
                names.extend(staged.iter().map(|path| shown(path)));
                let names = named(&names);
                return Err(Stop::Refused(format!("{at} has uncommitted changes ({names}); commit or stash them")));
            }
            locked.accept(&survey.new)?;
            todo = survey.old;
        } else {
            locked.require_clean()?;
        }
        if let Err(stop) = locked.rehearse(old, commit, &todo) {
            locked.take_back(commit, paths)?;
            return Err(stop);
        }
        self.note(commit, is_recorded)?;
        let Some(update) = self.prepare(&checkout.path, commit, old)? else {
            locked.take_back(commit, paths)?;
            return Ok(Landed::Lost);
        };
        hit("merge.prepared");
        locked.update(old, commit, paths)?;
        hit("merge.ref.before");
        if let Err(error) = update.commit() {
            if self.person.branch_head(&self.request.repo.base)?.as_deref() != Some(commit) {
                locked.take_back(commit, paths)?;
            }
            return Err(error.into());
        }
        hit("merge.ref.after");
        if let Err(error) = locked.install() {
            // The base has moved. The lock stays, so that the next run finishes what is left.
            locked.keep();
            return Err(Stop::Unfinished(error));
        }
        drop(locked);
        hit("merge.unlock.after");
        Ok(Landed::Done)
    }

    /// Finishes the checkout after a kill between ref and index. Without our lock in it there is nothing to finish.
    fn complete(&self, commit: &str, old: &str) -> Result<(), Stop> {
        for checkout in self.person.checkouts_of(&self.request.repo.base)?.into_iter().filter(|c| c.is_there) {
            let git_dir = self.person.git_dir_of(&checkout)?;
            if !left_locked(&git_dir, &self.request.mark) {
                continue;
            }
            let paths = differences(self.person, old, commit)?;
            let locked = Locked::take(self.home, &checkout, &git_dir, &self.request.mark)?;
            // All files were written before the base moved: what differs now is the person's.
            let survey = locked.survey(commit, &paths, Partial::Theirs)?;
            locked.accept(&survey.new)?;
            // Edited since: the index moves on, the edit stays as one.
            locked.accept(&survey.other)?;
            if locked.rehearse(old, commit, &[]).is_ok() {
                locked.update(old, commit, &[])?;
                locked.install()?;
            }
        }
        Ok(())
    }

    /// Names the merge commit in the hidden ref.
    fn note(&self, commit: &str, is_recorded: bool) -> Result<(), GitError> {
        if is_recorded {
            return Ok(());
        }
        hit("merge.record.before");
        self.person.call().args(["update-ref", &self.record, commit, &"0".repeat(commit.len())]).bytes()?;
        hit("merge.record.after");
        Ok(())
    }

    /// Drops the hidden ref of a try that changed nothing.
    fn forget(&self) -> Result<(), GitError> {
        if self.person.commit(&self.record)?.is_none() {
            return Ok(());
        }
        self.person.call().args(["update-ref", "-d", &self.record]).bytes().map(drop)
    }

    /// None: the base is no longer at `old`.
    fn prepare(&self, at: &std::path::Path, commit: &str, old: &str) -> Result<Option<transaction::Prepared>, Stop> {
        let message = format!("merge {}: Merge made by AgentCraft.", self.request.worktree.branch);
        match transaction::prepare(at, &self.base_ref, commit, old, &message) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(_) if self.person.branch_head(&self.request.repo.base)?.as_deref() != Some(old) => Ok(None),
            Err(error) => Err(Stop::Refused(format!("{} cannot be moved now: {error}", self.request.repo.base))),
        }
    }

    /// An agent cannot make LFS objects: a file that git would keep in LFS must come as a pointer.
    fn check_lfs(&self, commit: &str, paths: &[Difference]) -> Result<(), Stop> {
        let mut input = Vec::new();
        for path in paths.iter().filter(|path| path.new_blob().is_some()) {
            input.extend(&path.path);
            input.push(0);
        }
        if input.is_empty() {
            return Ok(());
        }
        let call = self.person.call().env("GIT_ATTR_SOURCE", commit).args(["check-attr", "-z", "--stdin", "filter"]);
        let bytes = call.input(input).cap(256 << 20).bytes()?;
        let fields: Vec<&[u8]> = bytes.split(|b| *b == 0).collect();
        for entry in fields.chunks_exact(3) {
            let [path, _, value] = entry else { continue };
            if *value != b"lfs" {
                continue;
            }
            let Some(blob) = paths.iter().find(|d| d.path == *path).and_then(Difference::new_blob) else { continue };
            let content = self.person.call().args(["cat-file", "blob", blob]).cap(LFS_POINTER_BYTES).finish()?;
            if content.cut || !content.stdout.starts_with(LFS_POINTER) {
                return Err(Stop::Refused(format!(
                    "{} belongs into LFS, but the branch holds the file itself; add it by hand",
                    shown(path)
                )));
            }
        }
        Ok(())
    }
}

enum Recorded {
    /// It is on the base.
    Landed(String),
    /// Made, but the base is where it was.
    Waiting(String),
    Nothing,
}

enum Made {
    Commit(String),
    Result(MergeResult),
}
