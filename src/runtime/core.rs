//! What the loop needs of the core; the tests have one that fails on demand.

use crate::foreman::input::{Input, Output};
use crate::foreman::state::State;
use crate::foreman::{Foreman, Settings};
use crate::protocol::{EpochMs, Snapshot};

/// See the methods of the same names of [`Foreman`].
pub(crate) trait Core {
    fn handle(&mut self, now: EpochMs, input: Input) -> Vec<Output>;
    fn next_wakeup(&self) -> Option<EpochMs>;
    fn snapshot(&self) -> Snapshot;
    fn state(&self) -> &State;
}

impl Core for Foreman {
    fn handle(&mut self, now: EpochMs, input: Input) -> Vec<Output> {
        Self::handle(self, now, input)
    }

    fn next_wakeup(&self) -> Option<EpochMs> {
        Self::next_wakeup(self)
    }

    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }

    fn state(&self) -> &State {
        Self::state(self)
    }
}

/// Makes a core over a loaded state, at the start and whenever the state in memory has to be thrown away.
pub(crate) trait MakeCore {
    type Core: Core;

    fn make(&self, state: State) -> Self::Core;
}

impl MakeCore for Settings {
    type Core = Foreman;

    fn make(&self, state: State) -> Foreman {
        Foreman::new(self.clone(), state)
    }
}
