//! Whole lives of the Foreman on the demo repository: through to the end, ended in order, and killed.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by them")]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentcraft_tui::engine::Engine;
use agentcraft_tui::engine::process::PROFILE_MARK;
use agentcraft_tui::engine::sim::{Sim, SimOptions, demo_goal, demo_repo};
use agentcraft_tui::foreman::{AutoAnswer, Settings};
use agentcraft_tui::protocol::{
    ClientEnvelope, ClientMessage, GoalStatus, GoalSubmit, Hello, ServerMessage, Snapshot, TaskStatus, WorktreeStatus,
};
use agentcraft_tui::runtime::profile::Profile;
use agentcraft_tui::runtime::{Ended, Handle, Runtime, RuntimeConfig};
use agentcraft_tui::transport::{Connection, Delivery, LinkKind};
use tokio::sync::watch;

/// Names the place of a life to the process that lives it.
const PLACE: &str = "AGENTCRAFT_TEST_PLACE";
/// Longest wait for a goal, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// Merges of the demo goal.
const MERGES: usize = 5;

/// Where a test's lives take place.
struct Place {
    root: PathBuf,
}

impl Place {
    fn new(root: PathBuf) -> Self {
        let bin = root.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(root.join("user")).unwrap();
        // No package registry in a test.
        std::fs::write(bin.join("npm"), "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(bin.join("npm"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { root }
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn demo(&self) -> PathBuf {
        self.home().join("sim/pocket-notes")
    }

    /// The environment of agents' commands: the machine's programs, a home of its own, nobody's git configuration.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut path = OsString::from(self.root.join("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        vec![
            ("PATH".into(), path),
            ("HOME".into(), self.root.join("user").into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ]
    }

    fn start(&self) -> Handle {
        self.start_with(None)
    }

    /// With a command that prepares each worktree of the demo repository.
    fn start_with(&self, setup: Option<String>) -> Handle {
        let (facts, seen) = watch::channel(Arc::default());
        let profile = Profile::claim(&self.home(), "sim").unwrap();
        let demo = profile.dir().join("pocket-notes");
        demo_repo::create(&demo).unwrap();
        let demo = std::fs::canonicalize(demo).unwrap();
        let engine = Engine::Sim(Arc::new(
            Sim::new(SimOptions {
                speed: 1000.0,
                seed: 1,
                showcase: None,
                ambient: false,
                scratch: profile.scratch(),
                env: self.environment(),
                facts: seen,
            })
            .unwrap(),
        ));
        let settings = Settings {
            setup: setup.map(|command| (demo.clone(), command)).into_iter().collect(),
            demo_repo: Some(demo.clone()),
            auto_answer: AutoAnswer { demo: true, delay_ms: 1, retry_ms: 50, ..AutoAnswer::default() },
            ..Settings::default()
        };
        Runtime::start(RuntimeConfig { profile, settings, engine, facts, repos: vec![demo], goal: None }).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.demo())
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What must be true when the goal is done, whatever happened on the way.
    fn check_end(&self, view: &Snapshot) {
        let goal = view.goal.as_ref().expect("a goal");
        assert_eq!(goal.status, GoalStatus::Done);
        for task in &view.tasks {
            assert!(matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled), "{task:?}");
        }
        let subjects = self.git(&["log", "--first-parent", "--merges", "--format=%s", "main"]);
        let mut merges: Vec<&str> = subjects.lines().collect();
        assert_eq!(merges.len(), MERGES, "{subjects}");
        merges.sort_unstable();
        merges.dedup();
        assert_eq!(merges.len(), MERGES, "nothing was merged twice:\n{subjects}");
        assert_eq!(self.git(&["status", "--porcelain"]), "", "the checkout is clean");
        self.git(&["fsck", "--no-dangling", "--strict"]);
        let merged = view.repos.iter().flat_map(|repo| &repo.worktrees);
        let merged = merged.filter(|worktree| worktree.status == WorktreeStatus::Merged).count();
        assert_eq!(merged, MERGES);
    }
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

struct Client {
    connection: Connection,
}

impl Client {
    /// Connects, and submits the goal if no life before it did.
    async fn new(handle: &Handle) -> Self {
        let connection = handle.connector().connect(LinkKind::Embedded).await.unwrap();
        let mut client = Self { connection };
        let mut view = client.view().await;
        while view.repos.is_empty() {
            client.next(Instant::now() + PATIENCE).await.expect("the repository");
            view = client.view().await;
        }
        if view.goal.is_none() {
            let goal = GoalSubmit { text: demo_goal().unwrap(), repo_id: None };
            let message = ClientMessage::GoalSubmit(goal);
            client.connection.send(ClientEnvelope { id: Some("goal".to_owned()), message }).await.unwrap();
            loop {
                match client.next(Instant::now() + PATIENCE).await.expect("an ack") {
                    ServerMessage::Ack(ack) => break assert!(ack.ok, "{ack:?}"),
                    _ => {}
                }
            }
        }
        client
    }

