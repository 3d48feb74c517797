//! What the judge sees of the disk: kinds of entries, link targets, directory listings, small files.
//!
//! Owns the [`Disk`] view and its real form. Knows nothing of areas, commands or verdicts, and never writes.
//! Entry points: [`Disk`], [`RealDisk`].

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What stands at a path, without following a link there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing there (or a parent is missing or no directory).
    Absent,
    File,
    Directory,
    /// A symbolic link and its target text.
    Link(PathBuf),
    /// Device, socket, pipe.
    Special,
    /// Could not be looked at; treated as outside.
    Unreadable,
}

/// A read-only view of a file system, so that judging can be tested on one that exists only in a test.
pub trait Disk {
    /// The kind of the entry at an absolute path whose parents hold no links.
    fn kind(&self, path: &Path) -> Kind;

    /// Names in a directory, at most `limit`; `None` when there are more or it can't be read.
    fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>>;

    /// The text of a file of at most `limit` bytes; `None` when it is longer, not UTF-8 or can't be read.
    fn text(&self, file: &Path, limit: u64) -> Option<String>;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn kind(&self, path: &Path) -> Kind {
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.file_type().is_symlink() => fs::read_link(path).map_or(Kind::Unreadable, Kind::Link),
            Ok(meta) if meta.is_dir() => Kind::Directory,
            Ok(meta) if meta.is_file() => Kind::File,
            Ok(_) => Kind::Special,
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Kind::Absent,
                _ => Kind::Unreadable,
            },
        }
    }

    fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).ok()? {
            if names.len() >= limit {
                return None;
            }
            names.push(entry.ok()?.file_name());
        }
        names.sort();
        Some(names)
    }

    fn text(&self, file: &Path, limit: u64) -> Option<String> {
        let mut bytes = Vec::new();
        fs::File::open(file).ok()?.take(limit.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        if u64::try_from(bytes.len()).ok()? > limit {
            return None;
        }
        String::from_utf8(bytes).ok()
    }
}
