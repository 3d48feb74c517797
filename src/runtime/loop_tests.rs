use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::JoinHandle;

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::foreman::{Foreman, Settings};
use crate::protocol::{Ack, DiffRequest, Hello, RepoAdd, Snapshot, UserMessage};
use crate::runtime::inbox::{Senders, inbox};
use crate::store::{FILE_NAME, StoreOptions};
use crate::transport::{Connection, Connector, Delivery, LinkKind};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// The real core, but some words make it panic, and a timer may be stuck.
struct Touchy {
    inner: Foreman,
    ticks: Arc<Mutex<u32>>,
    stuck_timer: bool,
}

impl Core for Touchy {
    fn handle(&mut self, now: EpochMs, input: Input) -> Vec<Output> {
        match &input {
            Input::Client { envelope: ClientEnvelope { message: ClientMessage::UserMessage(message), .. }, .. }
                if message.text == "boom" =>
            {
                // Half done, as a panic leaves it.
                self.inner.handle(now, input);
                panic!("the words were too much");
            }
            Input::Tick => *self.ticks.lock().unwrap() += 1,
            _ => {}
        }
        self.inner.handle(now, input)
    }

    fn next_wakeup(&self) -> Option<EpochMs> {
        if self.stuck_timer { Some(1) } else { self.inner.next_wakeup() }
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn state(&self) -> &State {
        self.inner.state()
    }
}

#[derive(Clone, Default)]
struct Make {
    ticks: Arc<Mutex<u32>>,
    stuck_timer: bool,
}

impl MakeCore for Make {
    type Core = Touchy;

    fn make(&self, state: State) -> Touchy {
        Touchy {
            inner: Foreman::new(Settings::default(), state),
            ticks: Arc::clone(&self.ticks),
            stuck_timer: self.stuck_timer,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Seen {
    observed: u32,
    stopped: u32,
    cancelled: u32,
    started: Vec<Effect>,
}

struct TestShell {
    words: mpsc::Sender<Word>,
    seen: Arc<Mutex<Seen>>,
    /// The test says itself when the world was looked at.
    slow: bool,
}

impl Shell for TestShell {
    fn start(&mut self, _id: EffectId, effect: Effect) {
        self.seen.lock().unwrap().started.push(effect);
    }

    fn effect_ended(&mut self, _id: EffectId) {}

    fn turn_ended(&mut self, _turn: TurnId) {}

    fn turns_running(&self) -> usize {
        0
    }

    fn effects_running(&self) -> usize {
        0
    }

    fn stop_turns(&mut self) {
        self.seen.lock().unwrap().stopped += 1;
    }

    fn cancel(&mut self) {
        self.seen.lock().unwrap().cancelled += 1;
    }

    fn observe(&mut self, _state: &State) {
        self.seen.lock().unwrap().observed += 1;
        if !self.slow {
            self.words.try_send(Word::Memory(Vec::new())).unwrap();
            self.words.try_send(Word::Observed(World::default())).unwrap();
        }
    }
}

struct Rig {
    _temp: TempDir,
    dir: PathBuf,
    connector: Connector,
    senders: Senders,
    seen: Arc<Mutex<Seen>>,
    make: Make,
    thread: JoinHandle<Ended>,
    facts: watch::Receiver<Arc<Facts>>,
}

#[derive(Clone, Copy, Default)]
struct RigOptions {
    store: StoreOptions,
    slow: bool,
    stuck_timer: bool,
    outbox_bytes: Option<usize>,
}

impl Rig {
    fn new(options: RigOptions) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("sim");
        let (store, state) = Store::open_with(&dir, options.store).unwrap();
        let (senders, inbox) = inbox();
        let (facts, facts_seen) = watch::channel(Arc::default());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let make = Make { stuck_timer: options.stuck_timer, ..Make::default() };
        let shell = TestShell { words: senders.words.clone(), seen: Arc::clone(&seen), slow: options.slow };
        let parts = Parts { store, make: make.clone(), shell, inbox, facts };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async move { Loop::new(parts, state).run().await })
        });
        let connector = match options.outbox_bytes {
            Some(bytes) => Connector::with_outbox_bytes(senders.clients.clone(), bytes),
            None => Connector::new(senders.clients.clone()),
        };
        Self { _temp: temp, dir, connector, senders, seen, make, thread, facts: facts_seen }
    }

    async fn client(&self) -> Client {
        Client { connection: self.connector.connect(LinkKind::Socket).await.unwrap(), heard: Vec::new() }
    }

