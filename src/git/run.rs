//! Running git: a hardened child in its own session, with a deadline and bounded output.
//!
//! Must not know what the calls are for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::error::GitError;
use super::safety::{foreman_git, plain_git};

/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long a call that is stopped may take to remove its lock files.
const GRACE: Duration = Duration::from_millis(500);
/// Most bytes kept of stdout and of stderr.
const OUTPUT_BYTES: usize = 8 * 1024 * 1024;
/// Most characters of git's own words in an error.
const ERROR_CHARS: usize = 600;
/// `merge-tree --write-tree` and `worktree list -z` came with it.
const OLDEST: (u32, u32) = (2, 38);

/// What a child left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// None: killed by a signal.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Stdout was longer than the cap; the child was stopped.
    pub cut: bool,
}

enum Input {
    Empty,
    Bytes(Vec<u8>),
    File(File),
}

/// One git call to be made.
pub(crate) struct Call {
    command: Command,
    input: Input,
    cap: usize,
    shown: String,
}

impl Call {
    /// git in `dir`, with the person's own configuration.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self { command: foreman_git(dir), input: Input::Empty, cap: OUTPUT_BYTES, shown: "git".to_owned() }
    }

    /// Reads a setting as the person has it; none when it is not set or not of that type.
    pub(crate) fn setting(dir: &Path, name: &str, kind: Option<&str>) -> Result<Option<String>, GitError> {
        let call = Self { command: plain_git(dir), input: Input::Empty, cap: OUTPUT_BYTES, shown: "git".to_owned() };
        let done = call.arg("config").args(kind.map(|kind| format!("--type={kind}"))).args(["--get", name]).finish()?;
        let text = String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned();
        Ok((done.code == Some(0) && !text.is_empty()).then_some(text))
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        let arg = arg.as_ref();
        self.shown.push(' ');
        self.shown.push_str(&arg.to_string_lossy().chars().take(80).collect::<String>());
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for arg in args {
            self = self.arg(arg);
        }
        self
    }

    /// A `-c` pair; not shown in errors.
    pub(crate) fn config(mut self, pair: &str) -> Self {
        self.command.arg("-c").arg(pair);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    pub(crate) fn input_file(mut self, file: File) -> Self {
        self.input = Input::File(file);
        self
    }

    /// Keeps at most `bytes` of stdout; more is cut, not an error, when [`Finished::cut`] is looked at.
    pub(crate) fn cap(mut self, bytes: usize) -> Self {
        self.cap = bytes;
        self
    }

    /// Runs it to its end. Any exit code is fine.
    pub(crate) fn finish(mut self) -> Result<Finished, GitError> {
        let (stdin, bytes) = match self.input {
            Input::Empty => (Stdio::null(), None),
            Input::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
            Input::File(file) => (Stdio::from(file), None),
        };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(&mut self.command)?;
        if let (Some(bytes), Some(mut pipe)) = (bytes, child.stdin.take()) {
            // A child that does not read to the end is its own business; its exit code tells.
            std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        let (sender, receiver) = mpsc::channel();
        if let Some(pipe) = child.stdout.take() {
            read_all(pipe, self.cap, Stream::Out, sender.clone());
        }
        if let Some(pipe) = child.stderr.take() {
            read_all(pipe, OUTPUT_BYTES, Stream::Err, sender.clone());
        }
        drop(sender);
        let deadline = Instant::now() + TIMEOUT;
        let (mut stdout, mut stderr, mut cut) = (Vec::new(), Vec::new(), false);
        loop {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((Stream::Out, bytes, full)) => {
                    stdout = bytes;
                    if full {
                        cut = true;
                        kill(&mut child);
                    }
                }
                Ok((Stream::Err, bytes, full)) => {
                    stderr = bytes;
                    if full {
                        kill(&mut child);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    kill(&mut child);
                    return Err(GitError::TimedOut { command: self.shown, seconds: TIMEOUT.as_secs() });
                }
            }
        }
        let status = wait(&mut child, deadline)
            .ok_or_else(|| GitError::TimedOut { command: self.shown, seconds: TIMEOUT.as_secs() })?;
        Ok(Finished { code: status.code(), stdout, stderr, cut })
    }

    /// Runs it; anything but exit code 0 is an error with git's words.
    pub(crate) fn bytes(self) -> Result<Vec<u8>, GitError> {
        let (shown, cap) = (self.shown.clone(), self.cap);
        let done = self.finish()?;
        if done.cut {
            return Err(GitError::TooMuch { command: shown, bytes: cap });
        }
        if done.code != Some(0) {
            return Err(failed(shown, &done));
        }
        Ok(done.stdout)
    }

    /// As [`Call::bytes`], as text without the newline at its end.
    pub(crate) fn text(self) -> Result<String, GitError> {
        let mut text = String::from_utf8_lossy(&self.bytes()?).into_owned();
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }

    /// As [`Call::text`]; none when the exit code is 1 (git's way to say "no").
    pub(crate) fn maybe(self) -> Result<Option<String>, GitError> {
        let shown = self.shown.clone();
        let done = self.finish()?;
        match done.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned())),
            Some(1) => Ok(None),
            _ => Err(failed(shown, &done)),
        }
    }

    /// For a conversation over pipes; the caller waits for the child.
    pub(crate) fn spawn(mut self) -> Result<Child, GitError> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        start(&mut self.command)
    }
}

