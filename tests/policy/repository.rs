//! Git calls in a worktree whose git directory is its own, and what happens once somebody has been at it.

use std::fs;
use std::os::unix::fs::symlink;

use agentcraft_tui::policy::{Role, Verdict};

use crate::fixture::{Machine, word};

const READS: [&str; 3] = ["git status", "git log -1", "git diff"];
const OWN: [&str; 3] = ["git add -A", "git commit -m x", "git merge main"];

fn all_ask(machine: &Machine, why: &str) {
    for text in READS.iter().chain(&OWN).chain(&["git -C src status", "cd src && git log"]) {
        let verdict = machine.bash(Role::Worker, text);
        assert!(matches!(verdict, Verdict::Ask(_)), "{why}: {text} gave {verdict:?}");
    }
    for text in ["git push", "git commit -S"] {
        assert_eq!(word(&machine.bash(Role::Worker, text)), "deny", "{why}: {text}");
    }
}

/// In a worktree with its own git directory that borrows objects, git works as in a linked one.
#[test]
fn an_own_git_directory_is_fine() {
    let machine = Machine::own();
    for text in READS.iter().chain(&OWN).chain(&["git -C src status", "cd src && git log"]) {
        assert_eq!(machine.bash(Role::Worker, text), Verdict::Allow, "{text}");
    }
    for text in ["git -C vendor/dep status", "git -C mirror.git log", "git -C .git log", "git -C newdir status"] {
        assert_eq!(word(&machine.bash(Role::Worker, text)), "ask", "{text}");
    }
}

/// A `.git` that is a file or a link leads elsewhere: every git call asks.
#[test]
fn a_replaced_git_directory_makes_every_call_ask() {
    let machine = Machine::own();
    let entry = machine.worktree.join(".git");
    fs::rename(&entry, machine.worktree.join("old")).unwrap();
    let area = machine.area(Role::Worker);
    assert_eq!(area.git_dir, entry);
    fs::write(&entry, format!("gitdir: {}/.git\n", machine.repo.display())).unwrap();
    // The area still names the directory that should be there.
    let ask = |text: &str| agentcraft_tui::policy::judge(&crate::fixture::command(text), &area);
    for text in READS {
        assert_eq!(word(&ask(text)), "ask", "{text}");
    }
    fs::remove_file(&entry).unwrap();
    symlink("old", &entry).unwrap();
    for text in READS {
        assert_eq!(word(&ask(text)), "ask", "{text}");
    }
    fs::remove_file(&entry).unwrap();
    for text in READS {
        assert_eq!(word(&ask(text)), "ask", "{text}");
    }
}

/// A `commondir` file would make git take its configuration from elsewhere.
#[test]
fn a_commondir_makes_every_call_ask() {
    let machine = Machine::own();
    fs::write(machine.worktree.join(".git/commondir"), "../elsewhere\n").unwrap();
    all_ask(&machine, "commondir");
}

/// Alternates that were changed lend objects from elsewhere.
#[test]
fn changed_alternates_make_every_call_ask() {
    for lines in [
        "/a/objects\n/b/objects\n",
        "../relative/objects\n",
        "{WT}/build/objects\n",
        "{TMP}/objects\n",
        "/a/elsewhere\n",
        "\n",
    ] {
        let machine = Machine::own();
        fs::write(machine.worktree.join(".git/objects/info/alternates"), machine.fill(lines)).unwrap();
        all_ask(&machine, lines);
    }
    let machine = Machine::own();
    let alternates = machine.worktree.join(".git/objects/info/alternates");
    fs::remove_file(&alternates).unwrap();
    symlink("/a/b", &alternates).unwrap();
    all_ask(&machine, "link");
}

/// A linked worktree whose entry was changed asks as well.
#[test]
fn a_linked_worktree_is_held_against_its_entry() {
    let machine = Machine::linked();
    assert_eq!(machine.bash(Role::Worker, "git status"), Verdict::Allow);
    fs::write(machine.worktree.join(".git"), format!("gitdir: {}/.git\n", machine.repo.display())).unwrap();
    all_ask(&machine, "gitdir of the repository");
    let machine = Machine::linked();
    fs::write(machine.repo.join(".git/worktrees/t1/commondir"), "/elsewhere\n").unwrap();
    all_ask(&machine, "commondir elsewhere");
}

/// Writers that walk a tree ask where it holds a git directory: a planted setting would run on the next `git status`.
#[test]
fn walking_writers_ask_where_a_git_directory_lies() {
    let machine = Machine::own();
    for text in [
        "find . -exec sed -i s/a/b/ {} +",
        "find . -type f -exec sed -i s/a/b/ {} \\;",
        "find . -exec touch {} +",
        "find . -exec cp README.md {} \\;",
        "find vendor -exec tee {} \\;",
        "find . -name '*' -exec truncate -s0 {} +",
        "mv vendor x",
        "cp -r vendor x",
        "rm -rf vendor",
        "chmod -R +x .",
        "find . -delete",
    ] {
        assert_eq!(word(&machine.bash(Role::Worker, text)), "ask", "{text}");
    }
    for text in ["find src -exec sed -i s/a/b/ {} +", "find docs -name '*.md' -exec touch {} +", "cp -r src src2"] {
        assert_eq!(machine.bash(Role::Worker, text), Verdict::Allow, "{text}");
    }
}

/// Files that make a directory look like a repository, written by the same text that then runs git there.
#[test]
fn a_repository_made_on_the_spot_is_not_trusted() {
    let machine = Machine::own();
    for text in [
        "mkdir -p x/objects x/refs && echo 'ref: refs/heads/m' > x/HEAD && git -C x status",
        "echo x > src/HEAD; mkdir src/objects src/refs; git -C src log",
        "cp -r mirror.git y && git -C y status",
        "mv mirror.git/HEAD src/HEAD && git -C src status",
    ] {
        assert_eq!(word(&machine.bash(Role::Worker, text)), "ask", "{text}");
    }
}