    /// The feed as another reader of the database sees it.
    fn stored_feed(&self) -> Vec<String> {
        stored_feed(&self.dir)
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    fn end(self) -> Ended {
        self.senders.words.try_send(Word::Shutdown).unwrap();
        self.thread.join().unwrap()
    }
}

fn stored_feed(dir: &Path) -> Vec<String> {
    Store::open(dir).unwrap().1.feed.iter().map(|item| item.text.clone()).collect()
}

struct Client {
    connection: Connection,
    /// Everything that came, in order.
    heard: Vec<ServerMessage>,
}

impl Client {
    async fn send(&self, id: &str, message: ClientMessage) {
        self.connection.send(ClientEnvelope { id: Some(id.to_owned()), message }).await.unwrap();
    }

    async fn say(&self, id: &str, text: &str) {
        self.send(id, ClientMessage::UserMessage(UserMessage { to: "all".to_owned(), text: text.to_owned() })).await;
    }

    async fn hello(&mut self) -> Ack {
        let hello = Hello { mod_version: "1".to_owned(), protocol: 1, client: None };
        self.send("hello", ClientMessage::Hello(hello)).await;
        self.ack("hello").await
    }

    async fn next(&mut self) -> Option<ServerMessage> {
        match tokio::time::timeout(PATIENCE, self.connection.next()).await.expect("something to be heard") {
            Delivery::Message(message) => {
                self.heard.push(message.message().clone());
                Some(message.message().clone())
            }
            Delivery::Closed(_) => None,
        }
    }

    async fn ack(&mut self, id: &str) -> Ack {
        self.until(|message| match message {
            ServerMessage::Ack(ack) if ack.re == id => Some(ack.clone()),
            _ => None,
        })
        .await
    }

    async fn until<T>(&mut self, wanted: impl Fn(&ServerMessage) -> Option<T>) -> T {
        loop {
            let message = self.next().await.expect("the connection to stay open");
            if let Some(found) = wanted(&message) {
                return found;
            }
        }
    }

    fn feed(&self) -> Vec<String> {
        self.heard
            .iter()
            .filter_map(|message| match message {
                ServerMessage::FeedAdd { item } => Some(item.text.clone()),
                _ => None,
            })
            .collect()
    }

