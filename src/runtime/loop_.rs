//! The loop: take an input, let the core handle it, commit, publish in order, start the effects.
//!
//! Owns the core, the database and the clients' outboxes, on a thread of its own: it may wait for the disk. What
//! anyone has been told is on disk already. When a commit fails or the core panics, the state in memory is thrown
//! away and loaded again, as if the process had restarted; the acks of what was not stored fail with the reason.
//! Entry point: [`Loop::run`].

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::clients::Clients;
use super::clock::Clock;
use super::core::{Core, MakeCore};
use super::inbox::{Doors, Inbox, Item, Word};
use crate::foreman::change::Change;
use crate::foreman::effect::{Effect, EffectId};
use crate::foreman::input::{Input, Output, World};
use crate::foreman::state::State;
use crate::protocol::{ClientEnvelope, ClientId, ClientMessage, EpochMs, MemoryEntry, ServerMessage};
use crate::store::Store;
use crate::transport::{ClientEvent, CloseReason};
use crate::turn::{Facts, TurnEvent, TurnId};

/// Inputs of one burst: one commit, hence one wait for the disk, for all of them.
const BURST_INPUTS: usize = 64;
/// Outputs after which a burst ends, so that nobody waits long for its publication.
const BURST_OUTPUTS: usize = 1000;
/// Longest sleep towards a timer: after the machine slept, time has jumped and the timer has not noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);
/// First and longest pause between two tries to go on after a failed commit.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Pause after a timer that is due again at once, ms.
const STUCK_TIMER_MS: EpochMs = 1000;
/// How long stopped turns may take until the start-over goes on without their word.
const TURNS_END: Duration = Duration::from_secs(15);
/// How long turns and effects may take at shutdown.
const CLOSING: Duration = Duration::from_secs(8);
/// Panics of the core outside clients' messages, within the window, after which starting over is no help.
const PANICS: usize = 5;
const PANICS_WINDOW_MS: EpochMs = 60_000;

/// How the Foreman ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody asked for it.
    Asked,
    /// It could not go on; the reason is for the person.
    Failed(String),
}

/// What the loop has done outside.
pub(crate) trait Shell {
    /// Starts an effect; one that runs already (its id says so) goes on instead.
    fn start(&mut self, id: EffectId, effect: Effect);
    /// An effect's result came.
    fn effect_ended(&mut self, id: EffectId);
    /// A turn reported its end.
    fn turn_ended(&mut self, turn: TurnId);
    fn turns_running(&self) -> usize;
    fn effects_running(&self) -> usize;
    /// Tells every turn to end now.
    fn stop_turns(&mut self);
    /// Ends what can be done again (test runs and the like).
    fn cancel(&mut self);
    /// Looks at the world and the notes; the words come through the inbox.
    fn observe(&mut self, state: &State);
}

/// What the loop is made of.
pub(crate) struct Parts<M, S> {
    pub(crate) store: Store,
    pub(crate) make: M,
    pub(crate) shell: S,
    pub(crate) inbox: Inbox,
    pub(crate) facts: watch::Sender<Arc<Facts>>,
}

pub(crate) struct Loop<M: MakeCore, S> {
    store: Store,
    make: M,
    core: M::Core,
    shell: S,
    inbox: Inbox,
    clients: Clients,
    facts: watch::Sender<Arc<Facts>>,
    clock: Clock,
    phase: Phase,
    /// The latest reading of the notes, for views while nothing can be stored.
    notes: Vec<MemoryEntry>,
    /// What the next look at the world is told beside what it sees.
    reports: Vec<String>,
    panics: VecDeque<EpochMs>,
    retry: Duration,
    /// No timer before this: one that stays due must not spin.
    no_tick_before: EpochMs,
    ended: Option<Ended>,
}

#[derive(Debug)]
enum Phase {
    /// The world is being looked at.
    Starting(Box<Starting>),
    Running,
    /// Nothing can be stored; clients are told so.
    Suspended {
        reason: String,
        again: Instant,
        shows: Shows,
    },
    /// Asked to end: nothing new starts, what runs may finish until then.
    Closing {
        until: Instant,
    },
}

/// What a client sees while nothing can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Stored,
    /// The database cannot even be read.
    Nothing,
}

#[derive(Debug)]
struct Starting {
    /// Turns of before the start-over have until then to end.
    turns_until: Instant,
    memory: Progress<()>,
    world: Progress<World>,
    /// Came too early.
    auth: Option<Input>,
    /// Clients are connected that saw the state before.
    again: bool,
}

#[derive(Debug)]
enum Progress<T> {
    Awaited,
    Came(T),
}

/// The inputs handled since the last commit, and what came out, in order.
#[derive(Default)]
struct Burst {
    inputs: usize,
    changes: Vec<Change>,
    told: Vec<Told>,
    effects: Vec<(EffectId, Effect)>,
    broken: Option<Broken>,
    /// The look at the world was handled: with this commit the life begins.
    begins: bool,
}

