//! Processes that a killed life left behind: found by a mark in their environment, ended before work goes on.
//!
//! Whatever an engine, a test run or a setup command starts carries the mark of its profile. While this process holds
//! the profile's lock no other living Foreman does, so whoever carries the mark at start-up is left over.

#[cfg(target_os = "linux")]
pub(crate) use linux::end_leftovers;

/// Elsewhere the children's own ends (closed pipes) have to do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_leftovers(_profile_id: &str) -> Vec<String> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use crate::engine::process::PROFILE_MARK;

    /// Time to end by itself, and after the kill.
    const GRACE: Duration = Duration::from_millis(800);
    const AFTER_KILL: Duration = Duration::from_secs(3);
    const STEP: Duration = Duration::from_millis(20);

    struct Leftover {
        pid: i32,
        /// Names this very process, whatever becomes of the number.
        handle: OwnedFd,
        name: String,
    }

    /// Ends every process of this user that carries the mark; says which, and which would not go.
    pub(crate) fn end_leftovers(profile_id: &str) -> Vec<String> {
        let found = find(profile_id);
        if found.is_empty() {
            return Vec::new();
        }
        signal(&found, Signal::TERM);
        wait(&found, GRACE);
        // What is started while others are killed carries the mark too: again, until nobody is left.
        let until = Instant::now() + AFTER_KILL;
        let mut alive = find(profile_id);
        while !alive.is_empty() && Instant::now() < until {
            signal(&alive, Signal::KILL);
            wait(&alive, until.saturating_duration_since(Instant::now()));
            alive = find(profile_id);
        }
        let mut names: Vec<&str> = found.iter().map(|left| left.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut said = vec![format!("{} left-over processes were ended ({})", found.len(), names.join(", "))];
        if !alive.is_empty() {
            let pids: Vec<String> = alive.iter().map(|left| left.pid.to_string()).collect();
            said.push(format!("left-over processes that do not end: {}", pids.join(", ")));
        }
        said
    }

    fn find(profile_id: &str) -> Vec<Leftover> {
        let mark = format!("{PROFILE_MARK}={profile_id}");
        let own = own_line();
        let user = rustix::process::geteuid().as_raw();
        let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
        listing
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| !own.contains(pid))
            .filter_map(|pid| {
                // The handle first: what is read after it is about the process it names, or nothing is.
                let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
                let at = format!("/proc/{pid}");
                if fs::metadata(&at).ok()?.uid() != user || is_over(pid) {
                    return None;
                }
                let environment = fs::read(format!("{at}/environ")).ok()?;
                let marked = environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
                let name = fs::read_to_string(format!("{at}/comm")).unwrap_or_default().trim().to_owned();
                marked.then_some(Leftover { pid, handle, name })
            })
            .collect()
    }

    /// This process and those it descends from: a Foreman started in an agent's shell must not end its own terminal.
    fn own_line() -> BTreeSet<i32> {
        let mut line = BTreeSet::new();
        let mut pid = i32::try_from(std::process::id()).unwrap_or(0);
        while pid > 0 && line.insert(pid) {
            pid = stat_fields(pid).and_then(|fields| fields.get(1)?.parse().ok()).unwrap_or(0);
        }
        line
    }

    /// The fields of /proc/<pid>/stat after the command's name: state, parent, ...
    fn stat_fields(pid: i32) -> Option<Vec<String>> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything, also parentheses.
        let (_, fields) = stat.rsplit_once(')')?;
        Some(fields.split_whitespace().map(str::to_owned).collect())
    }

    /// Gone, or only waiting for its parent to take note.
    fn is_over(pid: i32) -> bool {
        stat_fields(pid).and_then(|fields| fields.first().cloned()).is_none_or(|state| state == "Z" || state == "X")
    }

    fn signal(all: &[Leftover], signal: Signal) {
        for left in all {
            // Fails only for one that is gone.
            pidfd_send_signal(&left.handle, signal).ok();
        }
    }

    /// Waits until all are over, at most so long.
    fn wait(all: &[Leftover], time: Duration) {
        let until = Instant::now() + time;
        while all.iter().any(|left| !is_over(left.pid)) && Instant::now() < until {
            pause();
        }
    }

    /// Between two looks at the process table.
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread that may block; nothing tells of the end of another's child"
    )]
    fn pause() {
        std::thread::sleep(STEP);
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::process::{Command, Stdio};

        fn sleeper(script: &str, id: &str) -> std::process::Child {
            Command::new("sh")
                .args(["-c", script])
                .env(PROFILE_MARK, id)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        }

        fn wait_until(what: &str, condition: impl Fn() -> bool) {
            let until = Instant::now() + Duration::from_secs(20);
            while !condition() {
                assert!(Instant::now() < until, "waited for {what}");
                pause();
            }
        }

        /// Also one that ignores the polite signal and one whose parent is gone; never those of another profile.
        #[test]
        fn marked_processes_end_and_others_stay() {
            let id = format!("{:016x}", fastrand::u64(..));
            let mut plain = sleeper("exec sleep 600", &id);
            let mut deaf = sleeper("trap '' TERM; while :; do sleep 0.1; done", &id);
            let mut orphan_maker = sleeper("setsid sleep 601 & exit 0", &id);
            let mut other = sleeper("exec sleep 602", "another");
            orphan_maker.wait().unwrap();
            wait_until("all to be there", || find(&id).iter().filter(|left| left.name == "sleep").count() >= 2);
            let said = end_leftovers(&id);
            assert!(said[0].contains("sleep") && said.len() == 1, "{said:?}");
            assert!(find(&id).is_empty());
            assert!(other.try_wait().unwrap().is_none());
            other.kill().unwrap();
            for child in [&mut plain, &mut deaf, &mut other] {
                child.wait().unwrap();
            }
            assert_eq!(end_leftovers(&id), Vec::<String>::new());
        }
    }
}
