//! Clients that read slowly, not at all, or ask without end.

use std::time::Duration;

use serde_json::json;

use crate::core::{Core, config};
use crate::peer::{Bystander, Frame, Peer, text, user_message, within};

/// A client that does not read is closed at the bound; it learns why when it reads on, and the others notice nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_closed_with_a_reason() {
    let mut core = Core::with(config(), 4 * 1024 * 1024).await;
    let bystander = Bystander::watch(core.port).await;
    // Reads along, and so paces the flood to what a client that reads can follow.
    let mut reader = Peer::greeted(core.port).await;
    let mut deaf = Peer::greeted(core.port).await;
    core.knows(3).await;
    let line = "x".repeat(10_000);
    // More than the system's buffers and the outbox hold.
    let flood = async {
        while core.knows_now() == 3 {
            for _ in 0..50 {
                core.broadcast(&line).await;
            }
            reader.works().await;
        }
    };
    within("the deaf client's end", flood).await;
    let close = deaf.closing().await;
    assert!(matches!(&close, Some((1008, reason)) if reason.contains("too far behind")), "{close:?}");
    assert!(bystander.content().await > 0);
}

/// One that reads, only slowly, hears everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_hears_everything() {
    let core = Core::start().await;
    let mut slow = Peer::greeted(core.port).await;
    let line = "x".repeat(20_000);
    for number in 0..200 {
        core.broadcast(&format!("{number} {line}")).await;
    }
    for number in 0..200 {
        let message = slow.message().await;
        let text = message["item"]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{number} ")), "{number}: {}", &text[..20]);
        if number % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// One that asks without reading the answers is closed too; its questions cost it nothing but its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_without_reading_ends() {
    let mut core = Core::with(config(), 256 * 1024).await;
    let bystander = Bystander::watch(core.port).await;
    let mut asker = Peer::connect(core.port).await;
    let bad = text(&json!({"v": 1, "type": "goal.submit", "id": "x".repeat(200), "text": 7}).to_string()).repeat(200);
    while asker.try_send_bytes(&bad).await {
        if core.knows_now() == 1 {
            break;
        }
    }
    core.knows(1).await;
    assert!(bystander.content().await > 0);
}

/// A client that floods waits for its own turn; every message is answered, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_waits_for_its_turn() {
    let core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    let flooder = Peer::greeted(core.port).await;
    let (mut read, mut write) = flooder.stream.into_split();
    let count = 5_000;
    let flood = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let bytes: Vec<u8> =
            (0..count).flat_map(|number| text(&user_message(&format!("f{number}")).to_string())).collect();
        write.write_all(&bytes).await.unwrap();
        write
    });
    let acks = tokio::spawn(async move {
        use tokio::io::AsyncReadExt;
        let mut text = Vec::new();
        let last = format!("\"f{}\"", count - 1);
        while !text.windows(last.len()).any(|window| window == last.as_bytes()) {
            let at = text.len().saturating_sub(last.len());
            text.drain(..at);
            if read.read_buf(&mut text).await.unwrap() == 0 {
                panic!("closed");
            }
        }
        read
    });
    let _write = within("the flood", flood).await.unwrap();
    let _read = within("the last ack", acks).await.unwrap();
    assert!(bystander.content().await > 0);
}

/// Pings without end are answered as far as the client reads, and hold nobody up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_without_end_hold_nobody_up() {
    let core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    let mut pinger = Peer::connect(core.port).await;
    let pings = crate::peer::frame(0x80 | crate::peer::PING, &[7; 125]).repeat(20_000);
    pinger.send_bytes(&pings).await;
    assert!(matches!(pinger.frame().await, Frame::Pong(_)));
    assert!(bystander.content().await > 0);
}
