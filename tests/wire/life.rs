//! Heartbeat and the end.

use std::time::Duration;

use agentcraft_tui::server::ServerConfig;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::core::{Core, quick};
use crate::peer::{Frame, PONG, Peer, frame, text, user_message, within};

/// A client that answers pings, or sends anything at all, lives through many intervals; one pong missed is nothing.
#[tokio::test]
async fn any_byte_is_a_sign_of_life() {
    let core = Core::with(ServerConfig { silent_intervals: 4, ..quick() }, usize::MAX).await;
    let mut answering = Peer::greeted(core.port).await;
    let mut trickling = Peer::greeted(core.port).await;
    let mut bytes = text(&user_message("slow").to_string()).into_iter();
    for ping in 0..12 {
        match answering.frame().await {
            Frame::Ping(payload) if ping % 3 == 0 => answering.send_bytes(&frame(0x80 | PONG, &payload)).await,
            Frame::Ping(_) => {}
            other => panic!("{other:?}"),
        }
        trickling.send_bytes(&[bytes.next().unwrap()]).await;
    }
    trickling.send_bytes(&bytes.collect::<Vec<_>>()).await;
    trickling.ack("slow").await;
}

/// One that gives no sign for several intervals is closed.
#[tokio::test]
async fn a_silent_client_is_closed() {
    let mut core = Core::with(ServerConfig { silent_intervals: 3, ..quick() }, usize::MAX).await;
    let mut peer = Peer::greeted(core.port).await;
    assert_eq!(peer.closing().await, Some((1001, "no sign of life".to_owned())));
    core.knows(0).await;
}

/// At the end everybody is told, with what they were still owed first, and nobody is waited for long.
#[tokio::test]
async fn shutdown_is_said_and_does_not_wait() {
    let mut core = Core::start().await;
    let mut polite = Peer::greeted(core.port).await;
    let deaf = Peer::greeted(core.port).await;
    let mut probe = crate::peer::dial(core.port).await;
    probe.write_all(b"GET").await.unwrap();
    core.broadcast("last words").await;
    // Heard by the polite one before the end is told.
    polite.works().await;
    let started = Instant::now();
    core.stop.cancel();
    assert_eq!(polite.closing().await, Some((1001, "foreman shutting down".to_owned())));
    within("the server's end", &mut core.served).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    drop(deaf);
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", core.port)).await.is_err(), "the port is free");
}

/// The port can be had again at once.
#[tokio::test]
async fn a_restart_gets_the_same_port() {
    let mut core = Core::start().await;
    let _open = Peer::greeted(core.port).await;
    core.stop.cancel();
    within("the server's end", &mut core.served).await.unwrap();
    let again = Core::with(ServerConfig { port: core.port, ..quick() }, usize::MAX).await;
    Peer::greeted(again.port).await.works().await;
}
