use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::foreman::effect::{AgentIdentity, Effect, EffectId, RepoRef, WorktreeRef};
use crate::foreman::state::{
    AgentWork, Counter, GoalWork, Grant, LOG_KEPT, Message, RepoWork, Session, TaskWork, Turn, TurnPhase, Waiter,
};
use crate::policy::ScopeKey;
use crate::protocol::{
    Agent, AgentRole, AgentState, CiStatus, Color, Decision, DecisionId, DecisionKind, DecisionStatus, FeedItem,
    FeedKind, Goal, GoalId, GoalStatus, LogKind, MemoryEntry, MemoryId, Notify, NotifyLevel, Repo, RepoId, Station,
    Task, TaskId, TaskStatus, WorktreeId,
};
use crate::turn::{Cause, Job, TurnId};

/// Makes up changes of every kind about few subjects, so that they meet each other.
struct Dice {
    random: fastrand::Rng,
    now: EpochMs,
    effects: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), now: 1_700_000_000_000, effects: 0 }
    }

    fn text(&mut self) -> String {
        let words = ["naïve", "parser", "it's", "\"quoted\"", "two\nlines", "", "日本", "tab\there", "nul\0nul"];
        (0..self.random.usize(0..5)).map(|_| words[self.random.usize(0..words.len())]).collect::<Vec<_>>().join(" ")
    }

    fn agent(&mut self) -> AgentId {
        AgentId::from(["marlow", "kit", "wren"][self.random.usize(0..3)])
    }

    fn task_id(&mut self) -> TaskId {
        TaskId::nth(self.random.u64(1..12))
    }

    fn task(&mut self) -> Task {
        Task {
            id: self.task_id(),
            title: self.text(),
            description: self.random.bool().then(|| "d".to_owned()),
            status: TaskStatus::ALL[self.random.usize(0..TaskStatus::ALL.len())],
            assignee: self.random.bool().then(|| AgentId::from("kit")),
            deps: vec![TaskId::nth(1)],
            repo_id: None,
            goal_id: Some(GoalId::nth(1)),
            priority: self.random.i64(-3..3),
            branch: None,
            worktree: None,
            ci: CiStatus::Unknown,
            blocked_reason: None,
            summary: None,
            created_by: "user".to_owned(),
            created_at: self.now,
            updated_at: self.now,
        }
    }

    fn memory(&mut self) -> MemoryEntry {
        MemoryEntry {
            id: MemoryId(format!("shared/{}", self.random.u8(0..4))),
            scope: "shared".to_owned(),
            title: "t".to_owned(),
            body: self.text(),
            updated: self.now,
            author: None,
        }
    }

    fn effect(&mut self) -> Effect {
        Effect::Collect {
            repo: RepoRef { id: RepoId::from("demo"), path: PathBuf::from("/r/é x"), base: "main".to_owned() },
            worktree: WorktreeRef {
                id: WorktreeId::from("kit-t1"),
                agent: AgentId::from("kit"),
                task: TaskId::nth(1),
                dir: PathBuf::from("/w"),
                branch: "agentcraft/kit/t1".to_owned(),
                fork: "0".repeat(40),
                live: true,
            },
            message: self.text(),
            identity: AgentIdentity { name: "AgentCraft Kit".to_owned(), email: "kit@agentcraft.local".to_owned() },
        }
    }

    fn change(&mut self) -> Change {
        self.now += self.random.u64(1..1000);
        match self.random.u8(0..26) {
            0 => Change::Agent(Agent {
                id: self.agent(),
                name: "Kit".to_owned(),
                role: AgentRole::Worker,
                title: None,
                color: Color::try_from("#2FA3A0".to_owned()).unwrap(),
                accent: None,
                skin: "kit".to_owned(),
                state: AgentState::Idle,
                activity: self.text(),
                station: Station::Lounge,
                task_id: None,
                repo_id: None,
                worktree: None,
                paused: self.random.bool(),
                active: true,
            }),
            1 => Change::Task(self.task()),
            2 => Change::Decision(Decision {
                id: DecisionId::nth(self.random.u64(1..6)),
                agent_id: self.agent(),
                kind: DecisionKind::Question,
                question: self.text(),
                options: vec![self.text()],
                context: None,
                status: DecisionStatus::Open,
                answer: None,
                task_id: None,
                repo_id: None,
                worktree: None,
                tool: None,
                created_at: self.now,
            }),
            3 => Change::Repo(Repo {
                id: RepoId::from("demo"),
                name: "demo".to_owned(),
                path: "/r".to_owned(),
                branch: "main".to_owned(),
                head: None,
                dirty: self.random.bool(),
                worktrees: Vec::new(),
                ci: CiStatus::Unknown,
            }),
            4 => Change::Goal(Goal {
                id: GoalId::nth(self.random.u64(1..4)),
                text: self.text(),
                progress: [0.0, 0.25, 0.5, 1.0][self.random.usize(0..4)],
                status: GoalStatus::Active,
                repo_id: None,
                created_at: self.now,
                updated_at: self.now,
            }),
            5 => Change::Status(crate::protocol::ForemanStatus {
                message: Some(self.text()),
                cost_usd: Some(0.5),
                ..State::default().status
            }),
            6 => Change::Memory(self.memory()),
            7 => Change::MemoryGone(MemoryId(format!("shared/{}", self.random.u8(0..4)))),
            8 | 9 => Change::Feed(FeedItem {
                ts: self.now,
                kind: FeedKind::System,
                text: self.text(),
                agent_id: None,
                to: None,
            }),
            10..=13 => Change::Log {
                agent: self.agent(),
                entries: (0..self.random.usize(1..40))
                    .map(|_| LogEntry { ts: self.now, kind: LogKind::Tool, text: self.text() })
                    .collect(),
            },
            14 => {
                Change::Notify(Notify { level: NotifyLevel::Info, text: self.text(), decision_id: None, ts: self.now })
            }
            15 => Change::AgentWork(self.agent(), AgentWork { stopped: self.random.bool(), spawned: false }),
            16 => Change::TaskWork(
                self.task_id(),
                Box::new(TaskWork { diff: self.text(), nudges: self.random.u32(0..3), ..TaskWork::default() }),
            ),
            17 => Change::GoalWork(GoalId::nth(1), GoalWork { announced: true, ..GoalWork::default() }),
            18 => Change::RepoWork(RepoId::from("demo"), RepoWork { demo: true, ..RepoWork::default() }),
            19 => Change::Waiter(DecisionId::nth(self.random.u64(1..6)), Box::new(Waiter::Merge { head: self.text() })),
            20 if self.random.bool() => Change::WaiterGone(DecisionId::nth(self.random.u64(1..6))),
            20 => Change::DecisionGone(DecisionId::nth(self.random.u64(1..6))),
            21 => {
                let id = TurnId(self.random.u64(1..5));
                if self.random.bool() {
                    Change::TurnGone(id)
                } else {
                    Change::Turn(Box::new(Turn {
                        inbox: Vec::new(),
                        id,
                        agent: self.agent(),
                        job: Job::Work,
                        task: Some(self.task_id()),
                        goal: None,
                        cause: Cause::Start,
                        phase: TurnPhase::Wanted,
                        created_at: self.now,
                        not_before: None,
                        hops: 1,
                    }))
                }
            }
            22 => {
                self.effects += 1;
                Change::EffectWanted(EffectId(self.effects), Box::new(self.effect()))
            }
            23 => Change::EffectGone(EffectId(self.random.u64(0..=self.effects))),
            24 => {
                let number = self.random.u64(1..9);
                if self.random.u8(0..4) == 0 {
                    Change::MessageGone(number)
                } else {
                    Change::Message(Message {
                        number,
                        from: "user".to_owned(),
                        to: "all".to_owned(),
                        text: self.text(),
                        ts: self.now,
                        read_by: BTreeSet::from([self.agent()]),
                        hops: 0,
                    })
                }
            }
            _ => match self.random.u8(0..4) {
                0 => Change::Session("kit:t1".to_owned(), Session { turns: self.random.u32(..), ..Session::default() }),
                1 => Change::Grant(self.grant()),
                2 => Change::GrantGone(self.grant()),
                _ => Change::Counter(Counter::Effect, self.effects),
            },
        }
    }

    fn grant(&mut self) -> Grant {
        Grant {
            agent: self.agent(),
            repo: RepoId::from("demo"),
            key: ScopeKey(["npm test", "rm -r\nbuild"][self.random.usize(0..2)].to_owned()),
        }
    }

    fn burst(&mut self, most: usize) -> Vec<Change> {
        (0..self.random.usize(1..most)).map(|_| self.change()).collect()
    }
}

