//! What the command line asked for: repositories to connect and a goal, sent like any client's messages.

use std::path::PathBuf;

use crate::protocol::{
    Ack, ClientEnvelope, ClientMessage, GoalSubmit, Hello, PROTOCOL_VERSION, RepoAdd, RepoId, ServerMessage,
};
use crate::transport::{Connection, Connector, Delivery, LinkKind};

/// Connects the repositories in order, then submits the goal for the last one that could be connected. What fails is
/// logged; the Foreman runs on.
pub(crate) async fn submit(connector: Connector, repos: Vec<PathBuf>, goal: Option<String>) {
    let Ok(mut connection) = connector.connect(LinkKind::Embedded).await else { return };
    let hello = Hello {
        mod_version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL_VERSION,
        client: Some("start".to_owned()),
    };
    if ask(&mut connection, "hello", ClientMessage::Hello(hello)).await.is_none() {
        return;
    }
    let mut repo_id = None;
    for path in repos {
        let message = ClientMessage::RepoAdd(RepoAdd { path: path.to_string_lossy().into_owned() });
        let Some(ack) = ask(&mut connection, "repo", message).await else { return };
        if ack.ok {
            repo_id = ack.result.and_then(|result| Some(RepoId::from(result.get("repoId")?.as_str()?)));
        } else {
            let reason = ack.error.unwrap_or_default();
            tracing::error!(path = %path.display(), %reason, "the repository could not be connected");
        }
    }
    if let Some(text) = goal {
        let Some(ack) = ask(&mut connection, "goal", ClientMessage::GoalSubmit(GoalSubmit { text, repo_id })).await
        else {
            return;
        };
        if !ack.ok {
            tracing::error!(reason = ack.error.unwrap_or_default(), "the goal was refused");
        }
    }
}

/// Sends one message and waits for its ack; none when the Foreman has ended.
async fn ask(connection: &mut Connection, id: &str, message: ClientMessage) -> Option<Ack> {
    connection.send(ClientEnvelope { id: Some(id.to_owned()), message }).await.ok()?;
    loop {
        match connection.next().await {
            Delivery::Message(message) => {
                if let ServerMessage::Ack(ack) = message.message()
                    && ack.re == id
                {
                    return Some(ack.clone());
                }
            }
            Delivery::Closed(_) => return None,
        }
    }
}
