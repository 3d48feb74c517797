use std::time::Duration;

use super::*;
use crate::protocol::{Ack, ClientMessage, ErrorReply, GoalSubmit, ServerMessage};

const SOON: Duration = Duration::from_secs(10);

fn ack(re: &str) -> Arc<Outgoing> {
    Outgoing::new(ServerMessage::Ack(Ack { re: re.to_owned(), ok: true, error: None, result: None }))
}

fn goal() -> ClientEnvelope {
    let message = ClientMessage::GoalSubmit(GoalSubmit { text: "x".to_owned(), repo_id: None });
    ClientEnvelope { id: None, message }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// A connection and the loop's end of it.
async fn connected(inbox: usize) -> (Connection, OutboxHandle, mpsc::Receiver<ClientEvent>) {
    let (sender, mut events) = mpsc::channel(inbox);
    let connection = Connector::new(sender).connect(LinkKind::Socket).await.unwrap();
    let Some(ClientEvent::Opened { client, kind: LinkKind::Socket, outbox }) = events.recv().await else { panic!() };
    assert_eq!(client, connection.id());
    (connection, outbox, events)
}

#[track_caller]
fn re(delivery: &Delivery) -> &str {
    match delivery {
        Delivery::Message(message) => match message.message() {
            ServerMessage::Ack(ack) => &ack.re,
            other => panic!("{other:?}"),
        },
        Delivery::Closed(reason) => panic!("{reason:?}"),
    }
}

#[tokio::test]
async fn messages_cross_both_ways_and_dropping_says_closed() {
    let (mut connection, outbox, mut events) = connected(8).await;
    connection.send(goal()).await.unwrap();
    assert!(matches!(events.recv().await, Some(ClientEvent::Message { client: ClientId(1), .. })));
    outbox.push(ack("a")).unwrap();
    outbox.push(ack("b")).unwrap();
    assert_eq!(re(&connection.next().await), "a");
    assert_eq!(re(&connection.next().await), "b");
    let (sender, receiver) = connection.split();
    drop(receiver);
    assert!(events.try_recv().is_err(), "one half is still there");
    drop(sender);
    assert!(matches!(events.recv().await, Some(ClientEvent::Closed { client: ClientId(1) })));
    outbox.push(ack("c")).unwrap();
    assert_eq!(outbox.producer.0.outbox().bytes(), 0, "nothing is held for a client that is gone");
}

#[tokio::test]
async fn a_waiting_reader_is_woken() {
    let (mut connection, outbox, _events) = connected(8).await;
    let reader = tokio::spawn(async move { re(&connection.next().await).to_owned() });
    tokio::task::yield_now().await;
    outbox.push(ack("a")).unwrap();
    assert_eq!(within("the reader", reader).await.unwrap(), "a");
}

#[tokio::test]
async fn shutdown_delivers_first_and_overflow_does_not() {
    for (reason, delivered) in [(CloseReason::Shutdown, true), (CloseReason::Overflow, false)] {
        let (mut connection, outbox, _events) = connected(8).await;
        outbox.push(ack("a")).unwrap();
        outbox.close(reason);
        outbox.close(CloseReason::Shutdown);
        if delivered {
            assert_eq!(re(&connection.next().await), "a");
        }
        for _ in 0..2 {
            assert!(matches!(connection.next().await, Delivery::Closed(told) if told == reason));
        }
        let (_sender, receiver) = connection.split();
        assert_eq!(within("the close", receiver.closed()).await, reason);
    }
}

#[tokio::test]
async fn a_loop_that_dies_closes_its_clients() {
    let (mut connection, outbox, events) = connected(8).await;
    let clone = outbox.clone();
    drop(outbox);
    clone.push(ack("a")).unwrap();
    assert_eq!(re(&connection.next().await), "a");
    drop((clone, events));
    assert!(matches!(within("the close", connection.next()).await, Delivery::Closed(CloseReason::Shutdown)));
    assert_eq!(connection.send(goal()).await, Err(Gone));
}

#[tokio::test]
async fn connecting_to_an_ended_foreman_is_an_error() {
    let (sender, events) = mpsc::channel(1);
    drop(events);
    assert_eq!(Connector::new(sender).connect(LinkKind::Embedded).await.unwrap_err(), Gone);
}

#[tokio::test]
async fn closing_is_told_even_when_the_inbox_is_full() {
    let (connection, _outbox, mut events) = connected(1).await;
    connection.send(goal()).await.unwrap();
    drop(connection);
    assert!(matches!(events.recv().await, Some(ClientEvent::Message { .. })));
    assert!(matches!(within("closed", events.recv()).await, Some(ClientEvent::Closed { .. })));
}

#[tokio::test]
async fn an_overflow_is_told_and_mended_by_a_snapshot() {
    let (sender, mut events) = mpsc::channel(8);
    let connector = Connector::with_outbox_bytes(sender, 2_000);
    let mut connection = connector.connect(LinkKind::Embedded).await.unwrap();
    let Some(ClientEvent::Opened { outbox, .. }) = events.recv().await else { panic!() };
    let mut pushed = 0;
    while outbox.push(ack(&pushed.to_string())).is_ok() {
        pushed += 1;
    }
    let error = ErrorReply { message: "stands for the snapshot".to_owned(), re: None };
    outbox.resync(Outgoing::new(ServerMessage::Error(error)));
    let Delivery::Message(first) = connection.next().await else { panic!() };
    assert!(matches!(first.message(), ServerMessage::Error(_)));
    for number in 0..=pushed {
        assert_eq!(re(&connection.next().await), number.to_string());
    }
}

#[tokio::test]
async fn a_session_replies_through_its_own_outbox() {
    let (connection, _outbox, _events) = connected(8).await;
    let (sender, mut receiver) = connection.split();
    sender.reply(ack("a")).unwrap();
    assert_eq!(re(&receiver.next().await), "a");
}
