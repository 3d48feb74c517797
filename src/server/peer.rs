//! Whose process is at the other end: a loopback port is open to every user of the machine.
//!
//! On Linux the kernel's tables of TCP sockets name the owner of the peer's socket. Elsewhere there is no such check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether the peer may be talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user of this process, or root.
    Ours,
    /// Another user, by uid.
    Other(u32),
    /// The socket is in no table: it was closed already, or the tables can't be read. Not trusted.
    Unknown,
}

/// Who owns the other end of a connection from `peer` to `local`. Reads files: call it where blocking is allowed.
#[cfg(target_os = "linux")]
pub(super) fn owner(peer: SocketAddr, local: SocketAddr) -> Owner {
    let us = rustix::process::geteuid().as_raw();
    // Clients of dual-stack runtimes (Java's) reach 127.0.0.1 from an IPv6 socket, so either table may hold them.
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        if let Ok(text) = std::fs::read_to_string(table)
            && let Some(uid) = find(&text, peer, local)
        {
            return if uid == us || uid == 0 { Owner::Ours } else { Owner::Other(uid) };
        }
    }
    Owner::Unknown
}

/// Not known on this system; the port is as open as the system leaves it.
#[cfg(not(target_os = "linux"))]
pub(super) fn owner(_peer: SocketAddr, _local: SocketAddr) -> Owner {
    Owner::Ours
}

/// The uid of the socket at `peer` that is connected to `local`, in the text of a kernel table. A socket that its
/// process has closed already counts as missing: the table says uid 0 there.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the tables are Linux's"))]
fn find(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let ends = (canonical(peer), canonical(local));
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let here = address(columns.next()?)?;
        let there = address(columns.next()?)?;
        if (here, there) != ends {
            return None;
        }
        // st, tx:rx, tr:when, retrnsmt, then uid, timeout, inode.
        let uid = columns.nth(4)?.parse().ok()?;
        let inode: u64 = columns.nth(1)?.parse().ok()?;
        (inode != 0).then_some(uid)
    })
}

fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// `0100007F:1F90`: words of the address in the machine's byte order, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, place) in bytes.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((ip, port))
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1EC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 20000 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1EC6 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1000        0 20001 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:A1B2 0100007F:1EC6 01 00000000:00000000 00:00000000 00000000  1001        0 20002 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:A1B3 0100007F:1EC6 04 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1
   4: garbage
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:A1B2 00000000000000000000000001000000:1EC6 01 00000000:00000000 00:00000000 00000000  1002        0 20003 1 0000000000000000 20 4 30 10 -1
   1: 0000000000000000FFFF00000100007F:A1B4 0000000000000000FFFF00000100007F:1EC6 01 00000000:00000000 00:00000000 00000000  1003        0 20004 1 0000000000000000 20 4 30 10 -1
";

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_peers_row_is_found_not_ours() {
        assert_eq!(find(TCP, at("127.0.0.1:41394"), at("127.0.0.1:7878")), Some(1001));
        assert_eq!(find(TCP6, at("[::1]:41394"), at("[::1]:7878")), Some(1002));
        assert_eq!(find(TCP, at("127.0.0.1:41394"), at("127.0.0.1:7879")), None);
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_socket_is_the_same_address() {
        assert_eq!(find(TCP6, at("127.0.0.1:41396"), at("127.0.0.1:7878")), Some(1003));
    }

    #[test]
    fn a_socket_without_a_process_has_no_owner() {
        assert_eq!(find(TCP, at("127.0.0.1:41395"), at("127.0.0.1:7878")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn our_own_connection_is_ours() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(local) else { continue };
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            assert_eq!(owner(peer, server.local_addr().unwrap()), Owner::Ours);
            drop(client);
            assert_eq!(owner(peer, server.local_addr().unwrap()), Owner::Unknown);
        }
    }
}
