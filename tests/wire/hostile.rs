//! Two hundred ways to misbehave: each costs the sender at most its connection.

use std::time::Duration;

use serde_json::{Value, json};

use crate::core::Core;
use crate::peer::{BINARY, Bystander, CLOSE, Frame, PING, Peer, TEXT, dial, frame, head, request, text, upgrade};

/// One valid message of each type, with every field.
fn valid() -> Vec<Value> {
    vec![
        json!({"v": 1, "type": "hello", "id": "x", "modVersion": "0.1.0", "protocol": 1, "client": "mod"}),
        json!({"v": 1, "type": "goal.submit", "id": "x", "text": "do it", "repoId": "demo-app"}),
        json!({"v": 1, "type": "user.message", "id": "x", "to": "all", "text": "hi"}),
        json!({"v": 1, "type": "decision.answer", "id": "x", "decisionId": "d2", "option": "Merge", "text": "fine"}),
        json!({"v": 1, "type": "task.action", "id": "x", "taskId": "t5", "action": "reassign", "arg": "wren"}),
        json!({"v": 1, "type": "agent.action", "id": "x", "agentId": "kit", "action": "pause", "arg": "t1"}),
        json!({"v": 1, "type": "diff.request", "id": "x", "requestId": "r7", "repoId": "demo-app", "worktree": "kit-t2", "path": "a"}),
        json!({"v": 1, "type": "repo.add", "id": "x", "path": "/home/me/app"}),
    ]
}

/// Values that fit nowhere, or almost nowhere.
fn odd() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!(" \n\t\u{a0}"),
        json!("x".repeat(300_000)),
        json!([]),
        json!([null]),
        json!({}),
        json!({"v": 1, "type": "hello"}),
        json!("\u{1b}]0;owned\u{7}\u{202e}"),
    ]
}

/// Wrong types, ranges, lengths and missing fields: an error and, where the id is usable, a failed ack; the connection
/// works on. Everything that is still valid is acked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_fields_are_answered_and_the_connection_works_on() {
    let core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    let mut peer = Peer::greeted(core.port).await;
    let mut tried = 0;
    for message in valid() {
        for field in message.as_object().unwrap().keys() {
            let mut variants: Vec<Value> = odd()
                .into_iter()
                .map(|value| {
                    let mut message = message.clone();
                    message[field] = value;
                    message
                })
                .collect();
            let mut without = message.clone();
            without.as_object_mut().unwrap().remove(field);
            variants.push(without);
            for variant in variants {
                tried += 1;
                peer.send(&variant).await;
                check_answer(&mut peer, &variant).await;
            }
        }
    }
    peer.works().await;
    assert!(tried > 400, "{tried}");
    assert!(bystander.content().await > 0);
}

/// Reads what a message with an odd field brings: an ack, or an error with its failed ack.
async fn check_answer(peer: &mut Peer, sent: &Value) {
    let id = sent.get("id").and_then(Value::as_str).filter(|id| !id.is_empty() && id.len() <= 256);
    let mut error = None;
    loop {
        let message = peer.message().await;
        match message["type"].as_str().unwrap() {
            "feed.add" | "snapshot" | "diff" => {}
            "error" => {
                let text = message["message"].as_str().unwrap();
                assert!(text.starts_with("bad message: ") && text.len() < 2_000, "{text}");
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
                assert_eq!(message.get("re").and_then(Value::as_str), id, "{message}");
                error = Some(text.to_owned());
                if id.is_none() {
                    return;
                }
            }
            "ack" => {
                assert_eq!(message["re"].as_str(), id, "{message}");
                assert_eq!(message["ok"], error.is_none(), "{message} after {error:?}");
                return;
            }
            other => panic!("{other}"),
        }
        if id.is_none() && error.is_none() && sent.get("id").is_none() {
            // Valid without an id: no ack, ever. The next answer belongs to the next message.
            return;
        }
    }
}

