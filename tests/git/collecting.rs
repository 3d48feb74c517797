//! Taking work in: commits, moved heads, tampering, statistics, removal.

use std::os::unix::fs::PermissionsExt;

use agentcraft_tui::git::{GitError, HeadAt, abandon, collect, diff, refresh, sweep, verify};

use crate::lab::{Lab, agent, agent_git, git, identity, write};

/// Uncommitted and untracked work is committed by the agent, once, without hooks, and the copy is clean afterwards.
#[test]
fn work_is_committed_once() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("README.md"), b"one\ntwo\nthree\nfour\n");
    write(&worktree.dir.join("new.txt"), b"1\n2\n");
    write(&worktree.dir.join("skipped.log"), b"ignored\n");
    agent(&worktree, &["add", "-N", "new.txt"]);
    let work = lab.collect(&worktree);
    assert!(work.committed);
    assert_eq!((work.facts.ahead, work.facts.files, work.facts.additions, work.facts.deletions), (1, 2, 3, 0));
    assert_eq!(work.names, ["README.md", "new.txt"]);
    assert!(work.diff.contains("+four") && work.diff.contains("new.txt"));
    let who = lab.git(&["log", "-1", "--format=%an <%ae> %cn %s", &worktree.branch]);
    assert_eq!(who, "AgentCraft kit <kit@agentcraft.local> AgentCraft kit work done");
    assert_eq!(agent(&worktree, &["status", "--porcelain"]), "");
    assert_eq!(agent(&worktree, &["rev-parse", "HEAD"]), work.head);
    let again = lab.collect(&worktree);
    assert!(!again.committed);
    assert_eq!(again.head, work.head);
    assert_eq!(lab.git(&["fsck", "--strict"]), "");
}

/// Statistics count what is uncommitted and untracked, leave the agent's index alone and bring commits over.
#[test]
fn statistics_leave_the_index_alone() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("README.md"), b"one\ntwo\nthree\nfour\n");
    write(&worktree.dir.join("new.txt"), b"1\n2\n");
    let index = std::fs::read(worktree.dir.join(".git/index")).unwrap();
    let view = refresh(&lab.home, &lab.repo, std::slice::from_ref(&worktree)).unwrap();
    let stats = &view.worktrees[0];
    assert_eq!((stats.ahead, stats.files, stats.additions, stats.deletions), (0, 2, 3, 0));
    assert_eq!(std::fs::read(worktree.dir.join(".git/index")).unwrap(), index);
    assert!(agent(&worktree, &["status", "--porcelain"]).contains("?? new.txt"));
    agent(&worktree, &["commit", "-q", "-a", "-m", "by the agent"]);
    let view = refresh(&lab.home, &lab.repo, std::slice::from_ref(&worktree)).unwrap();
    assert_eq!(view.worktrees[0].ahead, 1);
    assert_eq!(lab.git(&["rev-parse", &worktree.branch]), agent(&worktree, &["rev-parse", "HEAD"]));
}

/// A HEAD that was moved away: the snapshot lands on the agent's own branch and says where HEAD was; the other branch
/// and HEAD stay; a second call makes no commit.
#[test]
fn a_moved_head_is_snapshotted() {
    for detach in [false, true] {
        let lab = Lab::new();
        let (_, worktree) = lab.prepare("kit", "t1");
        if detach {
            agent(&worktree, &["checkout", "-q", "--detach"]);
        } else {
            agent(&worktree, &["checkout", "-q", "-b", "elsewhere"]);
        }
        let was = agent(&worktree, &["rev-parse", "HEAD"]);
        write(&worktree.dir.join("x.txt"), b"x\n");
        let work = lab.collect(&worktree);
        assert!(work.committed);
        let text = lab.git(&["log", "-1", "--format=%an%n%B", &worktree.branch]);
        assert!(text.starts_with("AgentCraft kit\n"), "{text}");
        assert!(
            text.contains(if detach { "HEAD was detached at" } else { "HEAD was on the branch elsewhere" }),
            "{text}"
        );
        assert_eq!(agent(&worktree, &["rev-parse", "HEAD"]), was);
        let head = verify(&lab.home, &lab.repo, &worktree).unwrap().head;
        assert_eq!(head, if detach { HeadAt::Detached(was) } else { HeadAt::Branch("elsewhere".to_owned()) });
        assert!(!lab.collect(&worktree).committed);
    }
}

