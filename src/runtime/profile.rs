//! A profile on disk: its directory, the lock that says who owns it, and the run files by which clients find a running
//! Foreman.
//!
//! The lock is the operating system's (`flock`): it goes with its process, so there is no stale one. A run file is
//! only believed while its profile's lock is held.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::protocol::BackendName;
use crate::store::StoreError;
use crate::store::place;

/// Name of the run files.
pub const RUN_FILE: &str = "foreman.json";
/// Name of the lock in a profile's directory.
const LOCK_FILE: &str = "lock";
/// Held while the home's run file is looked at and changed.
const HOME_LOCK: &str = ".run-file.lock";
/// What moved aside at a reset, in the home.
const RESET_DIR: &str = "reset";
/// Tries to take a lock that somebody may only be looking at.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// What clients need to find a running Foreman.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFile {
    pub pid: u32,
    pub port: u16,
    pub host: String,
    pub backend: BackendName,
    pub profile: String,
    pub version: String,
    /// ISO 8601, UTC.
    pub started_at: String,
}

/// Why a profile could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("not a profile's name: {0:?}; use letters, digits, - and _ (at most 64)")]
    Name(String),
    /// Another process owns it; its run file, if it has written one.
    #[error("profile {profile:?} is in use by a running Foreman{}", owner.as_ref().map(|o| format!(" (process {}, port {})", o.pid, o.port)).unwrap_or_default())]
    Busy { profile: String, owner: Option<Box<RunFile>> },
    #[error(transparent)]
    Place(#[from] StoreError),
    #[error("{}: {doing} failed: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

/// A profile owned by this process until it is dropped.
#[derive(Debug)]
pub struct Profile {
    home: PathBuf,
    name: String,
    dir: PathBuf,
    published: Option<RunFile>,
    /// Closing it gives the lock back.
    _lock: File,
}

impl Profile {
    /// Takes the profile `name` in `home`; both are made for the person alone if they are not there.
    ///
    /// # Errors
    /// [`ProfileError::Busy`] when a running process owns it; others when the place will not do.
    pub fn claim(home: &Path, name: &str) -> Result<Self, ProfileError> {
        if !is_profile_name(name) {
            return Err(ProfileError::Name(name.to_owned()));
        }
        if !home.is_dir() {
            place::private_directory(home)?;
        }
        let home = fs::canonicalize(home).map_err(|error| io_error(home, "finding", error))?;
        let dir = home.join(name);
        place::private_directory(&dir)?;
        place::local_disk(&dir)?;
        let path = dir.join(LOCK_FILE);
        let lock = open_lock(&path)?;
        if !lock_exclusively(&lock).map_err(|error| io_error(&path, "locking", error))? {
            return Err(ProfileError::Busy { profile: name.to_owned(), owner: read_run_file(&dir).map(Box::new) });
        }
        Ok(Self { home, name: name.to_owned(), dir, published: None, _lock: lock })
    }

    /// The profile's directory. Absolute.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Worktrees of the agents.
    pub fn worktrees(&self) -> PathBuf {
        self.dir.join("worktrees")
    }

    /// Scratch directories of the agents.
    pub fn scratch(&self) -> PathBuf {
        self.dir.join("scratch")
    }

    /// Memory notes.
    pub fn memory(&self) -> PathBuf {
        self.dir.join("memory")
    }

    /// Writes the run files: the profile's own, and the home's unless another living Foreman has it.
    ///
    /// # Errors
    /// [`ProfileError::Io`] when they cannot be written.
    pub fn publish(&mut self, port: u16, backend: BackendName) -> Result<(), ProfileError> {
        let run = RunFile {
            pid: std::process::id(),
            port,
            host: "127.0.0.1".to_owned(),
            backend,
            profile: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        };
        write_run_file(&self.dir, &run)?;
        let _guard = home_lock(&self.home)?;
        let taken = read_run_file(&self.home)
            .is_some_and(|other| other.profile != self.name && is_live(&self.home, &other.profile));
        if !taken {
            write_run_file(&self.home, &run)?;
        }
        self.published = Some(run);
        Ok(())
    }

    /// Removes this process's run files; the home's goes to the living Foreman that started first.
    pub fn retire(&mut self) {
        let Some(run) = self.published.take() else { return };
        if let Err(error) = self.hand_over(&run) {
            tracing::warn!(%error, "the run files could not be removed");
        }
    }

    fn hand_over(&self, run: &RunFile) -> Result<(), ProfileError> {
        if read_run_file(&self.dir).as_ref() == Some(run) {
            remove(&self.dir.join(RUN_FILE))?;
        }
        let _guard = home_lock(&self.home)?;
        if read_run_file(&self.home).as_ref() != Some(run) {
            return Ok(());
        }
        let heir = others(&self.home, &self.name).into_iter().min_by(|a, b| a.started_at.cmp(&b.started_at));
        match heir {
            Some(heir) => write_run_file(&self.home, &heir),
            None => remove(&self.home.join(RUN_FILE)),
        }
    }

    /// Starts the profile anew: everything in it moves to a directory of its own in the home, which is returned.
    /// Nothing is deleted, for there may be work in it that no repository has. None: there was nothing.
    ///
    /// # Errors
    /// [`ProfileError::Io`]; what was moved until then stays moved.
    pub fn set_aside(&self) -> Result<Option<PathBuf>, ProfileError> {
        let listing = fs::read_dir(&self.dir).map_err(|error| io_error(&self.dir, "listing", error))?;
        let mut names = Vec::new();
        for entry in listing {
            let name = entry.map_err(|error| io_error(&self.dir, "listing", error))?.file_name();
            if name != LOCK_FILE {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ").to_string();
        let aside = self.home.join(RESET_DIR).join(format!("{}-{stamp}", self.name));
        place::private_directory(&aside)?;
        for name in names {
            let from = self.dir.join(&name);
            fs::rename(&from, aside.join(&name)).map_err(|error| io_error(&from, "moving it aside", error))?;
        }
        Ok(Some(aside))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.retire();
    }
}

/// The living Foreman of a profile, or, without one, the one that the home's run file names.
pub fn find_running(home: &Path, profile: Option<&str>) -> Option<RunFile> {
    if let Some(profile) = profile {
        return Some(home.join(profile))
            .filter(|_| is_profile_name(profile) && is_live(home, profile))
            .and_then(|dir| read_run_file(&dir));
    }
    read_run_file(home)
        .filter(|run| is_profile_name(&run.profile) && is_live(home, &run.profile))
        // The home's file may be of a Foreman that was killed while another one lives.
        .or_else(|| others(home, "").into_iter().min_by(|a, b| a.started_at.cmp(&b.started_at)))
}

/// One directory name of plain characters: a profile's directory is always a child of the home.
fn is_profile_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name != RESET_DIR
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Run files of the other living profiles of a home.
fn others(home: &Path, but: &str) -> Vec<RunFile> {
    let Ok(listing) = fs::read_dir(home) else { return Vec::new() };
    listing
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != but && is_profile_name(name) && is_live(home, name))
        .filter_map(|name| read_run_file(&home.join(name)))
        .collect()
}

/// A process holds the profile's lock.
fn is_live(home: &Path, profile: &str) -> bool {
    let Ok(lock) = File::open(home.join(profile).join(LOCK_FILE)) else { return false };
    // Shared and given back at once; whoever starts in this moment tries again.
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => false,
        Err(error) => error == rustix::io::Errno::WOULDBLOCK,
    }
}

fn open_lock(path: &Path) -> Result<File, ProfileError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| io_error(path, "opening", error))
}

