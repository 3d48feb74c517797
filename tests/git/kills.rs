//! A kill before or after any write: the second run ends where an undisturbed one does.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use agentcraft_tui::git::{MergeResult, WorktreeAt, abandon, failpoint, merge, prepare_worktree};

use crate::lab::{Lab, agent, git, identity, merged, refusal, worktree, write};

const NAME: &str = "person's repo";

/// What a database would remember of the steps that are done.
fn done(lab: &Lab) -> Vec<String> {
    std::fs::read_to_string(lab.root.join("done")).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn note(lab: &Lab, line: &str) {
    let mut all = done(lab);
    all.push(line.to_owned());
    std::fs::write(lab.root.join("done"), all.join("\n")).unwrap();
}

/// The life of one worktree, from where the last process got to.
fn life(lab: &Lab) {
    let order = lab.order("kit", "t1");
    let mut steps = done(lab);
    if steps.is_empty() {
        let prepared = prepare_worktree(&lab.home, &order).unwrap();
        note(lab, &format!("{}\t{}\t{}", prepared.dir.display(), prepared.branch, prepared.fork));
        steps = done(lab);
    }
    let fields: Vec<&str> = steps[0].split('\t').collect();
    let wt = WorktreeAt {
        dir: PathBuf::from(fields[0]),
        branch: fields[1].to_owned(),
        fork: fields[2].to_owned(),
        id: order.id.clone(),
        agent: order.agent.clone(),
        task: order.task.clone(),
        live: true,
    };
    if steps.len() < 2 {
        write(&wt.dir.join("README.md"), b"one\ntwo\nthree\nfour\n");
        write(&wt.dir.join("deep/er/new.txt"), b"new\n");
        if wt.dir.join("src/notes.txt").exists() {
            std::fs::remove_file(wt.dir.join("src/notes.txt")).unwrap();
        }
        note(lab, &lab.collect(&wt).head);
        steps = done(lab);
    }
    if steps.len() < 3 {
        note(lab, &merged(lab.merge(&wt, &steps[1], "p1:e1")));
        steps = done(lab);
    }
    if steps.len() < 4 {
        abandon(&lab.home, &lab.repo, &wt, "", &identity("kit")).unwrap();
        note(lab, "abandoned");
    }
}

/// Not a test of its own: the process that is killed. Does nothing unless it was started for that.
#[test]
fn victim() {
    if let Some(root) = std::env::var_os("AGENTCRAFT_TEST_LAB") {
        life(&Lab::at(Path::new(&root), NAME));
    }
}

/// Runs the life in a process of its own that is killed at `failpoint`.
fn killed_at(lab: &Lab, failpoint: &str) {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::victim", "--test-threads=1"])
        .env("AGENTCRAFT_TEST_LAB", &lab.root)
        .env("AGENTCRAFT_FAILPOINT", failpoint)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.signal(), Some(6), "{failpoint}: {said} {}", String::from_utf8_lossy(&done.stderr));
}

/// What must be the same in the end, whatever happened on the way.
fn outcome(lab: &Lab) -> (String, String, Vec<String>, BTreeSet<PathBuf>) {
    assert_eq!(lab.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_eq!(lab.git(&["status", "--porcelain", "--ignored"]), "");
    let history = lab.git(&["log", "--first-parent", "--format=%T %s %an", "main"]);
    let branch = lab.git(&["log", "--format=%T %s %an", "agentcraft/kit/t1-tag-parser"]);
    let heads = lab.git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/agentcraft/merge", "refs/tags"]);
    let mut left = BTreeSet::new();
    for dir in [lab.home.worktrees.join("demo"), lab.path(".git")] {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_owned();
            if name != ".foreman"
                && name != ".making"
                && name != ".removing"
                && name != "ORIG_HEAD"
                && name != "COMMIT_EDITMSG"
            {
                left.insert(path.strip_prefix(&lab.root).unwrap().to_owned());
            }
        }
    }
    agentcraft_tui::git::sweep(&lab.home, &[]);
    for name in [".making", ".removing"] {
        let within = lab.home.worktrees.join("demo").join(name);
        assert_eq!(std::fs::read_dir(within).map_or(0, Iterator::count), 0, "{name} is not empty");
    }
    (history, branch, heads.lines().map(str::to_owned).collect(), left)
}

