//! A machine of its own for each test: a person's home and repository, an agent's worktree, a scratch directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use agentcraft_tui::policy::{Area, Role, ToolCall, Verdict, judge};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Directories that stand for `{HOME}`, `{REPO}`, `{WT}` and `{TMP}`.
pub(crate) struct Machine {
    _keep: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) worktree: PathBuf,
    pub(crate) scratch: PathBuf,
}

const FILES: [&str; 16] = [
    "README.md",
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "Makefile",
    "docs/guide.md",
    "src/main.rs",
    "src/lib.rs",
    "src/net/client.rs",
    "tests/smoke.rs",
    "scripts/build.sh",
    "scripts/gen.py",
    "tools/report.js",
    "data/input.csv",
    "data/list.txt",
    ".gitignore",
];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn project(root: &Path) {
    for file in FILES {
        write(&root.join(file), "x\n");
    }
    for dir in ["notes", "build"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for tool in ["eslint", "prettier", "vitest", "tsc"] {
        write(&root.join("node_modules/.bin").join(tool), "#!/bin/sh\n");
    }
}

impl Machine {
    /// The machine of the case table: the worktree is linked, its `.git` a file.
    pub(crate) fn linked() -> Self {
        let keep = TempDir::new().unwrap();
        let top = keep.path().canonicalize().unwrap();
        let home = top.join("home");
        let machine = Self {
            repo: home.join("work/repo"),
            worktree: home.join("trees/kit-t1"),
            scratch: top.join("scratch"),
            home,
            _keep: keep,
        };
        for file in ["private/secrets.txt", ".netrc", ".bashrc", ".ssh/id_ed25519", ".agents/memory/plan.md"] {
            write(&machine.home.join(file), "x\n");
        }
        fs::create_dir_all(&machine.scratch).unwrap();
        project(&machine.repo);
        project(&machine.worktree);
        let git_dir = machine.repo.join(".git");
        write(&git_dir.join("HEAD"), "ref: refs/heads/main\n");
        write(&git_dir.join("config"), "[core]\n");
        fs::create_dir_all(git_dir.join("objects/info")).unwrap();
        fs::create_dir_all(git_dir.join("refs/heads")).unwrap();
        let entry = git_dir.join("worktrees/t1");
        write(&entry.join("HEAD"), "ref: refs/heads/crew/kit/t1\n");
        write(&entry.join("commondir"), "../..\n");
        write(&entry.join("gitdir"), &format!("{}/.git\n", machine.worktree.display()));
        write(&machine.worktree.join(".git"), &format!("gitdir: {}\n", entry.display()));
        write(&machine.worktree.join("vendor/dep/.git/HEAD"), "ref: refs/heads/main\n");
        write(&machine.worktree.join("vendor/dep/lib.c"), "x\n");
        write(&machine.worktree.join("mirror.git/HEAD"), "ref: refs/heads/main\n");
        fs::create_dir_all(machine.worktree.join("mirror.git/objects")).unwrap();
        fs::create_dir_all(machine.worktree.join("mirror.git/refs")).unwrap();
        let link = |target: &Path, name: &str| symlink(target, machine.worktree.join(name)).unwrap();
        link(&machine.home.join("private"), "outlink");
        link(&machine.home.join(".netrc"), "keyfile");
        link(Path::new("src"), "inlink");
        link(&machine.repo, "repolink");
        link(&machine.home.join("newfile"), "dangling");
        symlink(machine.home.join("private"), machine.scratch.join("esc")).unwrap();
        machine
    }

    /// The machine as it is here: the worktree has a git directory of its own that borrows the repository's objects.
    pub(crate) fn own() -> Self {
        let machine = Self::linked();
        fs::remove_file(machine.worktree.join(".git")).unwrap();
        let git_dir = machine.worktree.join(".git");
        write(&git_dir.join("HEAD"), "ref: refs/heads/crew/kit/t1\n");
        write(&git_dir.join("config"), "[core]\n");
        fs::create_dir_all(git_dir.join("refs/heads")).unwrap();
        write(&git_dir.join("objects/info/alternates"), &format!("{}/.git/objects\n", machine.repo.display()));
        machine
    }

    pub(crate) fn area(&self, role: Role) -> Area {
        let cwd = match role {
            Role::Lead => self.repo.clone(),
            Role::Worker => self.worktree.clone(),
        };
        let linked = self.repo.join(".git/worktrees/t1");
        let git_dir = match role {
            Role::Worker if cwd.join(".git").is_file() => linked,
            Role::Lead | Role::Worker => cwd.join(".git"),
        };
        Area {
            role,
            cwd,
            git_dir,
            scratch: vec![self.scratch.clone()],
            read_dirs: vec![self.home.join(".agents/memory")],
            home: self.home.clone(),
            own_server: "crew".into(),
            lead_read_commands: vec!["tracker show".into()],
        }
    }

    /// Replaces the placeholders of the case table.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{WT}", &self.worktree.display().to_string())
            .replace("{REPO}", &self.repo.display().to_string())
            .replace("{HOME}", &self.home.display().to_string())
            .replace("{TMP}", &self.scratch.display().to_string())
    }

    pub(crate) fn bash(&self, role: Role, text: &str) -> Verdict {
        judge(&command(&self.fill(text)), &self.area(role))
    }
}

pub(crate) fn command(text: &str) -> ToolCall {
    ToolCall { tool: "Bash".into(), input: json!({ "command": text }) }
}

/// A call as the case table writes it.
pub(crate) fn call(tool: &str, input: &str) -> ToolCall {
    let input: Value = match tool {
        "Bash" => json!({ "command": input }),
        "Read" | "Edit" | "Write" | "MultiEdit" => json!({ "file_path": input }),
        "NotebookEdit" | "NotebookRead" => json!({ "notebook_path": input }),
        "LS" => json!({ "path": input }),
        "Glob" => json!({ "pattern": input }),
        "Grep" => match input.split_once(" :: ") {
            Some((path, glob)) => json!({ "pattern": "x", "path": path, "glob": glob }),
            None => json!({ "pattern": "x", "path": input }),
        },
        "WebFetch" => json!({ "url": input, "prompt": "x" }),
        "WebSearch" => json!({ "query": input }),
        _ => json!({}),
    };
    ToolCall { tool: tool.into(), input }
}

/// `allow`, `ask` or `deny`.
pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

/// Undoes the table's escapes: `\n`, `\t`, `\\`.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            _ => out.push(c),
        }
    }
    out
}
