//! `.worktreeinclude`: ignored files of the person's checkout that a new worktree gets a copy of, and the rule that
//! none of them is ever committed.
//!
//! The file as committed on the base branch counts (gitignore syntax), never an agent's version.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::error::GitError;
use super::manifest::{Manifest, Secret};
use super::person::{Person, as_path, text};

/// The convention's file name.
const FILE: &str = ".worktreeinclude";
/// Largest `.worktreeinclude` read.
const FILE_BYTES: usize = 64 * 1024;
/// Most files copied into one worktree.
const FILES: usize = 500;
/// Most bytes copied into one worktree.
const BYTES: u64 = 64 * 1024 * 1024;
/// Most directory entries looked at.
const ENTRIES: usize = 100_000;
/// Contents shorter than this are too common to be recognised as a secret by themselves.
const TELLING_BYTES: u64 = 8;

/// Patterns of `.worktreeinclude` at `commit`. None: there is no such file.
fn patterns(person: &Person, commit: &str) -> Result<Option<Gitignore>, GitError> {
    let Some(bytes) = person.blob(commit, FILE, FILE_BYTES)? else { return Ok(None) };
    let mut builder = GitignoreBuilder::new("/");
    for line in text(&bytes).lines() {
        builder
            .add_line(None, line)
            .map_err(|e| GitError::Other(format!("{FILE} of {}: {e}", person.path.display())))?;
    }
    builder.build().map(Some).map_err(|e| GitError::Other(format!("{FILE} of {}: {e}", person.path.display())))
}

/// Files that may not be committed.
pub(crate) struct Protected {
    patterns: Option<Gitignore>,
    paths: BTreeMap<Vec<u8>, String>,
    contents: BTreeMap<String, u64>,
    /// Tracked on the base though a pattern names them: not ours to hide.
    tracked: Vec<Vec<u8>>,
}

impl Protected {
    /// By the notes of the worktree, and by the patterns at the commit it was made from should the notes be lost.
    pub(crate) fn of(person: &Person, fork: &str, manifest: Option<&Manifest>) -> Result<Self, GitError> {
        let patterns = patterns(person, fork)?;
        let mut tracked = Vec::new();
        if let Some(patterns) = &patterns {
            let listed = person.call().args(["ls-tree", "-r", "-z", "--name-only", fork]).cap(256 << 20).bytes()?;
            let names = listed.split(|b| *b == 0).filter(|name| !name.is_empty());
            tracked.extend(names.filter(|name| matches(patterns, name)).map(<[u8]>::to_vec));
        }
        let secrets = manifest.map(|m| m.secrets.as_slice()).unwrap_or_default();
        Ok(Self {
            patterns,
            tracked,
            paths: secrets.iter().map(|s| (s.path.clone(), s.oid.clone())).collect(),
            contents: secrets.iter().filter(|s| s.size >= TELLING_BYTES).map(|s| (s.oid.clone(), s.size)).collect(),
        })
    }

    /// The path of a copied file, or of one that would have been copied.
    pub(crate) fn is_secret_path(&self, path: &[u8]) -> bool {
        self.paths.contains_key(path)
            || (self.patterns.as_ref().is_some_and(|p| matches(p, path)) && !self.tracked.iter().any(|t| t == path))
    }

    /// The content of a copied file.
    pub(crate) fn is_secret_content(&self, oid: &str) -> bool {
        self.contents.contains_key(oid)
    }

    /// A file of this many bytes may be a copied one under another name.
    pub(crate) fn may_be_secret(&self, size: u64) -> bool {
        self.contents.values().any(|known| *known == size)
    }
}

fn matches(patterns: &Gitignore, path: &[u8]) -> bool {
    let path = Path::new("/").join(OsStr::from_bytes(path));
    patterns.matched_path_or_any_parents(&path, false).is_ignore()
}

/// What was copied and what was not.
#[derive(Debug, Default)]
pub(crate) struct Included {
    pub secrets: Vec<Secret>,
    pub notes: Vec<String>,
}

