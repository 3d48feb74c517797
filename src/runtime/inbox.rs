//! What reaches the loop, in lanes that are served in turn: a chatty engine delays no client's ack.

use tokio::sync::mpsc;

use crate::engine::TurnReport;
use crate::foreman::effect::{EffectId, EffectResult};
use crate::foreman::input::World;
use crate::protocol::{AuthStatus, MemoryEntry};
use crate::transport::ClientEvent;

/// Places in each lane. A full lane makes its senders wait: a client that floods, an engine that talks too fast, an
/// effect's task that is through; none of them holds anything the loop needs.
pub(crate) const LANE_PLACES: usize = 256;

/// What the shell's own tasks say.
#[derive(Debug)]
pub(crate) enum Word {
    /// An effect ended.
    Done { effect: EffectId, result: EffectResult },
    /// An effect was given up at shutdown; it stays wanted.
    Dropped { effect: EffectId },
    /// The memory folder was read.
    Memory(Vec<MemoryEntry>),
    /// Start-up has looked at the world.
    Observed(World),
    /// The engine's login.
    Auth { auth: AuthStatus, message: String, account: Option<String> },
    /// The process is to end.
    Shutdown,
}

/// One thing taken out.
#[derive(Debug)]
pub(crate) enum Item {
    Client(ClientEvent),
    Turn(TurnReport),
    Word(Word),
}

/// Whether the lane of the clients is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doors {
    Open,
    /// Before the first look at the world: whoever comes early waits in the lane.
    Closed,
}

/// The receiving ends.
#[derive(Debug)]
pub(crate) struct Inbox {
    clients: mpsc::Receiver<ClientEvent>,
    turns: mpsc::Receiver<TurnReport>,
    words: mpsc::Receiver<Word>,
    /// Which lane [`Inbox::try_next`] looks at first.
    turn: usize,
}

/// The sending ends.
#[derive(Clone, Debug)]
pub(crate) struct Senders {
    pub(crate) clients: mpsc::Sender<ClientEvent>,
    pub(crate) turns: mpsc::Sender<TurnReport>,
    pub(crate) words: mpsc::Sender<Word>,
}

pub(crate) fn inbox() -> (Senders, Inbox) {
    let (to_clients, clients) = mpsc::channel(LANE_PLACES);
    let (to_turns, turns) = mpsc::channel(LANE_PLACES);
    let (to_words, words) = mpsc::channel(LANE_PLACES);
    (Senders { clients: to_clients, turns: to_turns, words: to_words }, Inbox { clients, turns, words, turn: 0 })
}

impl Inbox {
    /// The next thing; none when nobody can send any more.
    pub(crate) async fn next(&mut self, doors: Doors) -> Option<Item> {
        tokio::select! {
            Some(event) = self.clients.recv(), if doors == Doors::Open => Some(Item::Client(event)),
            Some(report) = self.turns.recv() => Some(Item::Turn(report)),
            Some(word) = self.words.recv() => Some(Item::Word(word)),
            else => None,
        }
    }

    /// What is there already, one lane after the other.
    pub(crate) fn try_next(&mut self, doors: Doors) -> Option<Item> {
        for _ in 0..3 {
            self.turn = (self.turn + 1) % 3;
            let item = match self.turn {
                0 if doors == Doors::Open => self.clients.try_recv().ok().map(Item::Client),
                1 => self.turns.try_recv().ok().map(Item::Turn),
                2 => self.words.try_recv().ok().map(Item::Word),
                _ => None,
            };
            if item.is_some() {
                return item;
            }
        }
        None
    }
}
