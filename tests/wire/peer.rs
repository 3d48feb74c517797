//! A client made of bytes: it frames and masks by hand, so that it can also do what no client should.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for anything that must come.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// Waits for what must come soon.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// What the Foreman sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame {
    Message(Value),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(u16, String),
    /// The connection is gone.
    End,
}

/// A connection after its upgrade.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// The usual upgrade request, with further header lines (each with its CRLF).
pub(crate) fn upgrade(host: &str, more: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

/// The only right answer to [`upgrade`].
pub(crate) const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A bare TCP connection.
pub(crate) async fn dial(port: u16) -> TcpStream {
    within("a TCP connection", TcpStream::connect(("127.0.0.1", port))).await.unwrap()
}

/// Sends a request and reads the answer's head, and the rest if the connection is closed after it.
pub(crate) async fn request(port: u16, request: &[u8]) -> String {
    let mut stream = dial(port).await;
    // The server may refuse before it has read everything.
    let _ = stream.write_all(request).await;
    head(&mut stream).await
}

/// The head of an HTTP answer; empty if there was none.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = async {
        while !answer.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => answer.push(byte),
                Err(_) => break,
            }
        }
    };
    within("an HTTP answer", read).await;
    String::from_utf8(answer).unwrap()
}

/// A frame as a client sends it: masked.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        length @ 126..65536 => {
            bytes.push(0x80 | 126);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// A whole text message.
pub(crate) fn text(text: &str) -> Vec<u8> {
    frame(0x80 | TEXT, text.as_bytes())
}

impl Peer {
    pub(crate) async fn connect(port: u16) -> Self {
        let mut stream = dial(port).await;
        stream.write_all(upgrade(&format!("127.0.0.1:{port}"), "").as_bytes()).await.unwrap();
        assert_eq!(head(&mut stream).await, ACCEPTED);
        Self::over(stream)
    }

    /// A peer over a connection that is upgraded already.
    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Connected, greeted, and with its snapshot read.
    pub(crate) async fn greeted(port: u16) -> Self {
        let mut peer = Self::connect(port).await;
        peer.send(&json!({"v": 1, "type": "hello", "id": "h", "modVersion": "test", "protocol": 1})).await;
        assert_eq!(peer.message().await["type"], "snapshot");
        assert_eq!(peer.message().await, json!({"v": 1, "type": "ack", "re": "h", "ok": true}));
        peer
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_bytes(&text(&message.to_string())).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        within("a write", self.stream.write_all(bytes)).await.unwrap();
    }

    /// Sends, whether or not the other side still listens.
    pub(crate) async fn try_send_bytes(&mut self, bytes: &[u8]) -> bool {
        within("a write", self.stream.write_all(bytes)).await.is_ok()
    }

    /// The next frame; pings are not answered.
    pub(crate) async fn frame(&mut self) -> Frame {
        within("a frame", self.frame_whenever()).await
    }

    async fn frame_whenever(&mut self) -> Frame {
        loop {
            if let Some((frame, length)) = parse(&self.buffer) {
                self.buffer.drain(..length);
                return frame;
            }
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Frame::End,
                Ok(_) => {}
            }
        }
    }

    /// The next message; pings are answered on the way.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            match self.frame().await {
                Frame::Message(message) => return message,
                Frame::Ping(payload) => self.send_bytes(&frame(0x80 | PONG, &payload)).await,
                Frame::Pong(_) => {}
                other @ (Frame::Close(..) | Frame::End) => panic!("wanted a message, got {other:?}"),
            }
        }
    }

    /// Reads until the ack of `re`; gives it with all messages before it.
    pub(crate) async fn ack(&mut self, re: &str) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.message().await;
            if message["type"] == "ack" && message["re"] == re {
                return (message, before);
            }
            before.push(message);
        }
    }

    /// Asks something every Foreman answers, and waits for the answer: the connection works.
    pub(crate) async fn works(&mut self) {
        self.send(&user_message("works?")).await;
        let (ack, _) = self.ack("works?").await;
        assert_eq!(ack["ok"], true, "{ack}");
    }

    /// Reads until the connection ends; the close frame if there was one.
    pub(crate) async fn closing(&mut self) -> Option<(u16, String)> {
        let mut close = None;
        loop {
            match self.frame().await {
                Frame::Close(code, reason) => close = Some((code, reason)),
                Frame::End => return close,
                Frame::Message(_) | Frame::Ping(_) | Frame::Pong(_) => {}
            }
        }
    }
}

/// A message to everyone with a correlation id.
pub(crate) fn user_message(id: &str) -> Value {
    json!({"v": 1, "type": "user.message", "id": id, "to": "all", "text": "hello everyone"})
}

fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    assert_eq!(second & 0x80, 0, "a server must not mask");
    assert_eq!(first & 0xf0, 0x80, "a server's frames are whole and without extensions");
    let (length, at) = match second {
        126 => (usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap())), 4),
        127 => (usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap())).unwrap(), 10),
        short => (usize::from(short), 2),
    };
    let payload = bytes.get(at..at + length)?;
    let frame = match first & 0x0f {
        TEXT => Frame::Message(serde_json::from_slice(payload).unwrap()),
        PING => Frame::Ping(payload.to_vec()),
        PONG => Frame::Pong(payload.to_vec()),
        CLOSE => match payload {
            [] => Frame::Close(1005, String::new()),
            [high, low, reason @ ..] => {
                Frame::Close(u16::from_be_bytes([*high, *low]), String::from_utf8(reason.to_vec()).unwrap())
            }
            [_] => panic!("a close frame with half a code"),
        },
        opcode => panic!("opcode {opcode}"),
    };
    Some((frame, at + length))
}

/// A client that minds its own business, over and over: whatever others do, its messages are acked.
pub(crate) struct Bystander {
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<u32>,
}

impl Bystander {
    pub(crate) async fn watch(port: u16) -> Self {
        let mut peer = Peer::greeted(port).await;
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut acked = 0;
            while stopped.try_recv().is_err() {
                let id = format!("b{acked}");
                peer.send(&user_message(&id)).await;
                let (ack, _) = peer.ack(&id).await;
                assert_eq!(ack["ok"], true, "{ack}");
                acked += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            acked
        });
        Self { stop, task }
    }

    /// Ends the watch; fails if any message was not acked.
    pub(crate) async fn content(self) -> u32 {
        let _ = self.stop.send(());
        within("the bystander's last ack", self.task).await.unwrap()
    }
}
