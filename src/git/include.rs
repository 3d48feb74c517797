//! `.worktreeinclude`: ignored files of the person's checkout that a new worktree gets a copy of (say, `.env`).
//!
//! The file as committed on the base branch counts, never an agent's version. Nothing is copied through a link or over
//! a tracked file, and what was copied never enters a commit.

use std::path::{Component, Path};

use ignore::gitignore::GitignoreBuilder;

use super::error::{At, GitError};
use super::run::{git, nul_fields, path_of};
use super::shadow::Shadow;

/// Files copied at the most.
const FILES: usize = 500;
/// Bytes copied at the most: settings and secrets, not build results.
const BYTES: u64 = 64 * 1024 * 1024;
/// Longest `.worktreeinclude`, bytes.
const LIST_BYTES: usize = 64 * 1024;
/// The Foreman's list of what was copied, beside the worktree's index; NUL-separated.
const LIST: &str = "copied";

/// What was copied into a worktree, as paths below it.
pub(crate) fn copied_list(place: &Path) -> Result<Vec<String>, GitError> {
    let path = place.join(LIST);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(nul_fields(&bytes).map(|name| String::from_utf8_lossy(name).into_owned()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).at(&path),
    }
}

/// Copies what the base commit's `.worktreeinclude` names; gives back what it copied.
pub(crate) fn copy_included(shadow: &Shadow, worktree: &str, dir: &Path, base: &str) -> Result<Vec<String>, GitError> {
    let place = shadow.place(worktree)?;
    let blob = shadow.git().args(["cat-file", "blob", "--end-of-options"]).arg(format!("{base}:.worktreeinclude"));
    let blob = blob.output()?;
    if blob.code != 0 || blob.stdout.len() > LIST_BYTES {
        return Ok(Vec::new());
    }
    let checkout = &shadow.repo.path;
    let mut rules = GitignoreBuilder::new(checkout);
    for line in String::from_utf8_lossy(&blob.stdout).lines() {
        // A line that is no pattern names nothing.
        let _bad_pattern = rules.add_line(None, line);
    }
    let Ok(rules) = rules.build() else { return Ok(Vec::new()) };
    let ignored = git(checkout).args(["ls-files", "-z", "--others", "--ignored", "--exclude-standard"]).run()?;
    let mut copied: Vec<String> = Vec::new();
    let mut bytes = 0;
    for name in nul_fields(&ignored) {
        let relative = path_of(name);
        let plain = relative.components().all(|part| match part {
            Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
            _ => false,
        });
        let Some(text) = relative.to_str() else { continue };
        if !plain
            || !rules.matched_path_or_any_parents(&relative, false).is_ignore()
            || crosses_link(checkout, &relative)
        {
            continue;
        }
        let (source, target) = (checkout.join(&relative), dir.join(&relative));
        let Ok(meta) = source.symlink_metadata() else { continue };
        bytes += meta.len();
        if !meta.is_file() || target.symlink_metadata().is_ok() || crosses_link(dir, &relative) {
            continue;
        }
        if copied.len() >= FILES || bytes > BYTES {
            break;
        }
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).at(parent)?;
        }
        // Listed before it is there: it must never be committed, also after a kill between the two.
        copied.push(text.to_owned());
        let list = place.join(LIST);
        std::fs::write(&list, copied.join("\0")).at(&list)?;
        std::fs::copy(&source, &target).at(&target)?;
    }
    Ok(copied)
}

/// A folder on the way is a link.
fn crosses_link(root: &Path, relative: &Path) -> bool {
    let mut at = root.to_owned();
    let mut parts = relative.components().peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        if parts.peek().is_some() && at.symlink_metadata().is_ok_and(|meta| meta.file_type().is_symlink()) {
            return true;
        }
    }
    false
}
