//! Keeping a diff below the frame limit: which lines are left out. Pure.

use super::decode::json_bytes;
use super::limits::DIFF_BYTES;
use super::{Diff, DiffFile, DiffHunk};

/// A shorter diff, if this one is too large for a frame.
///
/// Files share the room: small ones stay whole, of the larger ones each keeps its first lines, as many bytes as the
/// others do. All counts stay those of the whole diff, and `truncated` is set. Only when the bare list of files is too
/// large are files left out, from the end.
pub fn fit(diff: &Diff) -> Option<Diff> {
    fit_within(diff, DIFF_BYTES)
}

fn fit_within(diff: &Diff, bytes: usize) -> Option<Diff> {
    if json_bytes(diff) <= bytes {
        return None;
    }
    let mut fitted = Diff { truncated: true, ..without_files(diff) };
    let mut room = bytes.saturating_sub(json_bytes(&fitted));
    for file in &diff.files {
        let bare = without_hunks(file);
        let Some(left) = room.checked_sub(in_list(&bare)) else { break };
        room = left;
        fitted.files.push(bare);
    }
    let share = share(fitted.files.len(), diff.files.iter().map(file_bytes), room);
    for (bare, file) in fitted.files.iter_mut().zip(&diff.files) {
        bare.hunks = first_lines(&file.hunks, share);
    }
    Some(fitted)
}

fn without_files(diff: &Diff) -> Diff {
    let Diff { request_id, repo_id, worktree, base, branch, files: _, stats, truncated, error } = diff;
    Diff {
        request_id: request_id.clone(),
        repo_id: repo_id.clone(),
        worktree: worktree.clone(),
        base: base.clone(),
        branch: branch.clone(),
        files: Vec::new(),
        stats: *stats,
        truncated: *truncated,
        error: error.clone(),
    }
}

fn without_hunks(file: &DiffFile) -> DiffFile {
    let DiffFile { path, old_path, status, binary, additions, deletions, hunks: _ } = file;
    DiffFile {
        path: path.clone(),
        old_path: old_path.clone(),
        status: *status,
        binary: *binary,
        additions: *additions,
        deletions: *deletions,
        hunks: Vec::new(),
    }
}

fn without_lines(hunk: &DiffHunk) -> DiffHunk {
    let DiffHunk { header, old_start, old_lines, new_start, new_lines, lines: _ } = hunk;
    DiffHunk {
        header: header.clone(),
        old_start: *old_start,
        old_lines: *old_lines,
        new_start: *new_start,
        new_lines: *new_lines,
        lines: Vec::new(),
    }
}

/// Bytes of an item of a list, with its comma.
fn in_list(item: &impl serde::Serialize) -> usize {
    json_bytes(item) + 1
}

fn file_bytes(file: &DiffFile) -> usize {
    file.hunks.iter().map(|hunk| in_list(&without_lines(hunk)) + hunk.lines.iter().map(in_list).sum::<usize>()).sum()
}

/// The most bytes that each of the first `count` files may have, so that all together have no more than `room`.
fn share(count: usize, sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut sizes: Vec<usize> = sizes.take(count).collect();
    sizes.sort_unstable();
    let mut room = room;
    for (size, sharing) in sizes.into_iter().zip((1..=count).rev()) {
        let share = room / sharing;
        if size > share {
            return share;
        }
        room -= size;
    }
    usize::MAX
}