fn every_kill_is_repaired(prefixes: &[&str]) {
    let calm = Lab::named(NAME, &[]);
    life(&calm);
    let wanted = outcome(&calm);
    let names: Vec<&&str> = failpoint::ALL.iter().filter(|n| prefixes.iter().any(|p| n.starts_with(p))).collect();
    assert!(!names.is_empty());
    for name in names {
        let lab = Lab::named(NAME, &[]);
        killed_at(&lab, name);
        life(&lab);
        assert_eq!(outcome(&lab), wanted, "killed at {name}");
    }
}

/// While a worktree is made.
#[test]
fn kills_while_preparing() {
    every_kill_is_repaired(&["prepare."]);
}

/// While work is committed and brought over, and while the directory is removed.
#[test]
fn kills_while_collecting_and_removing() {
    every_kill_is_repaired(&["collect.", "bring.", "copy.", "remove."]);
}

/// While a merge lands.
#[test]
fn kills_while_merging() {
    every_kill_is_repaired(&["merge."]);
}

/// Every name belongs to one of the groups above.
#[test]
fn every_failpoint_is_tried() {
    let groups = ["prepare.", "collect.", "bring.", "copy.", "remove.", "merge."];
    assert!(failpoint::ALL.iter().all(|name| groups.iter().any(|group| name.starts_with(group))));
}

/// A lab whose merge was killed just before files were written.
fn half_merged() -> (Lab, WorktreeAt, String) {
    let lab = Lab::named(NAME, &[]);
    killed_at(&lab, "merge.files.before");
    let steps = done(&lab);
    let order = lab.order("kit", "t1");
    let prepared = prepare_worktree(&lab.home, &order).unwrap();
    (lab, worktree(&order, &prepared), steps[1].clone())
}

/// Killed in the middle of the files: new, half-written, missing and old ones are completed.
#[test]
fn half_written_files_are_completed() {
    let (lab, wt, head) = half_merged();
    std::fs::remove_file(lab.path("src/notes.txt")).unwrap();
    lab.write("deep/er/new.txt", "ne");
    std::fs::remove_file(lab.path("README.md")).unwrap();
    merged(lab.merge(&wt, &head, "p1:e1"));
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(lab.path("README.md")).unwrap(), "one\ntwo\nthree\nfour\n");
    assert!(!lab.path("src").exists());
}

/// The person edited one of the files after the kill: their edit stays, the rest goes back, the merge is refused, and
/// lands once they are done.
#[test]
fn an_edit_after_the_kill_is_kept() {
    let (lab, wt, head) = half_merged();
    let before = lab.head();
    lab.write("deep/er/new.txt", "new\n");
    std::fs::remove_file(lab.path("src/notes.txt")).unwrap();
    lab.write("README.md", "the person's own\n");
    assert!(refusal(lab.merge(&wt, &head, "p1:e1")).contains("README.md"));
    assert_eq!(lab.head(), before);
    assert_eq!(lab.git(&["status", "--porcelain"]), " M README.md");
    assert!(!lab.path("deep").exists() && lab.path("src/notes.txt").exists());
    assert!(!lab.path(".git/index.lock").exists());
    lab.git(&["checkout", "-q", "README.md"]);
    merged(lab.merge(&wt, &head, "p1:e1"));
}

/// Refused after the kill for a reason of its own: the half-written files go back, no lock stays.
#[test]
fn a_refusal_after_the_kill_takes_files_back() {
    let (lab, wt, head) = half_merged();
    lab.write("deep/er/new.txt", "new\n");
    // As git does it: a new file in place of the old one.
    std::fs::remove_file(lab.path("README.md")).unwrap();
    lab.write("README.md", "one\ntwo\nthree\nfour\n");
    lab.write(".git/BISECT_LOG", "# a bisect of the person's\n");
    assert!(refusal(lab.merge(&wt, &head, "p1:e1")).contains("bisect"));
    std::fs::remove_file(lab.path(".git/BISECT_LOG")).unwrap();
    assert!(!lab.path(".git/index.lock").exists() && !lab.path("deep").exists());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    merged(lab.merge(&wt, &head, "p1:e1"));
}

