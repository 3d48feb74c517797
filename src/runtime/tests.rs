use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::profile::{Profile, ProfileError, find_running};
use super::*;
use crate::engine::sim::{Sim, SimOptions};
use crate::protocol::{
    Ack, ClientEnvelope, ClientMessage, Hello, MemoryId, RepoAdd, ServerMessage, Snapshot, UserMessage,
};
use crate::transport::{CloseReason, Connection, Delivery, LinkKind};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

fn engine(home: &Path, facts: watch::Receiver<Arc<Facts>>) -> Engine {
    let options = SimOptions {
        speed: 1000.0,
        seed: 1,
        showcase: None,
        ambient: false,
        scratch: home.join("sim/scratch"),
        env: std::env::vars_os().chain([("GIT_CONFIG_GLOBAL".into(), "/dev/null".into())]).collect(),
        facts,
    };
    Engine::Sim(Arc::new(Sim::new(options).unwrap()))
}

fn start(home: &Path) -> Handle {
    start_with(home, Vec::new())
}

fn start_with(home: &Path, repos: Vec<PathBuf>) -> Handle {
    let (facts, seen) = watch::channel(Arc::default());
    let profile = Profile::claim(home, "sim").unwrap();
    let config =
        RuntimeConfig { profile, settings: Settings::default(), engine: engine(home, seen), facts, repos, goal: None };
    Runtime::start(config).unwrap()
}

struct Client {
    connection: Connection,
}

impl Client {
    async fn new(handle: &Handle) -> (Self, Snapshot) {
        let mut client = Self { connection: handle.connector().connect(LinkKind::Embedded).await.unwrap() };
        let hello = Hello { mod_version: "1".to_owned(), protocol: 1, client: None };
        client.send("hello", ClientMessage::Hello(hello)).await;
        let view = client
            .until(|message| match message {
                ServerMessage::Snapshot(view) => Some((**view).clone()),
                _ => None,
            })
            .await;
        (client, view)
    }

    async fn send(&self, id: &str, message: ClientMessage) {
        self.connection.send(ClientEnvelope { id: Some(id.to_owned()), message }).await.unwrap();
    }

    async fn until<T>(&mut self, wanted: impl Fn(&ServerMessage) -> Option<T>) -> T {
        loop {
            match tokio::time::timeout(PATIENCE, self.connection.next()).await.expect("something to be heard") {
                Delivery::Message(message) => {
                    if let Some(found) = wanted(message.message()) {
                        return found;
                    }
                }
                Delivery::Closed(why) => panic!("closed: {why:?}"),
            }
        }
    }

    async fn ack(&mut self, id: &str) -> Ack {
        self.until(|message| match message {
            ServerMessage::Ack(ack) if ack.re == id => Some(ack.clone()),
            _ => None,
        })
        .await
    }

    async fn closed(&mut self) -> CloseReason {
        loop {
            if let Delivery::Closed(why) = tokio::time::timeout(PATIENCE, self.connection.next()).await.expect("an end")
            {
                return why;
            }
        }
    }
}

fn temp() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let home = temp.path().join("home");
    (temp, home)
}

/// A life: found by its run file, owner of its profile, ended in order; the next life goes on from what was stored.
#[test]
fn a_life_from_start_to_end_and_the_next() {
    run(async {
        let (_temp, home) = temp();
        let handle = start(&home);
        handle.publish(4711, BackendName::Sim).unwrap();
        assert_eq!(find_running(&home, Some("sim")).unwrap().port, 4711);
        assert!(matches!(Profile::claim(&home, "sim"), Err(ProfileError::Busy { owner: Some(_), .. })));
        let (mut client, view) = Client::new(&handle).await;
        assert_eq!(view.agents.len(), 6);
        let message = UserMessage { to: "all".to_owned(), text: "remember me".to_owned() };
        client.send("m", ClientMessage::UserMessage(message)).await;
        assert!(client.ack("m").await.ok);
        assert_eq!(handle.shutdown().await, Ended::Asked);
        assert_eq!(client.closed().await, CloseReason::Shutdown);
        assert_eq!(find_running(&home, None), None);

        let handle = start(&home);
        let (_client, view) = Client::new(&handle).await;
        assert!(view.feed.iter().any(|item| item.text.contains("remember me")));
        assert_eq!(handle.shutdown().await, Ended::Asked);
    });
}

/// A note written by hand while the Foreman runs reaches every client.
#[test]
fn a_note_by_hand_appears_on_the_screen() {
    run(async {
        let (_temp, home) = temp();
        let handle = start(&home);
        let (mut client, view) = Client::new(&handle).await;
        assert!(view.memory.is_empty());
        std::fs::write(home.join("sim/memory/shared/idea.md"), "# An idea\n\ntext\n").unwrap();
        let entry = client
            .until(|message| match message {
                ServerMessage::MemoryUpsert { entry } => Some(entry.clone()),
                _ => None,
            })
            .await;
        assert_eq!((entry.id, entry.title.as_str()), (MemoryId::from("shared/idea"), "An idea"));
        handle.shutdown().await;
    });
}

/// A repository of the command line that cannot be connected does not keep the Foreman from running.
#[test]
fn a_repository_that_is_none_is_refused_in_words() {
    run(async {
        let (_temp, home) = temp();
        let handle = start_with(&home, vec![home.join("nowhere")]);
        let (mut client, _) = Client::new(&handle).await;
        let path = home.join("nowhere").display().to_string();
        client.send("r", ClientMessage::RepoAdd(RepoAdd { path })).await;
        let ack = client.ack("r").await;
        assert!(!ack.ok && ack.error.is_some());
        handle.shutdown().await;
    });
}

/// What cannot be opened is said, and the profile is free again.
#[test]
fn a_damaged_database_keeps_the_foreman_from_starting() {
    run(async {
        let (_temp, home) = temp();
        let handle = start(&home);
        handle.shutdown().await;
        let path = home.join("sim").join(crate::store::FILE_NAME);
        std::fs::write(&path, "no database any more").unwrap();
        let (facts, seen) = watch::channel(Arc::default());
        let profile = Profile::claim(&home, "sim").unwrap();
        let config = RuntimeConfig {
            profile,
            settings: Settings::default(),
            engine: engine(&home, seen),
            facts,
            repos: Vec::new(),
            goal: None,
        };
        let Err(error) = Runtime::start(config) else { panic!("it started") };
        assert!(error.to_string().contains("damaged"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no database any more");
        Profile::claim(&home, "sim").unwrap();
    });
}
