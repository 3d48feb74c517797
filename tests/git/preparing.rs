//! Making worktrees: names, reuse, hand-over, copied files, the lead's copy, and what is left alone.

use std::os::unix::fs::PermissionsExt;

use agentcraft_tui::git::{
    PrepareError, abandon, collect, diff, merge, prepare_lead_copy, prepare_worktree, sweep, verify,
};

use crate::lab::{Lab, agent, git, identity, merged, worktree, write};

/// Where it lies, what it is called, that a second call takes it up, and that the person's checkout is untouched.
#[test]
fn a_worktree_is_made_once() {
    let lab = Lab::new();
    let before = lab.picture();
    let (prepared, worktree) = lab.prepare("kit", "t1");
    assert_eq!(prepared.branch, "agentcraft/kit/t1-tag-parser");
    assert_eq!(prepared.dir, lab.home.worktrees.join("demo/kit-t1"));
    assert_eq!((prepared.fork.as_str(), prepared.head.as_str(), prepared.reused), (&*lab.head(), &*lab.head(), false));
    assert_eq!(lab.picture(), before);
    assert_eq!(lab.git(&["rev-parse", &prepared.branch]), lab.head());
    assert_eq!(agent(&worktree, &["status", "--porcelain", "--branch"]), "## agentcraft/kit/t1-tag-parser");
    assert_eq!(agent(&worktree, &["remote"]), "");
    assert_eq!(agent(&worktree, &["for-each-ref", "--format=%(refname)"]).lines().count(), 2);
    assert!(worktree.dir.join(".git").is_dir());
    write(&worktree.dir.join("kept"), b"work");
    let (again, _) = lab.prepare("kit", "t1");
    assert!(again.reused && worktree.dir.join("kept").exists());
    assert_eq!((again.dir, again.branch, again.fork), (prepared.dir, prepared.branch, prepared.fork));
    verify(&lab.home, &lab.repo, &worktree).unwrap();
}

/// An agent can do as it likes in its own git directory; the person's repository stays as it is.
#[test]
fn the_copy_is_its_own() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    let before = lab.picture();
    let objects = lab.git(&["count-objects"]);
    write(&worktree.dir.join("x"), b"x");
    for args in [
        &["add", "x"][..],
        &["commit", "-q", "-m", "x"],
        &["tag", "v1"],
        &["branch", "side"],
        &["branch", "-f", "main", "HEAD"],
        &["stash", "list"],
        &["gc", "-q", "--prune=now"],
        &["reset", "-q", "--hard", "HEAD~1"],
        &["branch", "-D", "-q", "side"],
        &["update-ref", "refs/heads/other", "HEAD"],
        &["config", "user.name", "Somebody"],
    ] {
        agent(&worktree, args);
    }
    assert_eq!(lab.picture(), before);
    assert_eq!(lab.git(&["count-objects"]), objects);
}

/// Names taken by branches of the person's in every way git knows get a number; where no number helps it is said.
#[test]
fn taken_branch_names() {
    for taken in ["agentcraft/kit/t1-tag-parser", "agentcraft/KIT/T1-Tag-Parser", "agentcraft/kit/t1-tag-parser/x"] {
        let lab = Lab::new();
        lab.git(&["branch", taken]);
        let (prepared, _) = lab.prepare("kit", "t1");
        assert_eq!(prepared.branch, "agentcraft/kit/t1-tag-parser-2", "{taken}");
    }
    for taken in ["agentcraft", "agentcraft/kit"] {
        let lab = Lab::new();
        lab.git(&["branch", taken]);
        let failed = prepare_worktree(&lab.home, &lab.order("kit", "t1")).unwrap_err();
        assert!(matches!(&failed, PrepareError::Lasting(why) if why.contains("rename it")), "{failed:?}");
    }
    let lab = Lab::new();
    lab.git(&["branch", "agentcraft/kit/t1-tag-parser"]);
    for number in 2..=50 {
        lab.git(&["branch", &format!("agentcraft/kit/t1-tag-parser-{number}")]);
    }
    let failed = prepare_worktree(&lab.home, &lab.order("kit", "t1")).unwrap_err();
    assert!(matches!(&failed, PrepareError::Lasting(why) if why.contains("all taken")), "{failed:?}");
}