enum Told {
    /// From here on the client hears broadcasts.
    Ready(ClientId),
    /// The change of this number.
    Change(usize),
    Reply(ClientId, Box<ServerMessage>),
}

/// An input that made the core panic.
struct Broken {
    input: About,
    panic: String,
}

/// What an input is, for the report that it was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Client(ClientId, &'static str),
    Turn(TurnId),
    Effect(EffectId),
    Own(&'static str),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client, message) => write!(f, "a {message} of client {}", client.0),
            Self::Turn(turn) => write!(f, "a report of turn {}", turn.0),
            Self::Effect(effect) => write!(f, "the result of effect {effect}"),
            Self::Own(name) => f.write_str(name),
        }
    }
}

impl<M: MakeCore, S: Shell> Loop<M, S> {
    pub(crate) fn new(parts: Parts<M, S>, state: State) -> Self {
        let Parts { store, make, shell, inbox, facts } = parts;
        let core = make.make(state);
        Self {
            store,
            make,
            core,
            shell,
            inbox,
            clients: Clients::default(),
            facts,
            clock: Clock::default(),
            phase: Phase::Starting(Box::new(Starting::first())),
            notes: Vec::new(),
            reports: Vec::new(),
            panics: VecDeque::new(),
            retry: RETRY_FIRST,
            no_tick_before: 0,
            ended: None,
        }
    }

    /// Runs until somebody asks for the end or it cannot go on.
    pub(crate) async fn run(mut self) -> Ended {
        self.shell.observe(self.core.state());
        loop {
            let doors = self.doors();
            let wake = self.wake();
            tokio::select! {
                item = self.inbox.next(doors) => match item {
                    Some(item) => self.burst(item),
                    None => self.ended = Some(Ended::Asked),
                },
                () = sleep_until(wake.unwrap_or_else(far)), if wake.is_some() => self.on_time(),
            }
            if let Some(ended) = self.ended.take() {
                self.clients.close_all(CloseReason::Shutdown);
                return ended;
            }
        }
    }

    fn doors(&self) -> Doors {
        match self.phase {
            Phase::Starting(_) => Doors::Closed,
            Phase::Running | Phase::Suspended { .. } | Phase::Closing { .. } => Doors::Open,
        }
    }

    /// When to look again without being told anything.
    fn wake(&mut self) -> Option<Instant> {
        match &self.phase {
            // Past it, only the words of the look are awaited.
            Phase::Starting(starting) => Some(starting.turns_until).filter(|until| *until > Instant::now()),
            Phase::Running => {
                let at = self.core.next_wakeup()?.max(self.no_tick_before);
                let pause = Duration::from_millis(at.saturating_sub(self.clock.now()));
                Some(Instant::now() + pause.min(LONGEST_SLEEP))
            }
            Phase::Suspended { again, .. } => Some(*again),
            Phase::Closing { until } => Some(*until),
        }
    }

    fn on_time(&mut self) {
        match &self.phase {
            Phase::Starting(_) => {
                let mut burst = Burst::default();
                self.begin_if_ready(&mut burst);
                self.finish(burst);
            }
            Phase::Running => {
                let mut burst = Burst::default();
                self.tick_if_due(&mut burst);
                self.finish(burst);
            }
            Phase::Suspended { .. } => self.try_again(),
            Phase::Closing { .. } => self.ended = Some(Ended::Asked),
        }
    }

    /// Handles `first` and whatever else is there, then commits once.
    fn burst(&mut self, first: Item) {
        let mut burst = Burst::default();
        let mut next = Some(first);
        while let Some(item) = next {
            self.take(item, &mut burst);
            let full = burst.inputs >= BURST_INPUTS || burst.told.len() + burst.changes.len() >= BURST_OUTPUTS;
            if full || burst.broken.is_some() || burst.begins || self.ended.is_some() {
                break;
            }
            next = self.inbox.try_next(self.doors());
        }
        // A timer that is due is not put off by a busy inbox.
        if burst.broken.is_none() && matches!(self.phase, Phase::Running) {
            self.tick_if_due(&mut burst);
        }
        self.finish(burst);
        if matches!(self.phase, Phase::Closing { .. })
            && self.shell.turns_running() == 0
            && self.shell.effects_running() == 0
        {
            self.ended = Some(Ended::Asked);
        }
    }

    fn tick_if_due(&mut self, burst: &mut Burst) {
        let now = self.clock.now();
        if now < self.no_tick_before || self.core.next_wakeup().is_none_or(|at| at > now) {
            return;
        }
        self.handle(Input::Tick, burst);
        if burst.broken.is_none() && self.core.next_wakeup().is_some_and(|at| at <= now) {
            self.no_tick_before = now + STUCK_TIMER_MS;
        }
    }

