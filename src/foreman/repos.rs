//! Connected repositories: connecting, what the git room saw of them, when to look again, diffs for clients.

use super::change::Change;
use super::effect::{DiffOrder, Effect, EffectResult, RepoFacts, RepoRef, WorktreeFacts};
use super::state::RepoWork;
use super::text::{short, slugify};
use super::{Ask, Step};
use crate::protocol::{
    Ack, CiStatus, ClientId, Diff, DiffRequest, DiffStats, FeedKind, NotifyLevel, Repo, RepoId, ServerMessage,
    WorktreeId, WorktreeStatus,
};

/// Pause before a look after something changed, ms: joins what comes in a burst.
pub(crate) const SOON_MS: u64 = 400;
/// The same after a worker's edit, ms: more of them will come.
pub(crate) const AFTER_WORK_MS: u64 = 1500;

impl Step<'_> {
    /// The repository that a goal without one is about: the one connected last.
    pub(crate) fn newest_repo(&self) -> Option<RepoId> {
        self.state.repo_work.iter().max_by_key(|(_, work)| work.added).map(|(id, _)| id.clone())
    }

    /// A repository as git effects need it.
    pub(crate) fn repo_ref(&self, id: &RepoId) -> Option<RepoRef> {
        let repo = self.state.repos.get(id)?;
        Some(RepoRef { id: id.clone(), path: repo.path.clone().into(), base: repo.branch.clone() })
    }

    /// Changes a repository; broadcasts only a real change.
    pub(crate) fn edit_repo(&mut self, id: &RepoId, edit: impl FnOnce(&mut Repo)) {
        let Some(old) = self.state.repos.get(id) else { return };
        let mut repo = old.clone();
        edit(&mut repo);
        if *old != repo {
            self.put(Change::Repo(repo));
        }
    }

    pub(crate) fn edit_repo_work(&mut self, id: &RepoId, edit: impl FnOnce(&mut RepoWork)) {
        let Some(old) = self.state.repo_work.get(id) else { return };
        let mut work = old.clone();
        edit(&mut work);
        if *old != work {
            self.put(Change::RepoWork(id.clone(), work));
        }
    }

    /// A client wants a repository connected.
    pub(crate) fn add_repo(&mut self, from: ClientId, ack: Option<String>, path: &str) {
        self.ask(Effect::InspectRepo { path: path.to_owned() }, Ask::InspectRepo { from, ack });
    }

    /// The path was looked at.
    pub(crate) fn on_repo_inspected(&mut self, from: ClientId, ack: Option<String>, result: EffectResult) {
        let facts = match result {
            EffectResult::RepoInspected(Ok(facts)) => facts,
            EffectResult::RepoInspected(Err(reason)) | EffectResult::Crashed(reason) => {
                self.refuse(from, ack, &reason);
                return;
            }
            _ => return self.refuse(from, ack, "the path could not be looked at"),
        };
        let path = facts.path.display().to_string();
        let known = self
            .state
            .repos
            .values()
            .find(|repo| repo.path.to_lowercase() == path.to_lowercase())
            .map(|repo| repo.id.clone());
        let id = match known {
            Some(id) => id,
            None => self.connect(&facts, &path),
        };
        // The newest is the default of the next goal, also when it was known already.
        let added = self.state.repo_work.values().map(|work| work.added).max().unwrap_or(0) + 1;
        self.edit_repo_work(&id, |work| work.added = added);
        let line = self
            .state
            .repos
            .get(&id)
            .map(|repo| format!("Repo connected: {} ({})", repo.name, repo.branch))
            .unwrap_or_default();
        self.feed(FeedKind::System, Some("user"), &line);
        self.refresh_soon(&id, 0);
        self.accept(from, ack, &[("repoId", id.as_str())]);
    }

    fn connect(&mut self, facts: &RepoFacts, path: &str) -> RepoId {
        let name = facts.path.file_name().map_or_else(|| "repo".to_owned(), |name| name.to_string_lossy().into_owned());
        let mut id = RepoId(slugify(&name, 24));
        let short_slug = slugify(&name, 20);
        let mut number = 2;
        while self.state.repos.contains_key(&id) {
            id = RepoId(format!("{short_slug}-{number}"));
            number += 1;
        }
        let demo = self.settings.demo_repo.as_deref() == Some(facts.path.as_path());
        self.put(Change::RepoWork(
            id.clone(),
            RepoWork { demo, health: facts.health.clone(), head: facts.head.clone(), ..RepoWork::default() },
        ));
        self.put(Change::Repo(Repo {
            id: id.clone(),
            name,
            path: path.to_owned(),
            branch: facts.branch.clone(),
            head: facts.head.as_deref().map(short),
            dirty: facts.dirty,
            worktrees: Vec::new(),
            ci: CiStatus::Unknown,
        }));
        id
    }

    /// Looks at a repository in so many ms, or earlier if that was planned.
    pub(crate) fn refresh_soon(&mut self, id: &RepoId, in_ms: u64) {
        let at = self.now + in_ms;
        let planned = self.live.refresh.entry(id.clone()).or_insert(at);
        *planned = (*planned).min(at);
    }

    /// Looks at the repositories that are due. One look at a time for each.
    pub(crate) fn refresh_due(&mut self) {
        let due: Vec<RepoId> = self
            .live
            .refresh
            .iter()
            .filter(|(id, at)| **at <= self.now && !self.live.refreshing.contains_key(*id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            self.live.refresh.remove(&id);
            let Some(repo) = self.repo_ref(&id) else { continue };
            let worktrees: Vec<WorktreeId> = self
                .state
                .repos
                .get(&id)
                .map(|repo| {
                    repo.worktrees
                        .iter()
                        .filter(|at| at.status == WorktreeStatus::Active)
                        .map(|at| at.id.clone())
                        .collect()
                })
                .unwrap_or_default();
            let worktrees = worktrees.iter().filter_map(|at| self.worktree_ref(&id, at)).collect();
            let effect = self.ask(Effect::RefreshRepo { repo, worktrees }, Ask::RefreshRepo { repo: id.clone() });
            self.live.refreshing.insert(id, effect);
        }
    }

    /// A repository was looked at.
    pub(crate) fn on_refreshed(&mut self, id: &RepoId, result: EffectResult) {
        self.live.refreshing.remove(id);
        let next = self.now + self.settings.repo_poll_ms.max(500);
        self.live.refresh.entry(id.clone()).or_insert(next);
        match result {
            EffectResult::RepoRefreshed(Ok(facts)) => self.show_facts(id, &facts),
            EffectResult::RepoRefreshed(Err(reason)) | EffectResult::Crashed(reason) => {
                self.show_health(id, Some(reason));
            }
            _ => {}
        }
    }

    fn show_facts(&mut self, id: &RepoId, facts: &RepoFacts) {
        self.show_health(id, facts.health.clone());
        self.edit_repo_work(id, |work| work.head.clone_from(&facts.head));
        self.edit_repo(id, |repo| {
            repo.head = facts.head.as_deref().map(short);
            repo.dirty = facts.dirty;
        });
        for worktree in &facts.worktrees {
            self.show_worktree_facts(id, worktree);
        }
    }

    /// Says once what is wrong with a repository, and once that it is well again.
    fn show_health(&mut self, id: &RepoId, health: Option<String>) {
        let before = self.state.repo_work.get(id).and_then(|work| work.health.clone());
        if before == health {
            return;
        }
        match &health {
            Some(reason) => {
                let line = format!("{id}: {reason}");
                self.feed(FeedKind::Error, None, &line);
                self.notify(NotifyLevel::Warn, &line, None);
            }
            None => self.feed(FeedKind::System, None, &format!("{id} can be worked on again")),
        }
        self.edit_repo_work(id, |work| work.health = health);
    }

    pub(crate) fn show_worktree_facts(&mut self, id: &RepoId, facts: &WorktreeFacts) {
        self.edit_repo(id, |repo| {
            if let Some(at) = repo.worktrees.iter_mut().find(|at| at.id == facts.id) {
                at.ahead = facts.ahead;
                at.files = facts.files;
                at.additions = facts.additions;
                at.deletions = facts.deletions;
            }
        });
    }

    // Diffs.

    /// A client wants a diff: by worktree id, branch, or agent (its newest active worktree, else its newest).
    pub(crate) fn request_diff(&mut self, from: ClientId, ack: Option<String>, request: &DiffRequest) {
        let found = self.find_worktree(&request.repo_id, request.worktree.as_str());
        let refs =
            found.and_then(|id| Some((self.repo_ref(&request.repo_id)?, self.worktree_ref(&request.repo_id, &id)?)));
        let Some((repo, worktree)) = refs else {
            let error = if self.state.repos.contains_key(&request.repo_id) {
                format!("no worktree \"{}\" in {}", request.worktree, request.repo_id)
            } else {
                format!("no repo \"{}\"", request.repo_id)
            };
            self.reply(from, ServerMessage::Diff(Box::new(failed_diff(request, &error))));
            self.accept(from, ack, &[]);
            return;
        };
        let order = DiffOrder { request_id: request.request_id.clone(), path: request.path.clone() };
        let effect = Effect::Diff { to: from, ack: ack.clone(), repo, worktree, request: order };
        self.ask(effect, Ask::Diff { from, ack, request: request.clone() });
    }

    /// The diff goes to the one who asked, then the ack.
    pub(crate) fn on_diff_made(
        &mut self,
        from: ClientId,
        ack: Option<String>,
        request: &DiffRequest,
        result: EffectResult,
    ) {
        let diff = match result {
            EffectResult::DiffMade(diff) => *diff,
            EffectResult::Crashed(reason) => failed_diff(request, &reason),
            _ => failed_diff(request, "the diff could not be made"),
        };
        self.reply(from, ServerMessage::Diff(Box::new(diff)));
        self.accept(from, ack, &[]);
    }

    fn find_worktree(&self, repo: &RepoId, wanted: &str) -> Option<WorktreeId> {
        let repo = self.state.repos.get(repo)?;
        let all = &repo.worktrees;
        if let Some(at) = all.iter().find(|at| at.id.as_str() == wanted || at.branch == wanted) {
            return Some(at.id.clone());
        }
        let agent = self.resolve_agent(wanted)?;
        let of_agent = || all.iter().filter(|at| at.agent_id == agent);
        of_agent()
            .rfind(|at| at.status == WorktreeStatus::Active)
            .or_else(|| of_agent().next_back())
            .map(|at| at.id.clone())
    }

    // Replies.

    pub(crate) fn reply(&mut self, to: ClientId, message: ServerMessage) {
        self.out.push(super::Output::Reply { to, message });
    }

    /// An ok ack, if the message had an id.
    pub(crate) fn accept(&mut self, to: ClientId, ack: Option<String>, result: &[(&str, &str)]) {
        let Some(re) = ack else { return };
        let result = (!result.is_empty())
            .then(|| result.iter().map(|(key, value)| ((*key).to_owned(), serde_json::Value::from(*value))).collect());
        self.reply(to, ServerMessage::Ack(Ack { re, ok: true, error: None, result }));
    }

    /// An error, then the failed ack if the message had an id.
    pub(crate) fn refuse(&mut self, to: ClientId, ack: Option<String>, reason: &str) {
        let message = crate::protocol::text::clean(reason).into_owned();
        self.reply(to, ServerMessage::Error(crate::protocol::ErrorReply { message: message.clone(), re: ack.clone() }));
        if let Some(re) = ack {
            self.reply(to, ServerMessage::Ack(Ack { re, ok: false, error: Some(message), result: None }));
        }
    }
}

fn failed_diff(request: &DiffRequest, reason: &str) -> Diff {
    Diff {
        request_id: request.request_id.clone(),
        repo_id: request.repo_id.clone(),
        worktree: request.worktree.clone(),
        base: None,
        branch: None,
        files: Vec::new(),
        stats: DiffStats::default(),
        truncated: false,
        error: Some(reason.to_owned()),
    }
}
