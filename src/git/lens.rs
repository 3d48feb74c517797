//! Git calls over trees and objects that an agent can write, through a git directory of our own.
//!
//! The agent's git directory is never read as configuration: no hooks, filters, file monitors, includes or attributes
//! files of theirs exist here, and the person's own configuration has no influence either. Objects come from the
//! person's store and from the agent's; new ones go to a temporary store that is dropped with the [`Lens`].

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::GitHome;
use super::error::GitError;
use super::person::{Person, quoted};
use super::run::Call;

/// A view on some object stores, with an index and a store of its own.
pub(crate) struct Lens {
    git_dir: PathBuf,
    temporary: Temporary,
    stores: OsString,
    excludes: Option<PathBuf>,
}

impl Lens {
    /// Looks into the person's objects and, if given, an agent's.
    pub(crate) fn new(home: &GitHome, person: &Person, agent_objects: Option<&Path>) -> Result<Self, GitError> {
        let git_dir = neutral(home, &person.format)?;
        let temporary = Temporary::new(home)?;
        let objects = temporary.0.join("objects");
        std::fs::create_dir(&objects).map_err(|e| GitError::disk("create", &objects, &e))?;
        let mut stores = quoted(&person.objects());
        if let Some(path) = agent_objects {
            stores.push(b':');
            stores.extend(quoted(path));
        }
        Ok(Self { git_dir, temporary, stores: OsString::from_vec(stores), excludes: None })
    }

    /// Patterns of ignored files besides those in the tree.
    pub(crate) fn set_excludes(&mut self, file: PathBuf) {
        self.excludes = Some(file);
    }

    /// Its own index file; need not exist.
    pub(crate) fn index(&self) -> PathBuf {
        self.temporary.0.join("index")
    }

    /// A directory for files of this view.
    pub(crate) fn dir(&self) -> &Path {
        &self.temporary.0
    }

    /// git without a working tree.
    pub(crate) fn call(&self) -> Call {
        self.with_tree(&self.temporary.0)
    }

    /// git over trees alone. The index is hidden as well, for git would take attributes from it, which an agent may have
    /// written to make a change look binary.
    pub(crate) fn trees(&self) -> Call {
        self.call().env("GIT_INDEX_FILE", self.temporary.0.join("no-index"))
    }

    /// git whose working tree is `tree`, whatever lies in there.
    pub(crate) fn with_tree(&self, tree: &Path) -> Call {
        let excludes = self.excludes.as_deref().unwrap_or(Path::new("/dev/null"));
        let mut call = Call::in_dir(tree)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_WORK_TREE", tree)
            .env("GIT_INDEX_FILE", self.index())
            .env("GIT_OBJECT_DIRECTORY", self.temporary.0.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.stores)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.excludesFile")
            .env("GIT_CONFIG_VALUE_0", excludes)
            .env("GIT_ATTR_NOSYSTEM", "1");
        for name in ["GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS"] {
            call = call.without_env(name);
        }
        call
    }
}

/// A git directory that nobody but us writes, with a configuration that says nothing but the safe thing. Made once for
/// each object format.
fn neutral(home: &GitHome, format: &str) -> Result<PathBuf, GitError> {
    let dir = home.scratch.join(format!("git-{format}-1"));
    if dir.join("HEAD").is_file() {
        return Ok(dir);
    }
    let making = Temporary::new(home)?;
    let version = if format == "sha1" { "\trepositoryformatversion = 0\n" } else { "\trepositoryformatversion = 1\n" };
    let extension = if format == "sha1" { String::new() } else { format!("[extensions]\n\tobjectformat = {format}\n") };
    let config = format!(
        "[core]\n{version}\tbare = false\n\tautocrlf = false\n\tsafecrlf = false\n\tattributesFile = /dev/null\n\
         \tlogAllRefUpdates = false\n\tsymlinks = true\n\tfileMode = true\n\tbigFileThreshold = 64m\n{extension}"
    );
    let made = making.0.join("git");
    let write = |path: &Path, bytes: &str| std::fs::write(path, bytes);
    std::fs::create_dir(&made)
        .and_then(|()| std::fs::create_dir(made.join("objects")))
        .and_then(|()| std::fs::create_dir(made.join("refs")))
        .and_then(|()| std::fs::create_dir(made.join("info")))
        .and_then(|()| write(&made.join("config"), &config))
        .and_then(|()| write(&made.join("HEAD"), "ref: refs/heads/none\n"))
        .map_err(|e| GitError::disk("create", &made, &e))?;
    match std::fs::rename(&made, &dir) {
        Ok(()) => Ok(dir),
        // Another thread was quicker.
        Err(_) if dir.join("HEAD").is_file() => Ok(dir),
        Err(e) => Err(GitError::disk("create", dir, &e)),
    }
}

/// A directory that is removed when dropped. What a killed process leaves is swept.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new(home: &GitHome) -> Result<Self, GitError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let all = home.scratch.join("tmp");
        std::fs::create_dir_all(&all).map_err(|e| GitError::disk("create", &all, &e))?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let dir = all.join(format!("{}-{number}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(GitError::disk("create", dir, &e)),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
