//! The checkout that has the base branch: bringing its files and index from one commit to another without losing a
//! byte that is not committed.
//!
//! git itself writes the files, with the person's configuration (line ends, filters), so they hold what a merge by hand
//! would have put there. All index work happens on a copy; the person's index is replaced in one step at the end, under
//! git's own lock, so that no git of theirs works in the checkout meanwhile. The lock names the merge it belongs to: a
//! second run after a kill knows its own.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::GitHome;
use super::super::error::GitError;
use super::super::failpoint::hit;
use super::super::inspect::changed_files;
use super::super::lens::Temporary;
use super::super::manifest::copy_index;
use super::super::person::{Checkout, Person, as_path, text};
use super::super::run::{Call, failed, words};

/// Directory in the git directory for second names of files that are being replaced.
const ORIGINALS: &str = "agentcraft-originals";
/// Most names in a refusal.
const NAMES: usize = 5;

/// Why nothing was done.
#[derive(Debug)]
pub(super) enum Stop {
    /// A reason for the person; everything is as it was.
    Refused(String),
    /// As a refusal, unforeseen.
    Failed(GitError),
    /// The base has moved, the checkout is not done: to be run again.
    Unfinished(GitError),
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        Self::Failed(error)
    }
}

/// One path that differs between two commits.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub path: Vec<u8>,
    old: Option<Entry>,
    new: Option<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    mode: String,
    oid: String,
}

impl Difference {
    pub(super) fn is_submodule(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|entry| entry.mode == "160000")
    }

    /// The new content, when it is a file's.
    pub(super) fn new_blob(&self) -> Option<&str> {
        self.new.as_ref().filter(|entry| entry.mode.starts_with("100")).map(|entry| entry.oid.as_str())
    }
}

/// Every path that differs, renames not followed.
pub(super) fn differences(person: &Person, old: &str, new: &str) -> Result<Vec<Difference>, GitError> {
    let call = person.call().args(["diff-tree", "-r", "--raw", "-z", "--no-renames", "--full-index", "--no-abbrev"]);
    let bytes = call.args([old, new]).cap(256 << 20).bytes()?;
    let mut fields = bytes.split(|b| *b == 0);
    let mut found = Vec::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let head = text(head);
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old_oid, new_oid, _] = words.as_slice() else { continue };
        let entry =
            |mode: &str, oid: &str| (mode != "000000").then(|| Entry { mode: mode.to_owned(), oid: oid.to_owned() });
        found.push(Difference { path: path.to_vec(), old: entry(old_mode, old_oid), new: entry(new_mode, new_oid) });
    }
    Ok(found)
}

/// The checkout under our lock.
pub(super) struct Locked<'a> {
    checkout: &'a Checkout,
    git_dir: PathBuf,
    temporary: Temporary,
    release: bool,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.release {
            release(&self.git_dir);
        }
    }
}

fn lock_text(mark: &str) -> String {
    format!("agentcraft merge {mark}\n")
}

/// True when a killed run of the merge `mark` left its lock in this checkout.
pub(super) fn left_locked(git_dir: &Path, mark: &str) -> bool {
    std::fs::read(git_dir.join("index.lock")).is_ok_and(|bytes| bytes == lock_text(mark).as_bytes())
}

/// True when that run had begun to write files: the originals are put aside just before.
pub(super) fn left_writing(git_dir: &Path, mark: &str) -> bool {
    left_locked(git_dir, mark) && git_dir.join(ORIGINALS).is_dir()
}

/// Gives back every lock that runs of the merge `mark` left in any checkout of the repository.
pub(super) fn release_left(common_dir: &Path, mark: &str) {
    let mut dirs = vec![common_dir.to_owned()];
    let linked = std::fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    dirs.extend(linked.map(|entry| entry.path()));
    for dir in dirs.iter().filter(|dir| left_locked(dir, mark)) {
        release(dir);
    }
}

fn release(git_dir: &Path) {
    let _ = std::fs::remove_file(git_dir.join("agentcraft-index"));
    let _ = std::fs::remove_dir_all(git_dir.join(ORIGINALS));
    let _ = std::fs::remove_file(git_dir.join("index.lock"));
}

/// Who may have written the beginning of a file's new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Partial {
    /// A git of ours that was stopped: such a file is removed.
    Ours,
    /// Only the person: such a file is theirs.
    Theirs,
}

