//! Differences between a worktree and its base, structured for the wire or as text for prompts.
//!
//! Computed between two trees through a git directory of our own: neither the person's diff configuration nor
//! attributes that an agent commits (say, to hide a file as binary) have any influence.

mod patch;

use super::collect::{View, dir_name, require_fork};
use super::error::GitError;
use super::lens::Lens;
use super::person::{Person, as_path, text};
use super::run::require_git;
use super::{GitHome, RepoAt, WireDiff, WorktreeAt};
use crate::protocol::{DiffFile, DiffFileStatus, DiffStats};
use patch::{Limits, Section, sections};

/// Most characters of a diff in a prompt.
const PROMPT_CHARS: usize = 12_000;
/// Most bytes of a patch that are read; counts do not depend on it.
const PATCH_BYTES: usize = 64 * 1024 * 1024;
/// Lines kept of one file (protocol document, diff limits).
const FILE_LINES: usize = 600;
/// Lines kept of a whole diff.
const TOTAL_LINES: usize = 5_000;
/// Characters kept of one line; generated files have lines that no frame could hold.
const LINE_CHARS: usize = 10_000;

/// One changed file, with counts that are always whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Bytes as in the tree.
    pub path: Vec<u8>,
    /// Renames only.
    pub old_path: Option<Vec<u8>>,
    pub status: DiffFileStatus,
    /// Between a file and a link; git shows it as two patches.
    pub type_change: bool,
    /// A submodule's commit is part of the change.
    pub submodule: bool,
    pub binary: bool,
    pub additions: u32,
    pub deletions: u32,
}

/// Diff of a worktree against its base: for a live one the working state (uncommitted and untracked files too) against
/// where it left the base, for a merged or abandoned one its branch against the commit it was made from.
///
/// `path` asks for one file whole, without limits.
///
/// # Errors
/// The branch is gone, the worktree was tampered with, `path` is not among the changed files, or git failed.
pub fn diff(home: &GitHome, repo: &RepoAt, worktree: &WorktreeAt, path: Option<&str>) -> Result<WireDiff, GitError> {
    require_git()?;
    let person = Person::open(&repo.path)?;
    if worktree.live && worktree.dir.symlink_metadata().is_ok() {
        let mut view = View::open(home, &person, worktree)?;
        let tip = view.tip(&person, worktree)?;
        let tree = view.snapshot(&tip)?.tree;
        view.keep_index();
        let base = person.branch_head(&repo.base)?.unwrap_or_else(|| worktree.fork.clone());
        let fork = view.lens.call().args(["merge-base", &base, &tip]).maybe()?;
        let fork = fork.unwrap_or_else(|| worktree.fork.clone());
        return wire(&view.lens, repo, worktree, &fork, &tree, path);
    }
    let head = person
        .branch_head(&worktree.branch)?
        .ok_or_else(|| GitError::NoBranch { path: person.path.clone(), branch: worktree.branch.clone() })?;
    require_fork(worktree)?;
    let lens = Lens::new(home, &person, None)?;
    let fork = fork_of(home, &person, worktree, &head)?;
    wire(&lens, repo, worktree, &fork, &head, path)
}

/// Where the work of a finished worktree begins: the base commit it was last seen to have, which differs from the one
/// it was made from when the agent merged the base meanwhile.
pub(crate) fn fork_of(home: &GitHome, person: &Person, worktree: &WorktreeAt, head: &str) -> Result<String, GitError> {
    let noted = person.commit(&fork_ref(home, worktree))?;
    match noted {
        Some(oid) if oid != head && person.is_ancestor(&oid, head)? => Ok(oid),
        Some(_) | None => Ok(worktree.fork.clone()),
    }
}

/// The hidden ref that notes where the work of a worktree begins.
pub(crate) fn fork_ref(home: &GitHome, worktree: &WorktreeAt) -> String {
    let part = super::bring::ref_part;
    let name = dir_name(&worktree.dir);
    format!("refs/agentcraft/fork/{}/{}", part(&home.profile), part(&name))
}

