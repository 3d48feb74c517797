//! The screen: a place, not a log. At a glance who works, who is stuck, who waits for you.
//!
//! Owns the terminal, what is shown and what keys mean. Knows the Foreman only as a protocol client does: a `Link` to
//! talk through and a `Mirror` of what it said. Must not know how the team is run, stored or played.
//!
//! Entry point: [`run`], which gives the screen a thread of its own, since writing to a stalled terminal blocks. Inside:
//! terminal, link and deadlines become [`msg::Msg`]; [`update::update`] alone changes the [`model::Model`] and returns
//! errands; [`view::draw`] draws. Idle, the loop is blocked and writes nothing.

pub mod cmd;
mod diff_model;
mod field;
pub mod focus;
pub mod glyphs;
pub mod highlight;
mod history;
pub mod keys;
pub mod layout;
mod markdown;
pub mod model;
pub mod msg;
pub mod palette;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod update;
pub mod view;
mod world;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use jiff::tz::TimeZone;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::cmd::Cmd;
use self::model::{LinkState, Model};
use self::msg::{Msg, Now};
use self::terminal::{Input, Screen};
use self::theme::{Depth, ThemeName};
use crate::client::console::{Listing, Places};
use crate::client::{Link, LinkEvent};

/// What the screen is told when it starts.
#[derive(Clone, Debug)]
pub struct UiOptions {
    /// Draw with ASCII signs only.
    pub ascii: bool,
    /// Use no colour, whatever the terminal can.
    pub no_color: bool,
    /// How many colours the terminal can show.
    pub depth: Depth,
    /// None: the terminal is asked for its background.
    pub theme: Option<ThemeName>,
    /// Take the mouse (clicks and the wheel; the terminal's own selection then needs Shift).
    pub mouse: bool,
    /// Send nothing that changes the team.
    pub read_only: bool,
    /// The Foreman lives in another process: leaving closes only the screen, so nothing is asked.
    pub attached: bool,
    /// Ring and send notices of the desktop when a decision waits and the terminal is not looked at.
    pub notify: bool,
    /// Where the console's history is kept; none: for this run only.
    pub history: Option<PathBuf>,
}

impl UiOptions {
    /// What the environment says about the terminal (`NO_COLOR`, `COLORTERM`, `TERM`, `COLORFGBG`, locale); `read`
    /// looks a variable up. The theme stays open where the environment does not say it.
    pub fn detect(read: impl Fn(&str) -> Option<String>) -> Self {
        // The last part of COLORFGBG is the background's colour number: 7 and 15 are the light ones.
        let theme = read("COLORFGBG")
            .and_then(|v| v.rsplit(';').next().map(str::to_owned))
            .map(|ground| if matches!(ground.as_str(), "7" | "15") { ThemeName::Light } else { ThemeName::Dark });
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| read(name).filter(|v| !v.is_empty()));
        let utf8 = locale.is_none_or(|l| {
            let l = l.to_ascii_lowercase();
            l.contains("utf-8") || l.contains("utf8")
        });
        let depth = Depth::detect(&read);
        Self {
            ascii: !utf8 || read("TERM").is_some_and(|t| t == "linux" || t == "dumb"),
            no_color: depth == Depth::None,
            depth,
            theme,
            mouse: true,
            read_only: false,
            attached: false,
            notify: true,
            history: None,
        }
    }
}

/// How the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UiExit {
    /// The person left, or the process was asked to end.
    Quit,
    /// The terminal hung up or failed: the team goes on without a screen.
    TerminalLost,
}

/// Why there is no screen (any more). The terminal is restored in every case.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// The terminal could not be taken.
    #[error("the terminal cannot be used: {0}; run in a terminal, or with --no-ui")]
    Terminal(io::Error),
    /// The system gave no thread or no signals.
    #[error("the screen could not start: {0}")]
    Start(io::Error),
    /// A defect of the screen; the Foreman is not affected.
    #[error("the screen failed (this is a defect; the team goes on): start it again to attach")]
    Panicked,
}

/// Runs the screen on a thread of its own until it ends, whatever ends it.
///
/// # Errors
/// When the screen could not start or failed.
pub fn run(link: Link, options: UiOptions) -> Result<UiExit, UiError> {
    let thread = std::thread::Builder::new()
        .name(terminal::THREAD.to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(UiError::Start)?;
            runtime.block_on(show(link, options))
        })
        .map_err(UiError::Start)?;
    thread.join().unwrap_or(Err(UiError::Panicked))
}

/// The least time (ms) between two frames that nobody's key asked for.
const FRAME_MS: u64 = 16;