/// Only branches that our database made are taken up again, and not while the person has them checked out.
#[test]
fn own_branches_are_taken_up_again() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    let (other, _) = lab.prepare("kit", "t1");
    assert_eq!(other.branch, "agentcraft/kit/t1-tag-parser-2", "not known to be ours");

    let lab2 = Lab::new();
    let (worktree2, head2) = lab2.ready();
    abandon(&lab2.home, &lab2.repo, &worktree2, "", &identity("kit")).unwrap();
    let mut order = lab2.order("kit", "t1");
    order.own_branches = vec![worktree2.branch.clone()];
    lab2.git(&["switch", "-q", &worktree2.branch]);
    let busy = prepare_worktree(&lab2.home, &order).unwrap();
    assert_eq!(busy.branch, "agentcraft/kit/t1-tag-parser-2", "the person has it checked out");
    lab2.git(&["switch", "-q", "main"]);
    order.dir = order.dir.with_file_name("again");
    order.id = "again".into();
    let again = prepare_worktree(&lab2.home, &order).unwrap();
    assert_eq!((again.branch.as_str(), again.head.as_str()), (worktree2.branch.as_str(), head2.as_str()));
    assert_eq!(again.fork, worktree2.fork);
    assert!(again.dir.join("src/new.txt").exists());
    let _ = head;
}

/// A hand-over starts from the old branch: its files are there, the diff against the base shows them.
#[test]
fn a_hand_over_starts_from_the_old_branch() {
    let lab = Lab::new();
    let (old, head) = lab.ready();
    let mut order = lab.order("lux", "t1");
    order.start = Some(old.branch.clone());
    let prepared = prepare_worktree(&lab.home, &order).unwrap();
    assert_eq!((prepared.head.as_str(), prepared.fork.as_str()), (head.as_str(), old.fork.as_str()));
    assert!(prepared.dir.join("src/new.txt").exists());
    let new = worktree(&order, &prepared);
    assert_eq!(diff(&lab.home, &lab.repo, &new, None).unwrap().stats.files, 3);
    order.start = Some("agentcraft/nobody/t9".to_owned());
    order.dir = order.dir.with_file_name("elsewhere");
    assert!(matches!(prepare_worktree(&lab.home, &order), Err(PrepareError::Lasting(_))));
}

/// What lies at the wished place and is not this worktree stays; so does a copy of another database.
#[test]
fn leftovers_are_left() {
    let lab = Lab::new();
    write(&lab.home.worktrees.join("demo/kit-t1/work.txt"), b"somebody's");
    let (prepared, _) = lab.prepare("kit", "t1");
    assert_eq!(prepared.dir, lab.home.worktrees.join("demo/kit-t1-2"));
    assert!(lab.home.worktrees.join("demo/kit-t1/work.txt").exists());
    let mut other = lab.home.clone();
    other.profile = "p2".to_owned();
    let second = prepare_worktree(&other, &lab.order("kit", "t1")).unwrap();
    assert_eq!(second.dir, lab.home.worktrees.join("demo/kit-t1-3"));
    assert_eq!(second.branch, "agentcraft/kit/t1-tag-parser-2");
    let said = sweep(&lab.home, &[prepared.dir.clone(), second.dir.clone()]);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("kit-t1") && said[0].contains("left in place"), "{said:?}");
    let mut order = lab.order("kit", "t2");
    order.dir = lab.root.join("outside");
    assert!(matches!(prepare_worktree(&lab.home, &order), Err(PrepareError::Lasting(_))));
    std::os::unix::fs::symlink(&lab.root, lab.home.worktrees.join("linked")).unwrap();
    order.dir = lab.home.worktrees.join("linked/kit-t2");
    assert!(matches!(prepare_worktree(&lab.home, &order), Err(PrepareError::Lasting(_))));
}

