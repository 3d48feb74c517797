//! The upgrade from HTTP: reading the request, judging it, answering.
//!
//! Knows only as much HTTP as an upgrade needs. The answer is the strict 101 that clients of the field insist on: one
//! `Upgrade`, one `Connection` equal to `Upgrade`, no extension and no subprotocol.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::guard;

/// Largest request head, in bytes; real ones have a few hundred.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Most header lines.
const MAX_HEADERS: usize = 100;

/// The head of an HTTP request.
#[derive(Debug)]
pub(super) struct Request {
    method: String,
    version: String,
    /// Names in lower case, values without surrounding blanks, in order.
    headers: Vec<(String, String)>,
}

/// An answer other than 101.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// For the person who reads it.
    text: String,
}

/// What a client asked for.
#[derive(Debug)]
pub(super) enum Asked {
    /// A proper upgrade; `rest` are bytes that followed the request already.
    Upgrade {
        accept_key: String,
        rest: Vec<u8>,
    },
    Wrong(Refusal),
    /// It went before its request was complete: a port probe, or a broken connection.
    Nothing,
}

impl Refusal {
    fn new(status: u16, text: &str) -> Self {
        Self { status, text: text.to_owned() }
    }

    pub(super) fn unauthorized(text: &str) -> Self {
        Self::new(401, text)
    }

    /// The connection belongs to somebody else.
    pub(super) fn forbidden(text: &str) -> Self {
        Self::new(403, text)
    }

    pub(super) fn unavailable(text: &str) -> Self {
        Self::new(503, text)
    }

    fn response(&self) -> String {
        let phrase = match self.status {
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            405 => "Method Not Allowed",
            426 => "Upgrade Required",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            505 => "HTTP Version Not Supported",
            _ => "Refused",
        };
        let more = match self.status {
            405 => "Allow: GET\r\n",
            426 => "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            _ => "",
        };
        let connection = if self.status == 426 { "close, Upgrade" } else { "close" };
        let Self { status, text } = self;
        let length = text.len() + 1;
        format!(
            "HTTP/1.1 {status} {phrase}\r\nConnection: {connection}\r\n{more}\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{text}\n"
        )
    }
}

impl Request {
    /// Parses a head that ends with an empty line. Strict: CRLF only, no folded lines, no odd characters in names.
    pub(super) fn parse(head: &[u8]) -> Result<Self, Refusal> {
        let bad = |text: &str| Refusal::new(400, text);
        // Values may be in any 8-bit encoding; whatever is not UTF-8 matches nothing that we look for.
        let text = String::from_utf8_lossy(head);
        let mut lines = text.strip_suffix("\r\n\r\n").ok_or_else(|| bad("the request has no end"))?.split("\r\n");
        let mut request_line = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(_), Some(version), None) =
            (request_line.next(), request_line.next(), request_line.next(), request_line.next())
        else {
            return Err(bad("not an HTTP request"));
        };
        if method.is_empty() || !version.starts_with("HTTP/") {
            return Err(bad("not an HTTP request"));
        }
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| bad("a header line has no colon"))?;
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(bad("a header name has a character that does not belong there"));
            }
            if value.contains(|c: char| c.is_control() && c != '\t') {
                return Err(bad("a header value has a control character"));
            }
            headers.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
            if headers.len() > MAX_HEADERS {
                return Err(Refusal::new(431, "too many header lines"));
            }
        }
        Ok(Self { method: method.to_owned(), version: version.to_owned(), headers })
    }

    /// All values of a header; `name` in lower case.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    fn has_token(&self, name: &str, token: &str) -> bool {
        self.values(name).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
    }

    /// The key to accept, if this is an upgrade that we want.
    fn accept_key(&self) -> Result<String, Refusal> {
        guard::check(self)?;
        if self.method != "GET" {
            return Err(Refusal::new(405, "only GET, to upgrade to a WebSocket"));
        }
        if self.version != "HTTP/1.1" {
            return Err(Refusal::new(505, "only HTTP/1.1"));
        }
        // The JDK's client sends `Content-Length: 0` with its GET.
        let has_body = self.values("content-length").any(|length| length != "0");
        if has_body || self.values("transfer-encoding").next().is_some() {
            return Err(Refusal::new(400, "an upgrade has no body"));
        }
        if !self.has_token("upgrade", "websocket") || !self.has_token("connection", "upgrade") {
            return Err(Refusal::new(426, "this is the AgentCraft protocol: connect with a WebSocket client"));
        }
        if !self.has_token("sec-websocket-version", "13") {
            return Err(Refusal::new(426, "only WebSocket version 13"));
        }
        let mut keys = self.values("sec-websocket-key");
        match (keys.next(), keys.next()) {
            (Some(key), None) if is_key(key) => Ok(derive_accept_key(key.as_bytes())),
            _ => Err(Refusal::new(400, "Sec-WebSocket-Key must be 16 bytes in base64, once")),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// 16 bytes in base64: 22 characters and two of padding.
fn is_key(key: &str) -> bool {
    key.len() == 24
        && key.strip_suffix("==").is_some_and(|digits| {
            digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
        })
}

/// Reads a request. The caller bounds the time.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Asked> {
    let mut received = Vec::with_capacity(1024);
    let end = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if received.len() >= MAX_HEAD_BYTES {
            return Ok(Asked::Wrong(Refusal::new(431, "the request is too long")));
        }
        if stream.read_buf(&mut received).await? == 0 {
            return Ok(Asked::Nothing);
        }
    };
    let rest = received.split_off(end);
    Ok(match Request::parse(&received).and_then(|request| request.accept_key()) {
        Ok(accept_key) => Asked::Upgrade { accept_key, rest },
        Err(refusal) => Asked::Wrong(refusal),
    })
}

