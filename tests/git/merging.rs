//! Merges that succeed, and what they leave.

use std::os::unix::fs::PermissionsExt;

use agentcraft_tui::git::{MergeResult, MergeStyle, abandon, diff, merge, prepare_worktree};

use crate::lab::{Lab, agent, git, identity, merged, refusal, write};

/// An approved merge: two parents, the person's own identity, files there, clean, the branch kept, the diff still to be
/// had, a second merge has nothing to do.
#[test]
fn an_approved_merge_lands() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    let before = lab.head();
    let result = lab.merge(&worktree, &head, "p1:e1");
    assert!(matches!(result, MergeResult::Merged { files: 3, .. }), "{result:?}");
    let commit = merged(result);
    assert_eq!(lab.head(), commit);
    assert_eq!(lab.git(&["rev-parse", "HEAD^1", "HEAD^2"]), format!("{before}\n{head}"));
    let who = lab.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>"]);
    assert_eq!(who, "Pat Person <pat@example.org> Pat Person <pat@example.org>");
    let text = lab.git(&["log", "-1", "--format=%B"]);
    assert!(
        text.starts_with("Merge agentcraft/kit/t1-tag-parser into main\n\nt1: Tag parser\n\nParses tags.\n"),
        "{text}"
    );
    assert!(text.contains("d2, t1") && text.ends_with("AgentCraft-Merge: p1:e1"), "{text}");
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(lab.path("src/new.txt")).unwrap(), "new\n");
    for log in ["HEAD", "main"] {
        let entry = lab.git(&["log", "-g", "-1", "--format=%gs", log]);
        assert_eq!(entry, "merge agentcraft/kit/t1-tag-parser: Merge made by AgentCraft.");
    }
    let again = abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    assert!(!worktree.dir.exists());
    assert_eq!((again.head.as_str(), again.facts.files), (head.as_str(), 3));
    assert_eq!(lab.git(&["rev-parse", &worktree.branch]), head);
    let mut gone = worktree.clone();
    gone.live = false;
    assert_eq!(diff(&lab.home, &lab.repo, &gone, None).unwrap().stats.files, 3);
    assert_eq!(lab.merge(&worktree, &head, "p1:e2"), MergeResult::Empty);
    assert_eq!(lab.git(&["fsck", "--strict"]), "");
}

/// The same mark again says the same and does nothing, also when our hidden ref was deleted.
#[test]
fn a_merge_is_never_done_twice() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    let commit = merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(merged(lab.merge(&worktree, &head, "p1:e1")), commit);
    lab.write("later.txt", "x");
    let later = lab.commit("later");
    assert_eq!(merged(lab.merge(&worktree, &head, "p1:e1")), commit);
    lab.git(&["update-ref", "-d", "refs/agentcraft/merge/p1_e1"]);
    assert_eq!(merged(lab.merge(&worktree, &head, "p1:e1")), commit);
    assert_eq!(lab.head(), later);
}

/// A person who took the merge back is asked again instead of getting it twice.
#[test]
fn an_undone_merge_is_refused() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    merged(lab.merge(&worktree, &head, "p1:e1"));
    lab.git(&["reset", "-q", "--hard", "HEAD^"]);
    let before = lab.picture();
    assert!(refusal(lab.merge(&worktree, &head, "p1:e1")).contains("moved away"));
    assert_eq!(lab.picture(), before);
    merged(lab.merge(&worktree, &head, "p1:e2"));
}

/// Squashed: one parent, the person as author, the agent as co-author, unsigned.
#[test]
fn a_squash_has_one_parent_and_co_authors() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    let before = lab.head();
    let mut request = lab.request(&worktree, &head, "p1:e1");
    request.style = MergeStyle::Squash;
    merged(merge(&lab.home, &request).unwrap());
    assert_eq!(lab.git(&["log", "-1", "--format=%P %an"]), format!("{before} Pat Person"));
    let text = lab.git(&["log", "-1", "--format=%B"]);
    assert!(text.starts_with("t1: Tag parser\n"), "{text}");
    assert!(text.ends_with("Co-authored-by: AgentCraft kit <kit@agentcraft.local>\nAgentCraft-Merge: p1:e1"), "{text}");
    assert_eq!(merged(merge(&lab.home, &request).unwrap()), lab.head());
    assert_eq!(lab.merge(&worktree, &head, "p1:e2"), MergeResult::Empty);
}

/// With another branch checked out the base moves and no file of the person's does.
#[test]
fn the_base_moves_while_another_branch_is_checked_out() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["switch", "-q", "-c", "mine"]);
    lab.write("README.md", "edited\n");
    lab.write("untracked", "u");
    let before = lab.picture();
    let commit = merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(lab.head(), commit);
    let after = lab.picture();
    assert_eq!((after.files, after.index), (before.files, before.index));
    assert_eq!(lab.git(&["symbolic-ref", "HEAD"]), "refs/heads/mine");
}