    async fn hello(&self) {
        let hello = Hello { mod_version: "1".to_owned(), protocol: 1, client: None };
        self.connection.send(ClientEnvelope { id: None, message: ClientMessage::Hello(hello) }).await.unwrap();
    }

    async fn next(&mut self, until: Instant) -> Option<ServerMessage> {
        let left = until.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left, self.connection.next()).await {
            Ok(Delivery::Message(message)) => Some(message.message().clone()),
            Ok(Delivery::Closed(why)) => panic!("closed: {why:?}"),
            Err(_) => None,
        }
    }

    async fn view(&mut self) -> Snapshot {
        self.hello().await;
        loop {
            if let ServerMessage::Snapshot(view) = self.next(Instant::now() + PATIENCE).await.expect("a view") {
                return *view;
            }
        }
    }

    /// Waits for the goal's end; panics with the view when it does not come.
    async fn goal_done(&mut self) -> Snapshot {
        let until = Instant::now() + PATIENCE;
        let is_done = |status| matches!(status, GoalStatus::Done | GoalStatus::Failed | GoalStatus::Cancelled);
        self.hello().await;
        loop {
            let done = match self.next(until).await {
                Some(ServerMessage::GoalUpsert { goal }) => is_done(goal.status),
                Some(ServerMessage::Snapshot(view)) => view.goal.is_some_and(|goal| is_done(goal.status)),
                Some(_) => false,
                None => panic!("the goal did not end:\n{}", sketch(&self.view().await)),
            };
            if done {
                return self.view().await;
            }
        }
    }
}

/// What stands where, for the one who looks into a failure.
fn sketch(view: &Snapshot) -> String {
    let tasks = view
        .tasks
        .iter()
        .map(|task| format!("{} {} {:?} {:?} {:?}", task.id, task.status, task.assignee, task.ci, task.blocked_reason));
    let agents = view
        .agents
        .iter()
        .map(|agent| format!("{} {} {} {:?} {}", agent.id, agent.state, agent.activity, agent.task_id, agent.active));
    let decisions = view
        .decisions
        .iter()
        .map(|decision| format!("{} {} {} {}", decision.id, decision.kind, decision.status, decision.question));
    let feed = view.feed.iter().map(|item| format!("{} {} {}", item.ts, item.kind, item.text));
    tasks.chain(agents).chain(decisions).chain(feed).collect::<Vec<_>>().join("\n")
}

/// From the goal to its end, answered by itself: plan, work, tests, reviews and merges through every room.
#[test]
fn the_demo_runs_to_its_end() {
    let temp = tempfile::tempdir().unwrap();
    let place = Place::new(temp.path().to_owned());
    tokio().block_on(async {
        let handle = place.start();
        let mut client = Client::new(&handle).await;
        let view = client.goal_done().await;
        place.check_end(&view);
        assert_eq!(handle.shutdown().await, Ended::Asked);
    });
}

/// Ended in order again and again in the middle of work, each start goes on, and the goal completes.
#[test]
fn lives_that_end_in_order_go_on() {
    let temp = tempfile::tempdir().unwrap();
    let place = Place::new(temp.path().to_owned());
    let mut random = fastrand::Rng::with_seed(11);
    tokio().block_on(async {
        for _ in 0..8 {
            let handle = place.start();
            let mut client = Client::new(&handle).await;
            let until = Instant::now() + Duration::from_millis(random.u64(50..900));
            while client.next(until).await.is_some() {}
            let begun = Instant::now();
            assert_eq!(handle.shutdown().await, Ended::Asked);
            eprintln!("shutdown took {:?}", begun.elapsed());
        }
        let handle = place.start();
        let view = Client::new(&handle).await.goal_done().await;
        place.check_end(&view);
        handle.shutdown().await;
    });
}