    fn take(&mut self, item: Item, burst: &mut Burst) {
        match item {
            Item::Client(ClientEvent::Opened { client, kind, outbox }) => self.clients.opened(client, kind, outbox),
            Item::Client(ClientEvent::Closed { client }) => self.clients.closed(client),
            Item::Client(ClientEvent::Message { client, envelope }) => self.take_message(client, envelope, burst),
            Item::Turn(report) => {
                let ended = matches!(report.event, TurnEvent::Ended(_));
                if ended {
                    self.shell.turn_ended(report.turn);
                }
                match self.phase {
                    Phase::Running => {
                        self.handle(Input::Turn { turn: report.turn, event: report.event }, burst);
                    }
                    // Told to end; its record stays as it is and is taken up by the next life.
                    Phase::Closing { .. } if matches!(report.event, TurnEvent::Session(_) | TurnEvent::Cost { .. }) => {
                        self.handle(Input::Turn { turn: report.turn, event: report.event }, burst);
                    }
                    Phase::Closing { .. } => {}
                    Phase::Starting(_) | Phase::Suspended { .. } => {
                        if ended {
                            self.begin_if_ready(burst);
                        }
                    }
                }
            }
            Item::Word(word) => self.take_word(word, burst),
        }
    }

    fn take_message(&mut self, client: ClientId, envelope: ClientEnvelope, burst: &mut Burst) {
        self.clients.spoke(client, envelope.id.as_deref());
        match &self.phase {
            Phase::Suspended { reason, shows, .. } => {
                let (reason, shows) = (reason.clone(), *shows);
                self.answer_suspended(client, envelope, &reason, shows);
            }
            Phase::Starting(_) | Phase::Running | Phase::Closing { .. } => {
                burst.told.push(Told::Ready(client));
                self.handle(Input::Client { from: client, envelope }, burst);
            }
        }
    }

    fn take_word(&mut self, word: Word, burst: &mut Burst) {
        match word {
            Word::Done { effect, result } => {
                self.shell.effect_ended(effect);
                match self.phase {
                    Phase::Running | Phase::Closing { .. } => self.handle(Input::Done { effect, result }, burst),
                    // Still wanted in the stored state: it is started again, and sees what it did.
                    Phase::Starting(_) | Phase::Suspended { .. } => {}
                }
            }
            Word::Dropped { effect } => self.shell.effect_ended(effect),
            Word::Memory(entries) => {
                self.notes.clone_from(&entries);
                match &mut self.phase {
                    Phase::Starting(starting) => {
                        starting.memory = Progress::Came(());
                        self.handle(Input::MemoryRead(entries), burst);
                        self.begin_if_ready(burst);
                    }
                    Phase::Running | Phase::Closing { .. } => self.handle(Input::MemoryRead(entries), burst),
                    Phase::Suspended { .. } => {}
                }
            }
            Word::Observed(world) => {
                if let Phase::Starting(starting) = &mut self.phase {
                    starting.world = Progress::Came(world);
                    self.begin_if_ready(burst);
                }
            }
            Word::Auth { auth, message, account } => {
                let input = Input::Auth { auth, message, account };
                match &mut self.phase {
                    Phase::Starting(starting) => starting.auth = Some(input),
                    Phase::Running => self.handle(input, burst),
                    Phase::Suspended { .. } | Phase::Closing { .. } => {}
                }
            }
            Word::Shutdown => self.close(burst),
        }
    }

    /// Hands the look at the world to the core once the notes are read and no turn of before is left.
    fn begin_if_ready(&mut self, burst: &mut Burst) {
        let Phase::Starting(starting) = &mut self.phase else { return };
        let quiet = self.shell.turns_running() == 0 || Instant::now() >= starting.turns_until;
        if !quiet || !matches!(starting.memory, Progress::Came(())) || burst.broken.is_some() {
            return;
        }
        let Progress::Came(world) = std::mem::replace(&mut starting.world, Progress::Awaited) else { return };
        let auth = starting.auth.take();
        let world = World { ended: world.ended.iter().chain(&self.reports).cloned().collect(), ..world };
        burst.begins = true;
        self.handle(Input::Observed(world), burst);
        if let Some(auth) = auth
            && burst.broken.is_none()
        {
            self.handle(auth, burst);
        }
    }

    fn close(&mut self, burst: &mut Burst) {
        match self.phase {
            Phase::Running => {
                self.handle(Input::Shutdown, burst);
                self.shell.cancel();
                self.phase = Phase::Closing { until: Instant::now() + CLOSING };
            }
            // What runs is of the life before and told to end already.
            Phase::Starting(_) | Phase::Suspended { .. } => {
                self.shell.cancel();
                self.ended = Some(Ended::Asked);
            }
            Phase::Closing { .. } => {}
        }
    }

