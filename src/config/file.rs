//! Settings from `config.toml` in the home. Every key is known or refused; the names are those of the flags.

use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::error::ConfigError;
use super::{Layer, Verbosity, values};
use crate::client::suggest::nearest;

/// Name of the file, in the home.
pub const FILE: &str = "config.toml";

/// Keys of the file's top, sections included.
const KEYS: &[&str] = &[
    "backend",
    "profile",
    "port",
    "repos",
    "workers",
    "max-concurrent",
    "ci",
    "merge-style",
    "sign-merges",
    "user-name",
    "lead-review",
    "resume",
    "repo-poll-ms",
    "turn-timeout",
    "notify",
    "log",
    "auto-answer",
    "sim",
    "screen",
    "setup",
];
/// Keys of `[sim]`.
const SIM_KEYS: &[&str] = &["speed", "seed", "ambient"];
/// Keys of `[screen]`.
const SCREEN_KEYS: &[&str] = &["ascii", "theme", "mouse", "color", "read-only"];

/// The layer of the file in this home; an empty one when there is no file. `user_home` is what `~` means in paths,
/// `home` what relative ones start from.
pub fn layer(home: &Path, user_home: Option<&Path>) -> Result<Layer, ConfigError> {
    let path = home.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text, &path, home, user_home),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Layer::default()),
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
}

fn parse(text: &str, path: &Path, home: &Path, user_home: Option<&Path>) -> Result<Layer, ConfigError> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| ConfigError::Syntax { path: path.to_owned(), text: error.to_string() })?;
    let top = Section { path, name: "", table: &table };
    top.only(KEYS)?;
    let place = |text: &str| resolve(text, home, user_home);
    let mut layer = Layer {
        backend: top.text("backend", values::backend)?,
        profile: top.text("profile", values::profile)?,
        port: top.number("port", values::port)?,
        repos: top.list("repos", |part| Ok(place(part)))?,
        max_concurrent: top.number("max-concurrent", values::max_concurrent)?,
        ci: top.text("ci", values::shell_command)?,
        merge_style: top.text("merge-style", values::merge_style)?,
        sign_merges: top.truth("sign-merges")?,
        user_name: top.text("user-name", values::user_name)?,
        lead_review: top.truth("lead-review")?,
        resume: top.truth("resume")?,
        repo_poll_ms: top.number("repo-poll-ms", values::repo_poll_ms)?,
        turn_timeout_ms: top.text("turn-timeout", values::turn_timeout_ms)?,
        notify: top.truth("notify")?,
        verbosity: top.text("log", verbosity)?,
        ..Layer::default()
    };
    layer.workers = match top.table.get("workers") {
        Some(Value::Array(_)) => {
            let names: Vec<String> = top.list("workers", |part| Ok(part.to_owned()))?.unwrap_or_default();
            Some(values::workers(&names.join(",")).map_err(|problem| top.wrong("workers", problem))?)
        }
        _ => top.number("workers", values::workers)?,
    };
    layer.auto_answer = match top.list("auto-answer", |part| Ok(part.to_owned()))? {
        Some(kinds) => {
            Some(values::auto_answer(&kinds.join(",")).map_err(|problem| top.wrong("auto-answer", problem))?)
        }
        None => None,
    };
    if let Some(sim) = top.section("sim")? {
        sim.only(SIM_KEYS)?;
        layer.speed = sim.number("speed", values::speed)?;
        layer.seed = sim.number("seed", values::seed)?;
        layer.ambient = sim.truth("ambient")?;
    }
    if let Some(screen) = top.section("screen")? {
        screen.only(SCREEN_KEYS)?;
        layer.ascii = screen.truth("ascii")?;
        layer.theme = screen.text("theme", values::theme)?;
        layer.mouse = screen.truth("mouse")?;
        layer.color = screen.truth("color")?;
        layer.read_only = screen.truth("read-only")?;
    }
    if let Some(setup) = top.section("setup")? {
        for repo in setup.table.keys() {
            if let Some(command) = setup.text(repo, values::shell_command)? {
                layer.setup.insert(place(repo), command);
            }
        }
    }
    Ok(layer)
}

fn verbosity(text: &str) -> Result<Verbosity, String> {
    match text {
        "quiet" => Ok(Verbosity::Quiet),
        "normal" => Ok(Verbosity::Normal),
        "debug" => Ok(Verbosity::Debug),
        other => Err(format!("\"{other}\" is not one of quiet, normal, debug")),
    }
}

/// A path of the file: `~` is the person's home, others start at our home.
fn resolve(text: &str, home: &Path, user_home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), user_home) {
        (Some(""), Some(user)) => user.to_owned(),
        (Some(rest), Some(user)) if rest.starts_with('/') => user.join(rest.trim_start_matches('/')),
        _ => home.join(text),
    }
}

/// One table of the file.
struct Section<'a> {
    path: &'a Path,
    /// Empty for the top.
    name: &'a str,
    table: &'a Table,
}

impl<'a> Section<'a> {
    fn key(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn wrong(&self, key: &str, problem: String) -> ConfigError {
        ConfigError::Key { path: self.path.to_owned(), key: self.key(key), problem }
    }

    /// Refuses keys that nobody reads.
    fn only(&self, known: &[&str]) -> Result<(), ConfigError> {
        let Some(key) = self.table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        // People also write names as they are written elsewhere.
        let plain = key.replace('_', "-");
        let suggestion = nearest(&plain, known.iter().copied()).map(|near| self.key(near));
        Err(ConfigError::UnknownKey { path: self.path.to_owned(), key: self.key(key), suggestion })
    }

    fn section(&self, key: &'a str) -> Result<Option<Self>, ConfigError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Section { path: self.path, name: key, table })),
            Some(other) => Err(self.wrong(key, format!("expected a section [{key}], found {}", kind(other)))),
        }
    }

    fn text<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, ConfigError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => parse(text).map(Some).map_err(|problem| self.wrong(key, problem)),
            Some(other) => Err(self.wrong(key, format!("expected text, found {}", kind(other)))),
        }
    }

    fn number<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, ConfigError> {
        let text = match self.table.get(key) {
            None => return Ok(None),
            Some(Value::Integer(number)) => number.to_string(),
            Some(Value::Float(number)) => number.to_string(),
            Some(other) => return Err(self.wrong(key, format!("expected a number, found {}", kind(other)))),
        };
        parse(&text).map(Some).map_err(|problem| self.wrong(key, problem))
    }

    fn truth(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Boolean(truth)) => Ok(Some(*truth)),
            Some(other) => Err(self.wrong(key, format!("expected true or false, found {}", kind(other)))),
        }
    }

    fn list<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<Vec<T>>, ConfigError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let Value::Array(parts) = value else {
            return Err(self.wrong(key, format!("expected a list, found {}", kind(value))));
        };
        let parts = parts.iter().map(|part| match part {
            Value::String(text) => parse(text).map_err(|problem| self.wrong(key, problem)),
            other => Err(self.wrong(key, format!("expected a list of texts, found {}", kind(other)))),
        });
        parts.collect::<Result<Vec<T>, ConfigError>>().map(Some)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a section",
    }
}
