//! Our own notes about a worktree, beside it and out of its agent's reach: `<parent>/.foreman/<name>/`.
//!
//! Holds `manifest.json`, a cached `index` (file times of the last look, so that unchanged files are not read again)
//! and `exclude` (the person's ignore patterns that lie outside the tree).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::error::GitError;

/// Directory name beside worktrees for our notes.
pub(crate) const NOTES: &str = ".foreman";
/// Directory name beside worktrees for those in the making.
pub(crate) const MAKING: &str = ".making";
/// Directory name beside worktrees for those being removed.
pub(crate) const REMOVING: &str = ".removing";

/// What a worktree was made for and from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The database that made it.
    pub profile: String,
    /// The person's checkout.
    pub repo: PathBuf,
    /// The worktree's id; the directory's name for a lead's copy.
    pub id: String,
    /// The branch that was wished for.
    pub wished: String,
    /// The branch it got; the base branch for a lead's copy.
    pub branch: String,
    /// Where the branch left the base.
    pub fork: String,
    /// The commit it started at.
    pub start: String,
    /// Files copied from the person's checkout; none of them may be committed.
    pub secrets: Vec<Secret>,
}

/// A file that was copied from the person's checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Secret {
    /// Path in the worktree, bytes as on disk.
    pub path: Vec<u8>,
    /// Object id of its content.
    pub oid: String,
    /// Bytes.
    pub size: u64,
}

/// The notes of the worktree at one directory.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    dir: PathBuf,
}

impl Notes {
    /// Of the worktree at `dir`, whether or not it is there.
    pub(crate) fn of(dir: &Path) -> Result<Self, GitError> {
        match (dir.parent(), dir.file_name()) {
            (Some(parent), Some(name)) => Ok(Self { dir: parent.join(NOTES).join(name) }),
            _ => Err(GitError::Other(format!("{} cannot be a worktree's directory", dir.display()))),
        }
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    pub(crate) fn exclude(&self) -> PathBuf {
        self.dir.join("exclude")
    }

    /// None: not there or not readable as ours.
    pub(crate) fn load(&self) -> Option<Manifest> {
        serde_json::from_slice(&std::fs::read(self.dir.join("manifest.json")).ok()?).ok()
    }

    pub(crate) fn save(&self, manifest: &Manifest) -> Result<(), GitError> {
        std::fs::create_dir_all(&self.dir).map_err(|e| GitError::disk("create", &self.dir, &e))?;
        let path = self.dir.join("manifest.json");
        let bytes = serde_json::to_vec(manifest).map_err(|e| GitError::Other(e.to_string()))?;
        write_whole(&path, &bytes)
    }

    /// The counts last noted, if they were for the same commits: ahead, files, additions, deletions.
    pub(crate) fn counts(&self, base: &str, tip: &str) -> Option<[u32; 4]> {
        let text = std::fs::read_to_string(self.dir.join("counts")).ok()?;
        let mut words = text.split(' ');
        if words.next() != Some(base) || words.next() != Some(tip) {
            return None;
        }
        let numbers: Vec<u32> = words.map_while(|word| word.trim_end().parse().ok()).collect();
        numbers.try_into().ok()
    }

    /// Notes counts; only a saving, so a failure is nothing.
    pub(crate) fn note_counts(&self, base: &str, tip: &str, [ahead, files, additions, deletions]: [u32; 4]) {
        let text = format!("{base} {tip} {ahead} {files} {additions} {deletions}\n");
        let _ = write_whole(&self.dir.join("counts"), text.as_bytes());
    }

    /// Forgets the worktree.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A name beside `path` that no other thread uses; git takes no file of that ending for a ref.
pub(crate) fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}.agentcraft.lock", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// Writes a file so that it is either the old or the new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let beside = beside(path);
    std::fs::write(&beside, bytes)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(|e| GitError::disk("write", path, &e))
}

/// Copies an index file with its time, which git needs to notice changes of the same moment. False: nothing to copy.
pub(crate) fn copy_index(from: &Path, to: &Path) -> Result<bool, GitError> {
    let Ok(meta) = from.symlink_metadata() else { return Ok(false) };
    if !meta.is_file() {
        return Ok(false);
    }
    let copy = || {
        let bytes = std::fs::read(from)?;
        let beside = beside(to);
        std::fs::write(&beside, bytes)?;
        std::fs::File::options().write(true).open(&beside)?.set_modified(meta.modified()?)?;
        std::fs::rename(&beside, to)
    };
    copy().map_err(|e| GitError::disk("copy the index to", to, &e)).map(|()| true)
}