fn task(number: u64, title: &str) -> Change {
    let mut task = Dice::new(0).task();
    task.id = TaskId::nth(number);
    title.clone_into(&mut task.title);
    Change::Task(task)
}

fn log(agent: &str, text: &str) -> Change {
    Change::Log {
        agent: AgentId::from(agent),
        entries: vec![LogEntry { ts: 7, kind: LogKind::Result, text: text.to_owned() }],
    }
}

fn without_notes(state: &State) -> State {
    State { memory: BTreeMap::new(), ..state.clone() }
}

fn home() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("home/sim");
    (temp, dir)
}

/// Whatever was committed is there after the next start, without a clean close in between; base and journal tell the
/// same state, while the base moves forward.
#[test]
fn what_was_committed_is_loaded_and_replayed() {
    for seed in 0..12 {
        let (_temp, dir) = home();
        let bounds = JournalBounds { bytes: 60_000, age_ms: EpochMs::MAX / 4 };
        let options = StoreOptions { journal: bounds, ..StoreOptions::default() };
        let mut dice = Dice::new(seed);
        let mut model = State::default();
        let mut kept = Vec::new();
        for _life in 0..5 {
            let (mut store, loaded) = Store::open_with(&dir, options).unwrap();
            assert_eq!(loaded, without_notes(&model), "seed {seed}");
            model.memory.clear();
            for _ in 0..dice.random.usize(1..25) {
                let burst = dice.burst(20);
                store.commit(dice.now, &burst).unwrap();
                for change in &burst {
                    model.apply(change);
                }
            }
            assert_eq!(store.replay().unwrap(), model, "seed {seed}");
            // As after a kill: nothing of it is closed, the write-ahead log stays as it is.
            kept.push(store);
        }
        assert_eq!(kept[0].reload().unwrap(), without_notes(&model));
        let first: i64 = kept[0].conn.query_row("SELECT min(seq) FROM journal", [], |row| row.get(0)).unwrap();
        assert!(first > 1, "seed {seed}: the base has moved");
    }
}

