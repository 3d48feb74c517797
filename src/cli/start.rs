//! A start: claims the profile, composes Foreman, server and screen, and takes them down again.
//!
//! The order: profile, reset, log, port, Foreman, run files, what the command line asked for, screen. Whatever ends
//! the screen but the person's leave or a request to end, the Foreman goes on without it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::error::CliError;
use super::flags::{CommandLine, Front, Reset};
use super::handover::{GoalWish, Missing, hand_over};
use super::logs::{self, Beside};
use super::screen::{self, Owner};
use super::session::{Patience, Session};
use super::{attach, headless, offer, output, ports};
use crate::client::embedded;
use crate::config::options::{Machine, check_repo};
use crate::config::{Options, Showcase};
use crate::engine::Engine;
use crate::engine::sim::{Sim, SimOptions, demo_goal, demo_repo, showcase_answers};
use crate::foreman::{AutoAnswer, Settings};
use crate::runtime::profile::{Profile, ProfileError, RunFile, find_running};
use crate::runtime::{Ended, Handle, Runtime, RuntimeConfig};
use crate::tui::{UiError, UiExit};

/// Longest wait for another process that starts or ends to say where it listens.
const NEIGHBOUR: Duration = Duration::from_secs(5);
/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(100);
/// A screen that was asked to end and does not within this time hangs in its terminal.
const SCREEN_END: Duration = Duration::from_secs(3);
/// Threads for what waits far more than it works.
const THREADS: usize = 2;
/// Name of the demo repository's directory in the profile.
const DEMO: &str = "pocket-notes";

/// Starts, or attaches to what runs already.
pub(super) fn start(line: &CommandLine, options: Options, machine: &Machine) -> Result<ExitCode, CliError> {
    if line.front != Front::Headless {
        screen::need_terminal()?;
    }
    if line.layer.repos.is_some() {
        options.repos.iter().try_for_each(|path| check_repo(path))?;
    }
    // Panics of tasks are caught by their owners; the report of all others names the place.
    let _ = color_eyre::install();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(|source| CliError::System { what: "threads", source })?;
    let ended = runtime.block_on(async {
        if line.front == Front::AttachedScreen {
            let run = find_running(&options.home, Some(&options.profile)).ok_or_else(|| CliError::NotRunning {
                place: format!("for profile \"{}\" in {}", options.profile, options.home.display()),
            })?;
            return attach::attach(line, &options, run).await;
        }
        match claim(&options).await? {
            Claim::Ours(profile) => live(line, options, machine, profile).await,
            Claim::Running(run) if line.front == Front::Headless => Err(CliError::AlreadyRunning(run)),
            Claim::Running(run) => attach::attach(line, &options, *run).await,
        }
    });
    // Blocking work that hangs (a screen in a stalled terminal) must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended
}

enum Claim {
    Ours(Profile),
    Running(Box<RunFile>),
}

