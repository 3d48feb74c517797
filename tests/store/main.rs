//! The database against the loss of its process.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by them")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agentcraft_tui::foreman::change::Change;
use agentcraft_tui::foreman::state::{Counter, State};
use agentcraft_tui::protocol::{AgentId, LogEntry, LogKind};
use agentcraft_tui::store::Store;

/// Names the directory of the store to the writing process.
const STORE: &str = "AGENTCRAFT_TEST_STORE";

/// One burst: a counter and the log line that tells it, which must never be apart.
fn burst(number: u64) -> [Change; 2] {
    let text = format!("{number} {}", "x".repeat(usize::try_from(number % 7).unwrap() * 300));
    let entries = vec![LogEntry { ts: number, kind: LogKind::Text, text }];
    [Change::Counter(Counter::Effect, number), Change::Log { agent: AgentId::from("kit"), entries }]
}

fn last(state: &State) -> u64 {
    state.counters.get(&Counter::Effect).copied().unwrap_or(0)
}

/// Not a test of its own: the process that the next one kills. Writes until then, and says each number once it is
/// stored.
#[test]
fn writer() {
    let Some(dir) = std::env::var_os(STORE) else { return };
    let (mut store, state) = Store::open(Path::new(&dir)).unwrap();
    let mut number = last(&state);
    loop {
        number += 1;
        store.commit(number, &burst(number)).unwrap();
        // The test harness captures `println!`.
        writeln!(std::io::stderr(), "stored {number}").unwrap();
    }
}

fn write_and_kill(dir: &PathBuf, after: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture", "--test-threads", "1"])
        .env(STORE, dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = 0;
    let mut told = 0;
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while told < after {
        let line = lines.next().expect("the writer ended by itself").unwrap();
        if let Some(number) = line.strip_prefix("stored ") {
            said = number.parse().unwrap();
            told += 1;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        if let Some(Ok(number)) = line.strip_prefix("stored ").map(str::parse) {
            said = number;
        }
    }
    said
}

/// Whatever moment the process is killed at: all that was said to be stored is there, at most the burst under way is
/// added to it, and no burst is there in part.
#[test]
fn a_killed_process_loses_nothing_it_told() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("sim");
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..8 {
        let said = write_and_kill(&dir, random.u64(1..60));
        let (store, state) = Store::open(&dir).unwrap();
        let found = last(&state);
        assert!(found == said || found == said + 1, "said {said}, found {found}");
        let told = state.logs[&AgentId::from("kit")].back().unwrap();
        assert_eq!(told.ts, found, "counter and log line belong together");
        assert_eq!(store.replay().unwrap(), state);
    }
}
