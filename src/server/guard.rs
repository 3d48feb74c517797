//! Who may upgrade: pure judgement of a request.
//!
//! A web page must not drive the agents, neither from its own origin (browsers send `Origin`) nor by rebinding a name
//! to the loopback address (browsers send that name as `Host`).

use super::handshake::{Refusal, Request};

/// Refuses any `Origin`, whatever its value, and any `Host` that is not this machine's loopback.
pub(super) fn check(request: &Request) -> Result<(), Refusal> {
    if request.values("origin").next().is_some() {
        return Err(Refusal::unauthorized("requests with an Origin header are refused: browsers may not connect"));
    }
    let mut hosts = request.values("host");
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_loopback(host) => Ok(()),
        _ => Err(Refusal::unauthorized("the Host header must be 127.0.0.1, localhost or [::1], with an optional port")),
    }
}

fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(("::1", rest)) => ("localhost", rest),
        Some(_) => return false,
        None => match host.split_once(':') {
            Some((name, _)) => host.split_at(name.len()),
            None => (host, ""),
        },
    };
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && is_port(port)
}

/// Empty, or a colon and a port number.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok(),
        None => text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &str) -> Option<u16> {
        let head = format!("GET / HTTP/1.1\r\n{headers}\r\n");
        check(&Request::parse(head.as_bytes()).unwrap()).err().map(|refusal| refusal.status)
    }

    #[test]
    fn loopback_hosts_pass() {
        for host in ["127.0.0.1", "127.0.0.1:7878", "localhost", "LocalHost:1", "[::1]", "[::1]:65535"] {
            assert_eq!(status(&format!("Host: {host}\r\n")), None, "{host}");
        }
    }

    #[test]
    fn other_hosts_are_refused() {
        for host in [
            "",
            "evil.example",
            "evil.example:7878",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.2",
            "127.1",
            "0.0.0.0",
            "[::2]",
            "[::1",
            "::1",
            "[::1]x",
            "[127.0.0.1]",
            "[localhost]",
            "127.0.0.1:",
            "127.0.0.1:x",
            "127.0.0.1:99999",
            "localhost:+80",
            "localhost@evil.example",
            "localhost, evil.example",
            "127.0.0.1:80:80",
            "user@localhost",
        ] {
            assert_eq!(status(&format!("Host: {host}\r\n")), Some(401), "{host}");
        }
    }

    #[test]
    fn a_missing_or_second_host_is_refused() {
        assert_eq!(status(""), Some(401));
        assert_eq!(status("Host: localhost\r\nHost: localhost\r\n"), Some(401));
        assert_eq!(status("Host: localhost\r\nhost: evil.example\r\n"), Some(401));
    }

    #[test]
    fn any_origin_is_refused() {
        for origin in ["https://evil.example", "null", "", "file://", "http://localhost:7878", "http://127.0.0.1"] {
            assert_eq!(status(&format!("Host: localhost\r\nOrigin: {origin}\r\n")), Some(401), "{origin}");
            assert_eq!(status(&format!("oRIGIN:{origin}\r\nHost: localhost\r\n")), Some(401), "{origin}");
        }
    }
}
