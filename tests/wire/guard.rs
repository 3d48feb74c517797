//! Who may upgrade, and how a refusal is said.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::core::{Core, config, quick};
use crate::peer::{ACCEPTED, Peer, dial, head, request, upgrade, within};

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

/// Browsers send an Origin, sandboxed frames and local pages send `null` or `file://`: none may drive the agents. A
/// foreign Host is a rebound name.
#[tokio::test]
async fn browsers_and_foreign_hosts_get_401() {
    let core = Core::start().await;
    for origin in ["https://evil.example", "null", "file://", "", "http://127.0.0.1:7878"] {
        let answer = request(core.port, upgrade("localhost", &format!("Origin: {origin}\r\n")).as_bytes()).await;
        assert_eq!(status(&answer), "401", "Origin {origin:?}: {answer}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "192.168.0.7:7878", "", "0.0.0.0"] {
        let answer = request(core.port, upgrade(host, "").as_bytes()).await;
        assert_eq!(status(&answer), "401", "Host {host:?}: {answer}");
    }
    let without_host = upgrade("localhost", "").replace("Host: localhost\r\n", "");
    assert_eq!(status(&request(core.port, without_host.as_bytes()).await), "401");
    for host in ["127.0.0.1", "LOCALHOST:7878", "[::1]:1"] {
        assert_eq!(request(core.port, upgrade(host, "").as_bytes()).await, ACCEPTED, "{host}");
    }
}

/// A refusal is a whole HTTP answer with a text for the person, and the connection ends.
#[tokio::test]
async fn refusals_are_readable() {
    let core = Core::start().await;
    let mut stream = dial(core.port).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within("the end", stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(status(&answer), "426");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
    assert!(body.contains("WebSocket"), "{answer}");
}

/// Both loopback addresses serve the same port.
#[tokio::test]
async fn the_ipv6_loopback_is_served_where_it_exists() {
    let core = Core::start().await;
    if tokio::net::TcpListener::bind("[::1]:0").await.is_err() {
        return;
    }
    let mut stream = TcpStream::connect(("::1", core.port)).await.unwrap();
    stream.write_all(upgrade(&format!("[::1]:{}", core.port), "").as_bytes()).await.unwrap();
    assert_eq!(head(&mut stream).await, ACCEPTED);
    Peer::over(stream).works().await;
}

/// Port probes connect and say nothing, or half of something: they are dropped quietly.
#[tokio::test]
async fn who_never_asks_is_dropped() {
    let mut core = Core::with(quick(), usize::MAX).await;
    for half in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut stream = dial(core.port).await;
        stream.write_all(half.as_bytes()).await.unwrap();
        assert_eq!(head(&mut stream).await, "", "dropped without a word");
    }
    core.knows(0).await;
}

/// Silent connections can't keep real clients out.
#[tokio::test]
async fn half_open_connections_make_room() {
    let core = Core::start().await;
    let mut probes = Vec::new();
    for _ in 0..200 {
        probes.push(dial(core.port).await);
    }
    Peer::greeted(core.port).await.works().await;
}

/// Past the number of clients the next is told so; a place is free again when one leaves.
#[tokio::test]
async fn the_number_of_clients_is_limited() {
    let mut core =
        Core::with(agentcraft_tui::server::ServerConfig { max_connections: 3, ..config() }, usize::MAX).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(Peer::greeted(core.port).await);
    }
    assert_eq!(status(&request(core.port, upgrade("localhost", "").as_bytes()).await), "503");
    clients.pop();
    core.knows(2).await;
    let admitted = async {
        loop {
            if request(core.port, upgrade("localhost", "").as_bytes()).await == ACCEPTED {
                return;
            }
        }
    };
    within("a free place", admitted).await;
    for client in &mut clients {
        client.works().await;
    }
}

/// A loopback port is open to every user of the machine; ours is not. Needs root to become somebody else: without it
/// there is nobody to try, and the judgement of the kernel's tables alone is tested, beside the code.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn another_user_of_the_machine_is_refused() {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let core = Core::start().await;
    for ip in ["127.0.0.1", "::1"] {
        if ip == "::1" && tokio::net::TcpListener::bind("[::1]:0").await.is_err() {
            continue;
        }
        let script = format!(
            "exec 3<>/dev/tcp/{ip}/{port} && printf '{request}' >&3 && head -n 1 <&3",
            port = core.port,
            request = upgrade("localhost", "").replace("\r\n", "\\r\\n"),
        );
        for (uid, status) in [(NOBODY, "403"), (0, "101")] {
            let script = script.clone();
            let run = tokio::task::spawn_blocking(move || {
                Command::new("bash").args(["-c", &script]).uid(uid).current_dir("/").output().unwrap()
            });
            let output = within("the other user's answer", run).await.unwrap();
            let answer = String::from_utf8_lossy(&output.stdout);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{ip} as {uid}: {answer} {output:?}");
        }
    }
}