    fn snapshots(&self) -> usize {
        self.heard.iter().filter(|message| matches!(message, ServerMessage::Snapshot(_))).count()
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
}

/// When the ack is heard, the change was heard before it and is on disk.
#[test]
fn an_ack_follows_its_change_which_is_stored() {
    run(async {
        let rig = Rig::new(RigOptions::default());
        let mut client = rig.client().await;
        assert!(client.hello().await.ok);
        for number in 0..5 {
            let text = format!("good morning {number}");
            client.say("c", &text).await;
            assert!(client.ack("c").await.ok);
            assert!(client.feed().iter().any(|line| line.contains(&text)), "{:?}", client.feed());
            assert!(rig.stored_feed().iter().any(|line| line.contains(&text)));
        }
        assert_eq!(rig.end(), Ended::Asked);
    });
}

/// Before its first valid message a client hears nothing; one that is no hello lets it in without a snapshot.
#[test]
fn broadcasts_begin_with_the_first_valid_message() {
    run(async {
        let rig = Rig::new(RigOptions::default());
        let mut silent = rig.client().await;
        let mut loud = rig.client().await;
        loud.say("a", "first").await;
        assert!(loud.ack("a").await.ok);
        assert_eq!(loud.snapshots(), 0);
        silent.say("b", "second").await;
        silent.ack("b").await;
        assert!(!silent.feed().iter().any(|line| line.contains("first")), "{:?}", silent.feed());
        assert!(silent.feed().iter().any(|line| line.contains("second")));
        assert!(silent.hello().await.ok);
        assert_eq!(silent.snapshots(), 1);
        rig.end();
    });
}

/// Whoever comes before the look at the world waits for one true snapshot.
#[test]
fn early_clients_wait_for_the_look_at_the_world() {
    run(async {
        let rig = Rig::new(RigOptions { slow: true, ..RigOptions::default() });
        let mut client = rig.client().await;
        let waited = tokio::time::timeout(Duration::from_millis(100), client.hello()).await;
        assert!(waited.is_err(), "answered before the world was looked at");
        let world = World { unknown: vec!["/somewhere/left".to_owned()], ..World::default() };
        rig.senders.words.send(Word::Observed(world)).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(100), client.next()).await;
        assert!(waited.is_err(), "answered before the notes were read");
        rig.senders.words.send(Word::Memory(Vec::new())).await.unwrap();
        let feed = client
            .until(|message| match message {
                ServerMessage::Snapshot(view) => Some(view.feed.clone()),
                _ => None,
            })
            .await;
        assert!(feed.iter().any(|item| item.text.contains("/somewhere/left")), "{feed:?}");
        rig.end();
    });
}

/// The input that made the core panic is set aside with a failed ack and a feed line; what came before it in the same
/// burst is stored and told, what came after it is served after the start-over, and nobody's ack stays owed.
#[test]
fn a_panic_of_the_core_costs_one_input() {
    run(async {
        let rig = Rig::new(RigOptions::default());
        let mut client = rig.client().await;
        let mut bystander = rig.client().await;
        client.hello().await;
        bystander.hello().await;
        // Answered by an effect that never ends here.
        let repo = ClientMessage::RepoAdd(RepoAdd { path: "/x".to_owned() });
        bystander.send("waiting", repo).await;
        client.say("a", "before").await;
        client.say("b", "boom").await;
        client.say("c", "after").await;
        assert!(client.ack("a").await.ok);
        let failed = client.ack("b").await;
        assert!(!failed.ok);
        let words = failed.error.unwrap();
        assert!(words.contains("user.message") && words.contains("the words were too much"), "{words}");
        assert!(client.ack("c").await.ok);
        assert!(!bystander.ack("waiting").await.ok);

        let stored = rig.stored_feed();
        let find = |text: &str| stored.iter().any(|line| line.contains(text));
        assert!(find("before") && find("after") && find("was set aside"), "{stored:?}");
        assert!(!find("boom"), "nothing of it is stored: {stored:?}");
        assert_eq!(client.snapshots(), 2, "a fresh view after the start-over");
        assert_eq!((rig.seen().observed, rig.seen().stopped), (2, 1));
        assert_eq!(rig.end(), Ended::Asked);
    });
}

/// A client's message that makes the core fail, again and again, does not end the team.
#[test]
fn a_client_cannot_end_the_team_by_panics() {
    run(async {
        let rig = Rig::new(RigOptions::default());
        let mut client = rig.client().await;
        for _ in 0..PANICS * 2 {
            client.say("b", "boom").await;
            assert!(!client.ack("b").await.ok);
        }
        client.say("a", "still there").await;
        assert!(client.ack("a").await.ok);
        rig.end();
    });
}

/// While nothing can be stored, every intent fails in words, nothing of it is told or stored, a look is possible; and
/// when the cause is gone the Foreman goes on by itself.
#[test]
fn a_failed_commit_is_never_an_ack() {
    run(async {
        let store = StoreOptions { busy_timeout_ms: 1, ..StoreOptions::default() };
        let rig = Rig::new(RigOptions { store, ..RigOptions::default() });
        let mut client = rig.client().await;
        let mut bystander = rig.client().await;
        client.hello().await;
        bystander.hello().await;
        client.say("a", "stored").await;
        assert!(client.ack("a").await.ok);

        let other = rusqlite::Connection::open(rig.dir.join(FILE_NAME)).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        client.say("b", "lost one").await;
        let failed = client.ack("b").await;
        assert!(!failed.ok && failed.error.as_deref().unwrap().contains("another program holds the database"));
        client.say("c", "lost two").await;
        let failed = client.ack("c").await;
        assert!(!failed.ok && failed.error.as_deref().unwrap().contains("stopped accepting"), "{failed:?}");
        let mut late = rig.client().await;
        assert!(late.hello().await.ok);
        let banner = late.heard.iter().find_map(|message| match message {
            ServerMessage::Snapshot(view) => view.foreman.message.clone(),
            _ => None,
        });
        assert!(banner.unwrap().contains("stopped accepting"));
        bystander
            .until(|message| match message {
                ServerMessage::Notify(notify) => notify.text.contains("stopped accepting").then_some(()),
                _ => None,
            })
            .await;

        other.execute_batch("ROLLBACK").unwrap();
        let accepted = async {
            loop {
                client.say("d", "found again").await;
                if client.ack("d").await.ok {
                    break;
                }
            }
        };
        tokio::time::timeout(PATIENCE, accepted).await.expect("the Foreman to go on");
        bystander.until(|message| matches!(message, ServerMessage::Snapshot(_)).then_some(())).await;
        for feed in [rig.stored_feed(), bystander.feed()] {
            assert!(!feed.iter().any(|line| line.contains("lost")), "{feed:?}");
        }
        rig.end();
    });
}

/// On a disk that fills up, exactly what was acked is stored.
#[test]
fn on_a_full_disk_acked_is_stored() {
    run(async {
        let store = StoreOptions { max_pages: Some(60), ..StoreOptions::default() };
        let rig = Rig::new(RigOptions { store, ..RigOptions::default() });
        let mut client = rig.client().await;
        client.hello().await;
        let mut acked = Vec::new();
        let mut refused = 0;
        for number in 0..200 {
            client.say("m", &format!("number {number}. {}", "x".repeat(380))).await;
            let ack = client.ack("m").await;
            if ack.ok {
                acked.push(number);
            } else {
                refused += 1;
                assert!(ack.error.unwrap().contains("disk is full"));
            }
            if refused == 3 {
                break;
            }
        }
        assert!(!acked.is_empty() && refused == 3, "{acked:?}");
        let stored = rig.stored_feed();
        for number in 0..=acked.len() + 2 {
            let there = stored.iter().any(|line| line.contains(&format!("number {number}. ")));
            assert_eq!(there, acked.contains(&number), "number {number}");
        }
        rig.end();
    });
}

/// A timer that stays due is asked again after a pause, not in a spin.
#[test]
fn a_stuck_timer_does_not_spin() {
    run(async {
        let rig = Rig::new(RigOptions { stuck_timer: true, ..RigOptions::default() });
        let mut client = rig.client().await;
        for number in 0..50 {
            client.say("m", &number.to_string()).await;
            client.ack("m").await;
        }
        let ticks = *rig.make.ticks.lock().unwrap();
        assert!((1..=10).contains(&ticks), "{ticks}");
        rig.end();
    });
}

/// A screen that does not read gets one fresh view instead of what it missed, without a line twice; a socket is closed;
/// nobody waits for them.
#[test]
fn slow_readers_are_made_whole_or_closed() {
    run(async {
        let rig = Rig::new(RigOptions { outbox_bytes: Some(40_000), ..RigOptions::default() });
        let mut screen =
            Client { connection: rig.connector.connect(LinkKind::Embedded).await.unwrap(), heard: Vec::new() };
        let mut socket = rig.client().await;
        let mut writer = rig.client().await;
        screen.hello().await;
        socket.hello().await;
        screen.say("mine", "from the screen").await;
        for number in 0..200 {
            writer.say("w", &format!("number {number}. {}", "x".repeat(300))).await;
            assert!(writer.ack("w").await.ok);
        }
        let mut feed: Vec<String> = Vec::new();
        let mut acked = false;
        while !acked || !feed.iter().any(|line| line.contains("number 199.")) {
            match screen.next().await.unwrap() {
                ServerMessage::Snapshot(view) => feed = view.feed.iter().map(|item| item.text.clone()).collect(),
                ServerMessage::FeedAdd { item } => feed.push(item.text),
                ServerMessage::Ack(ack) => acked |= ack.re == "mine" && ack.ok,
                _ => {}
            }
        }
        for number in 0..200 {
            let times = feed.iter().filter(|line| line.contains(&format!("number {number}."))).count();
            assert!(times <= 1 && (number < 100 || times == 1), "number {number}: {times} times");
        }
        assert!(screen.snapshots() >= 2);
        while socket.next().await.is_some() {}
        rig.end();
    });
}

/// What the engines' scripts wait on follows the state.
#[test]
fn facts_follow_the_state() {
    run(async {
        let rig = Rig::new(RigOptions::default());
        let mut facts = rig.facts.clone();
        let named = tokio::time::timeout(PATIENCE, facts.wait_for(|facts| facts.agents.len() == 6)).await;
        assert!(named.is_ok(), "the roster is known");
        rig.end();
    });
}

/// At the end everybody is told so, and intents of the last moment fail in words.
#[test]
fn shutdown_closes_every_connection() {
    run(async {
        let rig = Rig::new(RigOptions::default());
        let mut client = rig.client().await;
        client.hello().await;
        let request = DiffRequest { request_id: "r".to_owned(), repo_id: "x".into(), worktree: "y".into(), path: None };
        client.send("d", ClientMessage::DiffRequest(request)).await;
        client.ack("d").await;
        let seen = Arc::clone(&rig.seen);
        assert_eq!(rig.end(), Ended::Asked);
        while client.next().await.is_some() {}
        assert_eq!(seen.lock().unwrap().cancelled, 1);
    });
}

/// A lane that is always full does not hold up the others.
#[test]
fn lanes_are_served_in_turn() {
    let (senders, mut inbox) = inbox();
    for turn in 0..100 {
        let report = crate::engine::TurnReport { turn: TurnId(turn), event: TurnEvent::Touched };
        senders.turns.try_send(report).unwrap();
    }
    senders.clients.try_send(ClientEvent::Closed { client: ClientId(1) }).unwrap();
    senders.words.try_send(Word::Shutdown).unwrap();
    let first: Vec<Item> = std::iter::from_fn(|| inbox.try_next(Doors::Open)).take(4).collect();
    assert!(first.iter().any(|item| matches!(item, Item::Client(_))), "{first:?}");
    assert!(first.iter().any(|item| matches!(item, Item::Word(_))), "{first:?}");
    senders.clients.try_send(ClientEvent::Closed { client: ClientId(1) }).unwrap();
    let rest: Vec<Item> = std::iter::from_fn(|| inbox.try_next(Doors::Closed)).collect();
    assert!(!rest.iter().any(|item| matches!(item, Item::Client(_))));
}
