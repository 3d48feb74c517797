//! The simulated team: scripts as data, played with real edits, commits and test runs in real worktrees.
//!
//! A player, not a second brain: scheduling, decisions and merging are the core's. Entry points: [`Sim::new`] and
//! [`play::play`].

pub mod demo_repo;
mod files;
pub mod play;
pub mod script;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use crate::turn::{Facts, GoalBrief, RepoBrief};
use script::Script;

/// The scripts that are built in; the last one takes every goal.
const SCRIPTS: [(&str, &str); 2] = [
    ("pocket-notes", include_str!("../../../assets/sim/pocket-notes.toml")),
    ("generic", include_str!("../../../assets/sim/generic.toml")),
];

/// The goal that the demo starts with.
///
/// # Errors
/// When a built-in script is not well-formed.
pub fn demo_goal() -> Result<String, SimError> {
    let scripts = load()?;
    scripts.iter().find_map(|script| script.goal.clone()).ok_or(SimError::NoScript)
}

/// What the simulated team plays like.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Pace; 1 is that of people watching.
    pub speed: f64,
    pub seed: u64,
    /// Holds a static state of this name ("busy", "late").
    pub showcase: Option<String>,
    /// Lines while an agent waits.
    pub ambient: bool,
    /// Scratch directories of agents, one below it each.
    pub scratch: PathBuf,
    /// Environment that children inherit from, before it is filtered.
    pub env: Vec<(OsString, OsString)>,
    /// What stands on the wall and the podium.
    pub facts: watch::Receiver<Arc<Facts>>,
}

/// Why the simulated team can't play.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("the built-in script {name} is not well-formed: {source}")]
    Script { name: &'static str, source: toml::de::Error },
    #[error("there is no script with a goal")]
    NoScript,
    #[error("there is no showcase \"{0}\": busy or late")]
    NoShowcase(String),
}

/// The simulated team.
#[derive(Debug)]
pub struct Sim {
    pub(crate) options: SimOptions,
    scripts: Vec<Script>,
    profile: OnceLock<String>,
}

fn load() -> Result<Vec<Script>, SimError> {
    SCRIPTS.iter().map(|(name, text)| script::parse(text).map_err(|source| SimError::Script { name, source })).collect()
}

/// How many decisions a showcase answers before it holds.
///
/// # Errors
/// When there is no showcase of that name.
pub fn showcase_answers(name: &str) -> Result<u64, SimError> {
    load()?
        .iter()
        .find_map(|script| script.showcase.get(name).copied())
        .ok_or_else(|| SimError::NoShowcase(name.to_owned()))
}

impl Sim {
    /// Loads the scripts.
    ///
    /// # Errors
    /// When a built-in script is not well-formed, or there is no such showcase.
    pub fn new(options: SimOptions) -> Result<Self, SimError> {
        if let Some(name) = &options.showcase {
            showcase_answers(name)?;
        }
        Ok(Self { options, scripts: load()?, profile: OnceLock::new() })
    }

    /// The profile that children belong to.
    pub(crate) fn mark(&self, profile_id: &str) {
        // Said once per life.
        let _known = self.profile.set(profile_id.to_owned());
    }

    pub(crate) fn profile(&self) -> &str {
        self.profile.get().map_or("", String::as_str)
    }

    /// First words of the status line.
    pub fn label(&self) -> String {
        format!("Simulated team (speed x{})", self.options.speed)
    }

    /// The script for a goal: the first whose text is the goal's, else the one for all.
    pub(crate) fn script_for(&self, goal: Option<&GoalBrief>, repo: &RepoBrief) -> Option<&Script> {
        let text = goal.map(|goal| goal.text.trim()).unwrap_or_default();
        self.scripts.iter().find(|script| match &script.goal {
            Some(wanted) => (!script.demo_only || repo.demo) && wanted == text,
            None => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use script::Beat;

    fn check_beats(script: &Script, beats: &[Beat], place: &str) {
        for beat in beats {
            match beat {
                Beat::CreateTask { task } => assert!(script.tasks.contains_key(task), "{place}: no task {task}"),
                Beat::Update { task: Some(task), .. } => {
                    assert!(script.tasks.contains_key(task), "{place}: no task {task}");
                }
                Beat::WaitUntil { any } => {
                    assert!(any.len() > 1, "{place}: a wait without another way out");
                    for fact in any {
                        if let Some(task) = &fact.task {
                            assert!(script.tasks.contains_key(task), "{place}: no task {task}");
                        }
                    }
                }
                Beat::If { then, otherwise, .. } => {
                    check_beats(script, then, place);
                    check_beats(script, otherwise, place);
                }
                Beat::Permission { allowed, denied, .. } => {
                    check_beats(script, allowed, place);
                    check_beats(script, denied, place);
                }
                Beat::Ask { answers, options, .. } => {
                    assert!(answers.is_empty() || answers.len() == options.len(), "{place}: an option without beats");
                    for beats in answers {
                        check_beats(script, beats, place);
                    }
                }
                _ => {}
            }
        }
    }

    /// Scripts parse, name only tasks they have, depend only on tasks they have, and no wait is without a way out.
    #[test]
    fn built_in_scripts_are_sound() {
        for script in load().unwrap() {
            check_beats(&script, &script.plan, "plan");
            for (key, task) in &script.tasks {
                for dep in &task.deps {
                    assert!(script.tasks.contains_key(dep), "{key} depends on {dep}");
                }
                for beats in [&task.work, &task.review, &task.ci_failed, &task.revise] {
                    check_beats(&script, beats, key);
                }
            }
            for talk in &script.followup {
                check_beats(&script, &talk.beats, &talk.agent);
            }
        }
    }
}
