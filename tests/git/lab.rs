//! A person's repository and a home of ours in a temporary directory, cut off from the machine's git configuration.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

use agentcraft_tui::git::{
    CollectedWork, GitHome, Identity, MergeRequest, MergeResult, MergeStyle, Prepared, RepoAt, WorktreeAt,
    WorktreeOrder, collect, merge, prepare_worktree,
};
use tempfile::TempDir;

/// The person's configuration of the whole test process: nobody's.
fn seal() {
    static SEALED: Once = Once::new();
    SEALED.call_once(|| {
        // SAFETY: the first thing any test of this binary does; Rust code alone reads the environment here, under
        // std's own lock.
        #[expect(unsafe_code, reason = "the room reads the process's environment, which must not be the developer's")]
        unsafe {
            std::env::set_var("GIT_CONFIG_GLOBAL", "/dev/null");
            std::env::set_var("GIT_CONFIG_NOSYSTEM", "1");
            std::env::set_var("HOME", "/nonexistent");
            std::env::set_var("XDG_CONFIG_HOME", "/nonexistent");
            for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "EMAIL"] {
                std::env::remove_var(name);
            }
        }
    });
}

pub(crate) struct Lab {
    /// None: the directory belongs to another process of the same test.
    _temp: Option<TempDir>,
    pub root: PathBuf,
    pub home: GitHome,
    pub repo: RepoAt,
}

impl Lab {
    /// A repository with one commit on `main`.
    pub(crate) fn new() -> Self {
        Self::named("my répo \"q\"", &[])
    }

    pub(crate) fn named(name: &str, init: &[&str]) -> Self {
        let temp = TempDir::new().unwrap();
        let lab = Self::at(temp.path(), name);
        let lab = Self { _temp: Some(temp), ..lab };
        std::fs::create_dir_all(&lab.repo.path).unwrap();
        std::fs::create_dir_all(&lab.home.worktrees).unwrap();
        lab.git(&[&["init", "-q", "-b", "main"], init].concat());
        lab.git(&["config", "user.name", "Pat Person"]);
        lab.git(&["config", "user.email", "pat@example.org"]);
        lab.write("README.md", "one\ntwo\nthree\n");
        lab.write("src/notes.txt", "a\nb\nc\nd\ne\n");
        lab.write(".gitignore", "*.log\n.env\nbuild/\n");
        lab.commit("first");
        lab
    }

    /// The lab that another process made in `root`.
    pub(crate) fn at(root: &Path, name: &str) -> Self {
        seal();
        let root = root.canonicalize().unwrap();
        Self {
            _temp: None,
            home: GitHome {
                profile: "p1".to_owned(),
                worktrees: root.join("profile/worktrees"),
                scratch: root.join("profile/scratch"),
            },
            repo: RepoAt { id: "demo".into(), path: root.join(name), base: "main".to_owned() },
            root,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.repo.path.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.path(name), text.as_bytes());
    }

    /// git as the person runs it.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.repo.path, args)
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "refs/heads/main"])
    }

    pub(crate) fn order(&self, agent: &str, task: &str) -> WorktreeOrder {
        WorktreeOrder {
            repo: self.repo.clone(),
            agent: agent.into(),
            task: task.into(),
            id: format!("{agent}-{task}").into(),
            branch: format!("agentcraft/{agent}/{task}-tag-parser"),
            dir: self.home.worktrees.join("demo").join(format!("{agent}-{task}")),
            start: None,
            own_branches: Vec::new(),
            identity: identity(agent),
        }
    }

    pub(crate) fn prepare(&self, agent: &str, task: &str) -> (Prepared, WorktreeAt) {
        let order = self.order(agent, task);
        let prepared = prepare_worktree(&self.home, &order).unwrap();
        let worktree = worktree(&order, &prepared);
        (prepared, worktree)
    }

    pub(crate) fn collect(&self, worktree: &WorktreeAt) -> CollectedWork {
        collect(&self.home, &self.repo, worktree, "work done", &identity(worktree.agent.as_str())).unwrap()
    }

    pub(crate) fn request(&self, worktree: &WorktreeAt, head: &str, mark: &str) -> MergeRequest {
        MergeRequest {
            repo: self.repo.clone(),
            worktree: worktree.clone(),
            decision: "d2".into(),
            task: Some(worktree.task.clone()),
            head: head.to_owned(),
            message: "t1: Tag parser\n\nParses tags.".to_owned(),
            style: MergeStyle::Merge,
            sign: false,
            mark: mark.to_owned(),
        }
    }

    pub(crate) fn merge(&self, worktree: &WorktreeAt, head: &str, mark: &str) -> MergeResult {
        merge(&self.home, &self.request(worktree, head, mark)).unwrap()
    }

    /// A worktree whose work (two files changed, one new) is collected.
    pub(crate) fn ready(&self) -> (WorktreeAt, String) {
        let (_, worktree) = self.prepare("kit", "t1");
        write(&worktree.dir.join("src/notes.txt"), b"a\nB\nc\nd\ne\n");
        write(&worktree.dir.join("src/new.txt"), b"new\n");
        write(&worktree.dir.join("README.md"), b"one\ntwo\nthree\nfour\n");
        let head = self.collect(&worktree).head;
        (worktree, head)
    }

    /// Files (bytes, modes), index and refs of the person, ours left out.
    pub(crate) fn picture(&self) -> Picture {
        picture(&self.repo.path)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub files: BTreeMap<Vec<u8>, (u32, Vec<u8>)>,
    pub index: Option<Vec<u8>>,
    pub refs: String,
}