impl<'a> Locked<'a> {
    /// Takes the index lock of the checkout.
    pub(super) fn take(home: &GitHome, checkout: &'a Checkout, git_dir: &Path, mark: &str) -> Result<Self, Stop> {
        let lock = git_dir.join("index.lock");
        let at = checkout.path.display();
        hit("merge.lock.before");
        match std::fs::File::options().write(true).create_new(true).open(&lock) {
            Ok(mut file) => {
                file.write_all(lock_text(mark).as_bytes()).map_err(|e| GitError::disk("write", &lock, &e))?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                if !left_locked(git_dir, mark) {
                    return Err(Stop::Refused(format!(
                        "another git process works in {at} (index.lock exists); let it end, or remove the file if none \
                         runs"
                    )));
                }
            }
            Err(e) => return Err(Stop::Refused(format!("{at} cannot be written: {e}"))),
        }
        hit("merge.lock.after");
        let temporary = Temporary::new(home)?;
        let this = Self { checkout, git_dir: git_dir.to_owned(), temporary, release: true };
        copy_index(&this.git_dir.join("index"), &this.index())?;
        Ok(this)
    }

    /// Leaves the lock where it is.
    pub(super) fn keep(&mut self) {
        self.release = false;
    }

    fn index(&self) -> PathBuf {
        self.temporary.0.join("index")
    }

    /// git in the checkout, over our copy of the index.
    fn call(&self) -> Call {
        self.call_with(&self.index())
    }

    fn call_with(&self, index: &Path) -> Call {
        Call::in_dir(&self.checkout.path).config("core.splitIndex=false").env("GIT_INDEX_FILE", index)
    }

    /// Refuses when anything tracked is uncommitted.
    pub(super) fn require_clean(&self) -> Result<(), Stop> {
        let changed = changed_files(self.call())?;
        if changed.is_empty() {
            // Files that were only touched must not look changed to what follows.
            return Ok(self.refresh(&self.index())?);
        }
        Err(Stop::Refused(format!(
            "{} has uncommitted changes ({}); commit or stash them",
            self.checkout.path.display(),
            named(&changed)
        )))
    }

    /// Finds out before anything is written whether index and files can go from `old` to `new`: no untracked or ignored
    /// file or directory in the way, every directory writable. `paths`: those that are still to be written.
    pub(super) fn rehearse(&self, old: &str, new: &str, paths: &[Difference]) -> Result<(), Stop> {
        let index = self.temporary.0.join("rehearsal");
        copy_index(&self.index(), &index)?;
        let done = self.call_with(&index).args(["read-tree", "-n", "-m", "-u", old, new]).finish()?;
        let at = self.checkout.path.display();
        if done.code != Some(0) {
            return Err(Stop::Refused(format!("files in {at} are in the way: {}", words(&done.stderr))));
        }
        // git overwrites ignored files here; we do not.
        if let Some(found) = self.obstacle(paths) {
            return Err(Stop::Refused(format!("{} is in the way in {at}; move it elsewhere", shown(&found))));
        }
        for difference in paths {
            let mut dir = self.checkout.path.join(as_path(&difference.path));
            while dir.pop() && dir.symlink_metadata().is_err() {}
            if rustix::fs::access(&dir, rustix::fs::Access::WRITE_OK).is_err() {
                return Err(Stop::Refused(format!("{} cannot be written; make it writable for you", dir.display())));
            }
        }
        Ok(())
    }