/// Texts that are no message at all.
fn texts() -> Vec<(&'static str, String)> {
    let deep = |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    vec![
        ("nothing", String::new()),
        ("a blank", " ".to_owned()),
        ("a word", "hello".to_owned()),
        ("null", "null".to_owned()),
        ("a number", "17".to_owned()),
        ("a list", "[]".to_owned()),
        ("a string", "\"hello\"".to_owned()),
        ("half an object", "{\"v\":1".to_owned()),
        ("two objects", "{} {}".to_owned()),
        ("a trailing comma", "{\"v\":1,}".to_owned()),
        ("single quotes", "{'v':1}".to_owned()),
        ("a comment", "{/* */}".to_owned()),
        ("NaN", "{\"v\":NaN}".to_owned()),
        ("a number without end", format!("{{\"v\":{}}}", "9".repeat(100_000))),
        ("a large exponent", "{\"v\":1e99999}".to_owned()),
        ("half a surrogate", "{\"v\":1,\"type\":\"\\ud800\"}".to_owned()),
        ("a control character", "{\"v\":\"\u{1}\"}".to_owned()),
        ("a byte order mark", "\u{feff}{\"v\":1}".to_owned()),
        ("an empty object", "{}".to_owned()),
        ("a message of the Foreman", json!({"v": 1, "type": "ack", "re": "c1", "ok": true}).to_string()),
        ("an unknown type", json!({"v": 1, "type": "repo.remove", "repoId": "demo"}).to_string()),
        ("a prototype", json!({"v": 1, "type": "__proto__", "constructor": {}}).to_string()),
        ("deep lists", deep("[", "]", 500_000)),
        ("deep lists without end", "[".repeat(1_000_000)),
        ("deep objects", deep("{\"a\":", "}", 300_000).replace(":}", ":1}")),
        ("a deep type", format!("{{\"v\":1,\"type\":{}}}", deep("[", "]", 200_000))),
        ("a deep text", format!("{{\"v\":1,\"type\":\"goal.submit\",\"text\":{}}}", deep("[", "]", 200_000))),
        ("a wide list", format!("[{}0]", "0,".repeat(1_000_000))),
        ("a wide object", format!("{{{}\"z\":0}}", (0..200_000).map(|n| format!("\"k{n}\":0,")).collect::<String>())),
        ("many types", format!("{{{}\"v\":1}}", "\"type\":\"hello\",".repeat(100_000))),
        ("a long key", format!("{{\"{}\":1}}", "k".repeat(1_000_000))),
        ("a long type", json!({"v": 1, "type": "t".repeat(1_000_000)}).to_string()),
        ("escapes only", format!("{{\"v\":1,\"type\":\"{}\"}}", "\\u0041".repeat(100_000))),
    ]
}

/// Each such text is answered with one error; the connection works on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_are_no_message_are_answered() {
    let core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    let mut peer = Peer::connect(core.port).await;
    for (what, message) in texts() {
        peer.send_bytes(&text(&message)).await;
        let answer = peer.message().await;
        assert_eq!(answer["type"], "error", "{what}: {answer}");
        assert!(answer["message"].as_str().unwrap().len() < 500, "{what}: {answer}");
    }
    peer.works().await;
    assert!(bystander.content().await > 0);
}

/// What is ignored may be as deep and as large as a frame.
#[tokio::test]
async fn unknown_fields_cost_nothing() {
    let core = Core::start().await;
    let mut peer = Peer::connect(core.port).await;
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    peer.send_bytes(&text(&format!(
        "{{\"x\":{deep},\"v\":1,\"type\":\"goal.submit\",\"id\":\"deep\",\"text\":\"hi\"}}"
    )))
    .await;
    assert_eq!(peer.ack("deep").await.0["ok"], true);
}

/// How a client is closed for what it did to the framing; `None`: it is only cut off, or left by itself.
type Closed = Option<u16>;

