//! Heartbeat and the end.

use std::time::Duration;

use agentcraft_tui::server::{ServerConfig, bind};
use agentcraft_tui::transport::{ClientEvent, Connector};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, quick};
use crate::peer::{ACCEPTED, Frame, PONG, Peer, frame, head, text, upgrade, user_message, within};

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

/// While the loop is too busy to take a client's message, the server does not read and cannot hear the client: that is
/// no silence of the client's.
#[tokio::test]
async fn a_client_held_up_by_a_busy_loop_is_not_silent() {
    let (inbox, mut events) = mpsc::channel(1);
    let bound = bind(ServerConfig { silent_intervals: 3, ..quick() }).await.unwrap();
    let port = bound.port();
    let stop = CancellationToken::new();
    let _served = bound.serve(Connector::new(inbox), stop.clone());
    let mut peer = Peer::connect(port).await;
    // The news of the connection fills the inbox, so this message waits in its session.
    peer.send(&user_message("patient")).await;
    for _ in 0..8 {
        assert!(matches!(peer.frame().await, Frame::Ping(_)), "closed while held up");
    }
    let opened = within("the connection", events.recv()).await;
    assert!(matches!(opened, Some(ClientEvent::Opened { .. })), "{opened:?}");
    match within("the message", events.recv()).await {
        Some(ClientEvent::Message { envelope, .. }) => assert_eq!(envelope.id.as_deref(), Some("patient")),
        other => panic!("{other:?}"),
    }
    stop.cancel();
}

/// What a client is still owed when the Foreman ends is sent before the goodbye, as far as a second lets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_sent_before_the_goodbye() {
    let core = Core::start().await;
    // A small window, so that little fits between server and client.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = within("a connection", socket.connect(([127, 0, 0, 1], core.port).into())).await.unwrap();
    stream.write_all(upgrade("localhost", "").as_bytes()).await.unwrap();
    assert_eq!(head(&mut stream).await, ACCEPTED);
    let mut slow = Peer::over(stream);
    slow.works().await;
    let mut witness = Peer::greeted(core.port).await;
    let line = "x".repeat(100_000);
    for _ in 0..40 {
        core.broadcast(&line).await;
        witness.message().await;
    }
    core.broadcast("last words").await;
    // Every client's outbox has it when one client hears it.
    assert_eq!(witness.message().await["item"]["text"], "last words");
    core.stop.cancel();
    let mut heard = Vec::new();
    within("the end", slow.stream.read_to_end(&mut heard)).await.unwrap();
    let text = String::from_utf8_lossy(&heard);
    let (last, goodbye) = (text.rfind("last words"), text.rfind("foreman shutting down"));
    assert!(last.is_some() && last < goodbye, "{} bytes, {last:?}, {goodbye:?}", heard.len());
}
