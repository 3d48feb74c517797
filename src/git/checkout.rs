//! Moving the person's checkout from one commit to another without losing one uncommitted byte.
//!
//! While it happens the checkout's `index.lock` is held, so that the person's own git waits. All checks run on copies
//! of the index before anything is written.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{At, GitError};
use super::failpoint::hit;
use super::repo::{Checkout, in_progress};
use super::run::{git, nul_fields};

/// The checkout's `index.lock`, held by us. Dropped: released.
pub(crate) struct IndexLock {
    path: PathBuf,
    index: PathBuf,
    /// Says which lock is ours after a kill: its inode.
    note: PathBuf,
    released: bool,
}

impl IndexLock {
    /// Takes the lock; `None` when somebody else has it.
    pub(crate) fn take(checkout: &Checkout, note: &Path) -> Result<Option<Self>, GitError> {
        let path = checkout.git_dir.join("index.lock");
        Self::drop_own_leftover(&path, note);
        let file = match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error).at(&path),
        };
        let meta = file.metadata().at(&path)?;
        std::fs::write(note, format!("{} {}\n{}", meta.dev(), meta.ino(), path.display())).at(note)?;
        Ok(Some(Self { path, index: checkout.git_dir.join("index"), note: note.to_owned(), released: false }))
    }

    /// A lock that this merge held when the process was killed. Only the very file that was noted is removed.
    pub(crate) fn drop_own_leftover(path: &Path, note: &Path) {
        let Ok(text) = std::fs::read_to_string(note) else { return };
        let noted = text.lines().next().unwrap_or_default().to_owned();
        let same = path.metadata().is_ok_and(|meta| format!("{} {}", meta.dev(), meta.ino()) == noted);
        if same {
            // Gone already is as good.
            let _absent = std::fs::remove_file(path);
        }
        let _absent = std::fs::remove_file(note);
    }

    /// Puts a new index in place and releases the lock.
    fn commit(mut self, fresh: &Path) -> Result<(), GitError> {
        let bytes = std::fs::read(fresh).at(fresh)?;
        let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(&self.path).at(&self.path)?;
        file.write_all(&bytes).at(&self.path)?;
        file.sync_all().at(&self.path)?;
        std::fs::rename(&self.path, &self.index).at(&self.index)?;
        self.released = true;
        let _absent = std::fs::remove_file(&self.note);
        Ok(())
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if !self.released {
            let _absent = std::fs::remove_file(&self.path);
            let _absent = std::fs::remove_file(&self.note);
        }
    }
}

/// Why a checkout can't be moved now, in words; checked under its lock.
pub(crate) fn refusal(checkout: &Checkout, from: &str, to: &str, scratch: &Path) -> Result<Option<String>, GitError> {
    if let Some(what) = in_progress(&checkout.git_dir) {
        return Ok(Some(format!("{what} of yours is in progress in {}: finish or abort it", shown(checkout))));
    }
    let index = copy_of_index(checkout, scratch)?;
    let out = git(&checkout.path)
        .env("GIT_INDEX_FILE", &index)
        .args(["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"])
        .run()?;
    let dirty: Vec<String> = nul_fields(&out)
        .filter_map(|entry| entry.get(3..))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    if !dirty.is_empty() {
        let some: Vec<&str> = dirty.iter().take(5).map(String::as_str).collect();
        let more = if dirty.len() > 5 { format!(" and {} more", dirty.len() - 5) } else { String::new() };
        return Ok(Some(format!(
            "your checkout {} has uncommitted changes ({}{more}): commit or stash them, then answer again",
            shown(checkout),
            some.join(", ")
        )));
    }
    let changed = git(&checkout.path)
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", from, to])
        .run()?;
    let mut fields = nul_fields(&changed);
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        if meta.windows(6).any(|mode| mode == b"160000") {
            return Ok(Some(format!(
                "it changes the submodule {}: merge this one by hand",
                String::from_utf8_lossy(path)
            )));
        }
        if let Some(why) = unwritable(&checkout.path, path) {
            return Ok(Some(why));
        }
    }
    let dry =
        git(&checkout.path).env("GIT_INDEX_FILE", &index).args(["read-tree", "-m", "-u", "-n", from, to]).output()?;
    // The copy served its purpose.
    let _absent = std::fs::remove_file(&index);
    if dry.code != 0 {
        let words = dry.stderr.replace("error: ", "");
        return Ok(Some(format!(
            "your checkout can't take it: {} - move that file away, then answer again",
            words.trim()
        )));
    }
    Ok(None)
}

/// A folder on the way that can't be written.
fn unwritable(root: &Path, relative: &[u8]) -> Option<String> {
    let mut at = root.join(super::run::path_of(relative));
    loop {
        at = at.parent()?.to_owned();
        if at.is_dir() {
            break;
        }
    }
    let writable = rustix::fs::access(&at, rustix::fs::Access::WRITE_OK).is_ok();
    (!writable).then(|| format!("{} can't be written: make it writable, then answer again", at.display()))
}

