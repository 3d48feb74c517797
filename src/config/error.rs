//! What can be wrong with settings.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A setting that can't be taken. The text names the source, the setting and what would do.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("{path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is no TOML; the text of the parser shows the place.
    #[error("{path}: {text}")]
    Syntax { path: PathBuf, text: String },
    #[error("{path}: no setting \"{key}\"{}", suggestion.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default())]
    UnknownKey { path: PathBuf, key: String, suggestion: Option<String> },
    #[error("{path}: {key}: {problem}")]
    Key { path: PathBuf, key: String, problem: String },
    #[error("{variable}: {problem}")]
    Variable { variable: &'static str, problem: String },
    #[error("no home directory is known; set HOME, or name a directory for our files with --home")]
    NoHome,
    #[error("--backend claude: this build has no claude engine yet; the sim team plays with --backend sim")]
    NoClaude,
    #[error("repository {}: {problem}", path.display())]
    Repo { path: PathBuf, problem: String },
    #[error("{flag} {problem}")]
    Flag { flag: &'static str, problem: String },
}
