//! Judging the client's tools other than the shell.
//!
//! Owns which tool reads, edits, fetches or is replaced by one of ours, and where each names its path. Knows no
//! shell. Entry point: [`judge_tool`].

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::findings::Findings;
use super::paths::{Found, Places};
use super::scope::Scope;
use super::{Area, Role, ToolCall};

/// Tools that read one file or directory, and the input field with its path.
const READERS: [(&str, &str); 3] = [("Read", "file_path"), ("LS", "path"), ("NotebookRead", "notebook_path")];
/// Tools that change one file, and the input field with its path.
const EDITORS: [(&str, &str); 4] =
    [("Edit", "file_path"), ("Write", "file_path"), ("MultiEdit", "file_path"), ("NotebookEdit", "notebook_path")];
/// Tools that touch nothing but the client's own lists and background shells (which were judged when started).
const HARMLESS: [&str; 6] = ["TodoWrite", "TodoRead", "BashOutput", "KillShell", "TaskOutput", "ExitPlanMode"];
/// Tools that our own replace, and what to use instead.
const REPLACED: [(&str, &str); 5] = [
    ("Task", "do the work yourself; the team's other members are the lead's to assign"),
    ("Agent", "do the work yourself; the team's other members are the lead's to assign"),
    ("Skill", "read the files you need instead"),
    ("EnterWorktree", "you already work in your own worktree"),
    ("AskUserQuestion", "ask with the `ask_user` tool"),
];

/// Judges a call of any tool but `Bash`.
pub(crate) fn judge_tool(call: &ToolCall, area: &Area, places: &Places<'_>, findings: &mut Findings) {
    let tool = call.tool.as_str();
    let field = |name: &str| call.input.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some((_, instead)) = REPLACED.iter().find(|(name, _)| *name == tool) {
        findings.deny(format!("the tool {tool} is not available to agents here: {instead}"));
    } else if HARMLESS.contains(&tool) {
    } else if let Some((_, name)) = READERS.iter().find(|(name, _)| *name == tool) {
        read(tool, field(name).or(field("path")), places, findings);
    } else if let Some((_, name)) = EDITORS.iter().find(|(name, _)| *name == tool) {
        match area.role {
            Role::Lead => findings.deny("a lead edits nothing: make it a task for a worker"),
            Role::Worker => edit(tool, field(name), places, findings),
        }
    } else if tool == "Grep" {
        tree(tool, field("path"), field("glob"), places, area, findings);
    } else if tool == "Glob" {
        tree(tool, field("path"), field("pattern"), places, area, findings);
    } else if tool == "WebFetch" {
        match field("url").and_then(host) {
            Some(host) => {
                findings.ask_for(format!("fetches from {host}"), Scope::ToolHost { tool: tool.into(), host });
            }
            None => findings.ask("fetches from an address that names no plain host"),
        }
    } else if tool == "WebSearch" {
        findings.ask_for("searches the web", Scope::Tool { tool: tool.into() });
    } else if is_own(tool, &area.own_server) {
    } else {
        findings.ask_for(format!("uses the tool {tool}"), Scope::Tool { tool: tool.into() });
    }
}

/// `mcp__<server>__<tool>` of exactly this server.
fn is_own(tool: &str, server: &str) -> bool {
    !server.is_empty()
        && tool
            .strip_prefix("mcp__")
            .and_then(|rest| rest.strip_prefix(server))
            .and_then(|rest| rest.strip_prefix("__"))
            .is_some_and(|name| !name.is_empty())
}

fn read(tool: &str, path: Option<&str>, places: &Places<'_>, findings: &mut Findings) {
    match path.and_then(|path| find(path, places)) {
        Some(found) if found.readable() => {}
        Some(found) => findings.ask_for(
            format!("reads {}, which is outside the area", found.real.display()),
            Scope::ToolDir { tool: tool.into(), dir: directory_of(&found, tool) },
        ),
        None => findings.ask("reads a path that can't be followed"),
    }
}

