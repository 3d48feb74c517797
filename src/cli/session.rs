//! A short conversation with a running Foreman, for verbs: connect, ask, hear the answer.

use std::time::Duration;

use tokio::time::Instant;

use super::error::CliError;
use crate::client::{Link, LinkEvent, Mirror, remote};
use crate::protocol::{Ack, ClientMessage, ServerMessage};

/// Longest wait for a Foreman that runs to greet.
const GREETING: Duration = Duration::from_secs(20);
/// Failed tries after which nobody listens there; a Foreman's port is open before anything else of it.
const TRIES: u32 = 4;
/// Longest wait for an ack: connecting a big repository takes a while.
const ACK: Duration = Duration::from_secs(120);

/// A conversation.
pub(super) struct Session {
    link: Link,
    pub(super) mirror: Mirror,
    port: u16,
}

/// Whether a Foreman is expected to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// It is: a few failures say that it is not.
    Running,
    /// It may still be started; wait until then.
    Until(Instant),
}

impl Session {
    /// Connects to the Foreman on this port.
    pub(super) async fn open(port: u16, patience: Patience) -> Result<Self, CliError> {
        Self::over(remote(port, "cli"), port, patience).await
    }

    /// Waits for the snapshot of a link.
    pub(super) async fn over(mut link: Link, port: u16, patience: Patience) -> Result<Self, CliError> {
        let deadline = match patience {
            Patience::Running => Instant::now() + GREETING,
            Patience::Until(deadline) => deadline,
        };
        let mut failed = 0;
        loop {
            let event = tokio::time::timeout_at(deadline, link.next()).await;
            match event {
                Ok(LinkEvent::Up(snapshot)) => {
                    return Ok(Self { link, mirror: Mirror::from_snapshot(*snapshot), port });
                }
                Ok(LinkEvent::Message(_)) => {}
                Ok(LinkEvent::Down { why, .. }) => {
                    failed += 1;
                    if patience == Patience::Running && failed >= TRIES {
                        return Err(CliError::Unreachable { port, why });
                    }
                }
                Ok(LinkEvent::Ended { why }) => return Err(CliError::Unreachable { port, why }),
                Err(_) => return Err(CliError::Unreachable { port, why: "no answer".to_owned() }),
            }
        }
    }

    /// The next message, folded into the mirror already. `None` after the deadline.
    pub(super) async fn next(&mut self, deadline: Instant) -> Result<Option<ServerMessage>, CliError> {
        match tokio::time::timeout_at(deadline, self.link.next()).await {
            Err(_) => Ok(None),
            Ok(LinkEvent::Message(message)) => {
                self.mirror.apply(&message);
                Ok(Some(message))
            }
            // Brought up to date at once: like any change.
            Ok(LinkEvent::Up(snapshot)) => {
                let message = ServerMessage::Snapshot(snapshot);
                self.mirror.apply(&message);
                Ok(Some(message))
            }
            Ok(LinkEvent::Down { why, .. }) => {
                Err(CliError::Unknown(format!("the connection to port {} was lost: {why}", self.port)))
            }
            Ok(LinkEvent::Ended { why }) => Err(CliError::Unknown(why)),
        }
    }

    /// Sends a request and waits for its ack; `beside` sees every message that comes first.
    pub(super) async fn ask(
        &mut self,
        message: ClientMessage,
        mut beside: impl FnMut(&ServerMessage),
    ) -> Result<Ack, CliError> {
        let id = self.link.send(message).await.map_err(|error| CliError::Unknown(error.to_string()))?;
        let deadline = Instant::now() + ACK;
        loop {
            match self.next(deadline).await? {
                None => return Err(CliError::Unknown(format!("no answer in {} s", ACK.as_secs()))),
                Some(ServerMessage::Ack(ack)) if ack.re == id => return Ok(ack),
                Some(other) => beside(&other),
            }
        }
    }

    /// As [`Session::ask`], for requests whose failure ends everything.
    pub(super) async fn must(&mut self, message: ClientMessage) -> Result<Ack, CliError> {
        let ack = self.ask(message, |_| {}).await?;
        if ack.ok { Ok(ack) } else { Err(CliError::Refused(refusal(&ack))) }
    }

    /// The link itself, for a screen.
    pub(super) fn into_link(self) -> Link {
        self.link
    }
}

/// Why a request was refused.
pub(super) fn refusal(ack: &Ack) -> String {
    ack.error.clone().unwrap_or_else(|| "the Foreman refused it without a reason".to_owned())
}

/// A value of an ack's result, as text.
pub(super) fn result<'a>(ack: &'a Ack, key: &str) -> Option<&'a str> {
    ack.result.as_ref()?.get(key)?.as_str()
}

/// Runs a verb's work on a small runtime.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::System { what: "a runtime", source })?
        .block_on(work)
}