/// Old rows are folded into the base, whatever their size.
#[test]
fn the_journal_forgets_by_age() {
    let (_temp, dir) = home();
    let bounds = JournalBounds { bytes: u64::MAX / 4, age_ms: 1000 };
    let (mut store, _) = Store::open_with(&dir, StoreOptions { journal: bounds, ..StoreOptions::default() }).unwrap();
    for now in [10_000, 10_900, 11_100] {
        store.commit(now, &[task(now, "x")]).unwrap();
    }
    let rows =
        |store: &Store| -> i64 { store.conn.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap() };
    assert_eq!(rows(&store), 3);
    store.commit(11_200, &[task(1, "y")]).unwrap();
    assert_eq!(rows(&store), 3, "the first is older than a second, the others are not");
    let (_, loaded) = Store::open(&dir).unwrap();
    assert_eq!(store.replay().unwrap(), loaded);
}

/// A store that failed in the middle of a burst has none of it.
#[test]
fn a_full_disk_stores_nothing_of_the_burst_and_recovers() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    store.commit(1, &[task(1, "kept")]).unwrap();
    let pages: u32 = store.conn.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let cap = |store: &Store, pages: u32| {
        store.conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    cap(&store, pages + 2);
    let big: Vec<Change> = (2..40).map(|number| task(number, &"x".repeat(2000))).collect();
    let error = store.commit(2, &big).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(error.is_passing() && error.to_string().contains("disk is full"), "{error}");
    assert_eq!(store.reload().unwrap().tasks.keys().cloned().collect::<Vec<_>>(), [TaskId::nth(1)]);
    cap(&store, pages + 2);
    assert!(store.commit(3, &big).is_err(), "still full");
    assert!(matches!(store.probe(), Err(StoreError::Full { .. })));
    cap(&store, u32::MAX >> 1);
    store.probe().unwrap();
    store.commit(4, &big).unwrap();
    assert_eq!(store.reload().unwrap().tasks.len(), 39);
}