/// Takes the profile, or finds who has it.
async fn claim(options: &Options) -> Result<Claim, CliError> {
    let deadline = tokio::time::Instant::now() + NEIGHBOUR;
    loop {
        match Profile::claim(&options.home, &options.profile) {
            Ok(profile) => return Ok(Claim::Ours(profile)),
            Err(ProfileError::Busy { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        // A run file is only believed while the lock is held; one that starts or ends has none yet, or no more.
        if let Some(run) = find_running(&options.home, Some(&options.profile)) {
            return Ok(Claim::Running(Box::new(run)));
        }
        if tokio::time::Instant::now() > deadline {
            return Err(CliError::Held { profile: options.profile.clone() });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A Foreman's life in this process.
async fn live(line: &CommandLine, options: Options, machine: &Machine, profile: Profile) -> Result<ExitCode, CliError> {
    let headless = line.front == Front::Headless;
    reset(line.reset, &profile)?;
    let dir = profile.dir().to_owned();
    let beside = if headless { Beside::Stderr } else { Beside::Nothing };
    logs::start(&dir, "foreman", options.verbosity, beside)?;
    let signals = Signals::listen()?;
    let bound = ports::listen(options.port, &options.home).await?;
    let port = bound.port();
    tracing::info!(profile = profile.name(), port, pid = std::process::id(), "starting");

    let demo = dir.join(DEMO);
    let (facts, watching) = watch::channel(Arc::default());
    let sim = Sim::new(SimOptions {
        speed: options.sim.speed,
        seed: options.sim.seed,
        showcase: options.sim.showcase.map(|showcase| showcase.as_str().to_owned()),
        ambient: options.sim.ambient,
        scratch: profile.scratch(),
        env: std::env::vars_os().collect(),
        facts: watching,
    })
    .map_err(|error| CliError::Defect(error.to_string()))?;
    let settings =
        Settings { demo_repo: Some(demo.clone()), auto_answer: auto_answer(&options)?, ..options.settings.clone() };
    let engine = Engine::Sim(Arc::new(sim));
    let handle = Runtime::start(RuntimeConfig { profile, settings, engine, facts, repos: Vec::new(), goal: None })?;
    let stop = CancellationToken::new();
    let server = bound.serve(handle.connector(), stop.clone());
    let house = House { handle, stop, server, signals, options, dir, port };
    house.live(line, machine, demo).await
}

/// What is answered by itself, a showcase's way to its held state included.
fn auto_answer(options: &Options) -> Result<AutoAnswer, CliError> {
    let Some(showcase) = options.sim.showcase else { return Ok(options.settings.auto_answer.clone()) };
    let until = showcase_answers(Showcase::as_str(showcase)).map_err(|error| CliError::Defect(error.to_string()))?;
    Ok(AutoAnswer { demo: true, until: Some(until), delay_ms: 1, retry_ms: 1, ..AutoAnswer::default() })
}

/// Begins the profile anew, if that was asked for and is meant.
fn reset(wish: Reset, profile: &Profile) -> Result<(), CliError> {
    match wish {
        Reset::Keep => return Ok(()),
        Reset::Confirmed => {}
        Reset::Ask => {
            let question = format!(
                "Begin profile \"{}\" anew? Its board, memory and worktrees are moved aside, every branch is kept. [y/N]",
                profile.name()
            );
            match output::ask(&question).as_deref() {
                Some("y" | "yes") => {}
                Some(_) => return Err(CliError::Declined),
                None => return Err(CliError::CannotAsk { profile: profile.name().to_owned() }),
            }
        }
    }
    if let Some(aside) = profile.set_aside()? {
        output::complain(&format!("what was in the profile is now in {}", aside.display()));
    }
    Ok(())
}

/// Requests to end, from whoever may make them. Listening also keeps a hang-up from ending the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    _hangup: Signal,
}

impl Signals {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|source| CliError::System { what: "signals", source });
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            _hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn end_wanted(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Everything of a running Foreman.
struct House {
    handle: Handle,
    stop: CancellationToken,
    server: JoinHandle<()>,
    signals: Signals,
    options: Options,
    dir: PathBuf,
    port: u16,
}

/// Why a life ends.
enum Leave {
    /// Somebody asked for it.
    Asked,
    /// It can't go on.
    Failed(CliError),
}

impl House {
    async fn live(mut self, line: &CommandLine, machine: &Machine, demo: PathBuf) -> Result<ExitCode, CliError> {
        let leave = match self.begin(line, machine, demo).await {
            Ok(Some(session)) if line.front == Front::Headless => self.without_screen(session).await,
            Ok(Some(session)) => self.with_screen(session).await,
            Ok(None) => Leave::Asked,
            Err(error) => Leave::Failed(error),
        };
        let ended = self.close().await;
        match (leave, ended) {
            (Leave::Failed(error), _) => Err(error),
            (Leave::Asked, Ended::Failed(reason)) => Err(CliError::Ended(reason)),
            (Leave::Asked, Ended::Asked) => Ok(ExitCode::SUCCESS),
        }
    }

    /// Tells clients where to find the Foreman, and does what the command line asked for. `None`: it was asked to end
    /// meanwhile.
    async fn begin(
        &mut self,
        line: &CommandLine,
        machine: &Machine,
        demo: PathBuf,
    ) -> Result<Option<Session>, CliError> {
        self.handle.publish(self.port, self.options.settings.backend)?;
        let mut link = embedded(self.handle.connector(), "tui");
        link.start_on(&tokio::runtime::Handle::current());
        let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
        let mut session = tokio::select! {
            session = Session::over(link, self.port, Patience::Until(deadline)) => session?,
            () = self.signals.end_wanted() => return Ok(None),
        };
        let mut repos = self.options.repos.clone();
        let bare = repos.is_empty() && line.goal.is_none() && !self.options.autostart;
        if bare && line.front == Front::Screen {
            let (cwd, mirror, dir) = (machine.cwd.clone(), session.mirror.clone(), self.dir.clone());
            // Reading the answer blocks, and Ctrl-C must be heard meanwhile.
            let asked = tokio::task::spawn_blocking(move || offer::offer(&cwd, &mirror, &dir));
            let answer = tokio::select! {
                answer = asked => answer.map_err(|error| CliError::Defect(error.to_string()))??,
                () = self.signals.end_wanted() => return Ok(None),
            };
            repos.extend(answer);
        }
        if (repos.is_empty() && session.mirror.repos.is_empty()) || self.options.sim.showcase.is_some() {
            let dir = demo.clone();
            let made = tokio::task::spawn_blocking(move || demo_repo::create(&dir)).await;
            made.map_err(|error| CliError::Defect(error.to_string()))?
                .map_err(|error| CliError::Refused(error.to_string()))?;
            repos.push(demo);
        }
        let goal = match (line.goal.clone(), self.options.autostart) {
            (None, false) => GoalWish::None,
            (Some(text), false) => GoalWish::Submit(text),
            (Some(text), true) => GoalWish::First(text),
            (None, true) => GoalWish::First(demo_goal().map_err(|error| CliError::Defect(error.to_string()))?),
        };
        let missing = if line.layer.repos.is_some() { Missing::Fails } else { Missing::IsSaid };
        hand_over(&mut session, &repos, missing, goal).await?;
        Ok(Some(session))
    }

    /// Until somebody asks for the end, or the Foreman fails.
    async fn without_screen(&mut self, session: Session) -> Leave {
        output::complain(&format!(
            "Foreman of profile {} on 127.0.0.1:{} (process {}); Ctrl-C or `agentcraft-tui stop` ends it",
            self.options.profile,
            self.port,
            std::process::id()
        ));
        drop(session);
        self.headless().await
    }

    async fn headless(&mut self) -> Leave {
        let link = embedded(self.handle.connector(), "log");
        let verbosity = self.options.verbosity;
        let bell = if self.options.notify { headless::Bell::Rings } else { headless::Bell::Silent };
        tokio::select! {
            () = self.signals.end_wanted() => Leave::Asked,
            ended = self.handle.ended() => match ended {
                Ended::Asked => Leave::Asked,
                Ended::Failed(reason) => Leave::Failed(CliError::Ended(reason)),
            },
            () = async {
                headless::watch(link, verbosity, bell).await;
                std::future::pending::<()>().await;
            } => Leave::Asked,
        }
    }

    /// Until the person leaves; a screen that is lost leaves the Foreman running.
    async fn with_screen(&mut self, session: Session) -> Leave {
        let link = session.into_link();
        let closer = link.closer();
        let told = screen::options(&self.options, Owner::Ours, &self.dir);
        let mut shown = screen::show(link, told);
        let exit = tokio::select! {
            exit = &mut shown => exit,
            () = self.signals.end_wanted() => {
                // The screen hears the signal too. One that hangs in its terminal is left behind.
                closer.close();
                match tokio::time::timeout(SCREEN_END, &mut shown).await {
                    Ok(exit) => exit,
                    Err(_) => {
                        tracing::warn!("the screen hangs in its terminal and is left behind");
                        return Leave::Asked;
                    }
                }
            }
        };
        match exit {
            Ok(Ok(UiExit::Quit)) => Leave::Asked,
            Ok(Ok(UiExit::TerminalLost)) => {
                tracing::info!("the terminal is lost; the Foreman goes on without a screen");
                self.headless().await
            }
            Ok(Err(error @ UiError::Panicked)) => {
                tracing::error!(%error, "the Foreman goes on without a screen");
                output::complain(&error.to_string());
                self.headless().await
            }
            Ok(Err(error @ (UiError::Terminal(_) | UiError::Start(_)))) => Leave::Failed(error.into()),
            Err(error) => Leave::Failed(CliError::Defect(error.to_string())),
        }
    }

    /// Takes everything down: no new clients, then the Foreman, then the connections.
    async fn close(self) -> Ended {
        tracing::info!("ending");
        let ended = self.handle.shutdown().await;
        self.stop.cancel();
        // Sessions say good-bye within a second.
        if tokio::time::timeout(Duration::from_secs(5), self.server).await.is_err() {
            tracing::warn!("the server did not end in time");
        }
        ended
    }
}