/// Bytes after the upgrade that are no WebSocket.
fn framings() -> Vec<(&'static str, Vec<u8>, Closed)> {
    let mut list = vec![
        ("text that is not UTF-8", frame(0x81, b"\xff\xfe{}"), Some(1007)),
        ("an overlong character", frame(0x81, b"\xc0\x80"), Some(1007)),
        ("a surrogate in UTF-8", frame(0x81, b"\xed\xa0\x80"), Some(1007)),
        ("half a character at the end", frame(0x81, b"\"\xe2\x82"), Some(1007)),
        ("an unmasked frame", vec![0x81, 2, b'{', b'}'], Some(1002)),
        ("a compressed frame", frame(0xc1, b"{}"), Some(1002)),
        ("reserved bit 2", frame(0xa1, b"{}"), Some(1002)),
        ("reserved bit 3", frame(0x91, b"{}"), Some(1002)),
        ("all reserved bits on a ping", frame(0xf9, b""), Some(1002)),
        ("a continuation of nothing", frame(0x80, b"{}"), Some(1002)),
        ("a text within a text", [frame(TEXT, b"{"), frame(0x81, b"}")].concat(), Some(1002)),
        ("a binary within a text", [frame(TEXT, b"{"), frame(0x80 | BINARY, b"}")].concat(), Some(1002)),
        ("a ping in fragments", frame(PING, b"a"), Some(1002)),
        ("a ping over 125 bytes", frame(0x80 | PING, &[0; 126]), Some(1002)),
        ("a close over 125 bytes", frame(0x80 | CLOSE, &[3; 200]), Some(1002)),
        ("a close of one byte", frame(0x80 | CLOSE, b"\x03"), Some(1002)),
        ("a close with a code of the library's own", frame(0x80 | CLOSE, b"\x03\xed"), Some(1002)),
        ("a close with code 0", frame(0x80 | CLOSE, b"\x00\x00"), Some(1002)),
        ("a close with code 65535", frame(0x80 | CLOSE, b"\xff\xff"), Some(1002)),
        ("a close whose reason is not UTF-8", frame(0x80 | CLOSE, b"\x03\xe8\xff"), Some(1007)),
        ("a frame of 2^63 bytes", [&[0x81, 0xff][..], &[0xff; 8], &[0; 4]].concat(), Some(1009)),
        ("a frame of 2^40 bytes", [&[0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0][..], &[0; 4]].concat(), Some(1009)),
        ("a frame of 4 MiB and one byte", [&[0x81, 0xff, 0, 0, 0, 0, 0, 0x40, 0, 1][..], &[0; 4]].concat(), Some(1009)),
        ("a frame of 5 MiB, sent whole", frame(0x81, &vec![b' '; 5 << 20]), Some(1009)),
        (
            "fragments of 5 MiB together",
            std::iter::once(frame(TEXT, &[b' '; 65_536]))
                .chain((0..80).map(|_| frame(0, &[b' '; 65_536])))
                .flatten()
                .collect(),
            Some(1009),
        ),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaaaaaa".to_vec(), Some(1002)),
        ("another HTTP request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), None),
        ("zeros", vec![0; 4096], Some(1002)),
        ("ones", vec![0xff; 4096], None),
        ("half a frame", vec![0x81, 0xfe, 0x10], None),
        (
            "a promise of 4 MiB and then nothing",
            [&[0x81, 0xff, 0, 0, 0, 0, 0, 0x40, 0, 0][..], &[0; 4], b"{"].concat(),
            None,
        ),
        ("a text that never ends", frame(TEXT, b"{"), None),
        ("empty fragments", [frame(TEXT, b""), frame(0, b"").repeat(50_000)].concat(), None),
        ("a binary of 1 MiB", frame(0x82, &vec![0; 1 << 20]), None),
    ];
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        list.push(("an unknown opcode", frame(0x80 | opcode, b"{}"), Some(1002)));
    }
    list
}

/// Broken framing costs the connection, with the right code where there is one; nobody else notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_framing_costs_the_connection() {
    let mut core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    for (what, bytes, code) in framings() {
        let mut peer = Peer::connect(core.port).await;
        // The server may close before it has taken everything.
        peer.try_send_bytes(&bytes).await;
        if code.is_some() {
            let close = tokio::time::timeout(Duration::from_secs(20), peer.closing()).await;
            let close = close.unwrap_or_else(|_| panic!("{what}: not closed"));
            assert_eq!(close.as_ref().map(|(code, _)| *code), code, "{what}: {close:?}");
        }
        drop(peer);
        core.knows(1).await;
    }
    assert!(bystander.content().await > 0);
}

