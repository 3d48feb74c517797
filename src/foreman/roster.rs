//! The cast: six fixed agents, their names and colours, and how a name is resolved.

use super::Step;
use super::change::Change;
use super::text::{one_line, truncate};
use crate::protocol::{Agent, AgentId, AgentRole, AgentState, Color, RepoId, Station, TaskId, WorktreeId};

/// Id of the lead.
pub const LEAD: &str = "marlow";
/// Ids of the workers, in roster order.
pub const WORKERS: [&str; 5] = ["juniper", "kit", "wren", "rowan", "tove"];

/// Longest activity line, characters: what a nameplate holds.
const ACTIVITY_CHARS: usize = 48;

struct Member {
    id: &'static str,
    name: &'static str,
    title: &'static str,
    color: &'static str,
    accent: &'static str,
}

/// Roster order is the order of agents everywhere.
const CAST: [Member; 6] = [
    Member { id: "marlow", name: "Marlow", title: "Foreman & architect", color: "#D97757", accent: "#3B2A20" },
    Member { id: "juniper", name: "Juniper", title: "Researcher", color: "#8FA98B", accent: "#F4EFE6" },
    Member { id: "kit", name: "Kit", title: "Builder & tester", color: "#2FA3A0", accent: "#1F1E1D" },
    Member { id: "wren", name: "Wren", title: "Interface designer", color: "#C9A227", accent: "#3B2A20" },
    Member { id: "rowan", name: "Rowan", title: "Refactorer & reviewer", color: "#B4553A", accent: "#E9E1D3" },
    Member { id: "tove", name: "Tove", title: "Archivist & QA", color: "#6F8FB5", accent: "#F4EFE6" },
];

/// Ids in roster order.
pub fn roster() -> impl Iterator<Item = AgentId> {
    CAST.iter().map(|member| AgentId::from(member.id))
}

/// The lead's id.
pub fn lead() -> AgentId {
    AgentId::from(LEAD)
}

/// What of an agent changes; `None` leaves a part as it is.
#[derive(Default)]
pub(crate) struct AgentPatch {
    pub(crate) state: Option<AgentState>,
    pub(crate) station: Option<Station>,
    pub(crate) activity: Option<String>,
    pub(crate) task: Option<Option<TaskId>>,
    pub(crate) repo: Option<Option<RepoId>>,
    pub(crate) worktree: Option<Option<WorktreeId>>,
    pub(crate) paused: Option<bool>,
    pub(crate) active: Option<bool>,
}

impl AgentPatch {
    /// State, station and activity at once.
    pub(crate) fn doing(state: AgentState, station: Station, activity: &str) -> Self {
        Self { state: Some(state), station: Some(station), activity: Some(activity.to_owned()), ..Self::default() }
    }

    /// The agent lets go of its task.
    pub(crate) fn free(mut self) -> Self {
        self.task = Some(None);
        self.repo = Some(None);
        self.worktree = Some(None);
        self
    }
}

impl Step<'_> {
    /// Agents of the cast, made when new, with names and colours refreshed; who is on shift follows the settings.
    pub(crate) fn muster(&mut self) {
        for member in &CAST {
            let id = AgentId::from(member.id);
            let role = if member.id == LEAD { AgentRole::Lead } else { AgentRole::Worker };
            let work = self.state.agent_work.get(&id).cloned().unwrap_or_default();
            let on_team = role == AgentRole::Lead || self.settings.team.contains(&id) || work.spawned;
            let active = on_team && !work.stopped;
            let old = self.state.agents.get(&id);
            let mut agent = old.cloned().unwrap_or_else(|| Agent {
                id: id.clone(),
                name: String::new(),
                role,
                title: None,
                color: color(member.color),
                accent: None,
                skin: member.id.to_owned(),
                state: AgentState::Idle,
                activity: if role == AgentRole::Lead { "ready for a goal" } else { "off shift" }.to_owned(),
                station: Station::Lounge,
                task_id: None,
                repo_id: None,
                worktree: None,
                paused: false,
                active: false,
            });
            member.name.clone_into(&mut agent.name);
            agent.title = Some(member.title.to_owned());
            agent.role = role;
            agent.color = color(member.color);
            agent.accent = Some(color(member.accent));
            if !active {
                agent.state = AgentState::Idle;
                agent.station = Station::Lounge;
                agent.activity = if work.stopped { "stopped - off shift" } else { "off shift" }.to_owned();
            } else if agent.activity == "off shift" {
                "ready".clone_into(&mut agent.activity);
            }
            agent.active = active;
            if self.state.agents.get(&id) != Some(&agent) {
                self.put(Change::Agent(agent));
            }
        }
    }

    /// Changes an agent; broadcasts only if something really changed.
    pub(crate) fn patch_agent(&mut self, id: &AgentId, patch: AgentPatch) {
        let Some(old) = self.state.agents.get(id) else { return };
        let mut agent = old.clone();
        if let Some(state) = patch.state {
            agent.state = state;
        }
        if let Some(station) = patch.station {
            agent.station = station;
        }
        if let Some(activity) = patch.activity {
            agent.activity = truncate(&one_line(&activity), ACTIVITY_CHARS);
        }
        if let Some(task) = patch.task {
            agent.task_id = task;
        }
        if let Some(repo) = patch.repo {
            agent.repo_id = repo;
        }
        if let Some(worktree) = patch.worktree {
            agent.worktree = worktree;
        }
        if let Some(paused) = patch.paused {
            agent.paused = paused;
        }
        if let Some(active) = patch.active {
            agent.active = active;
        }
        if *old != agent {
            self.put(Change::Agent(agent));
        }
    }

    /// An agent by id or display name, any case, a leading `@` allowed.
    pub(crate) fn resolve_agent(&self, text: &str) -> Option<AgentId> {
        let name = text.trim();
        let name = name.strip_prefix('@').unwrap_or(name).trim().to_lowercase();
        self.state
            .agents
            .values()
            .find(|agent| agent.id.as_str() == name || agent.name.to_lowercase() == name)
            .map(|agent| agent.id.clone())
    }

    /// Display name of an agent id, of `user`, or of `all`.
    pub(crate) fn display_name(&self, who: &str) -> String {
        match who {
            "user" => self.settings.user_name.clone(),
            "all" => "everyone".to_owned(),
            id => self.state.agents.get(id).map_or_else(|| id.to_owned(), |agent| agent.name.clone()),
        }
    }

    /// On shift: on the team, not stopped.
    pub(crate) fn is_active(&self, id: &AgentId) -> bool {
        self.state.agents.get(id).is_some_and(|agent| agent.active)
    }

    /// Workers in the order in which they take work: the configured team, then those spawned beyond it.
    pub(crate) fn workers_in_order(&self) -> Vec<AgentId> {
        let mut order: Vec<AgentId> = self.settings.team.clone();
        order.extend(WORKERS.iter().map(|id| AgentId::from(*id)).filter(|id| !self.settings.team.contains(id)));
        order.retain(|id| self.is_active(id));
        order
    }
}

/// A colour of the table above, which holds only well-formed ones.
fn color(text: &str) -> Color {
    Color::try_from(text.to_owned()).unwrap_or_else(|_| Color::black())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_the_cast_is_well_formed() {
        for member in &CAST {
            assert_eq!(color(member.color).as_str(), member.color);
            assert_eq!(color(member.accent).as_str(), member.accent);
        }
    }
}
