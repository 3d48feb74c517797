//! Reading the whole state from the rows.

use std::path::Path;

use rusqlite::Connection;
use serde::de::DeserializeOwned;

use super::StoreError;
use super::rows::as_column;
use crate::foreman::change::Change;
use crate::foreman::state::{FEED_KEPT, LOG_KEPT, State};
use crate::protocol::{AgentId, LogEntry, LogKind};

/// The state that the rows tell. Notes are not among them.
pub(crate) fn load(conn: &Connection, path: &Path) -> Result<State, StoreError> {
    let mut state = State::default();
    apply_rows(&mut state, conn, path, "entity", "SELECT json FROM entity ORDER BY kind, id")?;
    apply_rows(&mut state, conn, path, "effect", "SELECT json FROM effect ORDER BY id")?;
    let feed =
        format!("SELECT json FROM (SELECT seq, json FROM feed ORDER BY seq DESC LIMIT {FEED_KEPT}) ORDER BY seq");
    apply_rows(&mut state, conn, path, "feed", &feed)?;
    for agent in agents(conn).map_err(|error| StoreError::sqlite(path, error))? {
        let entries = tail(conn, path, &agent)?;
        state.apply(&Change::Log { agent: AgentId(agent), entries });
    }
    Ok(state)
}

/// JSON of a row that this program wrote once; anything else is damage.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, what: &str, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json)
        .map_err(|error| StoreError::Damaged { path: path.to_owned(), what: format!("{what} does not read: {error}") })
}

pub(crate) fn parse_kind(path: &Path, word: &str) -> Result<LogKind, StoreError> {
    LogKind::ALL.iter().copied().find(|kind| kind.as_str() == word).ok_or_else(|| StoreError::Damaged {
        path: path.to_owned(),
        what: format!("a log line of the unknown kind {word:?}"),
    })
}

fn apply_rows(state: &mut State, conn: &Connection, path: &Path, table: &str, sql: &str) -> Result<(), StoreError> {
    let fail = |error| StoreError::sqlite(path, error);
    let mut rows = conn.prepare(sql).map_err(fail)?;
    let mut rows = rows.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let json: String = row.get(0).map_err(fail)?;
        state.apply(&parse::<Change>(path, &format!("a row of table {table}"), &json)?);
    }
    Ok(())
}

/// Whoever has log lines: one step of the index for each.
fn agents(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    conn.prepare(
        "WITH RECURSIVE each (agent) AS (
             SELECT min(agent) FROM log
             UNION ALL
             SELECT (SELECT min(agent) FROM log WHERE agent > each.agent) FROM each WHERE each.agent IS NOT NULL
         )
         SELECT agent FROM each WHERE agent IS NOT NULL",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}

fn tail(conn: &Connection, path: &Path, agent: &str) -> Result<Vec<LogEntry>, StoreError> {
    let rows = conn
        .prepare("SELECT ts, kind, text FROM log WHERE agent = ?1 ORDER BY seq DESC LIMIT ?2")
        .and_then(|mut newest| {
            newest
                .query_map((agent, as_column(LOG_KEPT as u64)), |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        })
        .map_err(|error| StoreError::sqlite(path, error))?;
    rows.into_iter()
        .rev()
        .map(|(ts, kind, text)| Ok(LogEntry { ts: ts.unsigned_abs(), kind: parse_kind(path, &kind)?, text }))
        .collect()
}
