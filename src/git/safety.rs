//! The environment of git: for processes an agent can influence, and for the Foreman's own calls.
//!
//! Pushing and signing fail for every process that an agent starts, whatever it types: no transport is allowed, every
//! push URL is rewritten to one that does not exist, and the signing programs are missing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use super::Identity;

/// A scheme that no transport has.
const NO_TRANSPORT: &str = "agentcraft-none";
/// A program that does not exist.
const NO_SIGNING: &str = "agentcraft-signing-disabled";

/// Variables that point git elsewhere; compared without case.
const REDIRECTS: [&str; 12] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_CONFIG",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
];

/// What a process of an agent may inherit. No tokens, no agent sockets, nothing that runs code.
const INHERITED: [&str; 22] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TERM",
    "COLORTERM",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "NIX_PATH",
];

/// Configuration that closes push and signing, as pairs.
fn guard() -> [(&'static str, &'static str); 9] {
    [
        ("protocol.allow", "never"),
        ("url.agentcraft-push-blocked:///.pushInsteadOf", ""),
        ("commit.gpgsign", "false"),
        ("tag.gpgsign", "false"),
        ("gpg.program", NO_SIGNING),
        ("gpg.ssh.program", NO_SIGNING),
        ("gpg.x509.program", NO_SIGNING),
        ("safe.bareRepository", "explicit"),
        ("core.hooksPath", "/dev/null"),
    ]
}

