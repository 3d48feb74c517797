//! The database of a profile: entities, wanted effects, log lines with full-text search, feed, journal.
//!
//! Owns the SQLite file and its schema. Must not know the loop, git, engines or the wire's JSON frames; it stores what
//! the core says ([`Change`]) and gives the state back. Memory notes are not here, they are files.
//! Entry points: [`Store::open`] and [`Store::commit`].

mod error;
mod journal;
mod load;
pub(crate) mod place;
mod rows;
mod schema;
mod search;
#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use journal::JournalBounds;
pub use search::LogHit;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::foreman::change::Change;
use crate::foreman::state::State;
use crate::protocol::{AgentId, EpochMs, LogEntry};
use journal::{Extent, Life};

/// The database's name in the profile's directory.
pub const FILE_NAME: &str = "foreman.db";

/// How the database is handled. The defaults are what a person needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// How long a commit waits for another program's lock, ms.
    pub busy_timeout_ms: u64,
    /// Size at which the file counts as full, in pages of 4,096 bytes; none: the disk decides.
    pub max_pages: Option<u32>,
    pub journal: JournalBounds,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { busy_timeout_ms: 5000, max_pages: None, journal: JournalBounds::default() }
    }
}

/// The open database of a profile. One owner: the loop.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    options: StoreOptions,
    conn: Connection,
    profile_id: String,
    extent: Extent,
    life: Life,
}

impl Store {
    /// Opens (or makes) the database in `dir`, which is made for the person alone, and loads the state. The caller
    /// holds the profile's lock.
    ///
    /// # Errors
    /// Every [`StoreError`]; the file is then as it was.
    pub fn open(dir: &Path) -> Result<(Self, State), StoreError> {
        Self::open_with(dir, StoreOptions::default())
    }

    /// As [`Store::open`], with options.
    ///
    /// # Errors
    /// Every [`StoreError`]; the file is then as it was.
    pub fn open_with(dir: &Path, options: StoreOptions) -> Result<(Self, State), StoreError> {
        place::private_directory(dir)?;
        place::local_disk(dir)?;
        let path = dir.join(FILE_NAME);
        if !path.try_exists().map_err(|error| StoreError::io(&path, "looking for the database", error))? {
            create(dir, &path)?;
        }
        let mut conn = connect(&path, options)?;
        let fail = |error| StoreError::sqlite(&path, error);
        schema::migrate(&mut conn).map_err(fail)?;
        // Says at once when the file may be read but not written, instead of at the first commit.
        conn.transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(rusqlite::Transaction::rollback)
            .map_err(fail)?;
        let profile_id =
            conn.query_row("SELECT value FROM meta WHERE key = 'profile_id'", [], |row| row.get(0)).map_err(fail)?;
        let extent = Extent::read(&conn).map_err(fail)?;
        let state = load::load(&conn, &path)?;
        Ok((Self { path, options, conn, profile_id, extent, life: Life::Fresh }, state))
    }

