use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::*;
use crate::client::sample;
use crate::protocol::{Ack, GoalSubmit, decode_client, encode_server};
use crate::transport::{ClientEvent, Outgoing};

fn goal() -> ClientMessage {
    ClientMessage::GoalSubmit(GoalSubmit { text: "Add it".to_owned(), repo_id: None })
}

fn ack(re: &str) -> ServerMessage {
    ServerMessage::Ack(Ack { re: re.to_owned(), ok: true, error: None, result: None })
}

fn snapshot() -> ServerMessage {
    ServerMessage::Snapshot(Box::new(sample::snapshot()))
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

type Socket = WebSocketStream<tokio::net::TcpStream>;

/// Accepts one client and reads its hello.
async fn greet(listener: &TcpListener) -> Socket {
    let (stream, _) = listener.accept().await.expect("a client");
    let mut socket = accept_async(stream).await.expect("a handshake");
    let hello = read(&mut socket).await;
    assert!(hello.id.is_none() && matches!(hello.message, ClientMessage::Hello(_)), "{hello:?}");
    socket
}

async fn read(socket: &mut Socket) -> ClientEnvelope {
    let text = socket.next().await.expect("a message").expect("a whole one").into_text().expect("text");
    decode_client(text.as_str()).expect("valid")
}

async fn write(socket: &mut Socket, message: &ServerMessage) {
    socket.send(Message::text(encode_server(message))).await.expect("sent");
}

/// Over a socket: hello, snapshot, a numbered request and its ack; after a loss the link comes back by itself, with
/// a new snapshot and numbers that go on.
#[tokio::test]
async fn remote_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let mut link = remote(port, "test");
    assert_eq!(link.send(goal()).await, Err(LinkClosed::Down), "not before the snapshot");
    let mut socket = soon(greet(&listener)).await;
    write(&mut socket, &ack("stray")).await;
    write(&mut socket, &snapshot()).await;
    assert_eq!(soon(link.next()).await, LinkEvent::Up(Box::new(sample::snapshot())), "nothing comes before it");
    assert_eq!(link.send(goal()).await.as_deref(), Ok("c1"));
    let asked = soon(read(&mut socket)).await;
    assert_eq!((asked.id.as_deref(), asked.message), (Some("c1"), goal()));
    socket.send(Message::text("{\"v\":1,\"type\":\"later\"}")).await.expect("sent");
    write(&mut socket, &ack("c1")).await;
    assert_eq!(soon(link.next()).await, LinkEvent::Message(ack("c1")), "unknown messages are passed over");

    drop(socket);
    let down = soon(link.next()).await;
    assert!(matches!(down, LinkEvent::Down { retry_in_ms: FIRST_RETRY_MS, .. }), "{down:?}");
    assert_eq!(link.send(goal()).await, Err(LinkClosed::Down));
    let mut socket = soon(greet(&listener)).await;
    write(&mut socket, &snapshot()).await;
    assert!(matches!(soon(link.next()).await, LinkEvent::Up(_)));
    assert_eq!(link.send(goal()).await.as_deref(), Ok("c2"));
    assert_eq!(soon(read(&mut socket)).await.id.as_deref(), Some("c2"));
}

/// While nobody listens the pauses double, up to the longest; each failure names the port.
#[tokio::test]
async fn pauses_double() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its number").port();
    drop(listener);
    let mut link = remote(port, "test");
    for expected in [250, 500] {
        let LinkEvent::Down { retry_in_ms, why } = soon(link.next()).await else { panic!("nobody listens") };
        assert_eq!(retry_in_ms, expected);
        assert!(why.contains(&port.to_string()), "{why}");
    }
    let pauses: Vec<u64> = std::iter::successors(Some(FIRST_RETRY_MS), |pause| Some(longer(*pause))).take(7).collect();
    assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
}

/// In this process: the same events, and a fresh snapshot in between is reported as such.
#[tokio::test]
async fn embedded_is_the_same() {
    let (inbox, mut events) = mpsc::channel(8);
    let mut link = embedded(Connector::new(inbox), "test");
    let next = tokio::spawn(async move {
        let up = link.next().await;
        (link, up)
    });
    let Some(ClientEvent::Opened { outbox, .. }) = soon(events.recv()).await else { panic!("no connection") };
    let Some(ClientEvent::Message { envelope, .. }) = soon(events.recv()).await else { panic!("no hello") };
    assert!(matches!(envelope.message, ClientMessage::Hello(_)));
    outbox.push(Outgoing::new(snapshot())).expect("room");
    let (mut link, up) = soon(next).await.expect("no panic");
    assert!(matches!(up, LinkEvent::Up(_)));
    assert_eq!(link.send(goal()).await.as_deref(), Ok("c1"));
    let Some(ClientEvent::Message { envelope, .. }) = soon(events.recv()).await else { panic!("no request") };
    assert_eq!(envelope.id.as_deref(), Some("c1"));
    outbox.push(Outgoing::new(ack("c1"))).expect("room");
    assert_eq!(soon(link.next()).await, LinkEvent::Message(ack("c1")));
    outbox.resync(Outgoing::new(snapshot()));
    assert!(matches!(soon(link.next()).await, LinkEvent::Up(_)));

    drop(outbox);
    drop(events);
    assert!(matches!(soon(link.next()).await, LinkEvent::Ended { .. }), "the Foreman is gone for good");
    assert!(matches!(soon(link.next()).await, LinkEvent::Ended { .. }), "and stays so");
    assert_eq!(link.send(goal()).await, Err(LinkClosed::Ended));
}

/// A link can be ended from elsewhere, also while it waits to come back.
#[tokio::test]
async fn closer_ends_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its number").port();
    drop(listener);
    let mut link = remote(port, "test");
    assert!(matches!(soon(link.next()).await, LinkEvent::Down { .. }));
    link.closer().close();
    loop {
        match soon(link.next()).await {
            LinkEvent::Down { .. } => {}
            LinkEvent::Ended { .. } => break,
            other => panic!("{other:?}"),
        }
    }
}
