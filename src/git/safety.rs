//! The environment of every process that an agent can influence, and of our own git calls.
//!
//! Must not know what is run with it. Entry points: [`agent_environment`], [`foreman_git`].
//! This is the second line behind the permission judge and the kernel sandbox: it stops mistakes and pushes from
//! scripts, it is no sandbox.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use super::Identity;

/// Inherited names that an agent's process may see. Everything else (tokens, agent sockets, start-up files, loader
/// variables) is left out.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NO_COLOR",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "NVM_DIR",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "SOURCE_DATE_EPOCH",
];

/// Configuration that every git below an agent gets, after pairs that were there already.
const AGENT_CONFIG: &[(&str, &str)] = &[
    ("protocol.allow", "never"),
    ("url.agentcraft-push-blocked:///.pushInsteadOf", ""),
    ("commit.gpgsign", "false"),
    ("tag.gpgsign", "false"),
    ("gpg.program", "agentcraft-signing-disabled"),
    ("gpg.ssh.program", "agentcraft-signing-disabled"),
    ("gpg.x509.program", "agentcraft-signing-disabled"),
];

/// The whole environment for a process of an agent (CLI, command, CI, setup) that starts in `cwd`.
///
/// From `base` only an allow list survives (names compared without case where git's redirections are concerned), plus
/// `GIT_CONFIG_COUNT` pairs, which ours follow. `extra` is set last, except that it can never weaken the git guard.
pub fn agent_environment(
    base: impl Iterator<Item = (OsString, OsString)>,
    cwd: &Path,
    identity: &Identity,
    extra: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut kept: std::collections::BTreeMap<OsString, OsString> = std::collections::BTreeMap::new();
    let mut given: std::collections::BTreeMap<String, OsString> = std::collections::BTreeMap::new();
    for (name, value) in base {
        let text = name.to_string_lossy().into_owned();
        if INHERITED.contains(&text.as_str()) || text.starts_with("LC_") {
            kept.insert(name, value);
        } else if text.starts_with("GIT_CONFIG_") || text == "GIT_CEILING_DIRECTORIES" {
            given.insert(text, value);
        }
    }
    for (name, value) in extra {
        if !name.as_bytes().to_ascii_uppercase().starts_with(b"GIT_") {
            kept.insert(name, value);
        }
    }
    let mut set = |name: &str, value: &OsStr| {
        kept.insert(name.into(), value.to_owned());
    };

    // A count that cannot be read, or pairs that are missing, would make every git fail: such pairs are dropped.
    let mut pairs: Vec<(OsString, OsString)> = Vec::new();
    let count = given.get("GIT_CONFIG_COUNT").and_then(|v| v.to_str()).and_then(|v| v.trim().parse::<usize>().ok());
    for index in 0..count.unwrap_or(0).min(1000) {
        let key = given.get(&format!("GIT_CONFIG_KEY_{index}"));
        let value = given.get(&format!("GIT_CONFIG_VALUE_{index}"));
        if let (Some(key), Some(value)) = (key, value) {
            pairs.push((key.clone(), value.clone()));
        }
    }
    pairs.extend(AGENT_CONFIG.iter().map(|(key, value)| ((*key).into(), (*value).into())));
    set("GIT_CONFIG_COUNT", OsStr::new(&pairs.len().to_string()));
    for (index, (key, value)) in pairs.iter().enumerate() {
        set(&format!("GIT_CONFIG_KEY_{index}"), key);
        set(&format!("GIT_CONFIG_VALUE_{index}"), value);
    }
    // By the other channel, for git reads this key from the command scope alone, and callers count the pairs above.
    set("GIT_CONFIG_PARAMETERS", OsStr::new("'safe.bareRepository'='explicit'"));

    let mut ceiling = OsString::from(cwd.parent().unwrap_or(cwd));
    if let Some(before) = given.get("GIT_CEILING_DIRECTORIES").filter(|v| !v.is_empty()) {
        ceiling.push(":");
        ceiling.push(before);
    }
    set("GIT_CEILING_DIRECTORIES", &ceiling);
    for (name, value) in [
        ("GIT_ALLOW_PROTOCOL", "agentcraft-none"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GCM_INTERACTIVE", "never"),
        ("GIT_AUTHOR_NAME", identity.name.as_str()),
        ("GIT_AUTHOR_EMAIL", identity.email.as_str()),
        ("GIT_COMMITTER_NAME", identity.name.as_str()),
        ("GIT_COMMITTER_EMAIL", identity.email.as_str()),
        ("GIT_EDITOR", "true"),
        ("GIT_SEQUENCE_EDITOR", "true"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("MANPAGER", "cat"),
        ("SHELL", "bash"),
    ] {
        set(name, OsStr::new(value));
    }
    set("PWD", cwd.as_os_str());
    kept.retain(|name, _| name != "BASH_ENV" && name != "ENV" && name != "SSH_AUTH_SOCK");
    kept.into_iter().collect()
}

/// Options of every git call of our own: no hooks, no programs that watch files, no network, no signing unless asked,
/// names as they are.
const OWN_CONFIG: &[&str] = &[
    "core.quotepath=false",
    "color.ui=false",
    "commit.gpgsign=false",
    "log.showSignature=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "submodule.recurse=false",
    "protocol.allow=never",
    "url.agentcraft-push-blocked:///.pushInsteadOf=",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
];

/// `GIT_*` variables of the person that say where their configuration is; all other ones are dropped.
fn is_config_source(name: &str) -> bool {
    matches!(
        name,
        "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "GIT_CONFIG_NOSYSTEM" | "GIT_CONFIG_COUNT" | "GIT_EXEC_PATH"
    ) || name.starts_with("GIT_CONFIG_KEY_")
        || name.starts_with("GIT_CONFIG_VALUE_")
}

/// A hardened git of our own with its working directory at `dir`: argv only, no hooks, no prompts, no protocol, no
/// optional locks, redirections of the environment removed. The person's configuration counts, agents' never: calls
/// that read an agent's tree use a git directory of our own besides.
pub fn foreman_git(dir: &Path) -> Command {
    let mut command = plain_git(dir);
    for pair in OWN_CONFIG {
        command.arg("-c").arg(pair);
    }
    command
}

/// As [`foreman_git`] without settings of our own: for reading what the person has configured, nothing else.
pub(crate) fn plain_git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_uppercase();
        let dropped = text.starts_with("GIT_") && !is_config_source(&text);
        if dropped || matches!(text.as_str(), "PAGER" | "BASH_ENV" | "ENV") {
            command.env_remove(&name);
        }
    }
    for (name, value) in [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GCM_INTERACTIVE", "never"),
        ("GIT_ALLOW_PROTOCOL", "agentcraft-none"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_ADVICE", "0"),
        ("GIT_EDITOR", "true"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    command
}
