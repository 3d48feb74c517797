//! A ref update that is prepared (lock taken, old value compared) before files change, and committed after.
//!
//! If this process dies in between, git sees its input end and gives the lock back.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

use super::super::error::GitError;
use super::super::run::{Call, words};

/// A prepared update. Dropping it without [`Prepared::commit`] changes nothing.
pub(super) struct Prepared {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Locks `name` and compares it with `old`. `at`: the checkout whose HEAD reflog gets the entry too.
pub(super) fn prepare(at: &Path, name: &str, new: &str, old: &str, message: &str) -> Result<Prepared, GitError> {
    // A git that was killed, or one of the person's, may need a moment to give the lock back.
    let call = Call::in_dir(at).config("core.filesRefLockTimeout=1000").args([
        "update-ref",
        "--create-reflog",
        "-m",
        message,
        "-z",
        "--stdin",
    ]);
    let mut child = call.spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(GitError::Other("git update-ref has no pipes".to_owned()));
    };
    let mut prepared = Prepared { child, input: Some(input), output: BufReader::new(output) };
    prepared.say(&format!("start\0update {name}\0{new}\0{old}\0prepare\0"))?;
    prepared.expect("start: ok")?;
    prepared.expect("prepare: ok")?;
    Ok(prepared)
}

impl Prepared {
    /// Makes the update.
    pub(super) fn commit(mut self) -> Result<(), GitError> {
        self.say("commit\0")?;
        self.expect("commit: ok")
    }

    fn say(&mut self, text: &str) -> Result<(), GitError> {
        let written = self.input.as_mut().map(|input| input.write_all(text.as_bytes()).and_then(|()| input.flush()));
        match written {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.failure()),
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<(), GitError> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(_) if line.trim_end() == wanted => Ok(()),
            Ok(_) | Err(_) => Err(self.failure()),
        }
    }

    fn failure(&mut self) -> GitError {
        self.input = None;
        let mut said = Vec::new();
        if let Some(pipe) = self.child.stderr.take() {
            let _ = pipe.take(64 * 1024).read_to_end(&mut said);
        }
        GitError::Failed { command: "git update-ref".to_owned(), text: words(&said) }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
