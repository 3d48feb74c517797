//! Merges that are refused leave the person's files, index and refs as they were, to the byte.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use agentcraft_tui::git::{MergeResult, merge};

use crate::lab::{Lab, git, merged, picture, refusal, try_git, write};

/// Merges, expects a refusal whose reason has `words`, and nothing changed.
fn refused(lab: &Lab, worktree: &agentcraft_tui::git::WorktreeAt, head: &str, words: &str) {
    let before = lab.picture();
    let reason = refusal(lab.merge(worktree, head, "p1:e1"));
    assert!(reason.contains(words), "{reason:?} does not say {words:?}");
    assert_eq!(lab.picture(), before);
    assert_eq!(lab.git(&["for-each-ref", "refs/agentcraft/merge"]), "");
}

/// Uncommitted changes of tracked files, edited or staged, are named; once clean the same merge lands.
#[test]
fn a_dirty_checkout() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.write(".gitignore", "edited\n");
    refused(&lab, &worktree, &head, ".gitignore");
    lab.git(&["add", ".gitignore"]);
    refused(&lab, &worktree, &head, "commit or stash");
    lab.git(&["reset", "-q", "--hard"]);
    std::fs::remove_file(lab.path("README.md")).unwrap();
    refused(&lab, &worktree, &head, "README.md");
    lab.git(&["checkout", "-q", "."]);
    lab.git(&["add", "-N", "."]);
    merged(lab.merge(&worktree, &head, "p1:e1"));
}

/// A conflict names its files and changes nothing.
#[test]
fn a_conflict() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.write("src/notes.txt", "a\nX\nc\nd\ne\n");
    lab.commit("conflicting");
    let before = lab.picture();
    let result = lab.merge(&worktree, &head, "p1:e1");
    assert_eq!(result, MergeResult::Conflict { files: vec!["src/notes.txt".to_owned()] });
    assert_eq!(lab.picture(), before);
}

/// Untracked and ignored files, and directories, where the merge would write are kept.
#[test]
fn a_file_in_the_way() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.write("src/new.txt", "precious\n");
    refused(&lab, &worktree, &head, "src/new.txt");
    // Also one that holds just what the merge would write: it is the person's.
    lab.write("src/new.txt", "new\n");
    refused(&lab, &worktree, &head, "src/new.txt");
    std::fs::remove_file(lab.path("src/new.txt")).unwrap();
    lab.write(".git/info/exclude", "src/new.txt\n");
    lab.write("src/new.txt", "ignored and precious\n");
    refused(&lab, &worktree, &head, "src/new.txt");
    std::fs::remove_file(lab.path("src/new.txt")).unwrap();
    lab.write("src/new.txt/inner", "an ignored directory\n");
    refused(&lab, &worktree, &head, "src/new.txt/inner");
    std::fs::remove_file(lab.path(".git/info/exclude")).unwrap();
    refused(&lab, &worktree, &head, "src/new.txt");
    std::fs::remove_dir_all(lab.path("src/new.txt")).unwrap();
    merged(lab.merge(&worktree, &head, "p1:e1"));
}

/// The merge deletes a file whose place a link now takes on the way: nothing is followed.
#[test]
fn a_link_on_the_way() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    let outside = lab.root.join("outside");
    write(&outside.join("notes.txt"), b"a\nb\nc\nd\ne\n");
    std::fs::remove_dir_all(lab.path("src")).unwrap();
    std::os::unix::fs::symlink(&outside, lab.path("src")).unwrap();
    refused(&lab, &worktree, &head, "src/notes.txt");
    assert_eq!(std::fs::read(outside.join("notes.txt")).unwrap(), b"a\nb\nc\nd\ne\n");
    assert!(!outside.join("new.txt").exists());
}

/// A detached HEAD, and every operation of the person's that is under way.
#[test]
fn the_person_is_in_the_middle_of_something() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["checkout", "-q", "--detach"]);
    refused(&lab, &worktree, &head, "detached");
    lab.git(&["switch", "-q", "main"]);

    lab.git(&["switch", "-q", "-c", "side"]);
    lab.write("src/notes.txt", "side\n");
    lab.commit("side");
    lab.git(&["switch", "-q", "main"]);
    lab.write("src/notes.txt", "main\n");
    lab.write("two.txt", "main\n");
    lab.commit("main");
    for (args, words, end) in [
        (&["merge", "side"][..], "a merge", &["merge", "--abort"][..]),
        (&["cherry-pick", "side"], "a cherry-pick", &["cherry-pick", "--abort"]),
        (&["rebase", "side"], "a rebase", &["rebase", "--abort"]),
        (&["bisect", "start", "HEAD", "HEAD~1"], "a bisect", &["bisect", "reset"]),
    ] {
        try_git(&lab.repo.path, args);
        // A commit that would merge cleanly: only what is under way stands against it.
        refused(&lab, &worktree, &clean_head(&lab), words);
        lab.git(end);
    }
}