/// False: somebody else has it, and not only for a look.
#[expect(clippy::disallowed_methods, reason = "at start-up, a fifth of a second at most")]
fn lock_exclusively(lock: &File) -> io::Result<bool> {
    for attempt in 0..LOCK_TRIES {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) if attempt + 1 < LOCK_TRIES => std::thread::sleep(LOCK_PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Waits for whoever changes the home's run file: a matter of microseconds.
fn home_lock(home: &Path) -> Result<File, ProfileError> {
    let path = home.join(HOME_LOCK);
    let lock = open_lock(&path)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)
        .map_err(|error| io_error(&path, "locking", error.into()))?;
    Ok(lock)
}

fn read_run_file(dir: &Path) -> Option<RunFile> {
    serde_json::from_slice(&fs::read(dir.join(RUN_FILE)).ok()?).ok()
}

fn write_run_file(dir: &Path, run: &RunFile) -> Result<(), ProfileError> {
    let path = dir.join(RUN_FILE);
    let draft = dir.join(format!("{RUN_FILE}.{}.tmp", std::process::id()));
    let fail = |error| io_error(&path, "writing", error);
    let mut text = serde_json::to_string_pretty(run).map_err(|error| fail(error.into()))?;
    text.push('\n');
    remove(&draft)?;
    let mut file = place::private_file(&draft)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    drop(file);
    fs::rename(&draft, &path).map_err(fail)
}

fn remove(path: &Path) -> Result<(), ProfileError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(path, "removing", error)),
    }
}