/// A git directory replaced by a file, a link or nothing, borrowing from elsewhere or sharing another's is refused; the
/// repository around it and the person's are not touched; abandoning leaves the directory.
#[test]
fn tampering_is_refused() {
    type Tamper = fn(&Lab, &std::path::Path);
    let cases: [(&str, Tamper); 8] = [
        ("a file", |lab, dir| {
            std::fs::remove_dir_all(dir.join(".git")).unwrap();
            write(&dir.join(".git"), format!("gitdir: {}\n", lab.path(".git").display()).as_bytes());
        }),
        ("a link", |lab, dir| {
            std::fs::remove_dir_all(dir.join(".git")).unwrap();
            std::os::unix::fs::symlink(lab.path(".git"), dir.join(".git")).unwrap();
        }),
        ("gone", |_, dir| std::fs::remove_dir_all(dir.join(".git")).unwrap()),
        ("commondir", |lab, dir| {
            write(&dir.join(".git/commondir"), lab.path(".git").as_os_str().as_encoded_bytes());
        }),
        ("alternates", |_, dir| write(&dir.join(".git/objects/info/alternates"), b"/elsewhere\n")),
        ("objects link", |lab, dir| {
            std::fs::rename(dir.join(".git/objects"), lab.root.join("moved")).unwrap();
            std::os::unix::fs::symlink(lab.root.join("moved"), dir.join(".git/objects")).unwrap();
        }),
        ("HEAD link", |lab, dir| {
            std::fs::remove_file(dir.join(".git/HEAD")).unwrap();
            std::os::unix::fs::symlink(lab.path(".git/HEAD"), dir.join(".git/HEAD")).unwrap();
        }),
        ("emptied", |_, dir| {
            std::fs::remove_dir_all(dir.join(".git")).unwrap();
            std::fs::create_dir(dir.join(".git")).unwrap();
        }),
    ];
    for (name, tamper) in cases {
        let lab = Lab::new();
        git(&lab.home.worktrees, &["init", "-q"]);
        let (_, worktree) = lab.prepare("kit", "t1");
        write(&worktree.dir.join("work.txt"), b"work\n");
        tamper(&lab, &worktree.dir);
        let (mine, around) = (lab.picture(), std::fs::read(lab.home.worktrees.join(".git/HEAD")).unwrap());
        let refused = collect(&lab.home, &lab.repo, &worktree, "m", &identity("kit")).unwrap_err();
        assert!(matches!(refused, GitError::Tampered { .. }), "{name}: {refused}");
        assert!(refused.to_string().contains("AgentCraft will not run git in worktree"), "{name}: {refused}");
        assert!(matches!(diff(&lab.home, &lab.repo, &worktree, None), Err(GitError::Tampered { .. })), "{name}");
        assert!(refresh(&lab.home, &lab.repo, std::slice::from_ref(&worktree)).unwrap().worktrees.is_empty(), "{name}");
        let work = abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
        assert!(work.notes.iter().any(|note| note.contains("left in place")), "{name}");
        assert!(worktree.dir.join("work.txt").exists(), "{name}");
        assert_eq!(lab.picture(), mine, "{name}");
        assert_eq!(std::fs::read(lab.home.worktrees.join(".git/HEAD")).unwrap(), around, "{name}");
    }
}

