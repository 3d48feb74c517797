//! A core as small as the wire needs: a snapshot for each hello, an ack for everything, a broadcast for some.

use std::collections::BTreeMap;
use std::time::Duration;

use agentcraft_tui::protocol::{
    Ack, AuthStatus, BackendName, ClientId, ClientMessage, Diff, DiffStats, FeedItem, FeedKind, ForemanStatus,
    ServerMessage, Snapshot,
};
use agentcraft_tui::server::{ServerConfig, bind};
use agentcraft_tui::transport::{ClientEvent, CloseReason, Connector, LinkKind, OUTBOX_BYTES, OutboxHandle, Outgoing};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::peer::within;

/// A running server with its core.
pub(crate) struct Core {
    pub(crate) port: u16,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<()>,
    broadcasts: mpsc::Sender<ServerMessage>,
    /// How many clients the core knows.
    clients: watch::Receiver<usize>,
}

impl Core {
    pub(crate) async fn start() -> Self {
        Self::with(config(), OUTBOX_BYTES).await
    }

    pub(crate) async fn with(config: ServerConfig, outbox_bytes: usize) -> Self {
        let (inbox, events) = mpsc::channel(64);
        let (broadcasts, to_all) = mpsc::channel(64);
        let (told, clients) = watch::channel(0);
        tokio::spawn(run(events, to_all, told));
        let stop = CancellationToken::new();
        let bound = bind(config).await.unwrap();
        let port = bound.port();
        let served = bound.serve(Connector::with_outbox_bytes(inbox, outbox_bytes), stop.clone());
        Self { port, stop, served, broadcasts, clients }
    }

    /// Tells everyone who said hello.
    pub(crate) async fn broadcast(&self, text: &str) {
        self.broadcasts.send(feed(text)).await.unwrap();
    }

    /// How many clients the core knows now.
    pub(crate) fn knows_now(&self) -> usize {
        *self.clients.borrow()
    }

    /// Waits until the core knows exactly so many clients.
    pub(crate) async fn knows(&mut self, count: usize) {
        within(&format!("{count} clients"), self.clients.wait_for(|known| *known == count)).await.unwrap();
    }
}

/// The usual limits, on any free port.
pub(crate) fn config() -> ServerConfig {
    ServerConfig::on_port(0)
}

/// As [`config`], with times that a test can wait for.
pub(crate) fn quick() -> ServerConfig {
    ServerConfig { ping_interval: Duration::from_millis(50), handshake_timeout: Duration::from_millis(300), ..config() }
}

struct Client {
    outbox: OutboxHandle,
    greeted: bool,
}

async fn run(
    mut events: mpsc::Receiver<ClientEvent>,
    mut to_all: mpsc::Receiver<ServerMessage>,
    told: watch::Sender<usize>,
) {
    let mut clients: BTreeMap<ClientId, Client> = BTreeMap::new();
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(ClientEvent::Opened { client, kind, outbox }) => {
                    assert_eq!(kind, LinkKind::Socket);
                    assert!(clients.insert(client, Client { outbox, greeted: false }).is_none());
                }
                Some(ClientEvent::Closed { client }) => assert!(clients.remove(&client).is_some()),
                Some(ClientEvent::Message { client, envelope }) => {
                    let broadcast = matches!(envelope.message, ClientMessage::UserMessage(_));
                    let known = clients.get_mut(&client).unwrap();
                    known.greeted = true;
                    if broadcast {
                        tell(&clients, feed("somebody said something"));
                    }
                    answer(&clients[&client].outbox, envelope.id, envelope.message);
                }
                None => return,
            },
            Some(message) = to_all.recv() => tell(&clients, message),
        }
        told.send_replace(clients.len());
    }
}

fn tell(clients: &BTreeMap<ClientId, Client>, message: ServerMessage) {
    let message = Outgoing::new(message);
    for client in clients.values().filter(|client| client.greeted) {
        if client.outbox.push(message.clone()).is_err() {
            client.outbox.close(CloseReason::Overflow);
        }
    }
}

fn answer(outbox: &OutboxHandle, id: Option<String>, message: ClientMessage) {
    let reply = match message {
        ClientMessage::Hello(_) => Some(ServerMessage::Snapshot(Box::new(snapshot()))),
        ClientMessage::DiffRequest(request) => Some(ServerMessage::Diff(Box::new(Diff {
            request_id: request.request_id,
            repo_id: request.repo_id,
            worktree: request.worktree,
            base: None,
            branch: None,
            files: Vec::new(),
            stats: DiffStats::default(),
            truncated: false,
            error: Some("no such worktree".to_owned()),
        }))),
        ClientMessage::GoalSubmit(_)
        | ClientMessage::UserMessage(_)
        | ClientMessage::DecisionAnswer(_)
        | ClientMessage::TaskAction(_)
        | ClientMessage::AgentAction(_)
        | ClientMessage::RepoAdd(_) => None,
    };
    let ack = id.map(|re| ServerMessage::Ack(Ack { re, ok: true, error: None, result: None }));
    for message in reply.into_iter().chain(ack) {
        if outbox.push(Outgoing::new(message)).is_err() {
            outbox.close(CloseReason::Overflow);
        }
    }
}

fn feed(text: &str) -> ServerMessage {
    ServerMessage::FeedAdd {
        item: FeedItem { ts: 1, kind: FeedKind::System, text: text.to_owned(), agent_id: None, to: None },
    }
}

fn snapshot() -> Snapshot {
    Snapshot {
        foreman: ForemanStatus {
            version: "test".to_owned(),
            backend: BackendName::Sim,
            auth: AuthStatus::Ok,
            message: None,
            account: None,
            speed: None,
            showcase: None,
            cost_usd: None,
            user_name: None,
        },
        agents: Vec::new(),
        tasks: Vec::new(),
        decisions: Vec::new(),
        repos: Vec::new(),
        memory: Vec::new(),
        goal: None,
        goals: Vec::new(),
        feed: Vec::new(),
        logs: Vec::new(),
    }
}