/// Answers 101.
pub(super) async fn accept<S: AsyncWrite + Unpin>(stream: &mut S, accept_key: &str) -> io::Result<()> {
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept_key}\r\n\r\n"
    );
    stream.write_all(response.as_bytes()).await?;
    stream.flush().await
}

/// Answers with a refusal.
pub(super) async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, refusal: &Refusal) -> io::Result<()> {
    stream.write_all(refusal.response().as_bytes()).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                           Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    fn judge(head: &str) -> Result<String, u16> {
        Request::parse(head.as_bytes()).and_then(|request| request.accept_key()).map_err(|refusal| refusal.status)
    }

    #[track_caller]
    fn check(change: (&str, &str), status: u16) {
        let head = format!("{UPGRADE}\r\n").replace(change.0, change.1);
        assert_eq!(judge(&head), Err(status), "{head}");
    }

    #[test]
    fn the_key_of_the_standard_is_accepted() {
        assert_eq!(judge(&format!("{UPGRADE}\r\n")).as_deref(), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }

    #[test]
    fn what_clients_add_is_fine() {
        for extra in [
            "Content-Length: 0",
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
            "Sec-WebSocket-Protocol: chat, superchat",
            "User-Agent: Java-http-client/17.0.9",
            "X-Odd: \u{fc}\u{1f600}",
        ] {
            assert!(judge(&format!("{UPGRADE}{extra}\r\n\r\n")).is_ok(), "{extra}");
        }
        assert!(
            judge(&format!("{UPGRADE}\r\n").replace("Connection: Upgrade", "connection: keep-alive, upgrade")).is_ok()
        );
    }

    #[test]
    fn what_is_not_an_upgrade_is_told_so() {
        check(("GET /", "POST /"), 405);
        check(("HTTP/1.1", "HTTP/1.0"), 505);
        check(("HTTP/1.1", "HTTP/2.0"), 505);
        check(("Upgrade: websocket\r\n", ""), 426);
        check(("Connection: Upgrade\r\n", ""), 426);
        check(("Connection: Upgrade", "Connection: close"), 426);
        check(("Version: 13", "Version: 8"), 426);
        check(("dGhlIHNhbXBsZSBub25jZQ==", "short"), 400);
        check(("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZ!=="), 400);
        check(("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), 400);
        check(("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\n"), 400);
        check(("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    }

    #[test]
    fn broken_requests_are_refused() {
        for head in [
            "\r\n\r\n",
            "hello\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / a HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\n folded: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
            "GET / HTTP/1.1\r\n: x\r\n\r\n",
            "GET / HTTP/1.1\nHost: localhost\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: local\0host\r\n\r\n",
            "\u{16}\u{3}\u{1}\r\n\r\n",
        ] {
            assert_eq!(judge(head), Err(400), "{head:?}");
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(judge(&many), Err(431));
    }

    #[test]
    fn a_refused_origin_comes_before_everything_else() {
        assert_eq!(judge("POST / HTTP/1.0\r\nHost: localhost\r\nOrigin: null\r\n\r\n"), Err(401));
    }

    #[tokio::test]
    async fn the_answer_is_strict_and_keeps_what_follows() {
        let request = format!("{UPGRADE}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\nrest");
        let (mut client, mut server) = tokio::io::duplex(4096);
        client.write_all(request.as_bytes()).await.unwrap();
        let Asked::Upgrade { accept_key, rest } = read(&mut server).await.unwrap() else { panic!() };
        accept(&mut server, &accept_key).await.unwrap();
        assert_eq!(rest, b"rest");
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(
            answer,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn an_endless_head_is_refused() {
        let (mut client, mut server) = tokio::io::duplex(64 * 1024);
        client.write_all(format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD_BYTES)).as_bytes()).await.unwrap();
        let Asked::Wrong(refusal) = read(&mut server).await.unwrap() else { panic!() };
        assert_eq!(refusal.status, 431);
    }
}
