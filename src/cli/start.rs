//! A start: the Foreman in this process, its door, its screen; or the screen of a Foreman that runs already.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::flags::{CommandLine, Front, Reset};
use super::log::{self, Stderr};
use super::{Failure, headless};
use crate::client::{Link, LinkEvent, embedded, remote};
use crate::config::options::{Machine, ScreenOptions};
use crate::config::{Layer, Options, Theme};
use crate::engine::Engine;
use crate::engine::sim::{self, Sim, demo_repo};
use crate::foreman::{AutoAnswer, Settings};
use crate::git::{self, GitError};
use crate::protocol::{Ack, ClientMessage, GoalSubmit, RepoAdd, ServerMessage, Snapshot};
use crate::runtime::profile::{Profile, ProfileError, RunFile, find_running};
use crate::runtime::{Ended, Handle, Runtime, RuntimeConfig};
use crate::server::{self, BindError, Bound, DEFAULT_PORT, ServerConfig};
use crate::tui::theme::ThemeName;
use crate::tui::{self, UiExit, UiOptions};
use crate::turn::Facts;

/// Ports tried after the usual one when none was asked for.
const MORE_PORTS: u16 = 20;
/// An answer of a Foreman that takes longer has failed.
const ANSWER: Duration = Duration::from_secs(30);
/// Sessions get so long to hear the last words.
const DOOR_CLOSES: Duration = Duration::from_secs(3);
/// Directory of the demo repository, in the profile.
const DEMO: &str = "pocket-notes";

/// Flags that a Foreman that runs already can be given, or that are about the screen only.
const FOR_RUNNING: [&str; 12] = [
    "--home",
    "--profile",
    "--port",
    "--backend",
    "--repo",
    "--goal",
    "--attach",
    "--ascii",
    "--theme",
    "--no-mouse",
    "--no-color",
    "--read-only",
];

/// Starts, or attaches to what runs.
pub(crate) async fn start(line: CommandLine, layer: Layer, machine: &Machine) -> Result<ExitCode, Failure> {
    let options = Options::resolve(layer, machine)?;
    if line.front == Front::AttachedScreen {
        let run = find_running(&options.home, Some(&options.profile));
        let run =
            run.ok_or_else(|| Failure::new("no Foreman of this profile runs; leave --attach out to start one"))?;
        return attach(&line, &options, &run).await;
    }
    let profile = match Profile::claim(&options.home, &options.profile) {
        Ok(profile) => profile,
        Err(ProfileError::Busy { owner, profile }) if line.front == Front::Screen => match owner {
            Some(run) => return attach(&line, &options, &run).await,
            None => {
                return Err(Failure::new(format!(
                    "the profile {profile:?} is being started or ended by another process; try again"
                )));
            }
        },
        Err(error) => return Err(Failure::new(error)),
    };
    if line.reset != Reset::Keep && !begin_anew(&profile, line.reset)? {
        return Ok(ExitCode::SUCCESS);
    }
    let stderr = if line.front == Front::Headless { Stderr::Hears } else { Stderr::Silent };
    log::begin(profile.dir(), options.verbosity, stderr);
    run(line, options, machine, profile).await
}

/// `--reset`: everything of the profile is moved aside, after a question.
fn begin_anew(profile: &Profile, reset: Reset) -> Result<bool, Failure> {
    if reset == Reset::Ask {
        let question = format!(
            "Begin the profile {:?} anew? Its board, notes and logs are moved aside; every branch is kept.",
            profile.name()
        );
        match ask(&question, Preset::No) {
            Some(true) => {}
            Some(false) => return Ok(false),
            None => return Err(Failure::new("--reset asks first; without a terminal add --yes")),
        }
    }
    if let Some(aside) = profile.set_aside().map_err(Failure::new)? {
        let _closed = writeln!(std::io::stderr(), "moved aside to {}", aside.display());
    }
    Ok(true)
}

enum Preset {
    Yes,
    No,
}