fn edit(tool: &str, path: Option<&str>, places: &Places<'_>, findings: &mut Findings) {
    match path.and_then(|path| find(path, places)) {
        Some(found) if found.writable() => {}
        Some(found) if found.git_entry => findings.ask_for(
            format!("changes the git entry {}", found.real.display()),
            Scope::GitEntry { tool: tool.into(), file: found.real },
        ),
        Some(found) => findings.ask_for(
            format!("changes {}, which is outside the worktree", found.real.display()),
            Scope::ToolDir { tool: tool.into(), dir: directory_of(&found, tool) },
        ),
        None => findings.ask("changes a path that can't be followed"),
    }
}

/// A listing of a directory is about that directory; everything else is about the directory a file is in.
fn directory_of(found: &Found, tool: &str) -> PathBuf {
    match tool {
        "LS" => found.real.clone(),
        _ => found.real.parent().unwrap_or(&found.real).to_path_buf(),
    }
}

fn find(path: &str, places: &Places<'_>) -> Option<Found> {
    places.find(&places.root, &tilde(path, places)?)
}

/// `~` and `~/x`; `~user` is not known here.
fn tilde(path: &str, places: &Places<'_>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        None => Some(PathBuf::from(path)),
        Some("") => Some(places.home.clone()),
        Some(rest) => rest.strip_prefix('/').map(|rest| places.home.join(rest.trim_start_matches('/'))),
    }
}

/// A search below `path` for names that match `pattern`: everything it can reach has to be inside.
fn tree(
    tool: &str,
    path: Option<&str>,
    pattern: Option<&str>,
    places: &Places<'_>,
    area: &Area,
    findings: &mut Findings,
) {
    let Some(start) = find(path.unwrap_or("."), places) else {
        findings.ask("searches a path that can't be followed");
        return;
    };
    if !start.readable() {
        findings.ask_for(
            format!("searches {}, which is outside the area", start.real.display()),
            Scope::ToolTree { tool: tool.into(), path: start.real.clone() },
        );
    }
    let Some(pattern) = pattern else { return };
    match pattern_prefix(pattern) {
        Some(prefix) => match tilde(&prefix, places).and_then(|prefix| places.find(&start.real, &prefix)) {
            Some(found) if found.readable() => {}
            Some(found) => findings.ask_for(
                format!("searches {}, which is outside the area", found.real.display()),
                Scope::ToolTree { tool: tool.into(), path: found.real },
            ),
            None => findings.ask("searches a path that can't be followed"),
        },
        None => findings.ask_for(
            format!("the pattern `{pattern}` may climb out of the area"),
            Scope::ToolPattern { tool: tool.into(), cwd: area.cwd.clone(), pattern: pattern.into() },
        ),
    }
}

/// The directory a glob pattern names before its first wildcard; `None` if it may climb in or after one.
fn pattern_prefix(pattern: &str) -> Option<String> {
    let pattern = pattern.strip_prefix('!').unwrap_or(pattern);
    let Some(wild) = pattern.find(['*', '?', '[', '{', '\\']) else { return Some(pattern.to_string()) };
    let (fixed, rest) = pattern.split_at_checked(wild)?;
    let directory = fixed.rfind('/').map_or("", |slash| fixed.get(..=slash).unwrap_or(fixed));
    // An alternative may be absolute or start in the home directory, and `[.]` spells a dot.
    let climbs = rest.contains("..")
        || rest.contains("{/")
        || rest.contains(",/")
        || rest.contains('~')
        || rest.contains('\\')
        || rest.contains("[.")
        || (rest.contains("{.") || rest.contains(",.")) && rest.contains("/.")
        || fixed.get(directory.len()..).is_some_and(|part| part.contains(".") && part.trim_matches('.').is_empty());
    if climbs { None } else { Some(if directory.is_empty() { ".".into() } else { directory.into() }) }
}

/// The host of an http(s) address in lower case, without user and port.
fn host(url: &str) -> Option<String> {
    let lower = url.trim().to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    if authority.contains('@') {
        return None;
    }
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    (!host.is_empty() && host.chars().all(plain)).then(|| host.to_string())
}

/// Where the input of a call would be shown as text: for the exact key of a call that is no command.
pub(crate) fn exact(call: &ToolCall, cwd: &Path) -> Scope {
    Scope::ToolInput { tool: call.tool.clone(), cwd: cwd.to_path_buf(), input: call.input.to_string() }
}
