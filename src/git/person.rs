//! The person's repository as git calls see it: where its parts are, its refs, its checkouts.
//!
//! Reads only. Every call runs with the person's configuration and without hooks.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::run::{Call, Finished, failed, words};

/// A repository with a checkout at `path`.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    /// Root of the checkout, links resolved.
    pub path: PathBuf,
    /// Git directory of this checkout.
    pub git_dir: PathBuf,
    /// Shared by all its checkouts; equal to `git_dir` for an ordinary repository.
    pub common_dir: PathBuf,
    /// `sha1` or `sha256`.
    pub format: String,
    shallow: bool,
}

/// A checkout of the repository: the main one or a linked worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    pub path: PathBuf,
    /// Short name; none when HEAD is detached.
    pub branch: Option<String>,
    /// Full hex; none before the first commit.
    pub head: Option<String>,
    /// Its directory exists; else it was removed by hand, or lies on a disk that is not there now.
    pub is_there: bool,
}

impl Person {
    /// Opens the repository whose checkout is at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, GitError> {
        let path = path.canonicalize().map_err(|_| GitError::NoPath(path.to_owned()))?;
        if !path.is_dir() {
            return Err(GitError::NotGit(path));
        }
        let question =
            |what: &[&str]| Call::in_dir(&path).args(["rev-parse", "--path-format=absolute"]).args(what).finish();
        let places: [&[&str]; 3] = [&["--show-toplevel"], &["--git-dir"], &["--git-common-dir"]];
        let all = question(&[
            "--show-toplevel",
            "--git-dir",
            "--git-common-dir",
            "--show-object-format",
            "--is-shallow-repository",
        ])?;
        if all.code != Some(0) {
            return Err(not_opened(&path, &all));
        }
        let lines: Vec<&[u8]> = all.stdout.strip_suffix(b"\n").unwrap_or(&all.stdout).split(|b| *b == b'\n').collect();
        let (top, git_dir, common_dir, format, shallow) = if let [top, git_dir, common, format, shallow] = &lines[..] {
            (as_path(top), as_path(git_dir), as_path(common), text(format), *shallow == b"true")
        } else {
            // A newline in a path: ask for each path alone.
            let mut answers = Vec::new();
            for place in places {
                let one = question(place)?;
                if one.code != Some(0) {
                    return Err(not_opened(&path, &one));
                }
                answers.push(as_path(one.stdout.strip_suffix(b"\n").unwrap_or(&one.stdout)));
            }
            let mut ends = lines.iter().rev();
            let shallow = ends.next().is_some_and(|line| *line == b"true");
            let format = ends.next().map(|line| text(line)).unwrap_or_default();
            let mut answers = answers.into_iter();
            match (answers.next(), answers.next(), answers.next()) {
                (Some(top), Some(git), Some(common)) => (top, git, common, format, shallow),
                _ => return Err(GitError::NotGit(path)),
            }
        };
        let top = top.canonicalize().unwrap_or(top);
        if top != path {
            return Err(GitError::NotRoot { path, root: top });
        }
        Ok(Self { path, git_dir, common_dir, format, shallow })
    }

    /// git in the checkout.
    pub(crate) fn call(&self) -> Call {
        Call::in_dir(&self.path)
    }

    /// Its object store.
    pub(crate) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Forms of repositories that agents cannot borrow from.
    pub(crate) fn unsupported(&self) -> Result<Option<GitError>, GitError> {
        if let Some(refusal) = self.shallow() {
            return Ok(Some(refusal));
        }
        let promises = "^(extensions\\.partialclone|remote\\..*\\.(promisor|partialclonefilter))$";
        if self.call().args(["config", "--get-regexp", promises]).maybe()?.is_some() {
            return Ok(Some(self.refused(
                "a partial clone, whose missing objects would have to be fetched",
                "connect a full clone instead",
            )));
        }
        Ok(None)
    }

    /// A history that ends somewhere would end in every copy, unseen.
    pub(crate) fn shallow(&self) -> Option<GitError> {
        self.shallow.then(|| self.refused("a shallow clone", "fetch the whole history first: git fetch --unshallow"))
    }

    fn refused(&self, what: &str, next: &str) -> GitError {
        GitError::Unsupported { path: self.path.clone(), what: what.to_owned(), next: next.to_owned() }
    }

    /// Full hex of the commit that `refs/heads/<branch>` names.
    pub(crate) fn branch_head(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit(&format!("refs/heads/{branch}"))
    }

    /// Full hex of the commit that `name` (a full ref or an object id) leads to.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let done = self
            .call()
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{name}^{{commit}}"))
            .finish()?;
        match done.code {
            Some(0) => Ok(Some(text(&done.stdout).trim_end().to_owned())),
            // 128 too: an object that is not there, a ref that points to nothing.
            Some(1 | 128) => Ok(None),
            _ => Err(failed("git rev-parse".to_owned(), &done)),
        }
    }

    /// The base branch's head.
    pub(crate) fn base_head(&self, base: &str) -> Result<String, GitError> {
        self.branch_head(base)?.ok_or_else(|| GitError::NoBase { path: self.path.clone(), branch: base.to_owned() })
    }

    pub(crate) fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool, GitError> {
        Ok(self.call().args(["merge-base", "--is-ancestor", older, newer]).maybe()?.is_some())
    }

    /// One best common ancestor.
    pub(crate) fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        self.call().args(["merge-base", one, other]).maybe()
    }

    /// All its checkouts.
    pub(crate) fn checkouts(&self) -> Result<Vec<Checkout>, GitError> {
        let bytes = self.call().args(["worktree", "list", "--porcelain", "-z"]).bytes()?;
        let mut found = Vec::new();
        let mut path: Option<PathBuf> = None;
        let (mut branch, mut head, mut bare) = (None, None, false);
        for field in bytes.split(|b| *b == 0) {
            if field.is_empty() {
                if let Some(path) = path.take()
                    && !bare
                {
                    let is_there = path.is_dir();
                    found.push(Checkout { path, branch: branch.take(), head: head.take(), is_there });
                }
                (branch, head, bare) = (None, None, false);
            } else if let Some(rest) = field.strip_prefix(b"worktree ") {
                path = Some(as_path(rest));
            } else if let Some(rest) = field.strip_prefix(b"branch ") {
                branch = Some(text(rest.strip_prefix(b"refs/heads/").unwrap_or(rest)));
            } else if let Some(rest) = field.strip_prefix(b"HEAD ") {
                head = Some(text(rest)).filter(|oid| oid.bytes().any(|b| b != b'0'));
            } else if field == b"bare" {
                bare = true;
            }
        }
        Ok(found)
    }

    /// The checkouts that have `branch` checked out.
    pub(crate) fn checkouts_of(&self, branch: &str) -> Result<Vec<Checkout>, GitError> {
        Ok(self.checkouts()?.into_iter().filter(|c| c.branch.as_deref() == Some(branch)).collect())
    }

    /// The blob at `path` in `commit`, if it is a regular file of at most `most` bytes.
    pub(crate) fn blob(&self, commit: &str, path: &str, most: usize) -> Result<Option<Vec<u8>>, GitError> {
        let entry = self.call().args(["ls-tree", "-z", commit, "--", path]).bytes()?;
        let head = text(entry.split(|b| *b == b'\t').next().unwrap_or_default());
        let mut parts = head.split(' ');
        let (Some(mode), Some("blob"), Some(id)) = (parts.next(), parts.next(), parts.next()) else { return Ok(None) };
        if !mode.starts_with("100") {
            return Ok(None);
        }
        self.call().args(["cat-file", "blob", id]).cap(most).bytes().map(Some)
    }

    /// A file inside the git directory of this checkout that says that an operation of the person is under way.
    pub(crate) fn operation(git_dir: &Path) -> Option<&'static str> {
        [
            ("rebase-merge", "a rebase"),
            ("rebase-apply", "a rebase or an am"),
            ("MERGE_HEAD", "a merge"),
            ("CHERRY_PICK_HEAD", "a cherry-pick"),
            ("REVERT_HEAD", "a revert"),
            ("sequencer", "a cherry-pick or revert"),
            ("BISECT_LOG", "a bisect"),
        ]
        .into_iter()
        .find(|(file, _)| git_dir.join(file).symlink_metadata().is_ok())
        .map(|(_, what)| what)
    }

    /// An operation under way in any checkout that will move `branch` when it ends, though it is not checked out now.
    pub(crate) fn operation_on(&self, branch: &str) -> Option<String> {
        let full = format!("refs/heads/{branch}");
        let mut dirs = vec![self.common_dir.clone()];
        if let Ok(linked) = std::fs::read_dir(self.common_dir.join("worktrees")) {
            dirs.extend(linked.filter_map(|entry| entry.ok().map(|e| e.path())));
        }
        let says = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default();
        for dir in dirs {
            let heads = [says(dir.join("rebase-merge/head-name")), says(dir.join("rebase-apply/head-name"))];
            let more = says(dir.join("rebase-merge/update-refs"));
            if heads.iter().any(|head| head.trim_end() == full) || more.lines().any(|line| line == full) {
                return Some("a rebase".to_owned());
            }
            if says(dir.join("BISECT_START")).trim_end() == branch {
                return Some("a bisect".to_owned());
            }
        }
        None
    }

    /// The git directory of `checkout`.
    pub(crate) fn git_dir_of(&self, checkout: &Checkout) -> Result<PathBuf, GitError> {
        if checkout.path == self.path {
            return Ok(self.git_dir.clone());
        }
        let bytes = Call::in_dir(&checkout.path).args(["rev-parse", "--absolute-git-dir"]).bytes()?;
        Ok(as_path(bytes.strip_suffix(b"\n").unwrap_or(&bytes)))
    }
}

fn not_opened(path: &Path, done: &Finished) -> GitError {
    let said = String::from_utf8_lossy(&done.stderr);
    if said.contains("not a git repository") || said.contains("must be run in a work tree") {
        GitError::NotGit(path.to_owned())
    } else {
        // Another owner, a damaged configuration: nothing that goes by itself.
        GitError::Other(format!("git cannot open {}: {}", path.display(), words(&done.stderr)))
    }
}

pub(crate) fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path as git's C-style quoted string, for lists of object stores.
pub(crate) fn quoted(path: &Path) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\n' => out.extend(b"\\n"),
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// True for a full object id in lower-case hex.
pub(crate) fn is_oid(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The first seven digits.
pub(crate) fn short(oid: &str) -> &str {
    oid.get(..7).unwrap_or(oid)
}