/// A commit that merges cleanly into what `main` is now.
fn clean_head(lab: &Lab) -> String {
    let index = lab.root.join("clean-index");
    let run = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .current_dir(&lab.repo.path)
            .env("GIT_INDEX_FILE", &index)
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    run(&["read-tree", "main"]);
    let blob = lab.git(&["hash-object", "-w", ".gitignore"]);
    run(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},clean.txt")]);
    let tree = run(&["write-tree"]);
    lab.git(&["commit-tree", &tree, "-p", "main", "-m", "clean"])
}

/// A lock that another git holds.
#[test]
fn a_locked_index_or_ref() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.write(".git/index.lock", "");
    refused(&lab, &worktree, &head, "index.lock");
    std::fs::remove_file(lab.path(".git/index.lock")).unwrap();
    lab.write(".git/refs/heads/main.lock", "");
    refused(&lab, &worktree, &head, "main.lock");
    std::fs::remove_file(lab.path(".git/refs/heads/main.lock")).unwrap();
    lab.write(".git/HEAD.lock", "");
    refused(&lab, &worktree, &head, "HEAD.lock");
    std::fs::remove_file(lab.path(".git/HEAD.lock")).unwrap();
    merged(lab.merge(&worktree, &head, "p1:e1"));
}

/// A checkout that cannot be written. Permissions mean nothing to root, so as root the test runs again as nobody.
#[test]
fn a_read_only_checkout() {
    if rustix::process::geteuid().is_root() {
        let temp = tempfile::TempDir::new().unwrap();
        let exe = temp.path().join("tests");
        std::fs::copy(std::env::current_exe().unwrap(), &exe).unwrap();
        for (path, mode) in [(temp.path(), 0o777), (&exe, 0o755)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let done = std::process::Command::new(&exe)
            .args(["--exact", "refusals::a_read_only_checkout"])
            .current_dir(temp.path())
            .env("TMPDIR", temp.path())
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    for dir in ["src", ".git"] {
        let path = lab.path(dir);
        let before = std::fs::metadata(&path).unwrap().permissions();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o555)).unwrap();
        refused(&lab, &worktree, &head, "cannot be written");
        std::fs::set_permissions(&path, before).unwrap();
    }
}

/// A filter that fails half-way: what was written is taken back.
#[test]
fn an_update_that_fails_half_way_is_taken_back() {
    let lab = Lab::new();
    lab.write(".gitattributes", "*.zz filter=broken\n");
    lab.write("z.zz", "z\n");
    lab.commit("attributes");
    lab.git(&["config", "filter.broken.smudge", "false"]);
    lab.git(&["config", "filter.broken.clean", "cat"]);
    lab.git(&["config", "filter.broken.required", "true"]);
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("a.txt"), b"new\n");
    write(&worktree.dir.join("deep/er/b.txt"), b"new\n");
    write(&worktree.dir.join("README.md"), b"changed\n");
    std::fs::remove_file(worktree.dir.join("src/notes.txt")).unwrap();
    write(&worktree.dir.join("z.zz"), b"zz\n");
    let head = lab.collect(&worktree).head;
    refused(&lab, &worktree, &head, "could not update");
    lab.git(&["config", "filter.broken.smudge", "cat"]);
    merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// Submodules are not merged, LFS files must be pointers, a base in two checkouts is ambiguous, a base or commit that
/// is gone is said.
#[test]
fn what_is_not_ours_to_do() {
    let lab = Lab::new();
    lab.write(".gitattributes", "*.bin filter=lfs\n");
    lab.commit("lfs");
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("x.bin"), b"not a pointer");
    let head = lab.collect(&worktree).head;
    refused(&lab, &worktree, &head, "LFS");
    write(&worktree.dir.join("x.bin"), b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    let head = lab.collect(&worktree).head;

    let linked = lab.root.join("linked");
    lab.git(&["worktree", "add", "-q", "-f", linked.to_str().unwrap(), "main"]);
    let there = picture(&linked);
    refused(&lab, &worktree, &head, "twice");
    assert_eq!(picture(&linked), there);
    lab.git(&["worktree", "remove", linked.to_str().unwrap()]);

    refused(&lab, &worktree, &"1".repeat(40), "not in the repository");
    let mut request = lab.request(&worktree, &head, "p1:e1");
    request.repo.base = "gone".to_owned();
    assert!(refusal(merge(&lab.home, &request).unwrap()).contains("gone"));
    request.repo.path = lab.root.join("nowhere");
    assert!(refusal(merge(&lab.home, &request).unwrap()).contains("does not exist"));
    merged(lab.merge(&worktree, &head, "p1:e1"));
}

/// A branch that changes a submodule's commit is refused.
#[test]
fn a_submodule_change() {
    let lab = Lab::new();
    let (worktree, _) = lab.ready();
    let index = lab.root.join("sub-index");
    let at = lab.head();
    for args in [&["read-tree", "main"][..], &["update-index", "--add", "--cacheinfo", &format!("160000,{at},sub")]] {
        let done = std::process::Command::new("git")
            .current_dir(&lab.repo.path)
            .env("GIT_INDEX_FILE", &index)
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success());
    }
    let done = std::process::Command::new("git")
        .current_dir(&lab.repo.path)
        .env("GIT_INDEX_FILE", &index)
        .arg("write-tree")
        .output()
        .unwrap();
    let tree = String::from_utf8(done.stdout).unwrap();
    let head = lab.git(&["commit-tree", tree.trim(), "-p", "main", "-m", "sub"]);
    refused(&lab, &worktree, &head, "submodule sub");
}