/// Killed while the base moved with another branch checked out: no lock stays in any checkout.
#[test]
fn kills_while_the_base_is_checked_out_nowhere() {
    for failpoint in ["merge.lock.after", "merge.record.after", "merge.prepared", "merge.ref.after"] {
        let lab = Lab::named(NAME, &[]);
        lab.git(&["switch", "-q", "-c", "mine"]);
        let linked = lab.root.join("linked");
        lab.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]);
        killed_at(&lab, failpoint);
        life(&lab);
        for dir in [&lab.repo.path, &linked] {
            git(dir, &["switch", "-q", "-c", &format!("new-{}", dir.file_name().unwrap().len())]);
            assert_eq!(git(dir, &["status", "--porcelain"]), "", "{failpoint}");
        }
        assert_eq!(lab.git(&["log", "--first-parent", "--oneline", "main"]).lines().count(), 2, "{failpoint}");
    }
}

/// The base went on elsewhere after the kill: files go back, then the merge is made on the new base.
#[test]
fn a_base_that_went_on_after_the_kill() {
    let (lab, wt, head) = half_merged();
    lab.write("deep/er/new.txt", "new\n");
    let next = lab.git(&["commit-tree", "main^{tree}", "-p", "main", "-m", "pushed by someone"]);
    lab.git(&["update-ref", "refs/heads/main", &next]);
    merged(lab.merge(&wt, &head, "p1:e1"));
    assert_eq!(lab.git(&["rev-parse", "HEAD^1"]), next);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// Killed after the base moved and before the index did, then edited by the person: the merge counts as done, the index
/// follows, the edit stays.
#[test]
fn an_edit_between_ref_and_index_is_kept() {
    let lab = Lab::named(NAME, &[]);
    killed_at(&lab, "merge.ref.after");
    let head = done(&lab)[1].clone();
    lab.write("README.md", "edited after\n");
    let order = lab.order("kit", "t1");
    let prepared = prepare_worktree(&lab.home, &order).unwrap();
    let wt = worktree(&order, &prepared);
    let commit = merged(lab.merge(&wt, &head, "p1:e1"));
    assert_eq!(lab.head(), commit);
    assert_eq!(lab.git(&["status", "--porcelain"]), " M README.md");
    assert_eq!(std::fs::read_to_string(lab.path("README.md")).unwrap(), "edited after\n");
}

/// Killed after the base moved, then undone by the person: refused, nothing of theirs changes.
#[test]
fn a_merge_undone_after_the_kill_is_refused() {
    let lab = Lab::named(NAME, &[]);
    killed_at(&lab, "merge.ref.after");
    let head = done(&lab)[1].clone();
    std::fs::remove_file(lab.path(".git/index.lock")).unwrap();
    lab.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let order = lab.order("kit", "t1");
    let prepared = prepare_worktree(&lab.home, &order).unwrap();
    let before = lab.picture();
    assert!(refusal(lab.merge(&worktree(&order, &prepared), &head, "p1:e1")).contains("moved away"));
    assert_eq!(lab.picture(), before);
}

/// An agent that keeps working after a kill while its commits came over loses none of them.
#[test]
fn work_after_a_kill_is_collected() {
    let lab = Lab::named(NAME, &[]);
    killed_at(&lab, "bring.refs.after");
    let order = lab.order("kit", "t1");
    let prepared = prepare_worktree(&lab.home, &order).unwrap();
    let wt = worktree(&order, &prepared);
    let brought = lab.git(&["rev-parse", &wt.branch]);
    write(&wt.dir.join("more.txt"), b"more\n");
    agent(&wt, &["add", "-A"]);
    agent(&wt, &["commit", "-q", "-m", "by the agent"]);
    let work = lab.collect(&wt);
    assert_eq!(work.facts.files, 4);
    assert!(lab.git(&["for-each-ref", "refs/agentcraft/keep"]).contains(&brought));
    assert!(matches!(merge(&lab.home, &lab.request(&wt, &work.head, "p1:e9")).unwrap(), MergeResult::Merged { .. }));
    assert_eq!(git(&wt.dir, &["fsck", "--no-dangling"]), "");
}