/// Ignored files that the base's `.worktreeinclude` names are copied, not through links, not over tracked files, and
/// never get into a commit, also when un-ignored, renamed or committed by the agent.
#[test]
fn included_files_are_copied_and_never_committed() {
    let lab = Lab::new();
    lab.write(".worktreeinclude", ".env\nbuild/cache/*.bin\n*.log\n!noisy.log\nREADME.md\n");
    lab.commit("include");
    lab.write(".env", "TOKEN=0123456789\n");
    std::fs::set_permissions(lab.path(".env"), std::fs::Permissions::from_mode(0o600)).unwrap();
    lab.write("build/cache/a.bin", "bin");
    lab.write("build/other", "not named");
    lab.write("noisy.log", "excluded");
    lab.write("untracked.txt", "not ignored");
    std::os::unix::fs::symlink("/etc/hostname", lab.path("link.log")).unwrap();
    let outside = lab.root.join("outside");
    write(&outside.join("secret.log"), b"x");
    std::os::unix::fs::symlink(&outside, lab.path("build/linked")).unwrap();
    // The file as committed counts, not what the checkout has.
    lab.write(".worktreeinclude", "build/other\n");
    let (prepared, worktree) = lab.prepare("kit", "t1");
    lab.git(&["checkout", "-q", ".worktreeinclude"]);
    assert_eq!(prepared.copied, [".env", "build/cache/a.bin"]);
    assert_eq!(std::fs::read_to_string(worktree.dir.join(".env")).unwrap(), "TOKEN=0123456789\n");
    assert_eq!(std::fs::metadata(worktree.dir.join(".env")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!worktree.dir.join("build/other").exists() && !worktree.dir.join("link.log").exists());

    write(&worktree.dir.join(".gitignore"), b"nothing\n");
    write(&worktree.dir.join("copy-of-env"), b"TOKEN=0123456789\n");
    write(&worktree.dir.join("fine.txt"), b"fine\n");
    let work = lab.collect(&worktree);
    assert_eq!(work.names, [".gitignore", "fine.txt"]);
    assert!(work.notes[0].contains(".env") && work.notes[0].contains("copy-of-env"), "{:?}", work.notes);

    agent(&worktree, &["add", "-f", ".env"]);
    agent(&worktree, &["commit", "-q", "-m", "oops"]);
    let refused = collect(&lab.home, &lab.repo, &worktree, "m", &identity("kit")).unwrap_err();
    assert!(refused.to_string().contains(".env"), "{refused}");
    assert_eq!(lab.git(&["rev-parse", &worktree.branch]), work.head, "nothing came over");
    let blob = agent(&worktree, &["rev-parse", "HEAD:.env"]);
    agent(&worktree, &["reset", "-q", "HEAD~1"]);
    write(&worktree.dir.join("more.txt"), b"more\n");
    lab.collect(&worktree);
    let found = std::process::Command::new("git").current_dir(&lab.repo.path).args(["cat-file", "-e", &blob]).status();
    assert!(!found.unwrap().success(), "the dropped commit stays out of the person's repository");
}

/// The lead's copy is at the base head; a refresh throws changes away, keeps commits pinned, and moves a copy that was
/// tampered with aside.
#[test]
fn the_leads_copy_is_refreshed() {
    let lab = Lab::new();
    let dir = lab.home.worktrees.join("demo/lead-g1");
    prepare_lead_copy(&lab.home, &lab.repo, &dir).unwrap();
    assert_eq!(git(&dir, &["symbolic-ref", "--short", "HEAD"]), "main");
    write(&dir.join("README.md"), b"scribble\n");
    write(&dir.join("new/file.txt"), b"new\n");
    write(&dir.join("kept.log"), b"ignored\n");
    git(&dir, &["-c", "user.name=L", "-c", "user.email=l@x", "commit", "-q", "-a", "-m", "by the lead"]);
    let own = git(&dir, &["rev-parse", "HEAD"]);
    lab.write("later.txt", "later\n");
    let base = lab.commit("later");
    prepare_lead_copy(&lab.home, &lab.repo, &dir).unwrap();
    assert_eq!(git(&dir, &["rev-parse", "HEAD"]), base);
    assert_eq!(git(&dir, &["status", "--porcelain"]), "");
    assert!(dir.join("later.txt").exists() && dir.join("kept.log").exists() && !dir.join("new").exists());
    assert_eq!(lab.git(&["cat-file", "-t", &own]), "commit");
    assert!(lab.git(&["for-each-ref", "refs/agentcraft/keep"]).contains(&own));
    std::fs::write(dir.join(".git/objects/info/alternates"), "/elsewhere\n").unwrap();
    write(&dir.join("work.txt"), b"work\n");
    prepare_lead_copy(&lab.home, &lab.repo, &dir).unwrap();
    assert!(dir.with_file_name("lead-g1-set-aside").join("work.txt").exists());
    assert_eq!(git(&dir, &["rev-parse", "HEAD"]), base);
}

/// The person resets and prunes while copies borrow: every copy stays whole and its work still merges.
#[test]
fn a_reset_and_prune_does_not_break_copies() {
    let lab = Lab::new();
    lab.write("second.txt", "second\n");
    let second = lab.commit("second");
    let (_, worktree) = lab.prepare("kit", "t1");
    lab.git(&["reset", "-q", "--hard", "HEAD~1"]);
    lab.git(&["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"]);
    lab.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(agent(&worktree, &["fsck", "--full"]), "");
    assert_eq!(agent(&worktree, &["rev-parse", "HEAD"]), second);
    write(&worktree.dir.join("mine.txt"), b"mine\n");
    let first = lab.collect(&worktree).head;
    agent(&worktree, &["commit", "-q", "--amend", "-m", "amended"]);
    let work = lab.collect(&worktree);
    assert_ne!(work.head, first);
    lab.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(lab.git(&["cat-file", "-t", &first]), "commit", "a head that a rewrite dropped is pinned");
    assert_eq!(agent(&worktree, &["fsck", "--full"]), "");
    merged(merge(&lab.home, &lab.request(&worktree, &work.head, "p1:e1")).unwrap());
    assert!(lab.path("mine.txt").exists());
}

/// Forms that cannot be borrowed from are refused with the reason, and nothing is done in the person's checkout.
#[test]
fn what_cannot_be_borrowed_from() {
    let lab = Lab::new();
    let shallow = lab.root.join("shallow");
    lab.write("x", "x");
    lab.commit("two");
    let url = format!("file://{}", lab.repo.path.display());
    git(&lab.root, &["clone", "-q", "--depth=1", &url, shallow.to_str().unwrap()]);
    let mut order = lab.order("kit", "t1");
    order.repo.path = shallow.clone();
    let failed = prepare_worktree(&lab.home, &order).unwrap_err();
    assert!(matches!(&failed, PrepareError::Lasting(why) if why.contains("shallow")), "{failed:?}");
    let partial = lab.root.join("partial");
    lab.git(&["config", "uploadpack.allowFilter", "true"]);
    git(&lab.root, &["clone", "-q", "--filter=blob:none", &url, partial.to_str().unwrap()]);
    order.repo.path = partial;
    let failed = prepare_worktree(&lab.home, &order).unwrap_err();
    assert!(matches!(&failed, PrepareError::Lasting(why) if why.contains("partial")), "{failed:?}");
    order.repo.path = lab.repo.path.clone();
    order.repo.base = "nobase".to_owned();
    assert!(matches!(prepare_worktree(&lab.home, &order), Err(PrepareError::Lasting(_))));
    assert!(!lab.home.worktrees.join("demo/kit-t1").exists());
}