/// The error of a call that ended badly.
pub(crate) fn failed(command: String, done: &Finished) -> GitError {
    let text = words(&done.stderr);
    let text = match (text.is_empty(), done.code) {
        (false, _) => text,
        (true, Some(code)) => format!("exit code {code}"),
        (true, None) => "killed by a signal".to_owned(),
    };
    GitError::Failed { command, text }
}

/// git's stderr as one readable piece: hints dropped, bounded, no control characters.
pub(crate) fn words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .map(|line| line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line))
        .collect();
    let joined = lines.join("; ");
    joined.chars().map(|c| if c.is_control() { ' ' } else { c }).take(ERROR_CHARS).collect()
}

fn start(command: &mut Command) -> Result<Child, GitError> {
    // SAFETY: both are plain system calls that touch nothing of the parent's memory.
    #[expect(unsafe_code, reason = "a session of its own has no controlling terminal to ask on; std has no safe call")]
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            // git removes its lock files on this signal. Our callers wait for their child, so the thread it is tied to
            // lives as long as it.
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
            Ok(())
        });
    }
    command.spawn().map_err(|error| match (error.kind(), command.get_current_dir()) {
        (ErrorKind::NotFound, Some(dir)) if !dir.is_dir() => GitError::NoPath(dir.to_owned()),
        _ => GitError::NoGit(error.to_string()),
    })
}

enum Stream {
    Out,
    Err,
}

/// Reads `pipe` to its end or to `cap` on a thread of its own. The flag of the message says that the cap was passed.
fn read_all(mut pipe: impl Read + Send + 'static, cap: usize, of: Stream, to: mpsc::Sender<(Stream, Vec<u8>, bool)>) {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(cap).unwrap_or(u64::MAX);
        let _ = pipe.by_ref().take(limit).read_to_end(&mut bytes);
        let full = bytes.len() >= cap && pipe.read(&mut [0]).is_ok_and(|n| n > 0);
        let _ = to.send((of, bytes, full));
    });
}

/// Ends the child and all that it started in its session: politely, so that git removes its lock files, then by force.
fn kill(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let send = |signal| group.map(|pid| rustix::process::kill_process_group(pid, signal));
    let _ = send(rustix::process::Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = send(rustix::process::Signal::KILL);
    let _ = child.kill();
}

/// Its pipes are closed, so it is about to end; a child that lingers is killed at the deadline.
fn wait(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Ok(None) | Err(_) => {
                kill(child);
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// Checks once that git is there and new enough.
pub(crate) fn require_git() -> Result<(), GitError> {
    static CHECKED: OnceLock<Result<(), GitError>> = OnceLock::new();
    CHECKED
        .get_or_init(|| {
            let text = Call::in_dir(Path::new("/")).arg("--version").text()?;
            if version(&text).is_some_and(|found| found < OLDEST) {
                let found = text.split(' ').nth(2).unwrap_or(&text).to_owned();
                return Err(GitError::OldGit { found });
            }
            Ok(())
        })
        .clone()
}

/// Major and minor of "git version 2.47.3 (extra)".
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(' ').nth(2)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions of distributions and vendors are read; a stranger text is not called old.
    #[test]
    fn versions_are_read() {
        assert_eq!(version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version("git version 2.51.0.windows.1"), Some((2, 51)));
        assert_eq!(version("something else"), None);
    }

    /// Output beyond the cap stops the child and is an error of its own.
    #[test]
    fn output_is_capped() {
        let call = Call::in_dir(Path::new("/")).arg("help").arg("-a").cap(100);
        assert!(matches!(call.bytes(), Err(GitError::TooMuch { .. })));
    }
}
