//! Running git: arguments only, no shell, bounded in time and output, no prompts, no hooks.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::GitError;
use super::safety;

/// Time for one call. A checkout of a large repository fits; a prompt that waits for ever does not.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Output kept per stream, bytes; a larger one is an error rather than half an answer.
const OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// What git gave back.
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// One call of git.
pub(crate) struct Call {
    dir: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Option<Vec<u8>>,
}

/// A call in the person's repository, with the person's own configuration but no hooks, prompts or transports.
pub(crate) fn git(dir: &Path) -> Call {
    Call { dir: dir.to_owned(), args: Vec::new(), env: Vec::new(), stdin: None }
}

impl Call {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<I: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = I>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    fn name(&self) -> String {
        self.args
            .iter()
            .find(|arg| !arg.as_bytes().starts_with(b"-"))
            .map_or_else(|| "git".to_owned(), |arg| arg.to_string_lossy().into_owned())
    }

    /// Runs it; a failing exit code is not an error here.
    pub(crate) fn output(self) -> Result<Output, GitError> {
        let name = self.name();
        let mut command = safety::foreman_git(&self.dir);
        command.args(&self.args).envs(self.env);
        run(command, &name, &self.dir, self.stdin)
    }

    /// Runs it; a failing exit code is an error with git's own words.
    pub(crate) fn run(self) -> Result<Vec<u8>, GitError> {
        let (name, dir) = (self.name(), self.dir.clone());
        let output = self.output()?;
        if output.code == 0 {
            return Ok(output.stdout);
        }
        Err(GitError::Failed { command: name, dir, stderr: output.stderr })
    }

    /// As [`Call::run`], the output as one trimmed line of text.
    pub(crate) fn line(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.run()?).trim_end_matches(['\n', '\r']).to_owned())
    }

    /// As [`Call::line`], none when git says no.
    pub(crate) fn maybe(self) -> Result<Option<String>, GitError> {
        let output = self.output()?;
        Ok((output.code == 0).then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned()))
    }
}

fn run(mut command: Command, name: &str, dir: &Path, stdin: Option<Vec<u8>>) -> Result<Output, GitError> {
    // A group of its own, so that what git starts ends with it.
    command
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if !dir.is_dir() {
        return Err(GitError::NotFound(dir.display().to_string()));
    }
    let mut child = command.spawn().map_err(GitError::NoGit)?;
    let (sender, receiver) = mpsc::channel();
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        // A closed pipe shows in the exit code.
        std::thread::spawn(move || pipe.write_all(&bytes));
    }
    read_in_background(child.stdout.take(), 0, &sender);
    read_in_background(child.stderr.take(), 1, &sender);
    let mut streams = [Vec::new(), Vec::new()];
    let deadline = Instant::now() + TIMEOUT;
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok((at, bytes)) => {
                if let Some(stream) = streams.get_mut(at) {
                    *stream = bytes;
                }
            }
            Err(_) => {
                kill_group(child.id());
                let _gone = child.wait();
                return Err(GitError::TimedOut {
                    command: name.to_owned(),
                    dir: dir.to_owned(),
                    seconds: TIMEOUT.as_secs(),
                });
            }
        }
    }
    let status = child.wait().map_err(GitError::NoGit)?;
    let [stdout, stderr] = streams;
    if stdout.len() > OUTPUT_BYTES {
        return Err(GitError::Unexpected(format!("git {name} printed more than {OUTPUT_BYTES} bytes")));
    }
    let stderr = String::from_utf8_lossy(&stderr).trim().chars().take(2000).collect();
    Ok(Output { code: status.code().unwrap_or(-1), stdout, stderr })
}

fn read_in_background(pipe: Option<impl Read + Send + 'static>, at: usize, sender: &mpsc::Sender<(usize, Vec<u8>)>) {
    let sender = sender.clone();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What is past the bound is read and dropped, so that git does not block on a full pipe.
            let _short = pipe.by_ref().take(OUTPUT_BYTES as u64 + 1).read_to_end(&mut bytes);
            let _rest = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        let _gone = sender.send((at, bytes));
    });
}

fn kill_group(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// Splits NUL-separated output.
pub(crate) fn nul_fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty())
}

/// A path from git's bytes.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
