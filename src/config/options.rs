//! What the settings come to: every value decided, checked against the others and the machine.

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::values::{AutoAnswerWish, Showcase, Theme, user_name};
use super::{Layer, Verbosity};
use crate::foreman::effect::MergeStyle;
use crate::foreman::{AutoAnswer, Settings, roster};
use crate::protocol::{AgentId, BackendName};

/// Name of our directory in the person's home.
const HOME: &str = ".agentcraft";
/// Pause before an automatic answer at speed 1, ms: long enough to see what was asked.
const AUTO_ANSWER_MS: f64 = 1_500.0;
/// Pause before a refused merge is answered again at speed 1, ms.
const AUTO_RETRY_MS: f64 = 500.0;
/// Turns of the sim at once, when not said otherwise: every worker.
const SIM_TURNS: usize = 5;

/// What is known of the machine and the person before any setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The person's home directory.
    pub user_home: Option<PathBuf>,
    /// The person's login name.
    pub login: Option<String>,
    /// Absolute: what relative paths of flags start from.
    pub cwd: PathBuf,
}

impl Machine {
    /// This process's.
    pub fn here() -> Self {
        let login =
            ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
        Self { user_home: etcetera::home_dir().ok(), login, cwd: std::env::current_dir().unwrap_or_default() }
    }

    /// The directory for our files: what was named, or `~/.agentcraft`.
    ///
    /// # Errors
    /// When neither a directory nor the person's home is known.
    pub fn home(&self, named: Option<&Path>) -> Result<PathBuf, ConfigError> {
        match (named, &self.user_home) {
            (Some(home), _) => Ok(self.cwd.join(home)),
            (None, Some(user)) => Ok(user.join(HOME)),
            (None, None) => Err(ConfigError::NoHome),
        }
    }
}

/// Every setting of a start, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Absolute.
    pub home: PathBuf,
    pub profile: String,
    /// The port that was asked for; none: the usual one, or the next that is free.
    pub port: Option<u16>,
    /// Absolute paths of repositories to connect.
    pub repos: Vec<PathBuf>,
    /// The core's part; what depends on the profile's place is filled in when it is claimed.
    pub settings: Settings,
    pub sim: SimOptions,
    /// Submit the demo's goal when the profile has none yet.
    pub autostart: bool,
    /// Bell and notices of the desktop when a decision waits and nobody looks.
    pub notify: bool,
    pub verbosity: Verbosity,
    pub screen: ScreenOptions,
}

/// How the simulated team plays.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOptions {
    pub speed: f64,
    pub seed: u64,
    pub ambient: bool,
    pub showcase: Option<Showcase>,
}

/// What was said about the screen; the terminal answers the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenOptions {
    pub ascii: Option<bool>,
    pub theme: Option<Theme>,
    pub mouse: Option<bool>,
    pub color: Option<bool>,
    pub read_only: bool,
}