/// Messages that are taken in before a frame is drawn.
const BURST: usize = 512;

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    resized: Signal,
    continued: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            resized: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }
}

/// Everything that the loop holds beside the model.
struct Stage {
    screen: Screen,
    link: Link,
    begin: Instant,
    history: Option<PathBuf>,
    highlighter: Option<highlight::Worker>,
    /// Where the highlighter's results come in.
    results: UnboundedSender<Input>,
}

enum Step {
    On,
    Leave(UiExit),
}

async fn show(link: Link, options: UiOptions) -> Result<UiExit, UiError> {
    // Signals first: one that comes while the terminal is being taken must not kill us in between.
    let mut signals = Signals::listen().map_err(UiError::Start)?;
    let screen = Screen::enter(options.mouse).map_err(UiError::Terminal)?;
    let mut options = options;
    // Questions to the terminal come before the reader starts, or it would take the answers for keys.
    if options.theme.is_none() && !options.no_color && options.depth != Depth::None {
        options.theme = terminal::ask_background();
    }
    let (sink, mut input) = unbounded_channel();
    let reader = sink.clone();
    std::thread::Builder::new()
        .name("terminal input".to_owned())
        .spawn(move || terminal::read_input(&reader))
        .map_err(UiError::Start)?;
    let history = options.history.clone();
    let mut model = Model::new(options, screen.size(), TimeZone::system());
    let mut stage = Stage { screen, link, begin: Instant::now(), history, highlighter: None, results: sink };
    model.console.places = places();
    stage.remember_past(&mut model);
    Ok(turn(&mut stage, &mut model, &mut signals, &mut input).await)
}

async fn turn(
    stage: &mut Stage,
    model: &mut Model,
    signals: &mut Signals,
    input: &mut UnboundedReceiver<Input>,
) -> UiExit {
    let mut drawn_ms: Option<u64> = None;
    let mut urgent = true;
    loop {
        let now = stage.now().mono_ms;
        if model.dirty {
            let due = drawn_ms.map_or(now, |at| at + FRAME_MS);
            // The answer to a key is drawn at once; what the team does is joined into frames.
            if urgent || now >= due {
                model.now = stage.now();
                if stage.screen.draw(model).is_err() {
                    return UiExit::TerminalLost;
                }
                model.dirty = false;
                urgent = false;
                drawn_ms = Some(stage.now().mono_ms);
            }
        }
        let frame = model.dirty.then(|| drawn_ms.map_or(now, |at| at + FRAME_MS));
        let deadline = model.next_deadline();
        let wake = deadline.into_iter().chain(frame).min();
        let begin = stage.begin;
        let sleep = async move {
            match wake {
                Some(ms) => tokio::time::sleep_until((begin + Duration::from_millis(ms)).into()).await,
                None => std::future::pending().await,
            }
        };
        let step = tokio::select! {
            biased;
            _ = signals.terminate.recv() => Step::Leave(UiExit::Quit),
            _ = signals.interrupt.recv() => Step::Leave(UiExit::Quit),
            _ = signals.hangup.recv() => Step::Leave(UiExit::TerminalLost),
            _ = signals.resized.recv() => {
                let size = stage.screen.size();
                stage.apply(model, Msg::Resize(size)).await
            }
            _ = signals.continued.recv() => {
                if stage.screen.resume().is_err() { return UiExit::TerminalLost }
                urgent = true;
                stage.apply(model, Msg::Resumed).await
            }
            got = input.recv() => {
                urgent = true;
                stage.take_input(model, got, input).await
            }
            event = stage.link.next(), if !matches!(model.link, LinkState::Ended(_)) => stage.take_link(model, event).await,
            () = sleep => {
                if deadline.is_some_and(|at| at <= stage.now().mono_ms) {
                    stage.apply(model, Msg::Tick).await
                } else {
                    Step::On
                }
            }
        };
        if let Step::Leave(exit) = step {
            return exit;
        }
    }
}