/// What an agent plants in its configuration, attributes and nested repositories is never run by us.
#[test]
fn planted_programs_do_not_run() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    let trace = lab.root.join("planted-ran");
    let script = worktree.dir.join("evil.sh");
    write(&script, format!("#!/bin/sh\ntouch '{}'\ncat\n", trace.display()).as_bytes());
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    let nested = worktree.dir.join("nested");
    git(&lab.root, &["init", "-q", nested.to_str().unwrap()]);
    git(&nested, &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"]);
    for dir in [&worktree.dir, &nested] {
        for name in ["core.fsmonitor", "diff.external", "filter.e.clean", "filter.e.smudge", "core.sshCommand"] {
            git(dir, &["config", name, evil]);
        }
        git(dir, &["config", "core.hooksPath", worktree.dir.to_str().unwrap()]);
        git(dir, &["config", "include.path", "/dev/zero"]);
    }
    write(&worktree.dir.join(".gitattributes"), b"* filter=e diff=e\n");
    write(&worktree.dir.join("x.txt"), b"x\n");
    std::fs::remove_file(worktree.dir.join("README.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", worktree.dir.join("README.md")).unwrap();
    let work = lab.collect(&worktree);
    assert!(work.names.contains(&"x.txt".to_owned()) && !work.names.iter().any(|n| n.starts_with("nested")));
    assert!(work.notes[0].contains("nested/"), "{:?}", work.notes);
    diff(&lab.home, &lab.repo, &worktree, None).unwrap();
    refresh(&lab.home, &lab.repo, std::slice::from_ref(&worktree)).unwrap();
    assert_eq!(lab.git(&["cat-file", "blob", &format!("{}:README.md", worktree.branch)]), "/etc/passwd");
    let kept = abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    assert!(kept.notes.iter().any(|note| note.contains("is kept")) && nested.exists());
    assert!(!trace.exists());
}

/// Objects that git's own checks call broken stay out of the person's repository.
#[test]
fn broken_objects_stay_out() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    let bad = lab.root.join("bad-tree");
    // A tree with an entry called ".git".
    let blob = agent(&worktree, &["rev-parse", "HEAD:README.md"]);
    let mut bytes = b"100644 .git\0".to_vec();
    bytes.extend((0..20).map(|i| u8::from_str_radix(&blob[2 * i..2 * i + 2], 16).unwrap()));
    write(&bad, &bytes);
    let hash = ["hash-object", "-t", "tree", "-w", "--literally", bad.to_str().unwrap()];
    let tree = agent(&worktree, &hash);
    let commit = agent(&worktree, &["commit-tree", &tree, "-p", "HEAD", "-m", "evil"]);
    agent(&worktree, &["update-ref", &format!("refs/heads/{}", worktree.branch), &commit]);
    let before = lab.git(&["rev-parse", &worktree.branch]);
    let refused = collect(&lab.home, &lab.repo, &worktree, "m", &identity("kit")).unwrap_err();
    assert!(matches!(refused, GitError::Failed { .. }), "{refused}");
    assert_eq!(lab.git(&["rev-parse", &worktree.branch]), before);
    assert_eq!(lab.git(&["fsck", "--strict"]), "");
}

/// A merge of the base with conflicts that the agent resolved but did not commit becomes a merge commit.
#[test]
fn a_merge_under_way_keeps_its_parents() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("README.md"), b"agent\n");
    lab.collect(&worktree);
    lab.write("README.md", "person\n");
    let base = lab.commit("person");
    lab.collect(&worktree);
    assert!(!agent_git(&worktree, &["merge", "main"]).status.success());
    write(&worktree.dir.join("README.md"), b"both\n");
    let work = lab.collect(&worktree);
    assert_eq!(lab.git(&["rev-parse", &format!("{}^2", worktree.branch)]), base);
    assert_eq!(agent(&worktree, &["status", "--porcelain"]), "");
    assert!(!worktree.dir.join(".git/MERGE_HEAD").exists());
    assert!(matches!(lab.merge(&worktree, &work.head, "p1:e1"), agentcraft_tui::git::MergeResult::Merged { .. }));
}

/// The agent deleted or packed its branch, left a stale lock, emptied its index: work is collected all the same.
#[test]
fn odd_states_of_the_copy() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("a"), b"a\n");
    let first = lab.collect(&worktree).head;
    agent(&worktree, &["gc", "-q"]);
    write(&worktree.dir.join(".git/index.lock"), b"");
    std::fs::remove_file(worktree.dir.join(".git/index")).unwrap();
    write(&worktree.dir.join("b"), b"b\n");
    let second = lab.collect(&worktree).head;
    assert_eq!(lab.git(&["rev-parse", &format!("{}^", worktree.branch)]), first);
    std::fs::remove_file(worktree.dir.join(".git/index.lock")).unwrap();
    agent(&worktree, &["checkout", "-q", "--detach"]);
    agent(&worktree, &["branch", "-q", "-D", &worktree.branch]);
    write(&worktree.dir.join("c"), b"c\n");
    let third = lab.collect(&worktree);
    assert_eq!(lab.git(&["rev-parse", &format!("{}^", worktree.branch)]), second);
    assert_eq!(agent(&worktree, &["rev-parse", &worktree.branch]), third.head);
}

/// The person has the agent's branch checked out: it is not moved under them.
#[test]
fn a_branch_that_the_person_looks_at_is_not_moved() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["switch", "-q", &worktree.branch]);
    write(&worktree.dir.join("more"), b"more\n");
    let refused = collect(&lab.home, &lab.repo, &worktree, "m", &identity("kit")).unwrap_err();
    assert!(matches!(refused, GitError::BranchInUse { .. }), "{refused}");
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    lab.git(&["switch", "-q", "main"]);
    assert_eq!(lab.collect(&worktree).facts.files, 4);
}

