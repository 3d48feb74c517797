//! What clients of the field do, replayed from bytes.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::core::Core;
use crate::peer::{ACCEPTED, CLOSE, Frame, PING, PONG, Peer, TEXT, dial, frame, head, text, user_message};

/// The upgrade of the JDK's client, byte by byte; version 17 sends `Content-Length: 0` with its GET.
fn java_upgrade(port: u16, length: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nConnection: Upgrade\r\n{length}Host: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n\
         User-Agent: Java-http-client/17.0.9\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// Node's `ws`: offers compression and sends its headers in its own order.
fn node_upgrade(port: u16) -> String {
    format!(
        "GET / HTTP/1.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    )
}

/// Java insists on exactly one `Upgrade`, one `Connection: Upgrade`, no extension and no subprotocol; Node's offer of
/// compression is declined by silence.
#[tokio::test]
async fn upgrades_of_java_and_node_get_the_strict_answer() {
    let core = Core::start().await;
    for request in
        [java_upgrade(core.port, "Content-Length: 0\r\n"), java_upgrade(core.port, ""), node_upgrade(core.port)]
    {
        let mut stream = dial(core.port).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(head(&mut stream).await, ACCEPTED, "{request}");
        Peer::over(stream).works().await;
    }
}

/// The JDK's client connects again with the same key when a connection ended unanswered.
#[tokio::test]
async fn a_retry_with_the_same_key_is_a_new_client() {
    let core = Core::start().await;
    let mut first = dial(core.port).await;
    first.write_all(java_upgrade(core.port, "Content-Length: 0\r\n").as_bytes()).await.unwrap();
    drop(first);
    let mut second = dial(core.port).await;
    second.write_all(java_upgrade(core.port, "Content-Length: 0\r\n").as_bytes()).await.unwrap();
    assert_eq!(head(&mut second).await, ACCEPTED);
    Peer::over(second).works().await;
}

/// Java cuts texts over 16,384 bytes into continuation frames and answers pings between them.
#[tokio::test]
async fn fragments_with_control_frames_in_between_are_one_message() {
    let core = Core::start().await;
    let mut peer = Peer::greeted(core.port).await;
    let mut message = user_message("long");
    message["text"] = "ä".repeat(19_900).into();
    let message = message.to_string();
    let mut parts = message.as_bytes().chunks(16_384).peekable();
    let mut first = TEXT;
    while let Some(part) = parts.next() {
        let last = if parts.peek().is_none() { 0x80 } else { 0 };
        peer.send_bytes(&frame(last | first, part)).await;
        first = 0;
        if last == 0 {
            peer.send_bytes(&frame(0x80 | PING, b"between")).await;
            peer.send_bytes(&frame(0x80 | PONG, b"")).await;
        }
    }
    let (ack, _) = peer.ack("long").await;
    assert_eq!(ack["ok"], true);
}

/// A byte at a time, as a congested connection delivers it, with a character cut in two.
#[tokio::test]
async fn bytes_may_trickle_in() {
    let core = Core::start().await;
    let mut peer = Peer::greeted(core.port).await;
    let message = json!({"v": 1, "type": "user.message", "id": "slow", "to": "all", "text": "é 日本"}).to_string();
    for byte in text(&message) {
        peer.send_bytes(&[byte]).await;
        peer.stream.flush().await.unwrap();
    }
    assert_eq!(peer.ack("slow").await.0["ok"], true);
    for byte in message.replace("slow", "cut").as_bytes().chunks(1).enumerate() {
        let (at, part) = byte;
        peer.send_bytes(&frame(if at == 0 { TEXT } else { 0 }, part)).await;
    }
    peer.send_bytes(&frame(0x80, b"")).await;
    assert_eq!(peer.ack("cut").await.0["ok"], true);
}

/// A client that does not wait for the 101 loses nothing.
#[tokio::test]
async fn frames_sent_with_the_upgrade_are_heard() {
    let core = Core::start().await;
    let mut stream = dial(core.port).await;
    let mut bytes = java_upgrade(core.port, "").into_bytes();
    bytes.extend(text(&user_message("early").to_string()));
    stream.write_all(&bytes).await.unwrap();
    assert_eq!(head(&mut stream).await, ACCEPTED);
    assert_eq!(Peer::over(stream).ack("early").await.0["ok"], true);
}

/// A relay says hello again on the same connection, with fields nobody knows, and gets a whole snapshot each time.
#[tokio::test]
async fn hello_again_gives_a_snapshot_again() {
    let core = Core::start().await;
    let mut peer = Peer::greeted(core.port).await;
    for id in ["h2", "h3"] {
        peer.send(&json!({"v": 1, "type": "hello", "id": id, "modVersion": "relay", "protocol": 1, "token": null, "parts": [[1]]})).await;
        assert_eq!(peer.message().await["type"], "snapshot");
        assert_eq!(peer.message().await["re"], id);
    }
}

/// Correlation ids repeat across connections; an ack belongs to its own.
#[tokio::test]
async fn acks_belong_to_their_connection() {
    let core = Core::start().await;
    let (mut one, mut other) = (Peer::greeted(core.port).await, Peer::greeted(core.port).await);
    one.send(&user_message("c1")).await;
    one.ack("c1").await;
    other.send(&user_message("c2")).await;
    let (_, before) = other.ack("c2").await;
    assert!(before.iter().all(|message| message["type"] == "feed.add"), "{before:?}");
}

/// On failure first the `error`, then the failed `ack`; a binary frame has no id to ack.
#[tokio::test]
async fn failures_are_told_twice_and_in_order() {
    let core = Core::start().await;
    let mut peer = Peer::greeted(core.port).await;
    peer.send(&json!({"v": 1, "type": "goal.submit", "id": "c1", "text": " "})).await;
    assert_eq!(
        peer.message().await,
        json!({"v": 1, "type": "error", "message": "bad message: text: must not be blank", "re": "c1"})
    );
    assert_eq!(
        peer.message().await,
        json!({"v": 1, "type": "ack", "re": "c1", "ok": false, "error": "text: must not be blank"})
    );
    peer.send(&json!({"v": 1, "type": "goal.submit", "text": 7})).await;
    assert_eq!(
        peer.message().await,
        json!({"v": 1, "type": "error", "message": "bad message: text: expected a string, got 7"})
    );
    peer.send_bytes(&frame(0x82, b"\x00\x01")).await;
    assert_eq!(peer.message().await, json!({"v": 1, "type": "error", "message": "binary frames are not supported"}));
    peer.send_bytes(&text("not json")).await;
    let message = peer.message().await;
    assert!(message["message"].as_str().unwrap().starts_with("bad message: invalid JSON"), "{message}");
    assert_eq!(message.get("re"), None);
    peer.works().await;
}

/// A diff comes before its ack, which is ok even when the diff is an error.
#[tokio::test]
async fn a_diff_comes_before_its_ack() {
    let core = Core::start().await;
    let mut peer = Peer::greeted(core.port).await;
    peer.send(
        &json!({"v": 1, "type": "diff.request", "id": "c1", "requestId": "r1", "repoId": "demo", "worktree": "x"}),
    )
    .await;
    assert_eq!(peer.message().await["requestId"], "r1");
    assert_eq!(peer.message().await, json!({"v": 1, "type": "ack", "re": "c1", "ok": true}));
}

/// Before its first valid message a client hears no broadcast; an invalid one does not count, a valid one counts as hello.
#[tokio::test]
async fn broadcasts_start_with_the_first_valid_message() {
    let mut core = Core::start().await;
    let mut peer = Peer::connect(core.port).await;
    core.knows(1).await;
    core.broadcast("not for strangers").await;
    peer.send(&json!({"v": 1, "type": "hello", "id": "h", "modVersion": "x", "protocol": 2})).await;
    assert_eq!(peer.message().await["type"], "error");
    assert_eq!(peer.message().await["ok"], false);
    core.broadcast("nor for these").await;
    peer.send(&json!({"v": 1, "type": "goal.submit", "id": "g", "text": "hi"})).await;
    assert_eq!(peer.message().await["re"], "g");
    core.broadcast("now").await;
    assert_eq!(peer.message().await["item"]["text"], "now");
}

/// A goodbye is answered with the same code, and the connection ends.
#[tokio::test]
async fn a_close_is_answered() {
    let mut core = Core::start().await;
    let mut peer = Peer::greeted(core.port).await;
    peer.send_bytes(&frame(0x80 | CLOSE, b"\x03\xe8bye")).await;
    assert_eq!(peer.closing().await, Some((1000, "bye".to_owned())));
    core.knows(0).await;
}

/// A ping is answered with its own payload.
#[tokio::test]
async fn a_ping_is_answered() {
    let core = Core::start().await;
    let mut peer = Peer::connect(core.port).await;
    peer.send_bytes(&frame(0x80 | PING, b"are you there")).await;
    assert_eq!(peer.frame().await, Frame::Pong(b"are you there".to_vec()));
}