impl Options {
    /// Decides every value. `layer` is all sources laid over each other.
    ///
    /// # Errors
    /// [`ConfigError`] when a value can't be had here, or two don't go together.
    pub fn resolve(layer: Layer, machine: &Machine) -> Result<Self, ConfigError> {
        let home = machine.home(layer.home.as_deref())?;
        let backend = layer.backend.unwrap_or(BackendName::Sim);
        if backend == BackendName::Claude {
            return Err(ConfigError::NoClaude);
        }
        let repos: Vec<PathBuf> = layer.repos.unwrap_or_default().iter().map(|path| absolute(path, machine)).collect();
        if layer.showcase.is_some() && !repos.is_empty() {
            let problem = "plays in the demo repository; leave --repo out".to_owned();
            return Err(ConfigError::Flag { flag: "--showcase", problem });
        }
        let speed = layer.speed.unwrap_or(1.0);
        let defaults = Settings::default();
        let user = layer.user_name.or_else(|| machine.login.as_deref().and_then(capitalised));
        let settings = Settings {
            backend,
            user_name: user.unwrap_or_else(|| defaults.user_name.clone()),
            team: layer.workers.map_or_else(everyone, |workers| workers.ids()),
            max_concurrent: layer.max_concurrent.unwrap_or(SIM_TURNS),
            lead_review: layer.lead_review.unwrap_or(true),
            resume: layer.resume.unwrap_or(true),
            ci: layer.ci,
            setup: layer.setup.into_iter().map(|(repo, command)| (real(repo), command)).collect(),
            merge_style: layer.merge_style.unwrap_or(MergeStyle::Merge),
            sign_merges: layer.sign_merges.unwrap_or(false),
            turn_timeout_ms: layer.turn_timeout_ms.unwrap_or(defaults.turn_timeout_ms),
            repo_poll_ms: layer.repo_poll_ms.unwrap_or(defaults.repo_poll_ms),
            user_home: machine.user_home.clone().unwrap_or_else(|| defaults.user_home.clone()),
            auto_answer: auto_answer(layer.auto_answer, speed),
            speed: Some(speed),
            showcase: layer.showcase.is_some(),
            engine_label: engine_label(speed),
            // The profile's part is not known yet.
            ..defaults
        };
        Ok(Self {
            home,
            profile: layer.profile.unwrap_or_else(|| backend.as_str().to_owned()),
            port: layer.port,
            repos,
            settings,
            sim: SimOptions {
                speed,
                seed: layer.seed.unwrap_or(7),
                ambient: layer.ambient.unwrap_or(true),
                showcase: layer.showcase,
            },
            autostart: layer.autostart.unwrap_or(false) || layer.showcase.is_some(),
            notify: layer.notify.unwrap_or(true),
            verbosity: layer.verbosity.unwrap_or_default(),
            screen: ScreenOptions {
                ascii: layer.ascii,
                theme: layer.theme,
                mouse: layer.mouse,
                color: layer.color,
                read_only: layer.read_only.unwrap_or(false),
            },
        })
    }
}

fn everyone() -> Vec<AgentId> {
    roster::WORKERS.iter().map(|id| AgentId::from(*id)).collect()
}

fn auto_answer(wish: Option<AutoAnswerWish>, speed: f64) -> AutoAnswer {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and at most half a minute")]
    let scaled = |ms: f64| (ms / speed).round() as u64;
    let pauses =
        AutoAnswer { delay_ms: scaled(AUTO_ANSWER_MS), retry_ms: scaled(AUTO_RETRY_MS), ..AutoAnswer::default() };
    match wish {
        None => pauses,
        Some(AutoAnswerWish::Demo) => AutoAnswer { demo: true, ..pauses },
        Some(AutoAnswerWish::Kinds(kinds)) => AutoAnswer { kinds, ..pauses },
    }
}

/// First words of the engine's status.
fn engine_label(speed: f64) -> String {
    if (speed - 1.0).abs() < f64::EPSILON {
        "Simulated team".to_owned()
    } else {
        format!("Simulated team (speed x{speed})")
    }
}

/// A directory named by the person, as an absolute path.
fn absolute(path: &Path, machine: &Machine) -> PathBuf {
    match (path.strip_prefix("~"), &machine.user_home) {
        // A shell leaves `~` alone inside quotes and lists.
        (Ok(rest), Some(user)) => user.join(rest),
        _ => machine.cwd.join(path),
    }
}

/// Can this path be handed to a Foreman? Whether git can work there is the Foreman's to say.
///
/// # Errors
/// [`ConfigError::Repo`] when it is no directory, or not text.
pub fn check_repo(path: &Path) -> Result<(), ConfigError> {
    let wrong = |problem: String| Err(ConfigError::Repo { path: path.to_owned(), problem });
    if path.to_str().is_none() {
        return wrong("the path is not valid UTF-8, which the protocol needs; rename the directory".to_owned());
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => wrong("is a file; name the directory of a git repository".to_owned()),
        Err(error) => wrong(format!("{error}; name the directory of a git repository")),
    }
}

/// The path without links, when it is there.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// A login name as a name: `ada` is `Ada`.
fn capitalised(login: &str) -> Option<String> {
    let name = user_name(login).ok()?;
    let mut letters = name.chars();
    let first = letters.next()?;
    Some(first.to_uppercase().chain(letters).collect())
}
