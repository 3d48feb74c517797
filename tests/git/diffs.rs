//! Structured diffs: counts, limits, names, and that no configuration has a say.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use agentcraft_tui::git::{GitError, diff};
use agentcraft_tui::protocol::{DiffFileStatus, DiffLineKind};

use crate::lab::{Lab, write};

/// Uncommitted and untracked files are shown with line numbers, also under a configuration that renames prefixes,
/// colours, or has a diff program of its own.
#[test]
fn configuration_has_no_say() {
    let lab = Lab::new();
    for (name, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("diff.renames", "false"),
        ("diff.context", "0"),
        ("color.ui", "always"),
        ("diff.suppressBlankEmpty", "true"),
        ("core.quotePath", "true"),
    ] {
        lab.git(&["config", name, value]);
    }
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join(".gitattributes"), b"*.txt -diff\n");
    write(&worktree.dir.join("src/notes.txt"), b"a\nb\nC\nd\ne");
    write(&worktree.dir.join("näw b/x.txt"), b"1\n");
    let shown = diff(&lab.home, &lab.repo, &worktree, None).unwrap();
    assert_eq!(
        (shown.base.as_str(), shown.branch.as_str(), shown.truncated),
        ("main", worktree.branch.as_str(), false)
    );
    let notes = shown.files.iter().find(|f| f.path == "src/notes.txt").unwrap();
    assert_eq!((notes.status, notes.binary, notes.additions, notes.deletions), (DiffFileStatus::Modified, false, 2, 2));
    let hunk = &notes.hunks[0];
    assert_eq!((hunk.header.as_str(), hunk.old_start, hunk.old_lines), ("@@ -1,5 +1,5 @@", 1, 5));
    let change: Vec<_> =
        hunk.lines.iter().map(|l| (l.kind, l.text.as_str(), l.old_no, l.new_no)).skip(1).take(3).collect();
    assert_eq!(
        change,
        [
            (DiffLineKind::Ctx, "b", Some(2), Some(2)),
            (DiffLineKind::Del, "c", Some(3), None),
            (DiffLineKind::Add, "C", None, Some(3)),
        ]
    );
}

/// Renames, binaries, modes, links in place of files, deletions, strange names.
#[test]
fn kinds_of_changes() {
    let lab = Lab::new();
    lab.write("long.txt", &"line\n".repeat(50));
    lab.write("gone b/x.txt", "gone\n");
    lab.write("turns.txt", "file\n");
    lab.commit("more");
    let (_, worktree) = lab.prepare("kit", "t1");
    let dir = &worktree.dir;
    std::fs::rename(dir.join("long.txt"), dir.join("moved.txt")).unwrap();
    std::fs::remove_file(dir.join("gone b/x.txt")).unwrap();
    std::fs::remove_file(dir.join("turns.txt")).unwrap();
    std::os::unix::fs::symlink("README.md", dir.join("turns.txt")).unwrap();
    std::fs::set_permissions(dir.join("README.md"), std::fs::Permissions::from_mode(0o755)).unwrap();
    write(&dir.join("image.png"), b"\x89PNG\0\0\0");
    write(&dir.join(OsStr::from_bytes(b"latin-\xfc.txt")), b"gr\xfc\xdfe\n");
    write(&dir.join("a \"quoted\"\nname"), b"q\n");
    let shown = diff(&lab.home, &lab.repo, &worktree, None).unwrap();
    let file = |path: &str| shown.files.iter().find(|f| f.path == path).unwrap_or_else(|| panic!("{path}: {shown:?}"));
    let moved = file("moved.txt");
    assert_eq!((moved.status, moved.old_path.as_deref()), (DiffFileStatus::Renamed, Some("long.txt")));
    assert!(moved.hunks.is_empty());
    assert_eq!(file("gone b/x.txt").status, DiffFileStatus::Deleted);
    let turned = file("turns.txt");
    assert_eq!((turned.status, turned.hunks.len()), (DiffFileStatus::Modified, 2));
    let mode = file("README.md");
    assert_eq!((mode.status, mode.hunks.len(), mode.additions), (DiffFileStatus::Modified, 0, 0));
    assert!(file("image.png").binary && file("image.png").hunks.is_empty());
    assert_eq!(file("latin-\u{fffd}.txt").hunks[0].lines[0].text, "gr\u{fffd}\u{fffd}e");
    assert_eq!(file("a \"quoted\"\nname").status, DiffFileStatus::Added);
    assert_eq!(shown.stats.files, 7);
    let whole = diff(&lab.home, &lab.repo, &worktree, Some("moved.txt")).unwrap();
    assert_eq!(whole.files, std::slice::from_ref(moved));
    assert!(matches!(diff(&lab.home, &lab.repo, &worktree, Some("nothing")), Err(GitError::Other(_))));
}

/// Beyond 600 lines a file and 5,000 lines in all, lines go, headers stay, counts are whole; one file can be had whole.
#[test]
fn limits_and_whole_files() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    for number in 0..12 {
        write(&worktree.dir.join(format!("f{number:02}.txt")), "x\n".repeat(1000).as_bytes());
    }
    let shown = diff(&lab.home, &lab.repo, &worktree, None).unwrap();
    assert!(shown.truncated);
    assert_eq!((shown.stats.files, shown.stats.additions), (12, 12_000));
    let lines: Vec<usize> = shown.files.iter().map(|f| f.hunks.iter().map(|h| h.lines.len()).sum()).collect();
    assert_eq!(lines, [600, 600, 600, 600, 600, 600, 600, 600, 200, 0, 0, 0]);
    assert!(shown.files.iter().all(|f| f.hunks.len() == 1 && f.additions == 1000));
    let whole = diff(&lab.home, &lab.repo, &worktree, Some("f11.txt")).unwrap();
    assert!(!whole.truncated);
    assert_eq!(whole.files[0].hunks[0].lines.len(), 1000);
    let work = lab.collect(&worktree);
    assert_eq!(work.diff.chars().count(), 12_000);
    assert!(work.diff.ends_with("[diff cut here]\n"));
}

/// A finished worktree whose branch the person deleted has no diff, and it is said which branch.
#[test]
fn a_branch_that_is_gone_is_named() {
    let lab = Lab::new();
    let (mut worktree, _) = lab.ready();
    worktree.live = false;
    assert_eq!(diff(&lab.home, &lab.repo, &worktree, None).unwrap().stats.files, 3);
    lab.git(&["branch", "-q", "-D", &worktree.branch]);
    let error = diff(&lab.home, &lab.repo, &worktree, None).unwrap_err();
    assert!(error.to_string().contains(&worktree.branch), "{error}");
}
