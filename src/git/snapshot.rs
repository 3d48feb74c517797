//! The present state of a worktree as a tree, without touching the agent's index; statistics and texts from it.

use std::path::{Path, PathBuf};

use super::error::{At, GitError};
use super::run::nul_fields;
use super::shadow::Shadow;
use super::{WorktreeAt, WorktreeStats, copy, include};

/// Characters of a diff in an agent's prompt.
const PROMPT_CHARS: usize = 12_000;
/// Names of changed files kept.
const NAMES: usize = 200;

/// An index of the Foreman's that is thrown away, unless it is kept.
pub(crate) struct ScratchIndex {
    path: PathBuf,
}

impl ScratchIndex {
    /// A copy of the worktree's kept index, whose file times make `add` quick.
    pub(crate) fn new(place: &Path) -> Result<Self, GitError> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("index.{}.{number}", std::process::id()));
        let kept = place.join("index");
        if kept.is_file() {
            std::fs::copy(&kept, &path).at(&path)?;
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it the index that later ones start from.
    pub(crate) fn keep(self, place: &Path) -> Result<(), GitError> {
        std::fs::rename(&self.path, place.join("index")).at(&self.path)
    }
}

impl Drop for ScratchIndex {
    fn drop(&mut self) {
        // Kept ones are gone from here already.
        let _gone = std::fs::remove_file(&self.path);
        let _lock = std::fs::remove_file(self.path.with_extension("lock"));
    }
}

/// Writes the worktree's files (tracked and untracked, ignored ones not) as a tree; gives back its id.
///
/// Files that were copied from the person's checkout never get in, also when the agent un-ignores them.
pub(crate) fn tree(shadow: &Shadow, worktree: &WorktreeAt, index: &ScratchIndex) -> Result<String, GitError> {
    let copied = include::copied_list(&shadow.place(&worktree.id)?)?;
    let head = shadow.head_in_copy(worktree)?;
    if let Some(head) = head
        && !index.path().is_file()
    {
        shadow.git_in(&worktree.dir, index.path()).args(["read-tree", "--end-of-options"]).arg(head).run()?;
    }
    let mut add = shadow.git_in(&worktree.dir, index.path()).args(["add", "--all", "--ignore-errors", "--", "."]);
    for path in &copied {
        add = add.arg(format!(":(top,exclude,literal){path}"));
    }
    add.run()?;
    for path in &copied {
        // A name that the agent had added itself before is taken out again.
        let _absent = shadow
            .git_in(&worktree.dir, index.path())
            .args(["rm", "--quiet", "--cached", "--ignore-unmatch", "--"])
            .arg(format!(":(top,literal){path}"))
            .output()?;
    }
    shadow.git_in(&worktree.dir, index.path()).args(["write-tree"]).line()
}

/// The commit at which the branch left the base.
pub(crate) fn fork_point(shadow: &Shadow, dir: Option<&Path>, head: &str, fork: &str) -> Result<String, GitError> {
    let base = shadow.base_head().unwrap_or_else(|_| fork.to_owned());
    let mut call = shadow.git();
    if let Some(dir) = dir {
        call = shadow.with_objects_of(call, dir);
    }
    Ok(call.args(["merge-base", "--end-of-options"]).args([&base, head]).maybe()?.unwrap_or_else(|| fork.to_owned()))
}

/// Statistics of a live worktree.
pub(crate) fn stats(shadow: &Shadow, worktree: &WorktreeAt) -> Result<WorktreeStats, GitError> {
    copy::verify_in(shadow, &worktree.dir)?;
    let place = shadow.place(&worktree.id)?;
    let index = ScratchIndex::new(&place)?;
    let tree = tree(shadow, worktree, &index)?;
    let head = shadow.head_in_copy(worktree)?.unwrap_or_else(|| worktree.fork.clone());
    let from = fork_point(shadow, Some(&worktree.dir), &head, &worktree.fork)?;
    numbers(shadow, Some(&worktree.dir), worktree, &from, &head, &tree)
}

/// Statistics between two tree-ishes; `ahead` counts commits of `head` that the base has not.
pub(crate) fn numbers(
    shadow: &Shadow,
    dir: Option<&Path>,
    worktree: &WorktreeAt,
    from: &str,
    head: &str,
    to: &str,
) -> Result<WorktreeStats, GitError> {
    let call = |shadow: &Shadow| match dir {
        Some(dir) => shadow.with_objects_of(shadow.git(), dir),
        None => shadow.git(),
    };
    let base = shadow.base_head().unwrap_or_else(|_| worktree.fork.clone());
    let ahead = call(shadow)
        .args(["rev-list", "--count", "--end-of-options"])
        .arg(format!("{base}..{head}"))
        .line()?
        .parse()
        .map_err(|_| GitError::Unexpected("rev-list gave no number".to_owned()))?;
    let out = call(shadow)
        .args(["diff-tree", "-r", "-z", "-M", "--numstat", "--no-ext-diff", "--no-textconv", "--end-of-options"])
        .args([from, to])
        .run()?;
    let mut stats = WorktreeStats { id: worktree.id.clone(), ahead, files: 0, additions: 0, deletions: 0 };
    for field in nul_fields(&out) {
        // "added TAB deleted TAB path"; a rename has an empty path here and two more fields without tabs.
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(deleted), Some(_)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<u32>().ok());
        if !(number(added).is_some() || added == b"-") {
            continue;
        }
        stats.files += 1;
        stats.additions += number(added).unwrap_or(0);
        stats.deletions += number(deleted).unwrap_or(0);
    }
    Ok(stats)
}

/// A unified diff for a prompt, and the names of the changed files.
pub(crate) fn prompt_diff(
    shadow: &Shadow,
    dir: Option<&Path>,
    from: &str,
    to: &str,
) -> Result<(String, Vec<String>), GitError> {
    let call = |shadow: &Shadow| match dir {
        Some(dir) => shadow.with_objects_of(shadow.git(), dir),
        None => shadow.git(),
    };
    let out = call(shadow)
        .args(["diff-tree", "-r", "-M", "-p", "--unified=3", "--no-ext-diff", "--no-textconv", "--no-color"])
        .args(["--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", from, to])
        .run()?;
    let text = String::from_utf8_lossy(&out);
    let mut cut: String = text.chars().take(PROMPT_CHARS).collect();
    if cut.len() < text.len() {
        cut.push_str("\n[diff cut here]");
    }
    let names = call(shadow).args(["diff-tree", "-r", "-z", "--name-only", "--end-of-options", from, to]).run()?;
    let names = nul_fields(&names).take(NAMES).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    Ok((cut, names))
}