/// Copies the files that the base's `.worktreeinclude` names from the person's checkout into `to`.
///
/// Only files that the person's git ignores, never through a link, never over anything that is there.
pub(crate) fn copy_included(person: &Person, commit: &str, to: &Path) -> Result<Included, GitError> {
    let mut done = Included::default();
    let patterns = match patterns(person, commit) {
        Ok(Some(patterns)) => patterns,
        Ok(None) => return Ok(done),
        Err(error) => {
            done.notes.push(format!("no files were copied: {error}"));
            return Ok(done);
        }
    };
    let listed = person
        .call()
        .args(["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"])
        .cap(64 << 20)
        .bytes()?;
    let mut walk = Walk { patterns: &patterns, root: &person.path, found: Vec::new(), seen: 0 };
    for name in listed.split(|b| *b == 0).filter(|name| !name.is_empty()) {
        walk.look(&as_path(name.strip_suffix(b"/").unwrap_or(name)));
    }
    if walk.seen > ENTRIES {
        done.notes.push(format!("{FILE}: only the first {ENTRIES} ignored files were looked at"));
    }
    let mut found = walk.found;
    found.sort();
    let mut bytes = 0;
    let mut copied = Vec::new();
    for path in found {
        if copied.len() >= FILES || bytes >= BYTES {
            done.notes.push(format!("{FILE} names more than {FILES} files or {BYTES} bytes; the rest was not copied"));
            break;
        }
        match copy_file(&person.path, to, &path, BYTES - bytes) {
            Ok(Some(size)) => {
                bytes += size;
                copied.push((path, size));
            }
            Ok(None) => {}
            Err(why) => done.notes.push(format!("{} was not copied: {why}", path.display())),
        }
    }
    let oids = object_ids(person, to, &copied)?;
    for ((path, size), oid) in copied.into_iter().zip(oids) {
        done.secrets.push(Secret { path: path.as_os_str().as_bytes().to_vec(), oid, size });
    }
    Ok(done)
}

/// Object ids of files as they are on disk.
fn object_ids(person: &Person, dir: &Path, files: &[(PathBuf, u64)]) -> Result<Vec<String>, GitError> {
    let mut oids = Vec::new();
    for (path, _) in files {
        let file = File::open(dir.join(path)).map_err(|e| GitError::disk("open", dir.join(path), &e))?;
        oids.push(person.call().args(["hash-object", "--stdin"]).input_file(file).text()?);
    }
    Ok(oids)
}

struct Walk<'a> {
    patterns: &'a Gitignore,
    root: &'a Path,
    found: Vec<PathBuf>,
    seen: usize,
}

impl Walk<'_> {
    fn look(&mut self, path: &Path) {
        self.seen += 1;
        if self.seen > ENTRIES || path.file_name().is_some_and(|name| name == ".git") {
            return;
        }
        let Ok(meta) = self.root.join(path).symlink_metadata() else { return };
        if meta.is_dir() {
            // A repository inside is somebody's own; what it holds is not ours to hand on.
            if self.root.join(path).join(".git").symlink_metadata().is_ok() {
                return;
            }
            let Ok(entries) = std::fs::read_dir(self.root.join(path)) else { return };
            for entry in entries.flatten() {
                self.look(&path.join(entry.file_name()));
            }
        } else if meta.is_file() && matches(self.patterns, path.as_os_str().as_bytes()) {
            self.found.push(path.to_owned());
        }
    }
}

/// None: something is there already.
fn copy_file(from_root: &Path, to_root: &Path, path: &Path, most: u64) -> Result<Option<u64>, String> {
    let mut source = from_root.to_owned();
    let mut target = to_root.to_owned();
    let parents: Vec<_> = path.parent().map(|p| p.components().collect()).unwrap_or_default();
    for part in parents {
        source.push(part);
        target.push(part);
        if !source.symlink_metadata().map_err(|e| e.to_string())?.is_dir() {
            return Err("it lies behind a link".to_owned());
        }
        match target.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err("the worktree has a file or link where its directory would be".to_owned()),
            Err(_) => std::fs::create_dir(&target).map_err(|e| e.to_string())?,
        }
    }
    let (source, target) = (from_root.join(path), to_root.join(path));
    if target.symlink_metadata().is_ok() {
        return Ok(None);
    }
    let no_follow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(no_follow.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(flags).open(&source).map_err(|e| e.to_string())?;
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if meta.size() > most {
        return Err(format!("with its {} bytes the worktree would get more than {BYTES}", meta.size()));
    }
    let mut out = File::options()
        .write(true)
        .create_new(true)
        .mode(meta.mode() & 0o700)
        .open(&target)
        .map_err(|e| e.to_string())?;
    let size = std::io::copy(&mut file.take(most), &mut out).map_err(|e| e.to_string())?;
    out.set_permissions(std::fs::Permissions::from_mode(meta.mode() & 0o777)).map_err(|e| e.to_string())?;
    Ok(Some(size))
}
