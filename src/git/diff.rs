//! The structured diff of a worktree against its base, uncommitted changes included.

use std::path::Path;

use super::copy::verify_in;
use super::error::GitError;
use super::run::{Call, nul_fields};
use super::shadow::Shadow;
use super::snapshot::{self, ScratchIndex};
use super::{GitHome, RepoAt, WireDiff, WorktreeAt, repo};
use crate::protocol::{DiffFile, DiffFileStatus, DiffHunk, DiffLine, DiffLineKind, DiffStats};

/// Lines shown per file, and in all: what a review screen can hold. Counts go on past them.
const FILE_LINES: usize = 600;
const TOTAL_LINES: usize = 5_000;
/// Longest line shown, characters.
const LINE_CHARS: usize = 2_000;
/// Lines of one file that was asked for whole.
const WHOLE_LINES: usize = 60_000;

/// The diff of a worktree; with `path` that one file whole.
///
/// A worktree whose directory is gone shows what its branch holds since it left the base.
///
/// # Errors
/// [`GitError`] in words for the one who asked.
pub fn diff(home: &GitHome, repo: &RepoAt, worktree: &WorktreeAt, path: Option<&str>) -> Result<WireDiff, GitError> {
    let shadow = Shadow::open(home, repo)?;
    if worktree.live && worktree.dir.is_dir() {
        verify_in(&shadow, &worktree.dir)?;
        let place = shadow.place(&worktree.id)?;
        let index = ScratchIndex::new(&place)?;
        let tree = snapshot::tree(&shadow, worktree, &index)?;
        let head = shadow.head_in_copy(worktree)?.unwrap_or_else(|| worktree.fork.clone());
        let from = snapshot::fork_point(&shadow, Some(&worktree.dir), &head, &worktree.fork)?;
        return between(&shadow, Some(&worktree.dir), worktree, &from, &tree, path);
    }
    let head = repo::branch_head(&repo.path, &worktree.branch)?
        .ok_or_else(|| GitError::MissingBranch { branch: worktree.branch.clone(), repo: repo.path.clone() })?;
    // After a merge the branch lies on the base: the recorded fork is where it left it.
    between(&shadow, None, worktree, &worktree.fork, &head, path)
}