impl Stage {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        Now { mono_ms: ms(self.begin.elapsed()), wall: ms(wall) }
    }

    /// The lines of runs before.
    fn remember_past(&self, model: &mut Model) {
        let Some(path) = &self.history else { return };
        match history::load(path, update::HISTORY) {
            Ok(lines) => model.console.history = lines,
            Err(error) => tracing::warn!("the history {} cannot be read: {error}", path.display()),
        }
    }

    /// Takes what the reader has, up to a bound, before the next frame.
    async fn take_input(
        &mut self,
        model: &mut Model,
        first: Option<Input>,
        input: &mut UnboundedReceiver<Input>,
    ) -> Step {
        let mut next = first;
        for _ in 0..BURST {
            match next {
                Some(Input::Msg(msg)) => {
                    if let Step::Leave(exit) = self.apply(model, msg).await {
                        return Step::Leave(exit);
                    }
                }
                Some(Input::Lost(why)) => {
                    tracing::info!("the terminal is lost: {why}");
                    return Step::Leave(UiExit::TerminalLost);
                }
                None => return Step::Leave(UiExit::TerminalLost),
            }
            match input.try_recv() {
                Ok(more) => next = Some(more),
                Err(_) => break,
            }
        }
        Step::On
    }

    /// Takes what the link has, up to a bound, before the next frame.
    async fn take_link(&mut self, model: &mut Model, first: LinkEvent) -> Step {
        let mut next = Some(first);
        for _ in 0..BURST {
            let Some(event) = next else { break };
            if let Step::Leave(exit) = self.apply(model, Msg::Link(Box::new(event))).await {
                return Step::Leave(exit);
            }
            // Once it is down, the next event comes with the next attempt.
            if matches!(model.link, LinkState::Down { .. } | LinkState::Ended(_)) {
                break;
            }
            next = self.link.next().now_or_never();
        }
        Step::On
    }

    /// One message through `update`, and the errands it asks for.
    async fn apply(&mut self, model: &mut Model, msg: Msg) -> Step {
        let mut errands = update::update(model, self.now(), msg);
        while !errands.is_empty() {
            let mut more = Vec::new();
            for errand in errands {
                match self.run(model, errand).await {
                    Ok(Done::Nothing) => {}
                    Ok(Done::Msg(msg)) => more.extend(update::update(model, self.now(), msg)),
                    Ok(Done::Leave) => return Step::Leave(UiExit::Quit),
                    Err(error) => {
                        tracing::info!("the terminal is lost: {error}");
                        return Step::Leave(UiExit::TerminalLost);
                    }
                }
            }
            errands = more;
        }
        Step::On
    }

    /// Does one errand. An error is one of the terminal.
    async fn run(&mut self, model: &mut Model, errand: Cmd) -> io::Result<Done> {
        match errand {
            Cmd::Send { token, message } => {
                let result = self.link.send(message).await.map_err(|error| error.to_string());
                return Ok(Done::Msg(Msg::Sent { token, result }));
            }
            Cmd::Copy(text) => self.screen.copy(&text)?,
            Cmd::Notice { title, body } => self.screen.notice(&title, &body)?,
            Cmd::Title(title) => self.screen.title(&title)?,
            Cmd::Remember(line) => {
                if let Some(path) = &self.history
                    && let Err(error) = history::append(path, &line)
                {
                    let text = format!("The history {} cannot be written: {error}", path.display());
                    self.history = None;
                    return Ok(Done::Msg(Msg::Trouble(text)));
                }
            }
            Cmd::List(dir) => self.list(dir),
            Cmd::Highlight(job) => self.highlight(job),
            Cmd::Suspend => {
                self.screen.suspend()?;
                return Ok(Done::Msg(Msg::Resumed));
            }
            Cmd::Redraw => {
                self.screen.forget();
                model.dirty = true;
            }
            Cmd::Leave => return Ok(Done::Leave),
        }
        Ok(Done::Nothing)
    }

    /// Reads a directory aside: it may lie on a slow disk.
    fn list(&self, dir: PathBuf) {
        let results = self.results.clone();
        tokio::task::spawn_blocking(move || {
            let _ = results.send(Input::Msg(Msg::Listed(subdirectories(dir))));
        });
    }

    fn highlight(&mut self, job: highlight::HighlightJob) {
        if self.highlighter.is_none() {
            let results = self.results.clone();
            self.highlighter = highlight::Worker::start(move |done| {
                let _ = results.send(Input::Msg(Msg::Highlighted(done)));
            })
            .ok();
        }
        if let Some(worker) = &self.highlighter {
            worker.push(job);
        }
    }
}

/// Names that a directory offers for completion at most.
const NAMES: usize = 2_000;

fn subdirectories(dir: PathBuf) -> Listing {
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .take(NAMES)
        .collect();
    names.sort();
    Listing { dir, names }
}

/// Where relative paths and `~` lead; none without a working directory.
fn places() -> Option<Places> {
    let cwd = std::env::current_dir().ok()?;
    Some(Places { cwd, home: std::env::var_os("HOME").map(PathBuf::from), listing: None })
}

/// What an errand leaves to do.
enum Done {
    Nothing,
    Msg(Msg),
    Leave,
}
