//! The connected clients: who hears broadcasts, and whose acks are still owed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::protocol::{Ack, ClientId, ServerMessage, Snapshot};
use crate::transport::{CloseReason, LinkKind, OutboxHandle, Outgoing};

/// The present view, for an embedded screen that fell behind; none when there is none to show.
pub(crate) type View<'a> = &'a dyn Fn() -> Option<Snapshot>;

/// Everybody connected, in the order of their coming.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    all: BTreeMap<ClientId, Client>,
}

#[derive(Debug)]
struct Client {
    kind: LinkKind,
    outbox: OutboxHandle,
    hears: Hears,
    /// Correlation ids of messages whose ack is owed; repeated ids are owed as often.
    owed: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hears {
    /// Not yet: no valid message came.
    Replies,
    Everything,
    /// It was just given a snapshot of the state after this burst: the rest of the burst's broadcasts is in it.
    NextBurst,
    /// It was too slow and is being closed.
    Nothing,
}

impl Clients {
    pub(crate) fn opened(&mut self, id: ClientId, kind: LinkKind, outbox: OutboxHandle) {
        self.all.insert(id, Client { kind, outbox, hears: Hears::Replies, owed: Vec::new() });
    }

    pub(crate) fn closed(&mut self, id: ClientId) {
        self.all.remove(&id);
    }

    /// A valid message came; its ack, if it wants one, is owed from now on.
    pub(crate) fn spoke(&mut self, id: ClientId, ack: Option<&str>) {
        if let (Some(client), Some(ack)) = (self.all.get_mut(&id), ack) {
            client.owed.push(ack.to_owned());
        }
    }

    /// The first valid message lets a client hear broadcasts.
    pub(crate) fn ready(&mut self, id: ClientId) {
        if let Some(client) = self.all.get_mut(&id)
            && client.hears == Hears::Replies
        {
            client.hears = Hears::Everything;
        }
    }

    /// Somebody hears broadcasts.
    pub(crate) fn anyone_hears(&self) -> bool {
        self.all.values().any(|client| client.hears == Hears::Everything)
    }

    /// To all that hear broadcasts; one encoding for all. `view` is for an embedded screen that fell behind.
    pub(crate) fn broadcast(&mut self, message: ServerMessage, view: View<'_>) {
        let message = Outgoing::new(message);
        for client in self.all.values_mut().filter(|client| client.hears == Hears::Everything) {
            client.push(Arc::clone(&message), view);
        }
    }

    /// To one client, if it is still there.
    pub(crate) fn reply(&mut self, to: ClientId, message: ServerMessage, view: View<'_>) {
        let Some(client) = self.all.get_mut(&to) else { return };
        if let ServerMessage::Ack(ack) = &message
            && let Some(at) = client.owed.iter().position(|owed| *owed == ack.re)
        {
            client.owed.remove(at);
        }
        client.push(Outgoing::new(message), view);
    }

    /// The burst is told.
    pub(crate) fn burst_over(&mut self) {
        for client in self.all.values_mut().filter(|client| client.hears == Hears::NextBurst) {
            client.hears = Hears::Everything;
        }
    }

    /// Every ack that is owed becomes a failed one.
    pub(crate) fn fail_all_owed(&mut self, reason: &str, view: View<'_>) {
        for client in self.all.values_mut() {
            for re in std::mem::take(&mut client.owed) {
                let ack = Ack { re, ok: false, error: Some(reason.to_owned()), result: None };
                client.push(Outgoing::new(ServerMessage::Ack(ack)), view);
            }
        }
    }

    /// A fresh view for all that hear broadcasts, after the state was loaded again.
    pub(crate) fn show_all(&mut self, view: &Snapshot) {
        if !self.anyone_hears() {
            return;
        }
        let message = Outgoing::new(ServerMessage::Snapshot(Box::new(view.clone())));
        for client in self.all.values_mut().filter(|client| client.hears == Hears::Everything) {
            client.push(Arc::clone(&message), &|| Some(view.clone()));
        }
        self.burst_over();
    }

    pub(crate) fn close_all(&mut self, reason: CloseReason) {
        for client in std::mem::take(&mut self.all).into_values() {
            client.outbox.close(reason);
        }
    }
}

impl Client {
    fn push(&mut self, message: Arc<Outgoing>, view: View<'_>) {
        if self.hears == Hears::Nothing || self.outbox.push(Arc::clone(&message)).is_ok() {
            return;
        }
        match self.kind {
            LinkKind::Embedded => {
                let Some(view) = view() else { return self.give_up() };
                self.outbox.resync(Outgoing::new(ServerMessage::Snapshot(Box::new(view))));
                self.hears = Hears::NextBurst;
                // The view holds what broadcasts tell, acks and errors are kept for after it; a diff is not.
                if matches!(message.message(), ServerMessage::Diff(_)) && self.outbox.push(message).is_err() {
                    self.give_up();
                }
            }
            LinkKind::Socket => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        self.outbox.close(CloseReason::Overflow);
        self.hears = Hears::Nothing;
    }
}