fn between(
    shadow: &Shadow,
    dir: Option<&Path>,
    worktree: &WorktreeAt,
    from: &str,
    to: &str,
    path: Option<&str>,
) -> Result<WireDiff, GitError> {
    let call = || -> Call {
        let call = match dir {
            Some(dir) => shadow.with_objects_of(shadow.git(), dir),
            None => shadow.git(),
        };
        call.args(["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"])
    };
    let mut files = raw_files(&call().args(["-z", "--raw", "--end-of-options", from, to]).run()?);
    let numbers = call().args(["-z", "--numstat", "--end-of-options", from, to]).run()?;
    count_lines(&numbers, &mut files);
    let stats = DiffStats {
        files: u32::try_from(files.len()).unwrap_or(u32::MAX),
        additions: files.iter().map(|file| file.additions).sum(),
        deletions: files.iter().map(|file| file.deletions).sum(),
    };
    let patch =
        call().args(["-p", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", from, to]).run()?;
    let mut limits = match path {
        Some(_) => Limits { file: WHOLE_LINES, left: WHOLE_LINES, cut: false },
        None => Limits { file: FILE_LINES, left: TOTAL_LINES, cut: false },
    };
    fill_hunks(&patch, &mut files, path, &mut limits);
    if let Some(path) = path {
        files.retain(|file| file.path == path || file.old_path.as_deref() == Some(path));
        if files.is_empty() {
            return Err(GitError::Unexpected(format!("{path} is not part of this diff")));
        }
    }
    Ok(WireDiff {
        base: shadow.repo.base.clone(),
        branch: worktree.branch.clone(),
        files,
        stats,
        truncated: limits.cut,
    })
}

struct Limits {
    file: usize,
    left: usize,
    cut: bool,
}

/// Status and names: ":mode mode id id S" NUL path [NUL path], in the order of the patch.
fn raw_files(out: &[u8]) -> Vec<DiffFile> {
    let mut fields = nul_fields(out);
    let mut files = Vec::new();
    while let Some(meta) = fields.next() {
        let letter = meta.rsplit(|byte| *byte == b' ').next().and_then(|word| word.first().copied());
        let Some(first) = fields.next() else { break };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (path, old_path, status) = match letter {
            Some(b'R') => {
                let Some(second) = fields.next() else { break };
                (text(second), Some(text(first)), DiffFileStatus::Renamed)
            }
            Some(b'A') => (text(first), None, DiffFileStatus::Added),
            Some(b'D') => (text(first), None, DiffFileStatus::Deleted),
            _ => (text(first), None, DiffFileStatus::Modified),
        };
        files.push(DiffFile { path, old_path, status, binary: false, additions: 0, deletions: 0, hunks: Vec::new() });
    }
    files
}

/// Whole counts, also of what is cut: "added TAB deleted TAB path NUL", or for renames an empty path and two names.
fn count_lines(out: &[u8], files: &mut [DiffFile]) {
    let mut fields = out.split(|byte| *byte == 0);
    for file in files {
        let Some(field) = fields.next() else { return };
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let (added, deleted, path) = (parts.next(), parts.next(), parts.next());
        let number = |bytes: Option<&[u8]>| {
            bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|text| text.parse::<u32>().ok())
        };
        file.binary = added == Some(b"-");
        file.additions = number(added).unwrap_or(0);
        file.deletions = number(deleted).unwrap_or(0);
        if path.is_some_and(<[u8]>::is_empty) {
            let _old = fields.next();
            let _new = fields.next();
        }
    }
}

/// Puts the patch's hunks to their files, which come in the same order.
fn fill_hunks(patch: &[u8], files: &mut [DiffFile], wanted: Option<&str>, limits: &mut Limits) {
    let mut files = files.iter_mut();
    let mut file: Option<&mut DiffFile> = None;
    let mut shown = 0_usize;
    let (mut old_left, mut new_left) = (0_u32, 0_u32);
    let (mut old_no, mut new_no) = (0_u32, 0_u32);
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // Inside a hunk the counts say where it ends, so that a line that looks like a header is no header.
        if old_left == 0 && new_left == 0 {
            if line.starts_with(b"diff --git ") {
                file = files.next();
                shown = 0;
            } else if line.starts_with(b"@@ ")
                && let Some(file) = file.as_deref_mut()
                && let Some(hunk) = hunk_header(line)
            {
                (old_left, new_left) = (hunk.old_lines, hunk.new_lines);
                (old_no, new_no) = (hunk.old_start, hunk.new_start);
                file.hunks.push(hunk);
            }
            continue;
        }
        let (kind, text) = match line.split_first() {
            Some((b'+', rest)) => (DiffLineKind::Add, rest),
            Some((b'-', rest)) => (DiffLineKind::Del, rest),
            Some((b'\\', _)) => continue,
            Some((_, rest)) => (DiffLineKind::Ctx, rest),
            None => (DiffLineKind::Ctx, line),
        };
        let (old, new) = match kind {
            DiffLineKind::Add => (None, Some(new_no)),
            DiffLineKind::Del => (Some(old_no), None),
            DiffLineKind::Ctx => (Some(old_no), Some(new_no)),
        };
        if old.is_some() {
            old_left = old_left.saturating_sub(1);
            old_no += 1;
        }
        if new.is_some() {
            new_left = new_left.saturating_sub(1);
            new_no += 1;
        }
        let Some(file) = file.as_deref_mut() else { continue };
        if wanted.is_some_and(|path| file.path != path && file.old_path.as_deref() != Some(path)) {
            continue;
        }
        if shown >= limits.file || limits.left == 0 {
            limits.cut = true;
            continue;
        }
        shown += 1;
        limits.left -= 1;
        let text: String = String::from_utf8_lossy(text).chars().take(LINE_CHARS).collect();
        if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(DiffLine { kind, text, old_no: old, new_no: new });
        }
    }
}

/// "@@ -12,6 +12,9 @@ context"; a count that is left out is 1.
fn hunk_header(line: &[u8]) -> Option<DiffHunk> {
    let text = String::from_utf8_lossy(line).into_owned();
    let mut words = text.split(' ');
    let (_at, old, new) = (words.next()?, words.next()?, words.next()?);
    let range = |word: &str, sign: char| -> Option<(u32, u32)> {
        let word = word.strip_prefix(sign)?;
        match word.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((word.parse().ok()?, 1)),
        }
    };
    let (old_start, old_lines) = range(old, '-')?;
    let (new_start, new_lines) = range(new, '+')?;
    let header = text.chars().take(LINE_CHARS).collect();
    Some(DiffHunk { header, old_start, old_lines, new_start, new_lines, lines: Vec::new() })
}