/// Asks on the terminal; `None` without one.
fn ask(question: &str, default: Preset) -> Option<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let hint = match default {
        Preset::Yes => "[Y/n]",
        Preset::No => "[y/N]",
    };
    let _closed = write!(std::io::stderr(), "{question} {hint} ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok()?;
    Some(match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => true,
        "n" | "no" => false,
        _ => matches!(default, Preset::Yes),
    })
}

async fn run(line: CommandLine, options: Options, machine: &Machine, profile: Profile) -> Result<ExitCode, Failure> {
    let demo = profile.dir().join(DEMO);
    let bound = bind(&options).await?;
    let port = bound.port();
    let history = profile.dir().join("console-history");
    let handle = compose(&options, profile, &demo)?;
    handle.publish(port, options.settings.backend).map_err(Failure::new)?;
    let stop = CancellationToken::new();
    let door = bound.serve(handle.connector(), stop.clone());
    if line.front == Front::Headless {
        let shown = if port == DEFAULT_PORT { String::new() } else { format!(" --port {port}") };
        let _closed = writeln!(
            std::io::stderr(),
            "Foreman of profile {:?} on ws://127.0.0.1:{port}; stop it with agentcraft-tui stop{shown}",
            options.profile
        );
        tokio::spawn(headless::follow(embedded(handle.connector(), "log")));
    }
    if let Err(failure) = first_wishes(&line, &options, machine, &handle, &demo).await {
        end(handle, &stop, door).await;
        return Err(failure);
    }
    if line.front == Front::Screen {
        let link = embedded(handle.connector(), "screen");
        let ui = ui_options(&options.screen, Some(history));
        let shown = tokio::task::spawn_blocking(move || tui::run(link, ui)).await;
        match shown {
            Ok(Ok(UiExit::Quit)) => return Ok(end(handle, &stop, door).await),
            Ok(Ok(UiExit::TerminalLost)) => tracing::info!("the terminal is gone; the team goes on without a screen"),
            Ok(Err(error @ tui::UiError::Terminal(_) | error @ tui::UiError::Start(_))) => {
                end(handle, &stop, door).await;
                return Err(Failure::new(error));
            }
            Ok(Err(error)) => {
                let _closed = writeln!(std::io::stderr(), "agentcraft-tui: {error}");
            }
            Err(error) => tracing::error!(%error, "the screen's thread"),
        }
    }
    wait_for_the_end(&handle).await?;
    Ok(end(handle, &stop, door).await)
}

/// The Foreman, with the sim team.
fn compose(options: &Options, profile: Profile, demo: &Path) -> Result<Handle, Failure> {
    let showcase = options.sim.showcase.map(|showcase| showcase.as_str().to_owned());
    let mut settings = Settings { demo_repo: Some(real(demo)), ..options.settings.clone() };
    if let Some(name) = &showcase {
        let until = sim::showcase_answers(name).map_err(Failure::new)?;
        settings.auto_answer =
            AutoAnswer { demo: true, until: Some(until), delay_ms: 1, retry_ms: 1, ..AutoAnswer::default() };
    }
    let (facts, watching) = watch::channel(Arc::new(Facts::default()));
    let sim = Sim::new(sim::SimOptions {
        speed: options.sim.speed,
        seed: options.sim.seed,
        showcase,
        ambient: options.sim.ambient,
        scratch: profile.scratch(),
        env: std::env::vars_os().collect(),
        facts: watching,
    })
    .map_err(Failure::new)?;
    let engine = Engine::Sim(Arc::new(sim));
    let config = RuntimeConfig { profile, settings, engine, facts, repos: Vec::new(), goal: None };
    Runtime::start(config).map_err(Failure::new)
}

