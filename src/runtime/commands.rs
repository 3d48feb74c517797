//! The person's commands in a worktree: its setup, once, and the tests. Both run with the agents' git guard.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::effects::Places;
use super::git_work::identity;
use crate::engine::ci::{self, CiRun};
use crate::engine::process::{ChildSpec, PROFILE_MARK, run};
use crate::foreman::effect::{
    AgentIdentity, CiOutcome, PrepareFailure, PrepareWorktree, PreparedWorktree, WorktreeRef,
};
use crate::git::safety::agent_environment;

/// Longest setup: dependencies of a large project.
const SETUP: Duration = Duration::from_secs(15 * 60);
/// Output of a setup that is shown, characters.
const SHOWN: usize = 3_000;

fn environment(places: &Places, dir: &Path, who: &AgentIdentity, agent: &str) -> Vec<(OsString, OsString)> {
    let scratch = places.scratch.join(agent);
    if let Err(error) = std::fs::create_dir_all(&scratch) {
        tracing::warn!(path = %scratch.display(), %error, "no scratch directory");
    }
    let mut env = agent_environment(std::env::vars_os(), dir, &identity(who), &scratch);
    env.push((PROFILE_MARK.into(), places.profile_id.clone().into()));
    env
}

fn tail(text: &str) -> String {
    let over = text.chars().count().saturating_sub(SHOWN);
    text.chars().skip(over).collect::<String>().trim().to_owned()
}

/// Runs the setup command, once per worktree and command. `None`: the Foreman ends; it runs again next time.
pub(crate) async fn set_up(
    places: &Places,
    order: &PrepareWorktree,
    made: PreparedWorktree,
    command: &str,
    cancel: CancellationToken,
) -> Option<Result<PreparedWorktree, PrepareFailure>> {
    let note = places.prepared.join(order.id.as_str());
    let done = format!("{command}\n{}\n{}", made.dir.display(), made.fork);
    if std::fs::read_to_string(&note).is_ok_and(|text| text == done) {
        return Some(Ok(made));
    }
    let env = environment(places, &made.dir, &order.identity, order.agent.as_str());
    let child = ChildSpec::shell(command, made.dir.clone(), env);
    let failed = |reason: String, output: String| Some(Err(PrepareFailure::Setup { reason, output }));
    match run(child, SETUP, cancel).await {
        Ok(ended) if ended.cancelled => None,
        Ok(ended) if ended.ok() => {
            let kept = std::fs::create_dir_all(&places.prepared).and_then(|()| std::fs::write(&note, done));
            if let Err(error) = kept {
                tracing::warn!(path = %note.display(), %error, "the setup will run again");
            }
            Some(Ok(PreparedWorktree { setup_output: Some(format!("$ {command}\n{}", tail(&ended.output))), ..made }))
        }
        Ok(ended) if ended.timed_out => {
            failed(format!("`{command}` took longer than {} min", SETUP.as_secs() / 60), tail(&ended.output))
        }
        Ok(ended) => {
            let code = ended.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            failed(format!("`{command}` ended with {code}"), tail(&ended.output))
        }
        Err(error) => failed(format!("`{command}` could not be started: {error}"), String::new()),
    }
}

/// Runs the tests of a worktree. `None`: the Foreman ends; they run again next time.
pub(crate) async fn run_tests(
    places: &Places,
    worktree: &WorktreeRef,
    command: Option<String>,
    cancel: CancellationToken,
) -> Option<CiOutcome> {
    let who = AgentIdentity { name: "AgentCraft CI".to_owned(), email: format!("{}@agentcraft.local", worktree.agent) };
    let env = environment(places, &worktree.dir, &who, "ci");
    let ended = ci::run_ci(&worktree.dir, command, env, cancel.clone()).await;
    if cancel.is_cancelled() {
        return None;
    }
    Some(match ended {
        CiRun::NoCommand => CiOutcome::NoCommand,
        CiRun::Finished { command, passed, duration_ms, output, summary, failures } => {
            CiOutcome::Finished { command, passed, duration_ms, output, summary, failures }
        }
        CiRun::Broken(reason) => CiOutcome::Broken(reason),
    })
}
