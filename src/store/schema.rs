//! Tables and their versions.

use rusqlite::{Connection, TransactionBehavior};

/// Marks the file as ours in its header: "ACtu".
pub(crate) const APPLICATION_ID: i32 = 0x4143_7475;

/// One step for each schema version, from the empty file on. A released step is never altered; a step that changes
/// the meaning of stored JSON also empties the journal and writes the base anew, since journal rows are not migrated.
const STEPS: &[&str] = &[
    // 1
    "
    CREATE TABLE meta (
        key   TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO meta VALUES ('profile_id', lower(hex(randomblob(8))));

    -- The newest value of everything that has an id; json is the change that put it there.
    CREATE TABLE entity (
        kind TEXT NOT NULL,
        id   TEXT NOT NULL,
        json TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;

    -- Effects that are wanted; a row goes when its result is in.
    CREATE TABLE effect (
        id   INTEGER PRIMARY KEY,
        json TEXT NOT NULL
    );

    CREATE TABLE log (
        seq   INTEGER PRIMARY KEY,
        agent TEXT NOT NULL,
        ts    INTEGER NOT NULL,
        kind  TEXT NOT NULL,
        text  TEXT NOT NULL
    );
    CREATE INDEX log_agent ON log (agent, seq);
    CREATE VIRTUAL TABLE log_text USING fts5 (
        text, content = 'log', content_rowid = 'seq', tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER log_added AFTER INSERT ON log BEGIN
        INSERT INTO log_text (rowid, text) VALUES (new.seq, new.text);
    END;

    CREATE TABLE feed (
        seq  INTEGER PRIMARY KEY,
        json TEXT NOT NULL
    );

    -- Every change after the base, one row a commit. fresh: first commit after the state was loaded.
    CREATE TABLE journal (
        seq     INTEGER PRIMARY KEY AUTOINCREMENT,
        at      INTEGER NOT NULL,
        fresh   INTEGER NOT NULL,
        changes TEXT NOT NULL
    );
    -- The state that the journal starts from, as changes of an empty one.
    CREATE TABLE base (
        only    INTEGER PRIMARY KEY CHECK (only = 1),
        seq     INTEGER NOT NULL,
        changes TEXT NOT NULL
    );
    INSERT INTO base VALUES (1, 0, '[]');
    ",
];

/// The newest version this program knows.
#[expect(clippy::cast_possible_wrap, reason = "a handful of steps")]
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// The version of an open database; 0 for an empty one.
pub(crate) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Who made an open database; 0 when nobody said.
pub(crate) fn application_id(conn: &Connection) -> rusqlite::Result<i32> {
    conn.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Brings a database to [`VERSION`], each step in a transaction of its own.
pub(crate) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    let mut done = version(conn)?;
    for step in STEPS.iter().skip(usize::try_from(done).unwrap_or(0)) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(step)?;
        done += 1;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", done)?;
        tx.commit()?;
    }
    Ok(())
}