fn io_error(path: &Path, doing: &'static str, source: io::Error) -> ProfileError {
    ProfileError::Io { path: path.to_owned(), doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn stamp(home: &Path, profile: &str) -> RunFile {
        read_run_file(&home.join(profile)).unwrap()
    }

    #[test]
    fn a_profile_has_one_owner() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let mut first = Profile::claim(&home, "sim").unwrap();
        assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
        first.publish(7878, BackendName::Sim).unwrap();
        match Profile::claim(&home, "sim") {
            Err(error @ ProfileError::Busy { .. }) => {
                assert!(error.to_string().contains("port 7878"), "{error}");
            }
            other => panic!("{other:?}"),
        }
        let _other = Profile::claim(&home, "claude").unwrap();
        drop(first);
        assert!(!home.join("sim").join(RUN_FILE).exists());
        Profile::claim(&home, "sim").unwrap();
    }

    /// The home's file stays with a living Foreman, goes to the earliest other one when its owner ends, and one whose
    /// owner was killed is replaced.
    #[test]
    fn the_homes_run_file_names_a_living_foreman() {
        let temp = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(temp.path()).unwrap();
        let mut one = Profile::claim(&home, "one").unwrap();
        one.publish(1, BackendName::Sim).unwrap();
        let mut two = Profile::claim(&home, "two").unwrap();
        two.publish(2, BackendName::Sim).unwrap();
        let mut three = Profile::claim(&home, "three").unwrap();
        three.publish(3, BackendName::Claude).unwrap();
        let mut early = stamp(&home, "two");
        early.started_at = "2000-01-01T00:00:00.000Z".to_owned();
        write_run_file(&home.join("two"), &early).unwrap();
        assert_eq!(find_running(&home, None).unwrap().port, 1);
        assert_eq!(find_running(&home, Some("three")).unwrap().port, 3);

        drop(three);
        assert_eq!(find_running(&home, None).unwrap().port, 1, "only one's own files are removed");
        assert_eq!(find_running(&home, Some("three")), None);
        let mut three = Profile::claim(&home, "three").unwrap();
        three.publish(33, BackendName::Claude).unwrap();
        drop(one);
        assert_eq!(read_run_file(&home).unwrap().port, 2, "the earliest inherits it");

        // As after a kill: the files stay, the lock does not.
        let killed = RunFile { profile: "gone".to_owned(), port: 9, ..early };
        fs::create_dir(home.join("gone")).unwrap();
        fs::write(home.join("gone").join(LOCK_FILE), "").unwrap();
        write_run_file(&home.join("gone"), &killed).unwrap();
        write_run_file(&home, &killed).unwrap();
        assert_eq!(find_running(&home, Some("gone")), None);
        assert_eq!(find_running(&home, None).unwrap().profile, "two", "a living one instead");
        three.publish(34, BackendName::Claude).unwrap();
        assert_eq!(read_run_file(&home).unwrap().port, 34);
    }

    #[test]
    fn the_run_file_reads_as_documented() {
        let temp = tempfile::tempdir().unwrap();
        let mut profile = Profile::claim(temp.path(), "sim").unwrap();
        profile.publish(7878, BackendName::Sim).unwrap();
        let path = profile.dir().join(RUN_FILE);
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["pid", "port", "host", "backend", "profile", "version", "startedAt"];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert!(json["startedAt"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn names_stay_inside_the_home() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", ".", "reset", "ä", &"x".repeat(65)] {
            assert!(matches!(Profile::claim(temp.path(), name), Err(ProfileError::Name(_))), "{name:?}");
        }
    }

    /// A reset moves everything aside and deletes nothing.
    #[test]
    fn a_reset_keeps_everything() {
        let temp = tempfile::tempdir().unwrap();
        let profile = Profile::claim(temp.path(), "sim").unwrap();
        assert_eq!(profile.set_aside().unwrap(), None);
        fs::create_dir_all(profile.worktrees().join("demo/kit-t1")).unwrap();
        fs::write(profile.worktrees().join("demo/kit-t1/work.txt"), "unsaved").unwrap();
        let aside = profile.set_aside().unwrap().unwrap();
        assert_eq!(fs::read_to_string(aside.join("worktrees/demo/kit-t1/work.txt")).unwrap(), "unsaved");
        assert!(!profile.worktrees().exists());
        assert!(matches!(Profile::claim(temp.path(), "sim"), Err(ProfileError::Busy { .. })), "the lock stays");
    }
}