#[test]
fn home_and_database_are_for_the_person_alone() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    store.commit(1, &[task(1, "x")]).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(dir.parent().unwrap()), 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(store);
    fs::set_permissions(dir.join(FILE_NAME), fs::Permissions::from_mode(0o644)).unwrap();
    let _store = Store::open(&dir).unwrap();
    assert_eq!(mode(&dir.join(FILE_NAME)), 0o600);
}

/// Opening fails, says what `words` say, and leaves every byte as it was.
#[track_caller]
fn refused(dir: &Path, words: &str) -> StoreError {
    let path = dir.join(FILE_NAME);
    let before = fs::read(&path).ok();
    let error = Store::open(dir).unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    assert!(error.to_string().contains(FILE_NAME), "{error}");
    assert_eq!(fs::read(&path).ok(), before, "the file was touched");
    error
}

#[test]
fn a_newer_database_is_left_alone() {
    let (_temp, dir) = home();
    let (store, _) = Store::open(&dir).unwrap();
    store.conn.pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
    drop(store);
    let error = refused(&dir, "newer version");
    assert!(matches!(error, StoreError::Newer { found, .. } if found == schema::VERSION + 1));
}

#[test]
fn a_damaged_database_is_kept_and_reported() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    let many: Vec<Change> = (1..200).map(|number| task(number, &"x".repeat(300))).collect();
    store.commit(1, &many).unwrap();
    drop(store);
    let path = dir.join(FILE_NAME);
    let whole = fs::read(&path).unwrap();

    fs::write(&path, b"this is no database, but it is long enough to be looked at by somebody").unwrap();
    refused(&dir, "damaged");
    fs::write(&path, b"").unwrap();
    refused(&dir, "damaged (the file is empty)");
    let mut torn = whole.clone();
    for byte in &mut torn[8192..40_000] {
        *byte = 0xa5;
    }
    fs::write(&path, &torn).unwrap();
    refused(&dir, "damaged");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&dir, "damaged");

    fs::remove_file(&path).unwrap();
    fs::write(dir.join(format!("{FILE_NAME}-wal")), b"what is left").unwrap();
    refused(&dir, "damaged (the file is gone");
    fs::remove_file(dir.join(format!("{FILE_NAME}-wal"))).unwrap();

    fs::write(&path, &whole).unwrap();
    assert_eq!(Store::open(&dir).unwrap().1.tasks.len(), 199);
}

/// A row that does not read is damage too, not a default.
#[test]
fn an_unreadable_row_is_damage() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    store.commit(1, &[task(1, "x")]).unwrap();
    store.conn.execute("UPDATE entity SET json = '{\"Task\":{}}'", []).unwrap();
    drop(store);
    refused(&dir, "a row of table entity does not read");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let (_temp, dir) = home();
    fs::create_dir_all(&dir).unwrap();
    let other = Connection::open(dir.join(FILE_NAME)).unwrap();
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(other);
    refused(&dir, "another program");
}

