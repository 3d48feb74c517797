//! The Foreman's own git directory for a repository: borrowed objects, own configuration, nothing an agent can write.
//!
//! Through it worktrees are checked out, read and committed, so that no configuration, hook, filter or include of a
//! worktree's own git directory is ever used.

use std::path::{Path, PathBuf};

use super::error::{At, GitError};
use super::run::{Call, git};
use super::{GitHome, Identity, RepoAt, WorktreeAt};

/// The shadow of one repository.
pub(crate) struct Shadow {
    /// The bare git directory.
    pub(crate) dir: PathBuf,
    /// Indexes and lists per worktree.
    meta: PathBuf,
    pub(crate) repo: RepoAt,
    /// The repository's object directory.
    pub(crate) objects: PathBuf,
    /// "sha1" or "sha256".
    pub(crate) format: String,
}

/// A path in one line of git's own files; a path with a line break can't stand there.
pub(crate) fn one_line_path(path: &Path) -> Result<String, GitError> {
    match path.to_str() {
        Some(text) if !text.contains('\n') => Ok(text.to_owned()),
        _ => Err(GitError::Unsupported(format!(
            "the path {} has a line break or is not UTF-8: git can't borrow objects from there",
            path.display()
        ))),
    }
}

impl Shadow {
    /// Opens the shadow, making it the first time.
    pub(crate) fn open(home: &GitHome, repo: &RepoAt) -> Result<Self, GitError> {
        let meta = home.meta.join(&repo.id);
        let dir = meta.join("shadow.git");
        let objects = git(&repo.path).args(["rev-parse", "--path-format=absolute", "--git-path", "objects"]).line()?;
        let objects = PathBuf::from(objects);
        let objects = objects.canonicalize().at(&objects)?;
        let format = git(&repo.path).args(["rev-parse", "--show-object-format"]).line()?;
        let shadow = Self { dir, meta, repo: repo.clone(), objects, format };
        if !shadow.dir.join("HEAD").is_file() {
            std::fs::create_dir_all(&shadow.meta).at(&shadow.meta)?;
            git(&shadow.meta)
                .args(["init", "--quiet", "--bare", "--template="])
                .arg(format!("--object-format={}", shadow.format))
                .arg(&shadow.dir)
                .run()?;
        }
        let info = shadow.dir.join("objects/info");
        std::fs::create_dir_all(&info).at(&info)?;
        let alternates = info.join("alternates");
        let wanted = format!("{}\n", one_line_path(&shadow.objects)?);
        if std::fs::read_to_string(&alternates).ok().as_deref() != Some(&wanted) {
            std::fs::write(&alternates, wanted).at(&alternates)?;
        }
        Ok(shadow)
    }

    /// The Foreman's directory for one worktree: its index, the list of copied files.
    pub(crate) fn place(&self, worktree: &str) -> Result<PathBuf, GitError> {
        let place = self.meta.join("worktrees").join(worktree);
        std::fs::create_dir_all(&place).at(&place)?;
        Ok(place)
    }

    /// A call with the shadow's configuration alone: not the person's, not the system's.
    pub(crate) fn git(&self) -> Call {
        git(&self.dir)
            .env("GIT_DIR", &self.dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .args(["-c", "core.bare=false", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false"])
            .args(["-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null"])
            .args(["-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.splitIndex=false"])
    }

    /// A call that reads and writes the objects of a worktree's own git directory, with an index of the Foreman's.
    pub(crate) fn git_in(&self, worktree: &Path, index: &Path) -> Call {
        let mut call = self.git();
        call = call.env("GIT_WORK_TREE", worktree).env("GIT_INDEX_FILE", index);
        self.with_objects_of(call, worktree)
    }

    /// Objects of the worktree are read and written; those of the repository are read.
    pub(crate) fn with_objects_of(&self, call: Call, worktree: &Path) -> Call {
        call.env("GIT_OBJECT_DIRECTORY", worktree.join(".git/objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects))
    }

    /// Adds author and committer.
    pub(crate) fn signed_by(call: Call, identity: &Identity) -> Call {
        call.env("GIT_AUTHOR_NAME", &identity.name)
            .env("GIT_AUTHOR_EMAIL", &identity.email)
            .env("GIT_COMMITTER_NAME", &identity.name)
            .env("GIT_COMMITTER_EMAIL", &identity.email)
    }

    /// Head of the repository's base branch.
    pub(crate) fn base_head(&self) -> Result<String, GitError> {
        super::repo::branch_head(&self.repo.path, &self.repo.base)?
            .ok_or_else(|| GitError::MissingBranch { branch: self.repo.base.clone(), repo: self.repo.path.clone() })
    }

    /// Pins a commit that a copy borrows, against the repository's garbage collection.
    pub(crate) fn pin(&self, name: &str, commit: &str) -> Result<(), GitError> {
        let short: String = commit.chars().take(12).collect();
        git(&self.repo.path)
            .args(["update-ref", "--no-deref"])
            .arg(format!("refs/agentcraft/keep/{name}-{short}"))
            .arg(commit)
            .run()
            .map(|_| ())
    }

    /// The branch's head in the worktree's own git directory, read without trusting its configuration.
    pub(crate) fn head_in_copy(&self, worktree: &WorktreeAt) -> Result<Option<String>, GitError> {
        self.resolve_in_copy(&worktree.dir, &format!("refs/heads/{}", worktree.branch))
    }

    /// A ref of the worktree's own git directory.
    pub(crate) fn resolve_in_copy(&self, dir: &Path, name: &str) -> Result<Option<String>, GitError> {
        git(dir)
            .env("GIT_DIR", dir.join(".git"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{name}^{{commit}}"))
            .maybe()
    }

    /// What HEAD of the worktree names: a full ref name, or none when detached.
    pub(crate) fn head_name_in_copy(&self, dir: &Path) -> Result<Option<String>, GitError> {
        git(dir)
            .env("GIT_DIR", dir.join(".git"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["symbolic-ref", "--quiet", "HEAD"])
            .maybe()
    }
}

/// A path as `GIT_ALTERNATE_OBJECT_DIRECTORIES` takes it: quoted, for a colon separates.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for c in path.to_string_lossy().chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}