    /// One input through the core. A panic leaves the core in no state to be used; what came before it in the burst
    /// is whole.
    fn handle(&mut self, input: Input, burst: &mut Burst) {
        let now = self.clock.now();
        let about = about(&input);
        burst.inputs += 1;
        match catch_unwind(AssertUnwindSafe(|| self.core.handle(now, input))) {
            Ok(outputs) => {
                for output in outputs {
                    match output {
                        Output::Change(change) => {
                            burst.told.push(Told::Change(burst.changes.len()));
                            burst.changes.push(change);
                        }
                        Output::Reply { to, message } => burst.told.push(Told::Reply(to, Box::new(message))),
                        Output::Effect(id, effect) => burst.effects.push((id, effect)),
                    }
                }
            }
            Err(panic) => burst.broken = Some(Broken { input: about, panic: panic_text(&*panic) }),
        }
    }

    fn finish(&mut self, burst: Burst) {
        let Burst { changes, told, effects, broken, begins, .. } = burst;
        if let Err(error) = self.store.commit(self.clock.now(), &changes) {
            self.not_stored(&error);
            return;
        }
        self.publish(&changes, told);
        match self.phase {
            Phase::Starting(_) | Phase::Running => {
                for (id, effect) in effects {
                    self.shell.start(id, effect);
                }
            }
            // The rows are there for the next life; only what ends turns is still said.
            Phase::Closing { .. } => {
                for (id, effect) in effects {
                    if matches!(effect, Effect::TellTurn { .. }) {
                        self.shell.start(id, effect);
                    }
                }
            }
            Phase::Suspended { .. } => {}
        }
        if changes.iter().any(|change| matches!(change, Change::Agent(_) | Change::Task(_) | Change::Decision(_)))
            || begins
        {
            self.show_facts();
        }
        if let Some(broken) = broken {
            self.start_over(broken);
        } else if begins {
            self.begin();
        }
    }

    fn publish(&mut self, changes: &[Change], told: Vec<Told>) {
        let core = &self.core;
        let view = || Some(core.snapshot());
        for one in told {
            match one {
                Told::Ready(client) => self.clients.ready(client),
                Told::Change(number) => {
                    if self.clients.anyone_hears()
                        && let Some(message) = changes.get(number).and_then(Change::to_message)
                    {
                        self.clients.broadcast(message, &view);
                    }
                }
                Told::Reply(to, message) => self.clients.reply(to, *message, &view),
            }
        }
        self.clients.burst_over();
    }

    fn show_facts(&self) {
        let state = self.core.state();
        self.facts.send_replace(Arc::new(Facts {
            agents: state.agents.values().cloned().collect(),
            tasks: state.tasks.values().cloned().collect(),
            decisions: state.decisions.values().cloned().collect(),
        }));
    }

    /// The look at the world is stored: from here on everybody is served.
    fn begin(&mut self) {
        let Phase::Starting(starting) = std::mem::replace(&mut self.phase, Phase::Running) else { return };
        self.reports.clear();
        self.retry = RETRY_FIRST;
        if starting.again {
            self.clients.show_all(&self.core.snapshot());
        }
    }
}

impl Starting {
    fn first() -> Self {
        Self {
            turns_until: Instant::now() + TURNS_END,
            memory: Progress::Awaited,
            world: Progress::Awaited,
            auth: None,
            again: false,
        }
    }

    fn again() -> Self {
        Self { again: true, ..Self::first() }
    }
}

fn far() -> Instant {
    Instant::now() + LONGEST_SLEEP
}

fn about(input: &Input) -> About {
    match input {
        Input::Client { from, envelope } => About::Client(
            *from,
            match envelope.message {
                ClientMessage::Hello(_) => "hello",
                ClientMessage::GoalSubmit(_) => "goal.submit",
                ClientMessage::UserMessage(_) => "user.message",
                ClientMessage::DecisionAnswer(_) => "decision.answer",
                ClientMessage::TaskAction(_) => "task.action",
                ClientMessage::AgentAction(_) => "agent.action",
                ClientMessage::DiffRequest(_) => "diff.request",
                ClientMessage::RepoAdd(_) => "repo.add",
            },
        ),
        Input::Turn { turn, .. } => About::Turn(*turn),
        Input::Done { effect, .. } => About::Effect(*effect),
        Input::Tick => About::Own("a timer"),
        Input::Observed(_) => About::Own("the look at the world"),
        Input::MemoryRead(_) => About::Own("the reading of the notes"),
        Input::Auth { .. } => About::Own("the engine's login"),
        Input::Shutdown => About::Own("the shutdown"),
    }
}

/// The text of a panic, as far as it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_owned())
}

#[path = "setback.rs"]
mod setback;

#[cfg(test)]
#[path = "loop_tests.rs"]
mod tests;