/// The base checked out in a linked worktree of the person's is updated there.
#[test]
fn the_base_in_a_linked_worktree_is_updated_there() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["switch", "-q", "-c", "mine"]);
    let linked = lab.root.join("linked tree");
    lab.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    write(&linked.join("README.md"), b"dirty\n");
    assert!(refusal(lab.merge(&worktree, &head, "p1:e1")).contains("README.md"));
    git(&linked, &["checkout", "-q", "README.md"]);
    let commit = merged(lab.merge(&worktree, &head, "p1:e2"));
    assert_eq!(git(&linked, &["rev-parse", "HEAD"]), commit);
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
    assert!(linked.join("src/new.txt").exists() && !lab.path("src/new.txt").exists());
}

/// A base that went on since the review is merged into as it is.
#[test]
fn a_base_that_went_on_is_no_obstacle() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.write("other.txt", "x");
    let base = lab.commit("meanwhile");
    merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(lab.git(&["rev-parse", "HEAD^1"]), base);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert!(lab.path("other.txt").exists() && lab.path("src/new.txt").exists());
}

/// A checkout with CRLF files is not called dirty; what a merge writes there is what git writes: CRLF.
#[test]
fn line_ends_are_what_git_would_write() {
    let lab = Lab::new();
    lab.git(&["config", "core.autocrlf", "true"]);
    std::fs::remove_file(lab.path("README.md")).unwrap();
    std::fs::remove_file(lab.path("src/notes.txt")).unwrap();
    lab.git(&["checkout", "-q", "--", "."]);
    assert_eq!(std::fs::read(lab.path("README.md")).unwrap(), b"one\r\ntwo\r\nthree\r\n");
    let (worktree, head) = lab.ready();
    assert_eq!(std::fs::read(worktree.dir.join("src/notes.txt")).unwrap(), b"a\nB\nc\nd\ne\n");
    merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(std::fs::read(lab.path("src/notes.txt")).unwrap(), b"a\r\nB\r\nc\r\nd\r\ne\r\n");
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// Filters that the person has configured run in the person's checkout and nowhere else.
#[test]
fn filters_of_the_person_run_in_their_checkout_only() {
    let lab = Lab::new();
    lab.git(&["config", "filter.shout.smudge", "tr a-z A-Z"]);
    lab.git(&["config", "filter.shout.clean", "tr A-Z a-z"]);
    lab.write(".gitattributes", "*.shout filter=shout\n");
    lab.write("x.shout", "HELLO\n");
    lab.commit("filtered");
    let (_, worktree) = lab.prepare("kit", "t1");
    assert_eq!(std::fs::read(worktree.dir.join("x.shout")).unwrap(), b"hello\n");
    write(&worktree.dir.join("x.shout"), b"good bye\n");
    let head = lab.collect(&worktree).head;
    merged(lab.merge(&worktree, &head, "p1:e1"));
    assert_eq!(std::fs::read(lab.path("x.shout")).unwrap(), b"GOOD BYE\n");
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// Hooks of the person never run, whatever we do.
#[test]
fn hooks_never_run() {
    let lab = Lab::new();
    let trace = lab.root.join("hook-ran");
    let hooks = lab.path(".git/hooks");
    for name in [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-merge-commit",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
    ] {
        let path = hooks.join(name);
        write(&path, format!("#!/bin/sh\necho {name} >>'{}'\nexit 1\n", trace.display()).as_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    lab.git(&["config", "core.fsmonitor", hooks.join("fsmonitor-watchman").to_str().unwrap()]);
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("n"), b"n");
    let head = lab.collect(&worktree).head;
    merged(lab.merge(&worktree, &head, "p1:e1"));
    abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    assert!(!trace.exists(), "{}", std::fs::read_to_string(&trace).unwrap());
}

/// Signed only when asked and the person's git would; a signer that fails refuses the merge.
#[test]
fn signing_follows_the_person() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    let signer = lab.root.join("signer");
    write(
        &signer,
        b"#!/bin/sh\ncat >/dev/null\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\necho '-----BEGIN PGP SIGNATURE-----'\n\
        echo made\necho '-----END PGP SIGNATURE-----'\n",
    );
    std::fs::set_permissions(&signer, std::fs::Permissions::from_mode(0o755)).unwrap();
    lab.git(&["config", "commit.gpgsign", "true"]);
    lab.git(&["config", "gpg.program", "/nonexistent/signer"]);
    let mut request = lab.request(&worktree, &head, "p1:e1");
    request.sign = true;
    let before = lab.picture();
    assert!(refusal(merge(&lab.home, &request).unwrap()).contains("could not be made"));
    assert_eq!(lab.picture(), before);
    lab.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    merged(merge(&lab.home, &request).unwrap());
    assert!(lab.git(&["cat-file", "commit", "HEAD"]).contains("\ngpgsig -----BEGIN PGP"));

    let other = Lab::new();
    let (worktree, head) = other.ready();
    other.git(&["config", "gpg.program", "/nonexistent/signer"]);
    let mut request = other.request(&worktree, &head, "p1:e1");
    request.sign = true;
    merged(merge(&other.home, &request).unwrap());
    assert!(!other.git(&["cat-file", "commit", "HEAD"]).contains("gpgsig"));
}

/// Without an identity of the person's the merge is AgentCraft's.
#[test]
fn a_missing_identity_has_a_fallback() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["config", "--unset", "user.name"]);
    lab.git(&["config", "--unset", "user.email"]);
    merged(lab.merge(&worktree, &head, "p1:e1"));
    let who = lab.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>"]);
    assert_eq!(who, "AgentCraft <user@agentcraft.local> AgentCraft <user@agentcraft.local>");
}