    /// Something that is not tracked where a file is to be made.
    fn obstacle(&self, paths: &[Difference]) -> Option<Vec<u8>> {
        let going: BTreeSet<&[u8]> = paths.iter().filter(|d| d.new.is_none()).map(|d| d.path.as_slice()).collect();
        for difference in paths.iter().filter(|d| d.old.is_none()) {
            let path = as_path(&difference.path);
            for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
                let found = self.checkout.path.join(parent).symlink_metadata();
                let name = parent.as_os_str().as_bytes();
                if found.is_ok_and(|meta| !meta.is_dir()) && !going.contains(name) {
                    return Some(name.to_vec());
                }
            }
            if let Some(found) = self.untracked_at(&path, &going) {
                return Some(found);
            }
        }
        None
    }

    /// A file at or below `path` that is not about to be deleted anyway.
    fn untracked_at(&self, path: &Path, going: &BTreeSet<&[u8]>) -> Option<Vec<u8>> {
        let meta = self.checkout.path.join(path).symlink_metadata().ok()?;
        if !meta.is_dir() {
            let name = path.as_os_str().as_bytes();
            // Behind a link nothing of this checkout is.
            return (!going.contains(name) && !self.is_behind_link(path)).then(|| name.to_vec());
        }
        let entries = std::fs::read_dir(self.checkout.path.join(path)).ok()?;
        entries.flatten().find_map(|entry| self.untracked_at(&path.join(entry.file_name()), going))
    }

    fn is_behind_link(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|p| self.checkout.path.join(p).symlink_metadata().is_ok_and(|m| m.is_symlink()))
    }

    /// Where the originals of files are kept while they are replaced.
    fn originals(&self) -> PathBuf {
        self.git_dir.join(ORIGINALS)
    }

    /// Brings files and our copy of the index from `old` to `new`. On failure what was written is taken back.
    pub(super) fn update(&self, old: &str, new: &str, paths: &[Difference]) -> Result<(), Stop> {
        // A second name for each file that git will replace, so that going back gives the very same file even where a
        // filter fails or the disk is full. A disk without hard links has to do without.
        let originals = self.originals();
        if !self.is_writing() {
            std::fs::create_dir(&originals).map_err(|e| GitError::disk("create", &originals, &e))?;
            for (number, difference) in paths.iter().enumerate().filter(|(_, d)| d.old.is_some()) {
                let path = self.checkout.path.join(as_path(&difference.path));
                if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                    let _ = std::fs::hard_link(&path, originals.join(number.to_string()));
                }
            }
            // The second name changed the files' change times, by which the index knows them.
            self.refresh(&self.index())?;
        }
        hit("merge.files.before");
        let done = self.call().args(["read-tree", "-m", "-u", old, new]).finish()?;
        if done.code != Some(0) {
            let why = words(&done.stderr);
            self.take_back(new, paths)?;
            return Err(Stop::Refused(format!("git could not update {}: {why}", self.checkout.path.display())));
        }
        hit("merge.files.after");
        Ok(())
    }

    /// Where each path stands when a run was stopped while it updated files.
    pub(super) fn survey(&self, new: &str, paths: &[Difference], partial: Partial) -> Result<Survey, GitError> {
        self.refresh(&self.index())?;
        let of_old = self.differing(&self.index())?;
        let fresh = self.temporary.0.join("fresh");
        self.call_with(&fresh).args(["read-tree", new]).bytes()?;
        self.refresh(&fresh)?;
        let of_new = self.differing(&fresh)?;
        let mut survey = Survey::default();
        let ours: BTreeSet<&[u8]> = paths.iter().map(|d| d.path.as_slice()).collect();
        for difference in paths {
            let (path, entry) = (&difference.path, difference.clone());
            if self.checkout.path.join(as_path(path)).symlink_metadata().is_err() {
                // git removes a file before it writes the new one; where it is missing nothing can be lost.
                if difference.new.is_none() { survey.new.push(entry) } else { survey.old.push(entry) }
            } else if difference.old.is_some() && !of_old.contains(path) {
                survey.old.push(entry);
            } else if difference.new.is_some() && !of_new.contains(path) {
                survey.new.push(entry);
            } else if partial == Partial::Ours && self.discard_partial(new, difference)? {
                survey.old.push(entry);
            } else {
                survey.other.push(entry);
            }
        }
        survey.foreign = of_old.iter().filter(|path| !ours.contains(path.as_slice())).map(|p| text(p)).collect();
        Ok(survey)
    }

    /// Removes a file that git had begun to write: all it holds is the beginning of the new content.
    fn discard_partial(&self, new: &str, difference: &Difference) -> Result<bool, GitError> {
        let path = self.checkout.path.join(as_path(&difference.path));
        if difference.new_blob().is_none() || !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(false);
        }
        let mut name = std::ffi::OsString::from(format!("{new}:"));
        name.push(as_path(&difference.path));
        let done = self.call().args(["cat-file", "--filters"]).arg(name).cap(256 << 20).finish()?;
        let found = std::fs::read(&path).map_err(|e| GitError::disk("read", &path, &e))?;
        if done.code != Some(0) || found.len() >= done.stdout.len() || !done.stdout.starts_with(&found) {
            return Ok(false);
        }
        std::fs::remove_file(&path).map_err(|e| GitError::disk("remove", &path, &e))?;
        Ok(true)
    }

    fn refresh(&self, index: &Path) -> Result<(), GitError> {
        // Exit code 1 says that some files differ, which is what we are about to ask.
        self.call_with(index).args(["update-index", "-q", "--refresh", "--ignore-submodules"]).finish().map(drop)
    }

    fn differing(&self, index: &Path) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let call = self.call_with(index).args(["diff-files", "-z", "--name-only", "--ignore-submodules=all"]);
        let bytes = call.cap(256 << 20).bytes()?;
        Ok(bytes.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Paths whose entry in the index differs from `commit`.
    pub(super) fn staged(&self, commit: &str) -> Result<Vec<Vec<u8>>, GitError> {
        let call =
            self.call().args(["diff-index", "--cached", "-z", "--name-only", "--ignore-submodules=none", commit]);
        let bytes = call.cap(256 << 20).bytes()?;
        Ok(bytes.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Tells our copy of the index that these paths hold their new content already.
    pub(super) fn accept(&self, paths: &[Difference]) -> Result<(), GitError> {
        let mut input = Vec::new();
        for difference in paths {
            match &difference.new {
                Some(entry) => input.extend(format!("{} {} 0\t", entry.mode, entry.oid).into_bytes()),
                None => {
                    // A kill may have come between the file and the directory that it left empty.
                    let path = as_path(&difference.path);
                    for dir in path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
                        let _ = std::fs::remove_dir(self.checkout.path.join(dir));
                    }
                    let zero = difference.old.as_ref().map_or(40, |entry| entry.oid.len());
                    input.extend(format!("0 {} 0\t", "0".repeat(zero)).into_bytes());
                }
            }
            input.extend(&difference.path);
            input.push(0);
        }
        if input.is_empty() {
            return Ok(());
        }
        self.call().args(["update-index", "-z", "--index-info"]).input(input).bytes()?;
        self.refresh(&self.index())
    }

    /// True when this run, or a killed one before it, has begun to write files.
    pub(super) fn is_writing(&self) -> bool {
        self.originals().is_dir()
    }

    /// Gives paths that hold exactly the merge's content, or nothing, what they held before. Without any file written
    /// there is nothing to take back, whatever the person has there.
    pub(super) fn take_back(&self, new: &str, paths: &[Difference]) -> Result<(), GitError> {
        if !self.is_writing() {
            return Ok(());
        }
        copy_index(&self.git_dir.join("index"), &self.index())?;
        let survey = self.survey(new, paths, Partial::Ours)?;
        let is_new: BTreeSet<&[u8]> = survey.new.iter().map(|d| d.path.as_slice()).collect();
        let mut again = Vec::new();
        // New files first, deepest first: one may stand where a directory has to come back.
        for difference in survey.new.iter().filter(|d| d.old.is_none()).rev() {
            let path = self.checkout.path.join(as_path(&difference.path));
            std::fs::remove_file(&path).map_err(|e| GitError::disk("remove", &path, &e))?;
            let mut dir = path;
            while dir.pop() && dir != self.checkout.path && std::fs::remove_dir(&dir).is_ok() {}
        }
        for (number, difference) in paths.iter().enumerate().filter(|(_, d)| d.old.is_some()) {
            let path = self.checkout.path.join(as_path(&difference.path));
            let missing = path.symlink_metadata().is_err();
            if !missing && !is_new.contains(difference.path.as_slice()) {
                continue;
            }
            let original = self.originals().join(number.to_string());
            let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            if parent.and_then(|()| std::fs::rename(&original, &path)).is_err() {
                again.extend(&difference.path);
                again.push(0);
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        let done = self.call().args(["checkout-index", "-f", "-q", "-z", "--stdin"]).input(again).finish()?;
        if done.code == Some(0) { Ok(()) } else { Err(failed("git checkout-index".to_owned(), &done)) }
    }

    /// Makes our copy of the index the person's, in one step.
    pub(super) fn install(&self) -> Result<(), GitError> {
        hit("merge.index.before");
        let beside = self.git_dir.join("agentcraft-index");
        copy_index(&self.index(), &beside)?;
        let index = self.git_dir.join("index");
        if let Ok(meta) = index.symlink_metadata() {
            let _ = std::fs::set_permissions(&beside, meta.permissions());
        }
        std::fs::rename(&beside, &index).map_err(|e| GitError::disk("write", &index, &e))?;
        hit("merge.index.after");
        Ok(())
    }
}

/// How far a killed run came.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub old: Vec<Difference>,
    pub new: Vec<Difference>,
    /// Neither the old nor the new content: the person's.
    pub other: Vec<Difference>,
    /// Changed files that the merge does not touch.
    pub foreign: Vec<String>,
}

/// Up to five names.
pub(super) fn named(names: &[String]) -> String {
    let mut text: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    let more = format!("{} more", names.len().saturating_sub(NAMES));
    if names.len() > NAMES {
        text.push(&more);
    }
    text.join(", ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The path as the person's disk has it, for texts.
pub(super) fn shown(path: &[u8]) -> String {
    text(std::ffi::OsStr::from_bytes(path).as_bytes())
}
