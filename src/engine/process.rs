//! Child processes: in a session of their own, without a terminal, dying with the Foreman, and really gone when they
//! are stopped.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Time between the friendly signal and the other one.
const GRACE: Duration = Duration::from_secs(2);
/// How long survivors are hunted.
const HUNT: Duration = Duration::from_secs(5);
/// Pause between two looks at a process table; a process needs a moment to die.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Output kept, bytes: its end.
const TAIL_BYTES: usize = 64 * 1024;

/// Environment variable that marks all processes of one child, so that they are found again when they left its session.
pub const CHILD_MARK: &str = "AGENTCRAFT_CHILD";
/// Environment variable that names the profile; the next life ends what the former one left behind.
pub const PROFILE_MARK: &str = "AGENTCRAFT_PROFILE_ID";

/// A program to run. The environment is exactly `env`, and the marks above.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub dir: PathBuf,
    pub env: Vec<(OsString, OsString)>,
}

impl ChildSpec {
    /// A command line for the shell.
    pub fn shell(command: &str, dir: PathBuf, env: Vec<(OsString, OsString)>) -> Self {
        Self { program: "sh".into(), args: vec!["-c".into(), command.into()], dir, env }
    }
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    pub timed_out: bool,
    pub cancelled: bool,
    /// Standard output and error as they came; the last 64 KiB.
    pub output: String,
}

impl Finished {
    /// It ended by itself, with success.
    pub fn ok(&self) -> bool {
        self.code == Some(0) && !self.timed_out && !self.cancelled
    }
}

/// Starts every child from one thread that never ends: the parent-death signal fires when the *thread* that started
/// the child ends.
fn spawn(command: Command) -> std::io::Result<std::process::Child> {
    type Order = (Command, mpsc::Sender<std::io::Result<std::process::Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        let started = std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            for (mut command, answer) in orders {
                let child = command.spawn();
                // Our ends of the pipes must close with the command.
                drop(command);
                let _gone = answer.send(child);
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "the spawner thread could not be started");
        }
        sender
    });
    let gone = || std::io::Error::other("the spawner thread is gone");
    let (sender, answer) = mpsc::channel();
    spawner.send((command, sender)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

fn prepare(spec: &ChildSpec, mark: &str, out: std::io::PipeWriter) -> std::io::Result<Command> {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .current_dir(&spec.dir)
        .env_clear()
        .envs(spec.env.iter().map(|(key, value)| (key, value)))
        .env(CHILD_MARK, mark)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    // SAFETY: between fork and exec only async-signal-safe system calls are made; nothing is allocated.
    #[expect(unsafe_code, reason = "a session of its own and the parent-death signal must be set in the child")]
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
    Ok(command)
}

/// Runs a child to its end, its time-out or its cancellation. What it left running is ended too.
///
/// # Errors
/// When it can't be started: the program or the directory is missing.
pub async fn run(spec: ChildSpec, timeout: Duration, cancel: CancellationToken) -> std::io::Result<Finished> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let (reader, writer) = std::io::pipe()?;
    let command = prepare(&spec, &mark, writer)?;
    let child = tokio::task::spawn_blocking(move || spawn(command)).await.map_err(std::io::Error::other)??;
    let session = child.id();
    let (done, mut ended) = oneshot::channel();
    std::thread::Builder::new().name("child".to_owned()).spawn(move || {
        let mut child = child;
        let status = child.wait();
        let _gone = done.send(status);
    })?;
    let tail = tokio::task::spawn_blocking(move || read_tail(reader));
    let (mut timed_out, mut cancelled) = (false, false);
    let status = tokio::select! {
        status = &mut ended => Some(status),
        () = tokio::time::sleep(timeout) => { timed_out = true; None }
        () = cancel.cancelled() => { cancelled = true; None }
    };
    // Also after a good end: a test must not leave a server behind.
    let hunted = mark.clone();
    tokio::task::spawn_blocking(move || end_all(session, &hunted)).await.map_err(std::io::Error::other)?;
    let status = match status {
        Some(status) => status,
        None => ended.await,
    };
    let status = status.map_err(|_| std::io::Error::other("nobody waited for the child"))??;
    let bytes = tail.await.map_err(std::io::Error::other)?;
    Ok(Finished {
        code: if status.signal().is_some() { None } else { status.code() },
        timed_out,
        cancelled,
        output: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn read_tail(mut pipe: impl Read) -> Vec<u8> {
    let mut tail: Vec<u8> = Vec::new();
    let mut chunk = [0_u8; 8192];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return tail,
            Ok(read) => {
                tail.extend_from_slice(chunk.get(..read).unwrap_or_default());
                if tail.len() > 2 * TAIL_BYTES {
                    tail.drain(..tail.len() - TAIL_BYTES);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return tail,
        }
    }
}

/// A process, told apart from a later one of the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    pub pid: i32,
    /// Clock ticks since boot, field 22 of proc_pid_stat(5).
    pub started: u64,
}

/// Every process of this user that `wanted` picks by session and environment.
#[cfg(target_os = "linux")]
fn processes(wanted: impl Fn(i32, &[u8]) -> bool) -> Vec<ProcessId> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if u32::try_from(pid) == Ok(own) {
            continue;
        }
        let Some((state, session, started)) = stat(pid) else { continue };
        if state == 'Z' {
            continue;
        }
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if wanted(session, &environ) {
            found.push(ProcessId { pid, started });
        }
    }
    found
}