/// While the person commits, switches and rebases at the same time as merges run, every merge either lands whole or is
/// refused, and no commit of theirs is lost.
#[test]
fn the_person_works_at_the_same_time() {
    let lab = Lab::new();
    let mut ready = Vec::new();
    for number in 1..=4 {
        let (_, worktree) = lab.prepare("kit", &format!("t{number}"));
        write(&worktree.dir.join(format!("file-{number}.txt")), b"x\n");
        let head = lab.collect(&worktree).head;
        ready.push((worktree, head));
    }
    let path = lab.repo.path.clone();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let person = std::thread::spawn(move || {
        let mut made = Vec::new();
        for number in 1..=25 {
            std::fs::write(path.join("person.txt"), format!("{number}\n")).unwrap();
            // Our lock makes a git of theirs fail now and then, as any other git would: they try again.
            while !(try_git(&path, &["add", "person.txt"]).status.success()
                && try_git(&path, &["commit", "-q", "-m", &format!("person {number}")]).status.success())
            {
                assert!(std::time::Instant::now() < deadline, "the person could not commit");
            }
            made.push(git(&path, &["rev-parse", "HEAD"]));
        }
        made
    });
    let mut landed = 0;
    for (number, (worktree, head)) in ready.iter().enumerate() {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match lab.merge(worktree, head, &format!("p1:e{number}-{attempt}")) {
                MergeResult::Merged { .. } => {
                    landed += 1;
                    break;
                }
                MergeResult::Refused { reason } => {
                    assert!(std::time::Instant::now() < deadline, "never merged, last: {reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let made = person.join().unwrap();
    assert_eq!(landed, 4);
    let all = lab.git(&["rev-list", "main"]);
    assert!(!made.is_empty());
    assert!(made.iter().all(|oid| all.contains(oid.as_str())), "a commit of the person's was lost");
    let left = lab.git(&["status", "--porcelain", "--untracked-files=no"]);
    assert!(left.is_empty() || left.ends_with("person.txt"), "{left}");
    for number in 1..=4 {
        assert!(lab.path(&format!("file-{number}.txt")).exists());
    }
}

/// While the person switches between branches, a merge finds the base checked out or not; either way it lands whole.
#[test]
fn the_person_switches_at_the_same_time() {
    let lab = Lab::new();
    lab.git(&["branch", "mine"]);
    let mut ready = Vec::new();
    for number in 1..=3 {
        let (_, worktree) = lab.prepare("kit", &format!("t{number}"));
        write(&worktree.dir.join(format!("file-{number}.txt")), b"x\n");
        let head = lab.collect(&worktree).head;
        ready.push((worktree, head));
    }
    let path = lab.repo.path.clone();
    let person = std::thread::spawn(move || {
        for _ in 0..30 {
            try_git(&path, &["switch", "-q", "mine"]);
            try_git(&path, &["switch", "-q", "main"]);
        }
    });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for (number, (worktree, head)) in ready.iter().enumerate() {
        for attempt in 0.. {
            match lab.merge(worktree, head, &format!("p1:e{number}-{attempt}")) {
                MergeResult::Merged { .. } => break,
                MergeResult::Refused { reason } => {
                    assert!(std::time::Instant::now() < deadline, "never merged, last: {reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    person.join().unwrap();
    lab.git(&["switch", "-q", "main"]);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert_eq!(lab.git(&["log", "--first-parent", "--oneline", "main"]).lines().count(), 4);
}

/// A base checked out on a disk that is not there now is not moved behind its back.
#[test]
fn a_checkout_that_is_not_there() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["switch", "-q", "-c", "mine"]);
    let linked = lab.root.join("removable");
    lab.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    std::fs::rename(&linked, lab.root.join("unplugged")).unwrap();
    refused(&lab, &worktree, &head, "not there");
    std::fs::rename(lab.root.join("unplugged"), &linked).unwrap();
    merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
}

/// Files become directories and directories files: what is tracked gives way, what is not stands in the way.
#[test]
fn files_and_directories_change_places() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    std::fs::remove_dir_all(worktree.dir.join("src")).unwrap();
    write(&worktree.dir.join("src"), b"a file now\n");
    std::fs::remove_file(worktree.dir.join("README.md")).unwrap();
    write(&worktree.dir.join("README.md/inside"), b"a directory now\n");
    let work = lab.collect(&worktree);
    lab.write("src/precious.log", "ignored\n");
    refused(&lab, &worktree, &work.head, "src/precious.log");
    std::fs::remove_file(lab.path("src/precious.log")).unwrap();
    merged(lab.merge(&worktree, &work.head, "p1:e1"));
    assert_eq!(std::fs::read(lab.path("src")).unwrap(), b"a file now\n");
    assert_eq!(std::fs::read(lab.path("README.md/inside")).unwrap(), b"a directory now\n");
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}
