//! The port a Foreman listens on, and who has it when it can't be had.

use std::path::Path;

use super::error::CliError;
use super::locate;
use crate::server::{BindError, Bound, DEFAULT_PORT, ServerConfig, bind};

/// Ports tried behind the usual one before any free one is taken.
const NEXT: u16 = 20;

/// Listens on the port that was asked for, or on the usual one or the next that is free.
pub(super) async fn listen(asked: Option<u16>, home: &Path) -> Result<Bound, CliError> {
    if let Some(port) = asked {
        return match bind(ServerConfig::on_port(port)).await {
            Ok(bound) => Ok(bound),
            Err(BindError::InUse(_)) => Err(CliError::PortTaken { port, owner: owner(home, port) }),
            Err(error) => Err(CliError::Bind(error)),
        };
    }
    for port in DEFAULT_PORT..DEFAULT_PORT.saturating_add(NEXT) {
        match bind(ServerConfig::on_port(port)).await {
            Ok(bound) => return Ok(bound),
            Err(BindError::InUse(_)) => {}
            Err(error) => return Err(CliError::Bind(error)),
        }
    }
    bind(ServerConfig::on_port(0)).await.map_err(CliError::Bind)
}

/// Who listens there, as far as this process may know.
fn owner(home: &Path, port: u16) -> Option<String> {
    if let Some(run) = locate::by_port(home, port) {
        return Some(format!("the Foreman of profile \"{}\" (process {})", run.profile, run.pid));
    }
    system::owner(port)
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    /// State of a listening socket in the kernel's tables.
    const LISTEN: &str = "0A";

    /// The process that listens on the port, or at least its user.
    pub(super) fn owner(port: u16) -> Option<String> {
        let (user, inode) = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .find_map(|table| listener(&table, port))?;
        Some(process(inode).unwrap_or_else(|| format!("a process of user {user}")))
    }

    /// User and inode of the socket that listens on the port.
    pub(super) fn listener(table: &str, port: u16) -> Option<(u32, u64)> {
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let local = fields.get(1)?.rsplit_once(':')?.1;
            let ours = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == LISTEN;
            ours.then_some((fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?))
        })
    }

    /// The process that holds the socket; only our own processes can be looked into.
    fn process(inode: u64) -> Option<String> {
        let wanted = format!("socket:[{inode}]");
        fs::read_dir("/proc").ok()?.filter_map(Result::ok).find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let held = fs::read_dir(entry.path().join("fd")).ok()?.filter_map(Result::ok);
            let found = held.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|to| to.to_str() == Some(&wanted));
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.then(|| format!("{} (process {pid})", name.trim()))
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Not known on this system.
    pub(super) fn owner(_port: u16) -> Option<String> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A taken port is refused when it was asked for, naming who has it; otherwise another one is taken.
    #[test]
    fn a_taken_port_names_its_owner() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let home = tempfile::tempdir().expect("a directory");
        runtime.block_on(async {
            let first = listen(Some(0), home.path()).await.expect("a free port");
            let error = listen(Some(first.port()), home.path()).await.expect_err("taken");
            let text = error.to_string();
            assert!(text.contains(&format!("(process {})", std::process::id())), "{text}");
            let other = listen(None, home.path()).await.expect("another port");
            assert_ne!(other.port(), first.port());
        });
    }

    /// The kernel's table is read by its columns; sockets that do not listen are passed over.
    #[test]
    fn the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1EC6 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1000        0 5\n\
            \x20  1: 0100007F:1EC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1\n";
        assert_eq!(system::listener(table, 7878), Some((1000, 77)));
        assert_eq!(system::listener(table, 7879), None);
    }
}