/// Abandoning commits what is there, removes the directory (read-only parts too), keeps the branch, and may be repeated;
/// what a stash or reset dropped is kept from pruning.
#[test]
fn abandoning_keeps_the_work() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("x"), b"x\n");
    agent(&worktree, &["add", "x"]);
    agent(&worktree, &["commit", "-q", "-m", "dropped"]);
    let dropped = agent(&worktree, &["rev-parse", "HEAD"]);
    agent(&worktree, &["reset", "-q", "--hard", "HEAD~1"]);
    write(&worktree.dir.join("README.md"), b"stashed\n");
    agent(&worktree, &["stash", "-q"]);
    let stash = agent(&worktree, &["rev-parse", "stash"]);
    write(&worktree.dir.join("y"), b"y\n");
    write(&worktree.dir.join("build/read-only/file"), b"ignored\n");
    std::fs::set_permissions(worktree.dir.join("build/read-only"), std::fs::Permissions::from_mode(0o555)).unwrap();
    let work = abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    assert!(!worktree.dir.exists());
    assert_eq!(lab.git(&["log", "-1", "--format=%s", &worktree.branch]), "(abandoned)");
    let again = abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    assert_eq!((again.head, again.facts.files), (work.head, 1));
    lab.git(&["gc", "-q", "--prune=now"]);
    for oid in [dropped, stash] {
        assert_eq!(lab.git(&["cat-file", "-t", &oid]), "commit");
    }
    assert_eq!(sweep(&lab.home, &[]), Vec::<String>::new());
}

/// Changes that keep a file's size, made in the same second as the last look, are seen.
#[test]
fn quick_changes_of_equal_size_are_seen() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    for round in 0..12 {
        let text = format!("{}\n", ["one", "two", "six"][round % 3]);
        write(&worktree.dir.join("same-size.txt"), text.as_bytes());
        if round % 2 == 0 {
            refresh(&lab.home, &lab.repo, std::slice::from_ref(&worktree)).unwrap();
            let shown = diff(&lab.home, &lab.repo, &worktree, None).unwrap();
            assert_eq!(shown.files[0].hunks[0].lines.last().unwrap().text, text.trim_end(), "round {round}");
        } else {
            lab.collect(&worktree);
            let blob = lab.git(&["cat-file", "blob", &format!("{}:same-size.txt", worktree.branch)]);
            assert_eq!(blob, text.trim_end(), "round {round}");
        }
    }
}

/// Polls and diffs at the same time as work is collected disturb nothing.
#[test]
fn looking_and_collecting_at_the_same_time() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..6 {
                    diff(&lab.home, &lab.repo, &worktree, None).unwrap();
                    assert_eq!(
                        refresh(&lab.home, &lab.repo, std::slice::from_ref(&worktree)).unwrap().worktrees.len(),
                        1
                    );
                }
            });
        }
        for round in 0..6 {
            write(&worktree.dir.join(format!("f{round}.txt")), b"x\n");
            assert_eq!(lab.collect(&worktree).facts.files, round + 1);
        }
    });
    assert_eq!(agent(&worktree, &["status", "--porcelain"]), "");
    assert_eq!(lab.git(&["rev-parse", &worktree.branch]), agent(&worktree, &["rev-parse", "HEAD"]));
    assert_eq!(agent(&worktree, &["branch", "--format=%(refname:short)"]).lines().count(), 2);
}

/// Much work comes over as one pack, little as single objects; both are whole.
#[test]
fn much_work_comes_as_a_pack() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    let packs = || lab.git(&["count-objects", "-v"]).lines().find_map(|l| l.strip_prefix("packs: ").map(str::to_owned));
    write(&worktree.dir.join("little.txt"), b"x\n");
    lab.collect(&worktree);
    assert_eq!(packs().as_deref(), Some("0"));
    for number in 0..150 {
        write(&worktree.dir.join(format!("many/{number}.txt")), format!("{number}\n").as_bytes());
    }
    let work = lab.collect(&worktree);
    assert_eq!((work.facts.files, work.names.len()), (151, 151));
    assert_eq!(packs().as_deref(), Some("1"));
    assert_eq!(lab.git(&["fsck", "--strict"]), "");
}

/// A record without a base commit is an error in words, never an option for git.
#[test]
fn a_damaged_record_is_refused() {
    let lab = Lab::new();
    let (_, mut worktree) = lab.prepare("kit", "t1");
    for fork in ["", "--output=/tmp/x", "main"] {
        worktree.fork = fork.to_owned();
        let refused = collect(&lab.home, &lab.repo, &worktree, "m", &identity("kit")).unwrap_err();
        assert!(refused.to_string().contains("no recorded base commit"), "{refused}");
        assert!(diff(&lab.home, &lab.repo, &worktree, None).is_err());
    }
    worktree.branch = "main".to_owned();
    assert!(collect(&lab.home, &lab.repo, &worktree, "m", &identity("kit")).is_err());
}