fn wire(
    lens: &Lens,
    repo: &RepoAt,
    worktree: &WorktreeAt,
    from: &str,
    to: &str,
    path: Option<&str>,
) -> Result<WireDiff, GitError> {
    let mut changed = changes(lens, from, to)?;
    if let Some(path) = path {
        changed.retain(|change| text(&change.path) == path);
        if changed.is_empty() {
            return Err(GitError::Other(format!("{path} is not among the changed files of {}", worktree.branch)));
        }
    }
    let limits = match path {
        Some(_) => Limits { file: usize::MAX, total: usize::MAX, line: usize::MAX },
        None => Limits { file: FILE_LINES, total: TOTAL_LINES, line: LINE_CHARS },
    };
    let paths: Vec<&[u8]> = match path {
        Some(_) => {
            changed.iter().flat_map(|c| [Some(&c.path), c.old_path.as_ref()]).flatten().map(Vec::as_slice).collect()
        }
        None => Vec::new(),
    };
    let (patch, cut) = patch_text(lens, from, to, &paths)?;
    let (mut found, mut truncated) = sections(&patch, limits);
    truncated |= cut;
    if cut {
        // The last section may end in the middle of a hunk.
        found.pop();
    }
    let mut found = found.into_iter();
    let mut files = Vec::new();
    for change in &changed {
        let mut section = found.next().unwrap_or_default();
        if change.type_change
            && let Some(Section { hunks, .. }) = found.next()
        {
            section.hunks.extend(hunks);
        }
        files.push(DiffFile {
            path: text(&change.path),
            old_path: change.old_path.as_deref().map(text),
            status: change.status,
            binary: change.binary || section.binary,
            additions: change.additions,
            deletions: change.deletions,
            hunks: section.hunks,
        });
    }
    let stats = DiffStats {
        files: u32::try_from(files.len()).unwrap_or(u32::MAX),
        additions: files.iter().map(|f| f.additions).fold(0, u32::saturating_add),
        deletions: files.iter().map(|f| f.deletions).fold(0, u32::saturating_add),
    };
    Ok(WireDiff { base: repo.base.clone(), branch: worktree.branch.clone(), files, stats, truncated })
}

/// The changed files between two trees or commits, in git's order.
pub(crate) fn changes(lens: &Lens, from: &str, to: &str) -> Result<Vec<Change>, GitError> {
    let call = lens.trees().args(["diff-tree", "-r", "-M", "-l2000", "--raw", "--numstat", "-z", from, to]);
    let bytes = call.cap(256 << 20).bytes()?;
    let mut fields = bytes.split(|b| *b == 0).peekable();
    let mut found: Vec<Change> = Vec::new();
    while fields.peek().is_some_and(|field| field.starts_with(b":")) {
        let (Some(head), Some(first)) = (fields.next(), fields.next()) else { break };
        let head = text(head);
        let mut words = head.trim_start_matches(':').split(' ');
        let modes = [words.next().unwrap_or_default(), words.next().unwrap_or_default()];
        let letter = words.nth(2).and_then(|word| word.chars().next()).unwrap_or('M');
        let (path, old_path) = match letter {
            'R' | 'C' => (fields.next().unwrap_or_default(), Some(first.to_vec())),
            _ => (first, None),
        };
        found.push(Change {
            path: path.to_vec(),
            old_path,
            status: match letter {
                'A' => DiffFileStatus::Added,
                'D' => DiffFileStatus::Deleted,
                'R' | 'C' => DiffFileStatus::Renamed,
                _ => DiffFileStatus::Modified,
            },
            type_change: letter == 'T',
            submodule: modes.contains(&"160000"),
            binary: false,
            additions: 0,
            deletions: 0,
        });
    }
    for change in &mut found {
        let Some(entry) = fields.next() else { break };
        let mut parts = entry.splitn(3, |b| *b == b'\t');
        let (added, deleted) = (parts.next().map(text), parts.next().map(text));
        if parts.next().is_some_and(<[u8]>::is_empty) {
            // A rename: the two names follow.
            fields.next();
            fields.next();
        }
        change.binary = added.as_deref() == Some("-");
        change.additions = added.and_then(|n| n.parse().ok()).unwrap_or(0);
        change.deletions = deleted.and_then(|n| n.parse().ok()).unwrap_or(0);
    }
    Ok(found)
}

/// Unified diff, all files or those at `paths`. True: it was cut.
fn patch_text(lens: &Lens, from: &str, to: &str, paths: &[&[u8]]) -> Result<(Vec<u8>, bool), GitError> {
    let mut call = lens.trees().args([
        "diff-tree",
        "-r",
        "-M",
        "-l2000",
        "-p",
        "-U3",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        from,
        to,
        "--",
    ]);
    for path in paths {
        call = call.arg(as_path(path));
    }
    let done = call.cap(PATCH_BYTES).finish()?;
    match (done.code, done.cut) {
        (Some(0), false) => Ok((done.stdout, false)),
        (_, true) => Ok((done.stdout, true)),
        _ => Err(super::run::failed("git diff-tree".to_owned(), &done)),
    }
}

/// Unified diff for a prompt, at most 12,000 characters; says so when it was cut.
pub(crate) fn prompt_text(lens: &Lens, from: &str, to: &str) -> Result<String, GitError> {
    let (patch, cut) = patch_text(lens, from, to, &[])?;
    let whole = text(&patch);
    if !cut && whole.chars().count() <= PROMPT_CHARS {
        return Ok(whole);
    }
    const END: &str = "\n[diff cut here]\n";
    let mut kept: String = whole.chars().take(PROMPT_CHARS - END.len()).collect();
    kept.push_str(END);
    Ok(kept)
}
