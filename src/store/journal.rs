//! The journal: every change after a stored base state, so that a run can be replayed.
//!
//! Bounded by age and size: rows past the bound are folded into the base, which moves forward.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::rows::{as_column, changes_of};
use super::{StoreError, load};
use crate::foreman::change::Change;
use crate::foreman::state::State;
use crate::protocol::EpochMs;

/// How far the journal reaches back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBounds {
    /// Bytes of JSON from which on the older half is folded into the base.
    pub bytes: u64,
    /// Rows older than this, ms, are folded; looked at when the oldest is an eighth past it.
    pub age_ms: EpochMs,
}

impl Default for JournalBounds {
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, age_ms: 14 * 24 * 60 * 60 * 1000 }
    }
}

/// What the journal holds at present, kept so that a commit need not count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    bytes: u64,
    oldest: Option<EpochMs>,
}

impl Extent {
    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        conn.query_row("SELECT coalesce(sum(length(changes)), 0), min(at) FROM journal", [], |row| {
            Ok(Self { bytes: row.get::<_, i64>(0)?.unsigned_abs(), oldest: row.get::<_, Option<i64>>(1)?.map(as_ms) })
        })
    }

    pub(crate) fn grown(self, row: Row) -> Self {
        Self { bytes: self.bytes.saturating_add(row.bytes), oldest: Some(self.oldest.unwrap_or(row.at)) }
    }

    /// True when [`fold`] has something to do.
    pub(crate) fn is_past(self, bounds: JournalBounds, now: EpochMs) -> bool {
        let old = now.saturating_sub(bounds.age_ms.saturating_add(bounds.age_ms / 8));
        self.bytes > bounds.bytes || self.oldest.is_some_and(|oldest| oldest < old)
    }
}

/// A row just written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    at: EpochMs,
    bytes: u64,
}

/// What the first commit after a load tells: notes live in files, and are read anew by each life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Fresh,
    GoesOn,
}

pub(crate) fn append(tx: &Transaction<'_>, at: EpochMs, life: Life, encoded: &[String]) -> rusqlite::Result<Row> {
    let changes = format!("[{}]", encoded.join(","));
    tx.prepare_cached("INSERT INTO journal (at, fresh, changes) VALUES (?1, ?2, ?3)")?.execute(params![
        as_column(at),
        life == Life::Fresh,
        changes
    ])?;
    Ok(Row { at, bytes: changes.len() as u64 })
}

/// The state that base and journal tell.
pub(crate) fn replay(conn: &Connection, path: &Path) -> Result<State, StoreError> {
    let mut state = base(conn, path)?;
    fold_into(&mut state, conn, path, i64::MAX)?;
    Ok(state)
}

/// Moves the base forward over the rows past `bounds`. In a transaction of its own: the changes are safe already.
pub(crate) fn fold(
    conn: &mut Connection,
    path: &Path,
    bounds: JournalBounds,
    now: EpochMs,
) -> Result<Extent, StoreError> {
    let fail = |error| StoreError::sqlite(path, error);
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let by_age: i64 = tx
        .query_row(
            "SELECT coalesce(max(seq), 0) FROM journal WHERE at < ?1",
            [as_column(now.saturating_sub(bounds.age_ms))],
            |row| row.get(0),
        )
        .map_err(fail)?;
    // Newest first, what still fits in half the bound stays.
    let by_size: Option<i64> = tx
        .query_row(
            "SELECT seq FROM (SELECT seq, sum(length(changes)) OVER (ORDER BY seq DESC) AS held FROM journal)
             WHERE held > ?1 ORDER BY seq DESC LIMIT 1",
            [as_column(bounds.bytes / 2)],
            |row| row.get(0),
        )
        .optional()
        .map_err(fail)?;
    let upto = by_age.max(if Extent::read(&tx).map_err(fail)?.bytes > bounds.bytes { by_size.unwrap_or(0) } else { 0 });
    let mut state = base(&tx, path)?;
    fold_into(&mut state, &tx, path, upto)?;
    let changes = serde_json::to_string(&changes_of(&state))
        .map_err(|source| StoreError::Encode { what: "the journal's base".to_owned(), source })?;
    tx.execute("UPDATE base SET seq = max(seq, ?1), changes = ?2", params![upto, changes]).map_err(fail)?;
    tx.execute("DELETE FROM journal WHERE seq <= ?1", [upto]).map_err(fail)?;
    let extent = Extent::read(&tx).map_err(fail)?;
    tx.commit().map_err(fail)?;
    Ok(extent)
}

fn base(conn: &Connection, path: &Path) -> Result<State, StoreError> {
    let json: String = conn
        .query_row("SELECT changes FROM base", [], |row| row.get(0))
        .map_err(|error| StoreError::sqlite(path, error))?;
    let mut state = State::default();
    for change in load::parse::<Vec<Change>>(path, "the journal's base", &json)? {
        state.apply(&change);
    }
    Ok(state)
}

fn fold_into(state: &mut State, conn: &Connection, path: &Path, upto: i64) -> Result<(), StoreError> {
    let fail = |error| StoreError::sqlite(path, error);
    let mut rows =
        conn.prepare("SELECT seq, fresh, changes FROM journal WHERE seq <= ?1 ORDER BY seq").map_err(fail)?;
    let mut rows = rows.query([upto]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let (seq, fresh, json): (i64, bool, String) =
            (row.get(0).map_err(fail)?, row.get(1).map_err(fail)?, row.get(2).map_err(fail)?);
        if fresh {
            state.memory.clear();
        }
        for change in load::parse::<Vec<Change>>(path, &format!("journal row {seq}"), &json)? {
            state.apply(&change);
        }
    }
    Ok(())
}

fn as_ms(column: i64) -> EpochMs {
    column.unsigned_abs()
}