    /// Stores the changes in one transaction that is on disk when this returns. Memory notes and what is only told
    /// (speech, notices) go to the journal alone.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of it is stored, or (when the disk failed while it was being told to keep it) all
    /// of it: the caller throws its state away and calls [`Store::reload`].
    pub fn commit(&mut self, now: EpochMs, changes: &[Change]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let encoded = rows::encode(changes)?;
        let written = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|tx| {
            rows::write(&tx, changes, &encoded)?;
            let row = journal::append(&tx, now, self.life, &encoded)?;
            tx.commit()?;
            Ok(row)
        });
        let row = written.map_err(|error| StoreError::sqlite(&self.path, error))?;
        self.life = Life::GoesOn;
        self.extent = self.extent.grown(row);
        if self.extent.is_past(self.options.journal, now) {
            self.fold_journal(now);
        }
        Ok(())
    }

    /// Tries whether something can be stored: writes some pages and takes them back.
    ///
    /// # Errors
    /// [`StoreError`] as a commit would have.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        self.conn
            .execute_batch(
                "BEGIN IMMEDIATE;
                 INSERT OR REPLACE INTO meta VALUES ('probe', hex(zeroblob(65536)));
                 COMMIT;
                 DELETE FROM meta WHERE key = 'probe'",
            )
            .map_err(|error| {
                // A failed statement leaves the transaction open.
                self.conn.execute_batch("ROLLBACK").ok();
                StoreError::sqlite(&self.path, error)
            })
    }

    /// The state as stored, from a fresh connection: what the caller has in memory is to be thrown away.
    ///
    /// # Errors
    /// As [`Store::open`]; the store stays usable for another try.
    pub fn reload(&mut self) -> Result<State, StoreError> {
        let conn = connect(&self.path, self.options)?;
        let state = load::load(&conn, &self.path)?;
        self.extent = Extent::read(&conn).map_err(|error| StoreError::sqlite(&self.path, error))?;
        self.conn = conn;
        self.life = Life::Fresh;
        Ok(state)
    }

    /// Sixteen hex digits, random, made once with the database: tells the marks of one profile from another's.
    pub fn profile_id(&self) -> &str {
        &self.profile_id
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state as base and journal tell it, notes included.
    ///
    /// # Errors
    /// [`StoreError`] when they do not read.
    pub fn replay(&self) -> Result<State, StoreError> {
        journal::replay(&self.conn, &self.path)
    }

    /// Log lines that hold all of `words` (the last may be a beginning), newest first; without words the newest ones.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not read.
    pub fn search_logs(&self, words: &str, agent: Option<&AgentId>, limit: u32) -> Result<Vec<LogHit>, StoreError> {
        const BY_WORDS: &str = "SELECT agent, ts, kind, text FROM log
             WHERE seq IN (SELECT rowid FROM log_text WHERE log_text MATCH ?1) AND (?2 IS NULL OR agent = ?2)
             ORDER BY seq DESC LIMIT ?3";
        const NEWEST: &str = "SELECT agent, ts, kind, text FROM log
             WHERE ?1 IS NULL AND (?2 IS NULL OR agent = ?2) ORDER BY seq DESC LIMIT ?3";
        let query = search::query(words);
        if query.is_none() && !words.trim().is_empty() {
            return Ok(Vec::new());
        }
        let sql = if query.is_some() { BY_WORDS } else { NEWEST };
        let found: Vec<(String, i64, String, String)> = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut lines| {
                lines
                    .query_map((query, agent.map(AgentId::as_str), limit), |row| {
                        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                    })?
                    .collect()
            })
            .map_err(|error| StoreError::sqlite(&self.path, error))?;
        found
            .into_iter()
            .map(|(agent, ts, kind, text)| {
                let kind = load::parse_kind(&self.path, &kind)?;
                Ok(LogHit { agent: AgentId(agent), entry: LogEntry { ts: ts.unsigned_abs(), kind, text } })
            })
            .collect()
    }

    /// A longer journal than wished harms nobody, so a failure is only noted; the next commit tries again.
    fn fold_journal(&mut self, now: EpochMs) {
        match journal::fold(&mut self.conn, &self.path, self.options.journal, now) {
            Ok(extent) => self.extent = extent,
            Err(error) => tracing::warn!(%error, "the journal could not be shortened"),
        }
    }
}

/// Makes the database beside its place and moves it there when it is whole: an empty or half-made file under the real
/// name is thus always damage, never a start.
fn create(dir: &Path, path: &Path) -> Result<(), StoreError> {
    let wal = dir.join(format!("{FILE_NAME}-wal"));
    if wal.exists() {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            what: format!("the file is gone, but {} is there", wal.display()),
        });
    }
    let draft = dir.join(format!("{FILE_NAME}.new"));
    for leftover in [draft.clone(), dir.join(format!("{FILE_NAME}.new-journal"))] {
        match fs::remove_file(&leftover) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&leftover, "removing a half-made database", error)),
        }
    }
    drop(place::private_file(&draft)?);
    let made = Connection::open_with_flags(&draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .and_then(|mut conn| {
            conn.pragma_update(None, "synchronous", "FULL")?;
            schema::migrate(&mut conn)?;
            conn.close().map_err(|(_, error)| error)
        });
    made.map_err(|error| StoreError::sqlite(&draft, error))?;
    fs::rename(&draft, path).map_err(|error| StoreError::io(path, "putting the new database in place", error))?;
    place::sync_directory(dir)
}

/// A checked connection; nothing is written yet.
fn connect(path: &Path, options: StoreOptions) -> Result<Connection, StoreError> {
    let fail = |error| StoreError::sqlite(path, error);
    let length = fs::metadata(path).map_err(|error| StoreError::io(path, "looking at the database", error))?.len();
    if length == 0 {
        return Err(StoreError::Damaged { path: path.to_owned(), what: "the file is empty".to_owned() });
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        place::narrow_file(Path::new(&name))?;
    }
    // Without SQLITE_OPEN_CREATE: a file that vanished is not made anew.
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(fail)?;
    conn.busy_timeout(Duration::from_millis(options.busy_timeout_ms)).map_err(fail)?;
    let (maker, found) = (schema::application_id(&conn).map_err(fail)?, schema::version(&conn).map_err(fail)?);
    if maker != schema::APPLICATION_ID {
        return Err(StoreError::NotOurs { path: path.to_owned() });
    }
    if found > schema::VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: schema::VERSION });
    }
    let health: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(fail)?;
    if health != "ok" {
        return Err(StoreError::Damaged { path: path.to_owned(), what: health });
    }
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fail)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::Network { path: path.to_owned(), kind: format!("journal mode {mode}") });
    }
    conn.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
    // Keeps the write-ahead log from staying as large as it ever was.
    conn.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024).map_err(fail)?;
    if let Some(pages) = options.max_pages {
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).map_err(fail)?;
    }
    Ok(conn)
}
