//! Connecting repositories and looking at them again.

use std::path::Path;

use agentcraft_tui::git::{GitError, inspect, refresh};

use crate::lab::{Lab, git, try_git};

/// A repository root is accepted with its branch and head; every other path is refused with a text of its own.
#[test]
fn what_may_be_connected() {
    let lab = Lab::new();
    let view = inspect(&lab.repo.path).unwrap();
    assert_eq!((view.branch.as_str(), view.head.as_deref(), view.dirty), ("main", Some(&*lab.head()), false));
    assert_eq!((view.path.as_path(), view.health), (lab.repo.path.as_path(), None));

    lab.write("inner/file", "x");
    let empty = lab.root.join("empty");
    let bare = lab.root.join("bare.git");
    let plain = lab.root.join("plain");
    git(&lab.root, &["init", "-q", empty.to_str().unwrap()]);
    git(&lab.root, &["init", "-q", "--bare", bare.to_str().unwrap()]);
    std::fs::create_dir(&plain).unwrap();
    let error = |path: &Path| inspect(path).unwrap_err();
    assert!(matches!(error(&lab.root.join("missing")), GitError::NoPath(_)));
    assert!(matches!(error(&plain), GitError::NotGit(_)));
    assert!(matches!(error(&bare), GitError::NotGit(_)));
    assert!(matches!(error(&lab.path("README.md")), GitError::NotGit(_)));
    let inside = error(&lab.path("inner"));
    assert!(matches!(&inside, GitError::NotRoot { root, .. } if *root == lab.repo.path), "{inside}");
    assert!(inside.to_string().contains("not a repository root"));
    assert!(matches!(error(&empty), GitError::NoCommits(_)));
    lab.git(&["checkout", "-q", "--detach"]);
    assert!(matches!(error(&lab.repo.path), GitError::Detached(_)));
}

/// Linked worktrees and a path by way of a link are the roots they lead to.
#[test]
fn linked_worktrees_and_links_are_roots() {
    let lab = Lab::new();
    let linked = lab.root.join("linked");
    lab.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    assert_eq!(inspect(&linked).unwrap().branch, "side");
    let link = lab.root.join("a link");
    std::os::unix::fs::symlink(&lab.repo.path, &link).unwrap();
    assert_eq!(inspect(&link).unwrap().path, lab.repo.path);
}

/// Dirty is about tracked files of whichever checkout has the base branch; looking takes no lock and writes no index.
#[test]
fn dirty_is_about_the_base_branch() {
    let lab = Lab::new();
    let dirty = || refresh(&lab.home, &lab.repo, &[]).unwrap().dirty;
    lab.write("untracked", "x");
    assert!(!dirty());
    std::fs::write(lab.path("README.md"), "one\ntwo\nthree\n").unwrap();
    let index = std::fs::read(lab.path(".git/index")).unwrap();
    assert!(!dirty(), "touched is not changed");
    lab.write("README.md", "changed\n");
    assert!(dirty());
    lab.write(".git/index.lock", "");
    assert!(dirty());
    std::fs::remove_file(lab.path(".git/index.lock")).unwrap();
    assert_eq!(std::fs::read(lab.path(".git/index")).unwrap(), index);
    lab.git(&["switch", "-q", "-c", "mine"]);
    assert!(!dirty(), "the base is checked out nowhere");
    let linked = lab.root.join("linked");
    lab.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    assert!(!dirty());
    std::fs::write(linked.join("README.md"), "changed\n").unwrap();
    assert!(dirty());
}

/// What keeps a repository from being worked on is said in words; nothing of it is an error.
#[test]
fn health_is_said_in_words() {
    let lab = Lab::new();
    let health = || refresh(&lab.home, &lab.repo, &[]).unwrap().health.unwrap_or_default();
    assert_eq!(health(), "");
    lab.git(&["checkout", "-q", "-b", "side"]);
    lab.write("README.md", "side\n");
    lab.commit("side");
    lab.git(&["switch", "-q", "main"]);
    lab.write("README.md", "main\n");
    lab.commit("main");
    try_git(&lab.repo.path, &["rebase", "side"]);
    assert!(health().contains("rebase"), "{}", health());
    lab.git(&["rebase", "--abort"]);
    try_git(&lab.repo.path, &["merge", "side"]);
    assert!(health().contains("merge"), "{}", health());
    lab.git(&["merge", "--abort"]);
    lab.git(&["checkout", "-q", "--detach"]);
    assert!(health().contains("detached"), "{}", health());
    lab.git(&["branch", "-m", "main", "trunk"]);
    let view = refresh(&lab.home, &lab.repo, &[]).unwrap();
    assert!(view.head.is_none() && view.health.unwrap().contains("main is gone"));
    std::fs::rename(&lab.repo.path, lab.root.join("moved")).unwrap();
    assert!(health().contains("does not exist"), "{}", health());
}