/// The whole environment of a process that an agent can influence, built from an allow list over `base`.
///
/// Pairs of `GIT_CONFIG_COUNT` that were there already are kept and ours come after them, so that ours win.
pub fn agent_environment(
    base: impl IntoIterator<Item = (OsString, OsString)>,
    cwd: &Path,
    identity: &Identity,
    scratch: &Path,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    let mut config: Vec<(OsString, OsString)> = Vec::new();
    let mut ceiling = cwd.parent().map(|parent| parent.as_os_str().to_owned()).unwrap_or_default();
    let base: Vec<(OsString, OsString)> = base.into_iter().collect();
    let value = |name: &str| base.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    for (name, value) in &base {
        if INHERITED.iter().any(|allowed| name == allowed) {
            env.push((name.clone(), value.clone()));
        }
        if name == "GIT_CEILING_DIRECTORIES" && !value.is_empty() {
            ceiling.push(":");
            ceiling.push(value);
        }
    }
    let count: usize = value("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0);
    for at in 0..count.min(100) {
        if let (Some(key), Some(set)) =
            (value(&format!("GIT_CONFIG_KEY_{at}")), value(&format!("GIT_CONFIG_VALUE_{at}")))
        {
            config.push((key, set));
        }
    }
    config.extend(guard().map(|(key, set)| (key.into(), set.into())));
    env.push(("GIT_CONFIG_COUNT".into(), config.len().to_string().into()));
    for (at, (key, set)) in config.into_iter().enumerate() {
        env.push((format!("GIT_CONFIG_KEY_{at}").into(), key));
        env.push((format!("GIT_CONFIG_VALUE_{at}").into(), set));
    }
    let fixed: [(&str, &OsStr); 18] = [
        ("GIT_ALLOW_PROTOCOL", NO_TRANSPORT.as_ref()),
        ("GIT_TERMINAL_PROMPT", "0".as_ref()),
        ("GCM_INTERACTIVE", "never".as_ref()),
        ("GIT_CEILING_DIRECTORIES", &ceiling),
        ("GIT_AUTHOR_NAME", identity.name.as_ref()),
        ("GIT_AUTHOR_EMAIL", identity.email.as_ref()),
        ("GIT_COMMITTER_NAME", identity.name.as_ref()),
        ("GIT_COMMITTER_EMAIL", identity.email.as_ref()),
        ("GIT_PAGER", "cat".as_ref()),
        ("PAGER", "cat".as_ref()),
        ("GIT_EDITOR", "true".as_ref()),
        ("GIT_SEQUENCE_EDITOR", "true".as_ref()),
        ("SHELL", "/bin/bash".as_ref()),
        ("TMPDIR", scratch.as_os_str()),
        ("SSH_ASKPASS_REQUIRE", "never".as_ref()),
        ("GIT_ASKPASS", "false".as_ref()),
        ("BASH_ENV", "".as_ref()),
        ("ENV", "".as_ref()),
    ];
    env.extend(fixed.map(|(name, value)| (name.into(), value.to_owned())));
    env
}

/// Extra variables of a test run.
pub fn ci_environment() -> [(&'static str, &'static str); 3] {
    [("CI", "1"), ("FORCE_COLOR", "0"), ("NO_COLOR", "1")]
}

/// A hardened call of git for the Foreman itself, in a directory of the person's. The person's configuration holds,
/// but no hook, prompt, transport or file-system monitor runs, and no optional lock is taken.
pub fn foreman_git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir);
    for (name, _) in std::env::vars_os() {
        let upper = name.to_string_lossy().to_uppercase();
        let redirect = REDIRECTS.contains(&upper.as_str());
        let odd = name.as_bytes().starts_with(b"GIT_CONFIG")
            || name.as_bytes().starts_with(b"GIT_TRACE")
            || ["GIT_EXTERNAL_DIFF", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH"].contains(&upper.as_str());
        // The test harness and the person may point git at another global file; that stays.
        let keep = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"].contains(&upper.as_str());
        if (redirect || odd) && !keep {
            command.env_remove(&name);
        }
    }
    command
        .args(["-c", "core.quotepath=false", "-c", "color.ui=false", "-c", "commit.gpgsign=false"])
        .args(["-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "core.fsmonitor=false"])
        .args(["-c", "submodule.recurse=false", "-c", "url.agentcraft-push-blocked:///.pushInsteadOf="])
        .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GCM_INTERACTIVE", "never")
        .env("GIT_ALLOW_PROTOCOL", NO_TRANSPORT)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_LITERAL_PATHSPECS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("LC_ALL", "C");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { name: "AgentCraft Kit".into(), email: "kit@agentcraft.local".into() }
    }

    fn get(env: &[(OsString, OsString)], name: &str) -> Option<String> {
        env.iter().find(|(key, _)| key == name).map(|(_, value)| value.to_string_lossy().into_owned())
    }

    /// Pairs that were there keep their place; ours start behind them and so win.
    #[test]
    fn own_config_pairs_come_after_existing_ones() {
        let base = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "X"),
            ("PATH", "/bin"),
        ]
        .map(|(key, value)| (OsString::from(key), OsString::from(value)));
        let env = agent_environment(base, Path::new("/w/copy"), &identity(), Path::new("/w/tmp"));
        assert_eq!(get(&env, "GIT_CONFIG_COUNT").as_deref(), Some("10"));
        assert_eq!(get(&env, "GIT_CONFIG_KEY_0").as_deref(), Some("user.name"));
        assert_eq!(get(&env, "GIT_CONFIG_KEY_1").as_deref(), Some("protocol.allow"));
        assert_eq!(get(&env, "PATH").as_deref(), Some("/bin"));
    }

    /// Neither variables that point git elsewhere nor secrets are inherited, in whatever case they are written.
    #[test]
    fn redirects_and_secrets_are_not_inherited() {
        let base = [
            ("GIT_DIR", "/x"),
            ("git_work_tree", "/x"),
            ("SSH_AUTH_SOCK", "/x"),
            ("GITHUB_TOKEN", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("LD_PRELOAD", "x"),
        ]
        .map(|(key, value)| (OsString::from(key), OsString::from(value)));
        let env = agent_environment(base, Path::new("/w/copy"), &identity(), Path::new("/w/tmp"));
        for name in ["GIT_DIR", "git_work_tree", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "LD_PRELOAD"] {
            assert_eq!(get(&env, name), None, "{name}");
        }
        assert_eq!(get(&env, "GIT_CEILING_DIRECTORIES").as_deref(), Some("/w"));
    }
}
