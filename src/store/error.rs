//! What can go wrong with the database, in words that say what happened and what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the database could not be opened, read or written. Nothing is ever replaced or emptied because of one.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Written by a later release; its rows may mean things this one does not know.
    #[error(
        "{}: written by a newer version (database schema {found}, this program knows up to {known}). It was left as it \
         is; start the newer version again, or use another profile", path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    /// Garbage where the database should be, or rows that do not read.
    #[error(
        "{}: the database is damaged ({what}). It was left as it is; try `sqlite3 {} .recover` on a copy, or move it \
         away (or use --reset) to start anew: branches and repositories are not touched by that",
        path.display(), path.display()
    )]
    Damaged { path: PathBuf, what: String },
    /// A database, but not one of ours.
    #[error("{}: a database of another program. It was left as it is; choose another home or profile", path.display())]
    NotOurs { path: PathBuf },
    /// The directory belongs to another user.
    #[error("{}: belongs to another user of this machine; choose a home of your own", path.display())]
    OtherOwner { path: PathBuf },
    /// No space left; what was being written is not stored, all before it is.
    #[error("{}: the disk is full. The last change was not stored; free some space and try again", path.display())]
    Full { path: PathBuf },
    /// The directory or the file may not be written.
    #[error("{}: cannot be written (read-only, or missing permission); make it writable or choose another home", path.display())]
    ReadOnly { path: PathBuf },
    /// A write-ahead log needs memory shared between processes, which this file system does not give safely.
    #[error(
        "{}: lies on a network file system ({kind}), where a database cannot be kept safely; choose a home on a local \
         disk", path.display()
    )]
    Network { path: PathBuf, kind: String },
    /// Another program holds the write lock.
    #[error("{}: another program holds the database; close it (a `sqlite3` session?) and try again", path.display())]
    Busy { path: PathBuf },
    /// A change that would not read back.
    #[error("a change of {what} cannot be stored: {source}")]
    Encode { what: String, source: serde_json::Error },
    #[error("{}: {doing} failed: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("{}: {source}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
}

impl StoreError {
    /// True when the same commit may work later without anybody touching the database itself.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Busy { .. } | Self::ReadOnly { .. } | Self::Io { .. } | Self::Database { .. } => {
                true
            }
            Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::NotOurs { .. }
            | Self::OtherOwner { .. }
            | Self::Network { .. }
            | Self::Encode { .. } => false,
        }
    }

    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase) => Self::Damaged { path, what: "the file is not a database".to_owned() },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, what: source.to_string() },
            _ => Self::Database { path, source },
        }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io { path, doing, source },
        }
    }
}
