//! The screen of a Foreman that runs already, and what a second start may still want of it.

use std::path::Path;
use std::process::ExitCode;

use super::error::CliError;
use super::flags::CommandLine;
use super::handover::{GoalWish, Missing, hand_over};
use super::logs::{self, Beside};
use super::screen::{self, Owner};
use super::session::{Patience, Session};
use crate::client::remote;
use crate::config::Options;
use crate::runtime::profile::RunFile;

/// Flags that mean something beside a Foreman that runs already.
const APPLY: &[&str] = &[
    "--home",
    "--profile",
    "--repo",
    "--goal",
    "--attach",
    "--ascii",
    "--theme",
    "--no-mouse",
    "--no-color",
    "--read-only",
    "--notify",
    "--no-notify",
    "--debug",
    "--quiet",
];

/// Hands over what was asked, then shows the screen until the person leaves it.
pub(super) async fn attach(line: &CommandLine, options: &Options, run: RunFile) -> Result<ExitCode, CliError> {
    can_apply(line, options, &run)?;
    screen::need_terminal()?;
    let dir = options.home.join(&run.profile);
    logs::start(&dir, "screen", options.verbosity, Beside::Nothing)?;
    // Repositories of the file were connected when the Foreman started.
    let repos = if line.layer.repos.is_some() { options.repos.as_slice() } else { &[] };
    if !repos.is_empty() || line.goal.is_some() {
        let mut session = Session::open(run.port, Patience::Running).await?;
        let goal = line.goal.clone().map_or(GoalWish::None, GoalWish::Submit);
        hand_over(&mut session, repos, Missing::Fails, goal).await?;
    }
    show(options, &run, &dir).await
}

async fn show(options: &Options, run: &RunFile, dir: &Path) -> Result<ExitCode, CliError> {
    let mut link = remote(run.port, "tui");
    link.start_on(&tokio::runtime::Handle::current());
    let told = screen::options(options, Owner::Another, dir);
    let ended = screen::show(link, told).await.map_err(|error| CliError::Defect(error.to_string()))?;
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses flags that a running Foreman can't take any more.
fn can_apply(line: &CommandLine, options: &Options, run: &RunFile) -> Result<(), CliError> {
    let refused: Vec<&str> = line
        .given
        .iter()
        .map(String::as_str)
        .filter(|flag| match *flag {
            "--port" => line.layer.port != Some(run.port),
            "--backend" => options.settings.backend != run.backend,
            flag => !APPLY.contains(&flag),
        })
        .collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(CliError::CannotApply { run: Box::new(run.clone()), flags: refused.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Machine;
    use crate::protocol::BackendName;

    fn check(words: &str) -> Result<(), String> {
        let args = std::iter::once("agentcraft-tui").chain(words.split_whitespace());
        let line = CommandLine::read(args).expect("well written");
        let machine = Machine { user_home: Some("/home/ada".into()), login: None, cwd: "/".into() };
        let options = Options::resolve(line.layer.clone(), &machine).expect("valid");
        let run = RunFile {
            pid: 9,
            port: 7878,
            host: "127.0.0.1".to_owned(),
            backend: BackendName::Sim,
            profile: "sim".to_owned(),
            version: "0.1.0".to_owned(),
            started_at: String::new(),
        };
        can_apply(&line, &options, &run).map_err(|error| error.to_string())
    }

    /// What concerns the screen, a repository and a goal is taken; what only a start can do is refused by name.
    #[test]
    fn a_second_start() {
        assert_eq!(check("--goal x --repo / --ascii --read-only --backend sim --port 7878"), Ok(()));
        for (words, named) in
            [("--workers 2", "--workers"), ("--port 7879", "--port"), ("--speed 2 --seed 1", "--speed, --seed")]
        {
            let error = check(words).expect_err(words);
            assert!(error.contains(named) && error.contains("process 9"), "{error}");
        }
    }
}