/// The path without links, also before the last part is there.
fn real(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// The port that was asked for, or the usual one, or one of the next.
async fn bind(options: &Options) -> Result<Bound, Failure> {
    if let Some(port) = options.port {
        return server::bind(ServerConfig::on_port(port)).await.map_err(|error| match error {
            BindError::InUse(port) => Failure::new(match find_running(&options.home, None) {
                Some(run) if run.port == port => {
                    format!("port {port} is in use by the Foreman of profile {:?} (process {})", run.profile, run.pid)
                }
                _ => error.to_string(),
            }),
            BindError::Refused { .. } => Failure::new(error),
        });
    }
    for port in (DEFAULT_PORT..=DEFAULT_PORT + MORE_PORTS).chain([0]) {
        match server::bind(ServerConfig::on_port(port)).await {
            Ok(bound) => return Ok(bound),
            Err(BindError::InUse(_)) => {}
            Err(error) => return Err(Failure::new(error)),
        }
    }
    Err(Failure::new("no free port on 127.0.0.1"))
}

/// Repositories and goal of the command line, in order; the demo where nothing else is there.
async fn first_wishes(
    line: &CommandLine,
    options: &Options,
    machine: &Machine,
    handle: &Handle,
    demo: &Path,
) -> Result<(), Failure> {
    let mut talk = Talk::open(embedded(handle.connector(), "start")).await?;
    let snapshot = talk.snapshot.clone();
    let mut connect: Vec<PathBuf> = options.repos.clone();
    if connect.is_empty() {
        connect.extend(offered(line, options, machine, &snapshot));
    }
    if connect.is_empty() && (snapshot.repos.is_empty() || options.sim.showcase.is_some()) {
        let at = demo.to_owned();
        tokio::task::spawn_blocking(move || demo_repo::create(&at))
            .await
            .map_err(Failure::new)?
            .map_err(Failure::new)?;
        connect.push(demo.to_owned());
    }
    for path in connect {
        talk.must(ClientMessage::RepoAdd(RepoAdd { path: path.to_string_lossy().into_owned() })).await?;
    }
    let goal = match &line.goal {
        Some(goal) => Some(goal.clone()),
        None if options.autostart && snapshot.goals.is_empty() => Some(sim::demo_goal().map_err(Failure::new)?),
        None => None,
    };
    if let Some(text) = goal {
        talk.must(ClientMessage::GoalSubmit(GoalSubmit { text, repo_id: None })).await?;
    }
    Ok(())
}

/// The repository that the program was started in, if the person wants it connected.
fn offered(line: &CommandLine, options: &Options, machine: &Machine, snapshot: &Snapshot) -> Option<PathBuf> {
    if line.front != Front::Screen || options.sim.showcase.is_some() || options.autostart {
        return None;
    }
    let root = match git::inspect(&machine.cwd) {
        Ok(view) => view.path,
        Err(GitError::NotRoot { root, .. }) => root,
        Err(_) => return None,
    };
    if snapshot.repos.iter().any(|repo| Path::new(&repo.path) == root) {
        return None;
    }
    let question = format!("Connect the repository {}? (No: the demo repository)", root.display());
    ask(&question, Preset::Yes)?.then_some(root)
}

/// A short conversation with a Foreman.
struct Talk {
    link: Link,
    snapshot: Box<Snapshot>,
}

impl Talk {
    async fn open(mut link: Link) -> Result<Self, Failure> {
        let up = async {
            loop {
                match link.next().await {
                    LinkEvent::Up(snapshot) => return Ok(snapshot),
                    LinkEvent::Ended { why } => return Err(Failure::new(why)),
                    LinkEvent::Message(_) | LinkEvent::Down { .. } => {}
                }
            }
        };
        let snapshot =
            tokio::time::timeout(ANSWER, up).await.map_err(|_| Failure::new("the Foreman does not answer"))??;
        Ok(Self { link, snapshot })
    }

    /// Sends a message; a refusal is an error.
    async fn must(&mut self, message: ClientMessage) -> Result<Ack, Failure> {
        let id = self.link.send(message).await.map_err(Failure::new)?;
        let answered = async {
            loop {
                match self.link.next().await {
                    LinkEvent::Message(ServerMessage::Ack(ack)) if ack.re == id => return Ok(ack),
                    LinkEvent::Ended { why } | LinkEvent::Down { why, .. } => return Err(Failure::new(why)),
                    LinkEvent::Message(_) | LinkEvent::Up(_) => {}
                }
            }
        };
        let ack =
            tokio::time::timeout(ANSWER, answered).await.map_err(|_| Failure::new("the Foreman does not answer"))??;
        if ack.ok { Ok(ack) } else { Err(Failure::new(ack.error.unwrap_or_default())) }
    }
}

/// The screen of a Foreman that runs already, which is given the repositories and the goal.
async fn attach(line: &CommandLine, options: &Options, run: &RunFile) -> Result<ExitCode, Failure> {
    let odd: Vec<&str> = line.given.iter().map(String::as_str).filter(|flag| !FOR_RUNNING.contains(flag)).collect();
    if !odd.is_empty() {
        return Err(Failure::new(format!(
            "the Foreman of profile {:?} runs already (process {}, port {}) and can't be given {} any more; stop it \
             first with agentcraft-tui stop, or leave the flag out to attach its screen",
            run.profile,
            run.pid,
            run.port,
            odd.join(", ")
        )));
    }
    if let Some(port) = options.port
        && port != run.port
        && line.given.iter().any(|flag| flag == "--port")
    {
        return Err(Failure::new(format!(
            "the Foreman of profile {:?} listens on port {}, not {port}",
            run.profile, run.port
        )));
    }
    let mut talk = Talk::open(remote(run.port, "start")).await?;
    for path in &options.repos {
        talk.must(ClientMessage::RepoAdd(RepoAdd { path: path.to_string_lossy().into_owned() })).await?;
    }
    if let Some(text) = line.goal.clone() {
        talk.must(ClientMessage::GoalSubmit(GoalSubmit { text, repo_id: None })).await?;
    }
    drop(talk);
    let link = remote(run.port, "screen");
    let history = options.home.join(&options.profile).join("console-history");
    let ui = UiOptions { attached: true, ..ui_options(&options.screen, Some(history)) };
    match tokio::task::spawn_blocking(move || tui::run(link, ui)).await {
        Ok(Ok(UiExit::Quit | UiExit::TerminalLost)) => Ok(ExitCode::SUCCESS),
        Ok(Err(error)) => Err(Failure::new(error)),
        Err(error) => Err(Failure::new(error)),
    }
}

fn ui_options(said: &ScreenOptions, history: Option<PathBuf>) -> UiOptions {
    let detected = UiOptions::detect(|name| std::env::var(name).ok());
    let no_color = said.color == Some(false) || detected.no_color;
    UiOptions {
        ascii: said.ascii.unwrap_or(detected.ascii),
        no_color,
        theme: said.theme.map_or(detected.theme, |theme| {
            Some(match theme {
                Theme::Dark => ThemeName::Dark,
                Theme::Light => ThemeName::Light,
            })
        }),
        mouse: said.mouse.unwrap_or(detected.mouse),
        read_only: said.read_only,
        history,
        ..detected
    }
}

/// Until somebody ends it: a signal, or the Foreman itself.
async fn wait_for_the_end(handle: &Handle) -> Result<(), Failure> {
    let mut term = signal(SignalKind::terminate()).map_err(Failure::new)?;
    let mut int = signal(SignalKind::interrupt()).map_err(Failure::new)?;
    // The terminal's end is not the team's.
    let mut hup = signal(SignalKind::hangup()).map_err(Failure::new)?;
    loop {
        tokio::select! {
            _ = term.recv() => return Ok(()),
            _ = int.recv() => return Ok(()),
            _ = hup.recv() => {}
            _ = handle.ended() => return Ok(()),
        }
    }
}

/// Ends the Foreman, then closes the door.
async fn end(handle: Handle, stop: &CancellationToken, door: JoinHandle<()>) -> ExitCode {
    let ended = handle.shutdown().await;
    stop.cancel();
    // Sessions that do not end in time are cut with the process.
    let _cut = tokio::time::timeout(DOOR_CLOSES, door).await;
    match ended {
        Ended::Failed(why) => super::say_failed(&why, super::FAILED),
        Ended::Asked => ExitCode::SUCCESS,
    }
}