/// As many lines from the start as have room; no hunk without a line, unless it had none.
fn first_lines(hunks: &[DiffHunk], mut room: usize) -> Vec<DiffHunk> {
    let mut kept = Vec::new();
    for hunk in hunks {
        let mut bare = without_lines(hunk);
        let Some(left) = room.checked_sub(in_list(&bare)) else { break };
        room = left;
        for line in &hunk.lines {
            let Some(left) = room.checked_sub(in_list(line)) else { break };
            room = left;
            bare.lines.push(line.clone());
        }
        let cut = bare.lines.len() < hunk.lines.len();
        if !(cut && bare.lines.is_empty()) {
            kept.push(bare);
        }
        if cut {
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::limits::MAX_FRAME_BYTES;
    use crate::protocol::{
        DiffFileStatus, DiffLine, DiffLineKind, DiffStats, RepoId, ServerMessage, WorktreeId, encode_server,
    };

    /// A diff whose files have hunks of lines of so many bytes.
    fn diff(files: &[Vec<Vec<usize>>]) -> Diff {
        let line = |bytes: &usize| DiffLine {
            kind: DiffLineKind::Add,
            text: "\"".repeat(*bytes),
            old_no: None,
            new_no: Some(1),
        };
        let hunk = |lines: &Vec<usize>| DiffHunk {
            header: "@@ -1,2 +1,2 @@".to_owned(),
            old_start: 1,
            old_lines: 2,
            new_start: 1,
            new_lines: 2,
            lines: lines.iter().map(line).collect(),
        };
        let file = |(number, hunks): (usize, &Vec<Vec<usize>>)| DiffFile {
            path: format!("src/{number}.rs"),
            old_path: None,
            status: DiffFileStatus::Modified,
            binary: false,
            additions: 7,
            deletions: 0,
            hunks: hunks.iter().map(hunk).collect(),
        };
        Diff {
            request_id: "r1".to_owned(),
            repo_id: RepoId::from("demo"),
            worktree: WorktreeId::from("kit-t1"),
            base: None,
            branch: None,
            files: files.iter().enumerate().map(file).collect(),
            stats: DiffStats { files: 9, additions: 9, deletions: 9 },
            truncated: false,
            error: None,
        }
    }

    /// What clients in the field can't receive is never sent: a diff as large as the limits on lines allow.
    #[test]
    fn a_huge_diff_becomes_a_frame() {
        let huge = diff(&vec![vec![vec![2_000; 600]]; 8]);
        let fitted = fit(&huge).unwrap();
        let text = encode_server(&ServerMessage::Diff(Box::new(fitted)));
        assert!(text.len() <= MAX_FRAME_BYTES, "{}", text.len());
        assert!(text.len() > MAX_FRAME_BYTES * 9 / 10, "no more is left out than needed: {}", text.len());
    }

    #[test]
    fn small_files_stay_whole_beside_a_large_one() {
        let whole = diff(&[vec![vec![10_000; 50]], vec![vec![10; 5], vec![10; 5]], vec![]]);
        let fitted = fit_within(&whole, 20_000).unwrap();
        assert!(fitted.truncated);
        assert_eq!(fitted.files.len(), 3);
        assert_eq!(fitted.files[1], whole.files[1]);
        assert!(fitted.files[0].hunks.len() < 2 && fitted.files[0].additions == 7);
        assert_eq!(fitted.stats, whole.stats);
    }

    #[test]
    fn too_many_files_end_early() {
        let whole = diff(&vec![vec![]; 1_000]);
        let fitted = fit_within(&whole, 5_000).unwrap();
        assert!(!fitted.files.is_empty() && fitted.files.len() < 100);
        assert_eq!(fitted.files, whole.files[..fitted.files.len()]);
    }

    proptest! {
        #[test]
        fn what_is_kept_fits_and_is_the_start(
            files in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(0_usize..80, 0..6), 0..4), 0..6,
            ),
            bytes in 300_usize..4_000,
        ) {
            let whole = diff(&files);
            let Some(fitted) = fit_within(&whole, bytes) else {
                prop_assert!(json_bytes(&whole) <= bytes);
                return Ok(());
            };
            prop_assert!(json_bytes(&fitted) <= bytes, "{} of {bytes}", json_bytes(&fitted));
            prop_assert!(fitted.truncated);
            for (kept, file) in fitted.files.iter().zip(&whole.files) {
                prop_assert_eq!(&kept.path, &file.path);
                for (kept, hunk) in kept.hunks.iter().zip(&file.hunks) {
                    prop_assert_eq!(&kept.header, &hunk.header);
                    prop_assert_eq!(&kept.lines[..], &hunk.lines[..kept.lines.len()]);
                }
            }
        }
    }
}