#[cfg(not(target_os = "linux"))]
fn processes(_wanted: impl Fn(i32, &[u8]) -> bool) -> Vec<ProcessId> {
    Vec::new()
}

/// State, session and start time of a process.
#[cfg(target_os = "linux")]
fn stat(pid: i32) -> Option<(char, i32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let rest = text.get(text.rfind(')')? + 2..)?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some((fields.first()?.chars().next()?, fields.get(3)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

/// Sends a signal only if the process is still the one that was seen.
fn signal(process: ProcessId, signal: Signal) {
    #[cfg(target_os = "linux")]
    if stat(process.pid).is_none_or(|(_, _, started)| started != process.started) {
        return;
    }
    if let Some(pid) = Pid::from_raw(process.pid) {
        // Gone already is as good.
        let _gone = rustix::process::kill_process(pid, signal);
    }
}

fn has_mark(environ: &[u8], name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
}

/// Ends what is left of a child: its session, and what carries its mark.
fn end_all(session: u32, mark: &str) {
    let of_child = |at: i32, environ: &[u8]| u32::try_from(at) == Ok(session) || has_mark(environ, CHILD_MARK, mark);
    end_where(of_child);
    #[cfg(not(target_os = "linux"))]
    if let Some(pid) = i32::try_from(session).ok().and_then(Pid::from_raw) {
        let _gone = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// TERM, a while, KILL, until none is left. Gives back how many there were.
fn end_where(wanted: impl Fn(i32, &[u8]) -> bool) -> usize {
    let first = processes(&wanted);
    for process in &first {
        signal(*process, Signal::TERM);
    }
    let start = Instant::now();
    loop {
        let left = processes(&wanted);
        if left.is_empty() {
            return first.len();
        }
        if start.elapsed() > GRACE {
            for process in &left {
                signal(*process, Signal::KILL);
            }
        }
        if start.elapsed() > GRACE + HUNT {
            tracing::error!(?left, "processes that can't be ended");
            return first.len();
        }
        #[expect(clippy::disallowed_methods, reason = "there is nothing to wait on for a process that is not a child")]
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]
    }

    fn sh(script: &str) -> ChildSpec {
        ChildSpec::shell(script, std::env::temp_dir(), env())
    }

    #[tokio::test]
    async fn output_and_exit_code_come_back() {
        let done =
            run(sh("echo out; echo err >&2; exit 3"), Duration::from_secs(20), CancellationToken::new()).await.unwrap();
        assert_eq!((done.code, done.output.as_str()), (Some(3), "out\nerr\n"));
    }

    /// A time-out ends grandchildren, also one that left the session, and comes back promptly.
    #[tokio::test]
    async fn a_timeout_ends_grandchildren() {
        let unique = format!("agentcraft-test-{}", std::process::id());
        let script = format!("export MARKER={unique}; setsid sleep 300 & sleep 300 & wait");
        let start = Instant::now();
        let done = run(sh(&script), Duration::from_millis(300), CancellationToken::new()).await.unwrap();
        assert!(done.timed_out && !done.ok());
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_eq!(processes(|_, environ| has_mark(environ, "MARKER", &unique)), vec![]);
    }

    #[tokio::test]
    async fn cancelling_ends_it() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let done = run(sh("sleep 300"), Duration::from_secs(60), cancel).await.unwrap();
        assert!(done.cancelled && done.code.is_none());
    }

    /// A process of the same number that started at another time is left alone.
    #[test]
    #[cfg(target_os = "linux")]
    fn only_a_matching_start_time_is_signalled() {
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let (_, _, started) = stat(pid).unwrap();
        signal(ProcessId { pid, started: started + 1 }, Signal::KILL);
        assert!(child.try_wait().unwrap().is_none());
        signal(ProcessId { pid, started }, Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
