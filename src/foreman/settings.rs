//! What the person configured, as the core needs it. Plain values; where they come from is not the core's business.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::effect::MergeStyle;
use crate::protocol::{AgentId, BackendName, DecisionKind, EpochMs};

/// Settings of one life of the Foreman.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub backend: BackendName,
    /// The person the team works for, at most 40 characters.
    pub user_name: String,
    /// Workers on the team, in the order in which they take work.
    pub team: Vec<AgentId>,
    /// Worker turns that may work at once; one that waits for the person does not count. At least 1.
    pub max_concurrent: usize,
    /// The lead reviews finished work before the person is asked to merge.
    pub lead_review: bool,
    /// Interrupted turns are taken up again at the next start.
    pub resume: bool,
    /// Test command for every repository; none: detected in the worktree.
    pub ci: Option<String>,
    /// Setup command per repository path, run once in each new worktree.
    pub setup: BTreeMap<PathBuf, String>,
    pub merge_style: MergeStyle,
    /// Sign merge commits when the person's own git would.
    pub sign_merges: bool,
    /// A turn that worked so long is stopped, ms. The clock stands still while it waits for the person.
    pub turn_timeout_ms: EpochMs,
    /// Pause between two looks at each repository, ms; at least 500.
    pub repo_poll_ms: EpochMs,
    /// Worktrees are made below this directory, scratch directories below `scratch`.
    pub worktrees: PathBuf,
    pub scratch: PathBuf,
    /// Memory notes; agents may read them.
    pub memory: PathBuf,
    /// The person's home, what `~` means in an agent's command.
    pub user_home: PathBuf,
    /// Unique id of the profile's database, part of a merge's mark.
    pub profile_id: String,
    /// Path of the Foreman's own demo repository.
    pub demo_repo: Option<PathBuf>,
    pub auto_answer: AutoAnswer,
    /// Sim: multiplier of its pace, for the status.
    pub speed: Option<f64>,
    /// Sim: holding a static state.
    pub showcase: bool,
    /// First words of the status message, e.g. "Simulated team (speed x2)".
    pub engine_label: String,
}

/// Decisions that are answered with their first option without the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoAnswer {
    /// Everything, in the demo repository only.
    pub demo: bool,
    /// These kinds, everywhere.
    pub kinds: BTreeSet<DecisionKind>,
    /// Only decisions up to this number (a showcase that holds with the next ones open).
    pub until: Option<u64>,
    /// Pause before the answer, ms.
    pub delay_ms: EpochMs,
    /// Pause before a merge that was refused is answered again (at most twice), ms.
    pub retry_ms: EpochMs,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            backend: BackendName::Sim,
            user_name: "the user".to_owned(),
            team: super::roster::WORKERS.iter().map(|id| AgentId::from(*id)).collect(),
            max_concurrent: 5,
            lead_review: true,
            resume: true,
            ci: None,
            setup: BTreeMap::new(),
            merge_style: MergeStyle::Merge,
            sign_merges: false,
            turn_timeout_ms: 45 * 60 * 1000,
            repo_poll_ms: 10_000,
            worktrees: PathBuf::from("/nonexistent/worktrees"),
            scratch: PathBuf::from("/nonexistent/scratch"),
            memory: PathBuf::from("/nonexistent/memory"),
            user_home: PathBuf::from("/nonexistent"),
            profile_id: "profile".to_owned(),
            demo_repo: None,
            auto_answer: AutoAnswer::default(),
            speed: None,
            showcase: false,
            engine_label: "Simulated team".to_owned(),
        }
    }
}