/// Requests that are no upgrade, and the status they get; empty: closed without an answer.
fn requests() -> Vec<(String, &'static str)> {
    let good = upgrade("localhost", "");
    let with = |line: &str| upgrade("localhost", &format!("{line}\r\n"));
    let without = |line: &str| {
        let lines: Vec<&str> = good.split_inclusive("\r\n").filter(|part| !part.starts_with(line)).collect();
        lines.concat()
    };
    let mut list = vec![
        ("hello\r\n\r\n".to_owned(), "400"),
        ("\r\n\r\n".to_owned(), "400"),
        ("GET\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1 x\r\n\r\n".to_owned(), "400"),
        (good.replace("HTTP/1.1", "HTTP/1.0"), "505"),
        (good.replace("HTTP/1.1", "HTTP/2"), "505"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "401"),
        (without("Upgrade"), "426"),
        (without("Connection"), "426"),
        (without("Sec-WebSocket-Version"), "426"),
        (without("Sec-WebSocket-Key"), "400"),
        (without("Host"), "401"),
        (good.replace("websocket", "h2c"), "426"),
        (good.replace("Version: 13", "Version: 0"), "426"),
        (good.replace("Version: 13", "Version: 8"), "426"),
        (good.replace("dGhlIHNhbXBsZSBub25jZQ==", "x"), "400"),
        (good.replace("dGhlIHNhbXBsZSBub25jZQ==", ""), "400"),
        (with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), "400"),
        (with("Content-Length: 5"), "400"),
        (with("Content-Length: -1"), "400"),
        (with("Transfer-Encoding: chunked"), "400"),
        (with("no colon here"), "400"),
        (with(" folded: x"), "400"),
        (with("Bad Name: x"), "400"),
        (with(": x"), "400"),
        (with("X: a\0b"), "400"),
        (with("X: \u{1b}[31m"), "400"),
        (with("Host: localhost"), "401"),
        (with("Host: evil.example"), "401"),
        (upgrade("localhost", &"X: y\r\n".repeat(200)), "431"),
        (with(&format!("X: {}", "y".repeat(20_000))), "431"),
        (format!("GET /{} HTTP/1.1\r\n", "a".repeat(20_000)), "431"),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
    ];
    for method in ["POST", "PUT", "HEAD", "OPTIONS", "DELETE", "CONNECT", "get"] {
        list.push((good.replace("GET", method), "405"));
    }
    for origin in
        ["https://evil.example", "null", "file://", "", "http://localhost", "chrome-extension://abc", "about:blank"]
    {
        list.push((with(&format!("Origin: {origin}")), "401"));
        list.push((with(&format!("ORIGIN:{origin}")).replace("GET", "POST"), "401"));
    }
    for host in [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "127.0.0.2",
        "0",
        "2130706433",
        "0x7f.1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::1",
        "localhost.",
        "localhost:99999",
        "localhost:",
        "a@localhost",
        "localhost evil",
        "192.168.1.1",
        "*",
    ] {
        list.push((upgrade(host, ""), "401"));
    }
    list
}

/// Requests that are no upgrade are refused with the right status, and nobody notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_handshakes_are_refused() {
    let mut core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    for (bytes, status) in requests() {
        let answer = request(core.port, bytes.as_bytes()).await;
        let shown: String = bytes.chars().take(300).collect();
        assert_eq!(answer.split(' ').nth(1).unwrap_or(""), status, "{shown:?}: {answer}");
    }
    core.knows(1).await;
    assert!(bystander.content().await > 0);
}

/// Connections that break off anywhere leave nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn breaking_off_leaves_nothing_behind() {
    let mut core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    let handshake = upgrade("localhost", "");
    for cut in (0..handshake.len()).step_by(16) {
        use tokio::io::AsyncWriteExt;
        let mut stream = dial(core.port).await;
        stream.write_all(&handshake.as_bytes()[..cut]).await.unwrap();
    }
    let message = text(&valid()[1].to_string());
    for cut in (0..message.len()).step_by(8) {
        let mut peer = Peer::connect(core.port).await;
        peer.send_bytes(&message[..cut]).await;
    }
    core.knows(1).await;
    assert!(bystander.content().await > 0);
}

/// Many at once, each with something else: those who behave are served all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_the_hostile_stops_nobody() {
    let mut core = Core::start().await;
    let bystander = Bystander::watch(core.port).await;
    let port = core.port;
    let mut crowd = tokio::task::JoinSet::new();
    for (_, bytes, _) in framings().into_iter().take(30) {
        crowd.spawn(async move {
            let mut peer = Peer::connect(port).await;
            peer.try_send_bytes(&bytes).await;
            tokio::time::timeout(Duration::from_millis(300), peer.closing()).await.ok();
        });
    }
    for (bytes, _) in requests().into_iter().take(30) {
        crowd.spawn(async move {
            request(port, bytes.as_bytes()).await;
        });
    }
    for (_, message) in texts() {
        crowd.spawn(async move {
            let mut stream = dial(port).await;
            use tokio::io::AsyncWriteExt;
            stream.write_all(upgrade("localhost", "").as_bytes()).await.unwrap();
            let answer = head(&mut stream).await;
            // The crowd may be larger than the places.
            if answer.starts_with("HTTP/1.1 101") {
                let mut peer = Peer::over(stream);
                peer.send_bytes(&text(&message)).await;
                assert!(matches!(peer.frame().await, Frame::Message(_)));
            }
        });
    }
    while let Some(done) = crowd.join_next().await {
        done.unwrap();
    }
    core.knows(1).await;
    assert!(bystander.content().await > 0);
}

#[test]
fn there_are_two_hundred_of_them() {
    let fields: usize = valid().iter().map(|message| message.as_object().unwrap().len() * (odd().len() + 1)).sum();
    assert!(texts().len() + framings().len() + requests().len() + fields >= 200);
}
