//! Stand-in until the wire room's own lands.
use crate::protocol::*;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify as Bell, mpsc};
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind { Embedded, Socket }
#[derive(Debug)]
pub enum ClientEvent {
    Opened { client: ClientId, kind: LinkKind, outbox: OutboxHandle },
    Message { client: ClientId, envelope: ClientEnvelope },
    Closed { client: ClientId },
}
#[derive(Clone, Debug)]
pub struct Connector { inbox: mpsc::Sender<ClientEvent>, next: Arc<std::sync::atomic::AtomicU64> }
#[derive(Debug)]
pub struct Gone;
impl Connector {
    pub fn new(inbox: mpsc::Sender<ClientEvent>) -> Self { Self { inbox, next: Arc::default() } }
    pub async fn connect(&self, kind: LinkKind) -> Result<Connection, Gone> {
        let client = ClientId(self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
        let outbox = OutboxHandle::default();
        self.inbox.send(ClientEvent::Opened { client, kind, outbox: outbox.clone() }).await.map_err(|_| Gone)?;
        Ok(Connection { client, inbox: self.inbox.clone(), outbox })
    }
}
#[derive(Debug)]
pub struct Connection { client: ClientId, inbox: mpsc::Sender<ClientEvent>, outbox: OutboxHandle }
impl Connection {
    pub fn id(&self) -> ClientId { self.client }
    pub async fn send(&self, envelope: ClientEnvelope) -> Result<(), Gone> {
        self.inbox.send(ClientEvent::Message { client: self.client, envelope }).await.map_err(|_| Gone)
    }
    pub async fn next(&mut self) -> Delivery {
        loop {
            let bell = self.outbox.bell.clone();
            let heard = bell.notified();
            {
                let mut inner = self.outbox.inner.lock().unwrap();
                if !inner.0.is_empty() { return Delivery::Message(inner.0.remove(0)); }
                if let Some(why) = inner.1 { return Delivery::Closed(why); }
            }
            heard.await;
        }
    }
}
#[derive(Debug)]
pub enum Delivery { Message(Arc<Outgoing>), Closed(CloseReason) }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason { Overflow, Shutdown }
#[derive(Debug)]
pub struct Outgoing(ServerMessage);
impl Outgoing {
    pub fn new(message: ServerMessage) -> Arc<Self> { Arc::new(Self(message)) }
    pub fn message(&self) -> &ServerMessage { &self.0 }
}
#[derive(Debug)]
pub struct Overflow;
#[derive(Clone, Debug, Default)]
pub struct OutboxHandle { inner: Arc<Mutex<(Vec<Arc<Outgoing>>, Option<CloseReason>)>>, bell: Arc<Bell> }
impl OutboxHandle {
    pub fn push(&self, message: Arc<Outgoing>) -> Result<(), Overflow> {
        let mut inner = self.inner.lock().unwrap();
        if inner.0.len() > 500 { return Err(Overflow); }
        inner.0.push(message);
        drop(inner);
        self.bell.notify_one();
        Ok(())
    }
    pub fn resync(&self, snapshot: Arc<Outgoing>) {
        let mut inner = self.inner.lock().unwrap();
        inner.0.clear();
        inner.0.push(snapshot);
        drop(inner);
        self.bell.notify_one();
    }
    pub fn close(&self, why: CloseReason) {
        self.inner.lock().unwrap().1 = Some(why);
        self.bell.notify_one();
    }
}
