//! Settings: where they come from, which one wins, and what they come to.
//!
//! Sources are the defaults, `config.toml` in the home, the environment and the flags; each later one wins. Every
//! source is first read into a plain [`Layer`] ([`file`], [`environment`], and the command line in `cli`); the layers
//! laid over each other are then resolved into [`Options`], where values meet each other and the machine. Knows the
//! core's settings type; must not start anything. Entry points: [`Layer::over`], [`Options::resolve`].

pub mod environment;
pub mod error;
pub mod file;
pub mod options;
pub mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use error::ConfigError;
pub use options::Options;
pub use values::{AutoAnswerWish, Showcase, Theme, Workers};

use crate::foreman::effect::MergeStyle;
use crate::protocol::BackendName;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Warnings and errors.
    Quiet,
    #[default]
    Normal,
    /// Everything, for finding defects.
    Debug,
}

/// What one source says; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    pub backend: Option<BackendName>,
    pub home: Option<PathBuf>,
    pub profile: Option<String>,
    /// 0: any free port.
    pub port: Option<u16>,
    pub repos: Option<Vec<PathBuf>>,
    pub workers: Option<Workers>,
    /// At least 1.
    pub max_concurrent: Option<usize>,
    pub ci: Option<String>,
    /// Setup command per repository path.
    pub setup: BTreeMap<PathBuf, String>,
    pub merge_style: Option<MergeStyle>,
    pub sign_merges: Option<bool>,
    pub user_name: Option<String>,
    pub lead_review: Option<bool>,
    pub resume: Option<bool>,
    /// ms, at least 500.
    pub repo_poll_ms: Option<u64>,
    /// ms of work, at least a minute.
    pub turn_timeout_ms: Option<u64>,
    pub notify: Option<bool>,
    pub verbosity: Option<Verbosity>,
    /// Multiplier of the sim's pace, 0.05 to 10,000.
    pub speed: Option<f64>,
    pub seed: Option<u64>,
    pub ambient: Option<bool>,
    pub autostart: Option<bool>,
    pub auto_answer: Option<AutoAnswerWish>,
    pub showcase: Option<Showcase>,
    pub ascii: Option<bool>,
    pub theme: Option<Theme>,
    pub mouse: Option<bool>,
    pub color: Option<bool>,
    pub read_only: Option<bool>,
}

impl Layer {
    /// Both layers, this one winning where both say something.
    pub fn over(self, lower: Self) -> Self {
        let mut setup = lower.setup;
        setup.extend(self.setup);
        Self {
            backend: self.backend.or(lower.backend),
            home: self.home.or(lower.home),
            profile: self.profile.or(lower.profile),
            port: self.port.or(lower.port),
            repos: self.repos.or(lower.repos),
            workers: self.workers.or(lower.workers),
            max_concurrent: self.max_concurrent.or(lower.max_concurrent),
            ci: self.ci.or(lower.ci),
            setup,
            merge_style: self.merge_style.or(lower.merge_style),
            sign_merges: self.sign_merges.or(lower.sign_merges),
            user_name: self.user_name.or(lower.user_name),
            lead_review: self.lead_review.or(lower.lead_review),
            resume: self.resume.or(lower.resume),
            repo_poll_ms: self.repo_poll_ms.or(lower.repo_poll_ms),
            turn_timeout_ms: self.turn_timeout_ms.or(lower.turn_timeout_ms),
            notify: self.notify.or(lower.notify),
            verbosity: self.verbosity.or(lower.verbosity),
            speed: self.speed.or(lower.speed),
            seed: self.seed.or(lower.seed),
            ambient: self.ambient.or(lower.ambient),
            autostart: self.autostart.or(lower.autostart),
            auto_answer: self.auto_answer.or(lower.auto_answer),
            showcase: self.showcase.or(lower.showcase),
            ascii: self.ascii.or(lower.ascii),
            theme: self.theme.or(lower.theme),
            mouse: self.mouse.or(lower.mouse),
            color: self.color.or(lower.color),
            read_only: self.read_only.or(lower.read_only),
        }
    }
}

#[cfg(test)]
mod tests;
