//! The look at the world: what is on disk of what the state believes in. Judges nothing; the core reconciles.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::foreman::effect::{Effect, RepoRef, WorktreeRef};
use crate::foreman::input::World;
use crate::foreman::state::State;
use crate::protocol::GoalId;

/// What of the state a look is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beliefs {
    /// Worktrees whose directory should be there.
    pub(crate) live: Vec<(RepoRef, WorktreeRef)>,
    /// Directories that have a reason to be there.
    pub(crate) known: BTreeSet<PathBuf>,
    /// Wished directories of worktrees being made; a busy one gets `-2`, ...
    pub(crate) wished: Vec<PathBuf>,
    /// Goals that may have a copy of their own.
    pub(crate) goals: BTreeSet<GoalId>,
}

impl Beliefs {
    pub(crate) fn of(state: &State) -> Self {
        let mut beliefs = Self { goals: state.goals.keys().cloned().collect(), ..Self::default() };
        for (id, repo) in &state.repos {
            let at = RepoRef { id: id.clone(), path: PathBuf::from(&repo.path), base: repo.branch.clone() };
            for worktree in &repo.worktrees {
                let dir = PathBuf::from(&worktree.path);
                beliefs.known.insert(dir.clone());
                let work = state.repo_work.get(id).and_then(|work| work.worktrees.get(&worktree.id));
                let (Some(work), Some(task)) = (work, &worktree.task_id) else { continue };
                if work.live {
                    beliefs.live.push((
                        at.clone(),
                        WorktreeRef {
                            id: worktree.id.clone(),
                            agent: worktree.agent_id.clone(),
                            task: task.clone(),
                            dir,
                            branch: worktree.branch.clone(),
                            fork: work.fork.clone(),
                            live: true,
                        },
                    ));
                }
            }
        }
        for effect in state.effects.values() {
            match effect {
                Effect::PrepareWorktree(order) => beliefs.wished.push(order.dir.clone()),
                Effect::PrepareCopy { dir, .. } => {
                    beliefs.known.insert(dir.clone());
                }
                // Its directory is being taken away; gone or not, the effect settles it.
                Effect::Abandon { worktree, .. } => beliefs.live.retain(|(_, at)| at.id != worktree.id),
                _ => {}
            }
        }
        beliefs
    }

    fn explains(&self, dir: &Path) -> bool {
        if self.known.contains(dir) {
            return true;
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            return true;
        }
        // Copies are `<agent>-<goal>` or `<agent>-copy`.
        if let Some((_, subject)) = name.rsplit_once('-')
            && (subject == "copy" || self.goals.contains(&GoalId::from(subject)))
        {
            return true;
        }
        self.wished.iter().any(|wished| {
            wished.parent() == dir.parent()
                && name.strip_prefix(&*wished.file_name().unwrap_or_default().to_string_lossy()).is_some_and(|rest| {
                    rest.is_empty()
                        || rest
                            .strip_prefix('-')
                            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
                })
        })
    }
}

/// Looks at the worktrees below `root`; `verify` says what is wrong with one.
pub(crate) fn look(
    beliefs: &Beliefs,
    root: &Path,
    verify: impl Fn(&RepoRef, &WorktreeRef) -> Result<(), String>,
) -> World {
    let missing = beliefs
        .live
        .iter()
        .filter_map(|(repo, worktree)| Some((worktree.id.clone(), verify(repo, worktree).err()?)))
        .collect();
    let mut unknown: Vec<String> = directories(root)
        .iter()
        .flat_map(|repo| directories(repo))
        .filter(|dir| !beliefs.explains(dir))
        .map(|dir| dir.display().to_string())
        .collect();
    unknown.sort();
    World { missing, unknown, ended: Vec::new() }
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(dir) else { return Vec::new() };
    listing
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreman::change::Change;
    use crate::foreman::effect::{AgentIdentity, EffectId, PrepareWorktree};
    use crate::foreman::state::{RepoWork, WorktreeWork};
    use crate::protocol::{CiStatus, Goal, GoalStatus, Repo, TaskId, Worktree, WorktreeId, WorktreeStatus};

    fn state(root: &Path) -> State {
        let mut state = State::default();
        let worktree = |id: &str, status| Worktree {
            id: WorktreeId::from(id),
            agent_id: "kit".into(),
            task_id: Some(TaskId::nth(1)),
            branch: format!("agentcraft/kit/{id}"),
            base: "main".to_owned(),
            path: root.join("demo").join(id).display().to_string(),
            status,
            ahead: 0,
            files: 0,
            additions: 0,
            deletions: 0,
        };
        state.apply(&Change::Repo(Repo {
            id: "demo".into(),
            name: "demo".to_owned(),
            path: "/r".to_owned(),
            branch: "main".to_owned(),
            head: None,
            dirty: false,
            worktrees: vec![
                worktree("kit-t1", WorktreeStatus::Active),
                worktree("kit-t2", WorktreeStatus::Active),
                worktree("kit-t3", WorktreeStatus::Merged),
            ],
            ci: CiStatus::Unknown,
        }));
        let work = |live| WorktreeWork { fork: "f".to_owned(), head: "h".to_owned(), merged: None, live };
        let mut repo_work = RepoWork::default();
        for (id, live) in [("kit-t1", true), ("kit-t2", true), ("kit-t3", false)] {
            repo_work.worktrees.insert(WorktreeId::from(id), work(live));
        }
        state.apply(&Change::RepoWork("demo".into(), repo_work));
        state.apply(&Change::Goal(Goal {
            id: GoalId::nth(1),
            text: String::new(),
            progress: 0.0,
            status: GoalStatus::Active,
            repo_id: None,
            created_at: 0,
            updated_at: 0,
        }));
        state.apply(&Change::EffectWanted(
            EffectId(1),
            Box::new(Effect::PrepareWorktree(Box::new(PrepareWorktree {
                repo: RepoRef { id: "demo".into(), path: "/r".into(), base: "main".to_owned() },
                agent: "wren".into(),
                task: TaskId::nth(4),
                id: WorktreeId::from("wren-t4"),
                branch: "b".to_owned(),
                dir: root.join("demo/wren-t4"),
                start: None,
                own_branches: Vec::new(),
                setup: None,
                identity: AgentIdentity { name: String::new(), email: String::new() },
            }))),
        ));
        state
    }

    /// Only live worktrees are looked for; what is there without a reason is named, and nothing else.
    #[test]
    fn missing_and_unknown_are_told_apart() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        for name in [
            "kit-t2",
            "kit-t3",
            "wren-t4",
            "wren-t4-2",
            "wren-t44",
            "marlow-g1",
            "marlow-g9",
            "tove-copy",
            "by-hand",
            ".removing",
        ] {
            fs::create_dir_all(root.join("demo").join(name)).unwrap();
        }
        fs::write(root.join("demo/a-file"), "").unwrap();
        let world = look(&Beliefs::of(&state(root)), root, |_, worktree| {
            if worktree.dir.is_dir() { Ok(()) } else { Err("the directory is gone".to_owned()) }
        });
        assert_eq!(world.missing, [(WorktreeId::from("kit-t1"), "the directory is gone".to_owned())]);
        let names: Vec<&str> = world.unknown.iter().filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(names, ["by-hand", "marlow-g9", "wren-t44"]);
    }
}