/// Somebody's `sqlite3` session holds the write lock: the commit fails in words, and works once they are through.
#[test]
fn a_lock_of_another_program_is_said() {
    let (_temp, dir) = home();
    let (mut store, _) =
        Store::open_with(&dir, StoreOptions { busy_timeout_ms: 1, ..StoreOptions::default() }).unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.commit(1, &[task(1, "x")]).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert!(matches!(store.probe(), Err(StoreError::Busy { .. })));
    assert_eq!(store.reload().unwrap(), State::default(), "reading needs no lock");
    other.execute_batch("ROLLBACK").unwrap();
    store.commit(1, &[task(1, "x")]).unwrap();
}

/// A number that JSON cannot hold would only be noticed at the next start; it is refused before anything is written.
#[test]
fn what_would_not_read_back_is_not_written() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    let mut status = State::default().status;
    status.version = "x".to_owned();
    let session = Session { cost_usd: f64::NAN, ..Session::default() };
    let error = store.commit(1, &[Change::Status(status), Change::Session("kit:t1".to_owned(), session)]).unwrap_err();
    assert!(error.to_string().contains("session kit:t1"), "{error}");
    assert!(!error.is_passing());
    assert_eq!(store.reload().unwrap(), State::default());
}

#[test]
fn the_profile_id_is_made_once_and_is_its_own() {
    let (_temp, dir) = home();
    let first = Store::open(&dir).unwrap().0.profile_id().to_owned();
    assert_eq!(first.len(), 16);
    assert_eq!(Store::open(&dir).unwrap().0.profile_id(), first);
    assert_ne!(Store::open(&dir.with_file_name("other")).unwrap().0.profile_id(), first);
}

/// All log lines stay searchable, the newest 200 of each agent are in the state.
#[test]
fn logs_are_kept_whole_and_found_by_their_words() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    store.commit(1, &[log("kit", "The naïve parser_test failed")]).unwrap();
    for number in 0..LOG_KEPT + 5 {
        store.commit(2, &[log("kit", &format!("line {number}")), log("wren", "cargo build")]).unwrap();
    }
    let (_, state) = Store::open(&dir).unwrap();
    assert_eq!(state.logs[&AgentId::from("kit")].len(), LOG_KEPT);
    assert_eq!(state.logs[&AgentId::from("kit")][0].text, "line 5");

    let found = |words: &str, agent: Option<&str>| -> Vec<String> {
        let agent = agent.map(AgentId::from);
        store.search_logs(words, agent.as_ref(), 3).unwrap().into_iter().map(|hit| hit.entry.text).collect()
    };
    assert_eq!(found("naive pars", None), ["The naïve parser_test failed"]);
    assert_eq!(found("parser_test", Some("kit")), ["The naïve parser_test failed"]);
    assert_eq!(found("parser", Some("wren")), Vec::<String>::new());
    assert_eq!(found("", Some("kit")), ["line 204", "line 203", "line 202"]);
    for hostile in ["\"", "a AND", "NEAR(", "*", "text:x", "--", "^"] {
        found(hostile, None);
    }
}

/// The row of an entity that did not change is not written again.
#[test]
fn equal_values_write_no_row() {
    let (_temp, dir) = home();
    let (mut store, _) = Store::open(&dir).unwrap();
    store.conn.execute_batch("CREATE TEMP TABLE seen (n); CREATE TEMP TRIGGER watch AFTER UPDATE ON main.entity BEGIN INSERT INTO seen VALUES (1); END").unwrap();
    let writes =
        |store: &Store| -> i64 { store.conn.query_row("SELECT count(*) FROM seen", [], |row| row.get(0)).unwrap() };
    store.commit(1, &[task(1, "a")]).unwrap();
    store.commit(2, &[task(1, "a")]).unwrap();
    assert_eq!(writes(&store), 0);
    store.commit(3, &[task(1, "b"), task(1, "c")]).unwrap();
    assert_eq!(writes(&store), 1);
}