fn shown(checkout: &Checkout) -> String {
    checkout.path.display().to_string()
}

fn copy_of_index(checkout: &Checkout, scratch: &Path) -> Result<PathBuf, GitError> {
    let copy = scratch.join("index.merge");
    let index = checkout.git_dir.join("index");
    if index.is_file() {
        std::fs::copy(&index, &copy).at(&copy)?;
    } else {
        let _absent = std::fs::remove_file(&copy);
    }
    Ok(copy)
}

/// Moves files and index of a clean checkout, as `git merge --ff-only` would, filters and line ends included.
pub(crate) fn advance(
    checkout: &Checkout,
    lock: IndexLock,
    from: &str,
    to: &str,
    scratch: &Path,
) -> Result<(), GitError> {
    let index = copy_of_index(checkout, scratch)?;
    let moved = git(&checkout.path).env("GIT_INDEX_FILE", &index).args(["read-tree", "-m", "-u", from, to]).run();
    if let Err(error) = moved {
        let _absent = std::fs::remove_file(&index);
        drop(lock);
        return Err(error);
    }
    hit("merge:after-files");
    lock.commit(&index)?;
    let _absent = std::fs::remove_file(&index);
    hit("merge:after-index");
    Ok(())
}

/// Completes a move that was cut short (or takes one back): each changed path that still holds its content in `from`
/// gets the one in `to`; what holds anything else is the person's and stays.
pub(crate) fn complete(
    checkout: &Checkout,
    lock: IndexLock,
    from: &str,
    to: &str,
    scratch: &Path,
) -> Result<(), GitError> {
    let changed = git(&checkout.path)
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", from, to])
        .run()?;
    let index = copy_of_index(checkout, scratch)?;
    let mut fields = nul_fields(&changed);
    let mut entries: Vec<u8> = Vec::new();
    let (mut write, mut remove): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        // ":oldmode newmode oldid newid S"
        let words: Vec<&[u8]> = meta.split(|byte| *byte == b' ').collect();
        let [_, new_mode, old_id, new_id, ..] = words.as_slice() else { continue };
        let gone = new_mode.iter().all(|digit| *digit == b'0');
        let now = hash_of(checkout, path)?;
        let holds_old = now.as_deref().map_or(old_id.iter().all(|digit| *digit == b'0'), |id| id.as_bytes() == *old_id);
        let holds_new = now.as_deref().map_or(gone, |id| id.as_bytes() == *new_id);
        if holds_old && !holds_new {
            if gone { remove.push(path.to_vec()) } else { write.push(path.to_vec()) }
        }
        // "mode SP id TAB path NUL": mode 0 takes the entry out.
        if gone {
            entries.extend_from_slice(b"0 ");
            entries.extend_from_slice(old_id);
        } else {
            entries.extend_from_slice(new_mode);
            entries.push(b' ');
            entries.extend_from_slice(new_id);
        }
        entries.push(b'\t');
        entries.extend_from_slice(path);
        entries.push(0);
    }
    git(&checkout.path)
        .env("GIT_INDEX_FILE", &index)
        .args(["update-index", "-z", "--index-info"])
        .stdin(entries)
        .run()?;
    for path in remove {
        let path = checkout.path.join(super::run::path_of(&path));
        std::fs::remove_file(&path).at(&path)?;
        // Folders that became empty go, as git does it.
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| *dir != checkout.path) {
            if std::fs::remove_dir(dir).is_err() {
                break;
            }
            parent = dir.parent();
        }
    }
    if !write.is_empty() {
        let mut list = write.join(&0);
        list.push(0);
        git(&checkout.path)
            .env("GIT_INDEX_FILE", &index)
            .args(["checkout-index", "--force", "--index", "-z", "--stdin"])
            .stdin(list)
            .run()?;
    }
    // File times; what differs is the person's and stays different.
    let _differs =
        git(&checkout.path).env("GIT_INDEX_FILE", &index).args(["update-index", "-q", "--refresh"]).output()?;
    lock.commit(&index)?;
    let _absent = std::fs::remove_file(&index);
    Ok(())
}

/// Id that git would give the file's content, filters included; none when it is not there.
fn hash_of(checkout: &Checkout, path: &[u8]) -> Result<Option<String>, GitError> {
    let relative = super::run::path_of(path);
    let full = checkout.path.join(&relative);
    let Ok(meta) = full.symlink_metadata() else { return Ok(None) };
    if meta.is_symlink() {
        use std::os::unix::ffi::OsStrExt;
        let target = std::fs::read_link(&full).at(&full)?;
        let id = git(&checkout.path)
            .args(["hash-object", "--stdin", "--no-filters"])
            .stdin(target.as_os_str().as_bytes())
            .line()?;
        return Ok(Some(id));
    }
    if !meta.is_file() {
        return Ok(Some(String::new()));
    }
    let bytes = std::fs::read(&full).at(&full)?;
    let id = git(&checkout.path).args(["hash-object", "--stdin"]).arg("--path").arg(&relative).stdin(bytes).line()?;
    Ok(Some(id))
}
