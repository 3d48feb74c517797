//! The environment of agents: no push in any spelling, no signing, no way out of the directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use agentcraft_tui::git::safety::agent_environment;

use crate::lab::{Lab, agent, agent_git, git, identity, write};

fn environment(base: &[(&str, &str)], cwd: &Path) -> BTreeMap<String, String> {
    let base = base.iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
    let all = agent_environment(base, cwd, &identity("kit"), []);
    all.into_iter().map(|(k, v)| (k.into_string().unwrap(), v.into_string().unwrap())).collect()
}

/// A push fails in every spelling with the environment, and works without it.
#[test]
fn no_push_in_any_spelling() {
    let lab = Lab::new();
    let (worktree, _) = lab.ready();
    let remote = lab.root.join("remote.git");
    git(&lab.root, &["init", "-q", "--bare", remote.to_str().unwrap()]);
    let path = remote.to_str().unwrap();
    let url = format!("file://{path}");
    agent(&worktree, &["remote", "add", "origin", path]);
    agent(&worktree, &["remote", "add", "urled", &url]);
    agent(&worktree, &["remote", "add", "pushed", "https://example.invalid/x"]);
    agent(&worktree, &["config", "remote.pushed.pushurl", path]);
    write(&worktree.dir.join("push.sh"), b"#!/bin/sh\ngit push --no-verify \"$1\" HEAD:refs/heads/x\n");
    std::fs::set_permissions(worktree.dir.join("push.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    agent(&worktree, &["config", "alias.viascript", "!./push.sh"]);
    for args in [
        &["push", "origin", "HEAD:refs/heads/x"][..],
        &["push", "--no-verify", "origin", "HEAD:refs/heads/x"],
        &["push", "urled", "HEAD:refs/heads/x"],
        &["push", path, "HEAD:refs/heads/x"],
        &["push", &url, "HEAD:refs/heads/x"],
        &["push", "pushed", "HEAD:refs/heads/x"],
        &["send-pack", path, "HEAD:refs/heads/x"],
        &["-c", "protocol.file.allow=always", "push", "origin", "HEAD:refs/heads/x"],
        &["-c", "url.x.pushInsteadOf=y", "push", path, "HEAD:refs/heads/x"],
        &["viascript", path],
        &["viascript", "pushed"],
    ] {
        let done = agent_git(&worktree, args);
        assert!(!done.status.success(), "{args:?} went through");
        assert_eq!(git(&remote, &["for-each-ref"]), "", "{args:?} reached the remote");
    }
    git(&worktree.dir, &["-c", "protocol.allow=always", "push", "-q", "origin", "HEAD:refs/heads/x"]);
    assert!(git(&remote, &["for-each-ref"]).contains("refs/heads/x"));
}

/// Everyday local work goes on; commits are the agent's and unsigned though the configuration signs; an explicit
/// signature fails and commits nothing.
#[test]
fn local_work_goes_on_unsigned() {
    let lab = Lab::new();
    let (worktree, _) = lab.ready();
    agent(&worktree, &["config", "commit.gpgsign", "true"]);
    write(&worktree.dir.join("x"), b"x");
    agent(&worktree, &["status"]);
    agent(&worktree, &["add", "x"]);
    agent(&worktree, &["commit", "-q", "-m", "mine"]);
    agent(&worktree, &["branch", "side"]);
    let commit = agent(&worktree, &["cat-file", "commit", "HEAD"]);
    assert!(commit.contains("author AgentCraft kit <kit@agentcraft.local>") && !commit.contains("gpgsig"));
    let before = agent(&worktree, &["rev-parse", "HEAD"]);
    write(&worktree.dir.join("x"), b"y");
    assert!(!agent_git(&worktree, &["commit", "-q", "-a", "-S", "-m", "signed"]).status.success());
    assert_eq!(agent(&worktree, &["rev-parse", "HEAD"]), before);
}

/// Pairs that were there stay in front; ours follow.
#[test]
fn configuration_pairs_follow_existing_ones() {
    let base = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "a.b"), ("GIT_CONFIG_VALUE_0", "c")];
    let env = environment(&base, Path::new("/w/kit"));
    assert_eq!(env["GIT_CONFIG_COUNT"], "8");
    assert_eq!((env["GIT_CONFIG_KEY_0"].as_str(), env["GIT_CONFIG_VALUE_0"].as_str()), ("a.b", "c"));
    assert_eq!(env["GIT_CONFIG_KEY_1"], "protocol.allow");
    assert_eq!(environment(&[("GIT_CONFIG_COUNT", "zzz")], Path::new("/w/kit"))["GIT_CONFIG_COUNT"], "7");
    assert_eq!(environment(&[("GIT_CONFIG_COUNT", "9")], Path::new("/w/kit"))["GIT_CONFIG_COUNT"], "7");
}

/// Redirections in any case, tokens, sockets and start-up files stay behind; the search path comes along.
#[test]
fn redirections_tokens_and_sockets_stay_behind() {
    let names = [
        "GIT_DIR",
        "git_dir",
        "Git_Work_Tree",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_PARAMETERS_X",
        "SSH_AUTH_SOCK",
        "GITHUB_TOKEN",
        "ANTHROPIC_API_KEY",
        "TMUX",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "BASH_ENV",
        "ENV",
        "LD_PRELOAD",
        "NODE_OPTIONS",
    ];
    let mut base: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
    base.push(("PATH", "/bin"));
    base.push(("LC_TIME", "C"));
    let extra = [("BASH_ENV", "/x"), ("GIT_ALLOW_PROTOCOL", "file"), ("CI", "1")];
    let all = agent_environment(
        base.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))),
        Path::new("/w/kit"),
        &identity("kit"),
        extra.map(|(k, v)| (k.into(), v.into())),
    );
    let env: BTreeMap<String, String> =
        all.into_iter().map(|(k, v)| (k.into_string().unwrap(), v.into_string().unwrap())).collect();
    for name in names {
        assert!(!env.contains_key(name), "{name}");
    }
    assert_eq!((env["PATH"].as_str(), env["LC_TIME"].as_str(), env["CI"].as_str()), ("/bin", "C", "1"));
    assert_eq!((env["SHELL"].as_str(), env["GIT_ALLOW_PROTOCOL"].as_str()), ("bash", "agentcraft-none"));
}

/// A directory without a git directory does not find the repository around it.
#[test]
fn an_enclosing_repository_is_not_found() {
    let lab = Lab::new();
    let inner = lab.path("inner");
    std::fs::create_dir(&inner).unwrap();
    let env = agent_environment(std::env::vars_os(), &inner, &identity("kit"), []);
    let run = |env: &[(OsString, OsString)]| {
        Command::new("git")
            .current_dir(&inner)
            .args(["rev-parse", "--show-toplevel"])
            .env_clear()
            .envs(env.iter().cloned())
            .output()
            .unwrap()
    };
    assert!(!run(&env).status.success());
    let open: Vec<_> = env.into_iter().filter(|(name, _)| name != "GIT_CEILING_DIRECTORIES").collect();
    assert!(run(&open).status.success());
    let kept = environment(&[("GIT_CEILING_DIRECTORIES", "/a:/b")], Path::new("/w/kit"));
    assert_eq!(kept["GIT_CEILING_DIRECTORIES"], "/w:/a:/b");
}