/// Everything of a checkout that a refusal must leave alone.
pub(crate) fn picture(checkout: &Path) -> Picture {
    let mut files = BTreeMap::new();
    gather(checkout, checkout, &mut files);
    let git_dir = PathBuf::from(git(checkout, &["rev-parse", "--absolute-git-dir"]));
    let refs = git(checkout, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    let refs: Vec<&str> = refs
        .lines()
        .filter(|line| !line.starts_with("refs/agentcraft/") && !line.starts_with("refs/heads/agentcraft/"))
        .collect();
    let mut refs = refs.join("\n");
    for name in ["HEAD", "ORIG_HEAD", "MERGE_HEAD", "index.lock", "logs/HEAD", "config"] {
        let content = std::fs::read(git_dir.join(name)).ok().map(|b| String::from_utf8_lossy(&b).into_owned());
        refs.push_str(&format!("\n{name}: {content:?}"));
    }
    Picture { files, index: std::fs::read(git_dir.join("index")).ok(), refs }
}

fn gather(root: &Path, dir: &Path, files: &mut BTreeMap<Vec<u8>, (u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        if name == b".git" {
            continue;
        }
        if meta.is_dir() {
            files.insert(name, (meta.mode(), Vec::new()));
            gather(root, &path, files);
        } else if meta.is_symlink() {
            files.insert(name, (meta.mode(), std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
        } else {
            files.insert(name, (meta.mode(), std::fs::read(&path).unwrap()));
        }
    }
}

pub(crate) fn identity(agent: &str) -> Identity {
    Identity { name: format!("AgentCraft {agent}"), email: format!("{agent}@agentcraft.local") }
}

pub(crate) fn worktree(order: &WorktreeOrder, prepared: &Prepared) -> WorktreeAt {
    WorktreeAt {
        id: order.id.clone(),
        agent: order.agent.clone(),
        task: order.task.clone(),
        dir: prepared.dir.clone(),
        branch: prepared.branch.clone(),
        fork: prepared.fork.clone(),
        live: true,
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// git without configuration of the machine; panics when it fails.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let done = try_git(dir, args);
    assert!(done.status.success(), "git {args:?} in {dir:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

pub(crate) fn try_git(dir: &Path, args: &[&str]) -> Output {
    Command::new("git").current_dir(dir).args(args).env("GIT_EDITOR", "true").output().unwrap()
}

/// The agent's own git, with its environment.
pub(crate) fn agent_git(worktree: &WorktreeAt, args: &[&str]) -> Output {
    let env = agentcraft_tui::git::safety::agent_environment(
        std::env::vars_os().chain([("GIT_CONFIG_COUNT".into(), "0".into())]),
        &worktree.dir,
        &identity(worktree.agent.as_str()),
        [("HOME".into(), "/nonexistent".into())],
    );
    Command::new("git").current_dir(&worktree.dir).args(args).env_clear().envs(env).output().unwrap()
}

/// As [`agent_git`]; panics when it fails.
pub(crate) fn agent(worktree: &WorktreeAt, args: &[&str]) -> String {
    let done = agent_git(worktree, args);
    assert!(done.status.success(), "agent's git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// The reason of a refusal; panics on any other result.
pub(crate) fn refusal(result: MergeResult) -> String {
    match result {
        MergeResult::Refused { reason } => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// The commit of a merge; panics on any other result.
pub(crate) fn merged(result: MergeResult) -> String {
    match result {
        MergeResult::Merged { commit, .. } => commit,
        other => panic!("not merged: {other:?}"),
    }
}