/// The person's setup command runs once in each new worktree, however many turns work in it.
#[test]
fn each_worktree_is_set_up_once() {
    let temp = tempfile::tempdir().unwrap();
    let place = Place::new(temp.path().to_owned());
    let told = place.root.join("set up");
    let setup = Some(format!("basename \"$PWD\" >> '{}'", told.display()));
    tokio().block_on(async {
        let handle = place.start_with(setup);
        Client::new(&handle).await.goal_done().await;
        handle.shutdown().await;
    });
    let lines = std::fs::read_to_string(&told).unwrap();
    let mut names: Vec<&str> = lines.lines().collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert!(count > MERGES && count == names.len(), "{lines}");
    assert!(names.contains(&"kit-t2"), "{lines}");
}

/// A setup that fails blocks its task, with the reason and what the person can do.
#[test]
fn a_failed_setup_blocks_the_task() {
    let temp = tempfile::tempdir().unwrap();
    let place = Place::new(temp.path().to_owned());
    tokio().block_on(async {
        let handle = place.start_with(Some("echo no such tool >&2; exit 3".to_owned()));
        let mut client = Client::new(&handle).await;
        let until = Instant::now() + PATIENCE;
        loop {
            let message = client.next(until).await.expect("a blocked task");
            if let ServerMessage::TaskUpsert { task } = message
                && let Some(reason) = &task.blocked_reason
                && task.status == TaskStatus::Blocked
                && reason.contains("exit 3")
            {
                assert!(reason.contains("exit code 3"), "{reason}");
                break;
            }
        }
        handle.shutdown().await;
    });
}

/// Not a test of its own: the process that the next one kills.
#[test]
fn liver() {
    let Some(root) = std::env::var_os(PLACE) else { return };
    let place = Place::new(root.into());
    let say = |line: &str| writeln!(std::io::stderr(), "{line}").unwrap();
    tokio().block_on(async {
        let handle = place.start();
        let mut client = Client::new(&handle).await;
        say("alive");
        let view = client.goal_done().await;
        say("done");
        place.check_end(&view);
        say("checked");
        handle.shutdown().await;
    });
}

fn life(root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "liver", "--nocapture", "--test-threads", "1"])
        .env(PLACE, root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Command lines of living processes that carry a profile's mark.
fn marked(profile_id: &str) -> Vec<String> {
    let mark = format!("{PROFILE_MARK}={profile_id}");
    let Ok(listing) = std::fs::read_dir("/proc") else { return Vec::new() };
    listing
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()).then_some(())?;
            Some(String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " "))
        })
        .collect()
}

/// Killed at twenty moments, each start goes on: nothing is merged twice, nothing half, and the goal completes.
#[test]
fn lives_that_are_killed_go_on() {
    let temp = tempfile::tempdir().unwrap();
    let place = Place::new(temp.path().to_owned());
    let mut random = fastrand::Rng::with_seed(5);
    let mut kills = 0;
    while kills < 20 {
        let mut child = life(&place.root);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let alive = lines.by_ref().map_while(Result::ok).any(|line| line == "alive");
        assert!(alive, "the life did not begin");
        std::thread::sleep(Duration::from_millis(random.u64(0..700)));
        child.kill().unwrap();
        child.wait().unwrap();
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        assert!(!rest.iter().any(|line| line.contains("panicked")), "{rest:#?}");
        kills += 1;
        if rest.iter().any(|line| line == "checked") {
            break;
        }
    }
    let mut child = life(&place.root);
    let lines: Vec<String> = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{}", lines.join("\n"));
    assert!(lines.iter().any(|line| line == "checked"), "{}", lines.join("\n"));
    assert!(kills > 5, "the demo was through after {kills} kills");
    let (store, _) = agentcraft_tui::store::Store::open(&place.home().join("sim")).unwrap();
    assert_eq!(marked(store.profile_id()), Vec::<String>::new(), "no process is left");
}