/// Stranger forms of repositories work as far as git itself does: sha-256, reftable, sparse checkouts.
#[test]
fn other_formats_work() {
    for init in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let lab = Lab::named("other", init);
        let (worktree, head) = lab.ready();
        assert_eq!(diff(&lab.home, &lab.repo, &worktree, None).unwrap().stats.files, 3);
        let commit = merged(lab.merge(&worktree, &head, "p1:e1"));
        assert_eq!(lab.git(&["rev-parse", "HEAD"]), commit);
        assert_eq!(lab.git(&["status", "--porcelain"]), "");
        assert_eq!(merged(lab.merge(&worktree, &head, "p1:e1")), commit);
    }
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    lab.git(&["sparse-checkout", "set", "--no-cone", "/README.md", "/.gitignore"]);
    assert!(!lab.path("src").exists());
    merged(lab.merge(&worktree, &head, "p1:e1"));
    assert!(!lab.path("src").exists(), "sparse checkout stays sparse");
    assert_eq!(std::fs::read_to_string(lab.path("README.md")).unwrap(), "one\ntwo\nthree\nfour\n");
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// Names that need quoting everywhere: blanks, umlauts, quotes, newlines, bytes that are no UTF-8; renames, deletions,
/// links and modes come over as they are.
#[test]
fn strange_names_and_modes_come_over() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let lab = Lab::named("a\nb \"ü\" $(x)", &[]);
    let (_, worktree) = lab.prepare("kit", "t1");
    let names: [&[u8]; 5] = [b"with blank", "ümläut".as_bytes(), b"quo\"te'\\", b"new\nline", b"latin-\xfc.txt"];
    for name in names {
        write(&worktree.dir.join(OsStr::from_bytes(name)), b"x\n");
    }
    std::os::unix::fs::symlink("with blank", worktree.dir.join("link")).unwrap();
    std::fs::set_permissions(worktree.dir.join("README.md"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(worktree.dir.join("src"), worktree.dir.join("lib")).unwrap();
    let work = lab.collect(&worktree);
    assert_eq!(work.facts.files, 8);
    merged(lab.merge(&worktree, &work.head, "p1:e1"));
    for name in names {
        assert_eq!(std::fs::read(lab.repo.path.join(OsStr::from_bytes(name))).unwrap(), b"x\n");
    }
    assert_eq!(std::fs::read_link(lab.path("link")).unwrap().to_str(), Some("with blank"));
    assert_eq!(std::fs::metadata(lab.path("README.md")).unwrap().permissions().mode() & 0o111, 0o111);
    assert!(lab.path("lib/notes.txt").exists() && !lab.path("src").exists());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// The agent merged the base into its branch: the merge goes on top, the finished diff shows only the agent's work.
#[test]
fn a_branch_that_merged_the_base() {
    let lab = Lab::new();
    let (_, worktree) = lab.prepare("kit", "t1");
    write(&worktree.dir.join("mine.txt"), b"mine\n");
    lab.collect(&worktree);
    lab.write("theirs.txt", "theirs\n");
    lab.commit("theirs");
    lab.collect(&worktree);
    agent(&worktree, &["merge", "-q", "--no-edit", "main"]);
    assert!(worktree.dir.join("theirs.txt").exists());
    let work = lab.collect(&worktree);
    assert_eq!(work.names, ["mine.txt"]);
    merged(lab.merge(&worktree, &work.head, "p1:e1"));
    abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    let mut gone = worktree.clone();
    gone.live = false;
    let shown = diff(&lab.home, &lab.repo, &gone, None).unwrap();
    assert_eq!(shown.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["mine.txt"]);
}

/// A merged task that is retried starts from the base as it is now.
#[test]
fn a_retried_task_starts_from_the_base() {
    let lab = Lab::new();
    let (worktree, head) = lab.ready();
    let commit = merged(lab.merge(&worktree, &head, "p1:e1"));
    abandon(&lab.home, &lab.repo, &worktree, "", &identity("kit")).unwrap();
    let mut order = lab.order("kit", "t1");
    order.own_branches.push(worktree.branch.clone());
    let prepared = prepare_worktree(&lab.home, &order).unwrap();
    assert_eq!((prepared.branch, prepared.head, prepared.fork), (worktree.branch, commit.clone(), commit));
}
