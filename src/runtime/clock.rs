//! The one clock: integer epoch ms that never go back.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::protocol::EpochMs;

/// The system's time, moved on where somebody set it back: what was due stays due.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: EpochMs,
    /// Added to the system's time since it was set back, ms.
    ahead: EpochMs,
}

impl Clock {
    pub(crate) fn now(&mut self) -> EpochMs {
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.at(u64::try_from(system).unwrap_or(u64::MAX))
    }

    fn at(&mut self, system: EpochMs) -> EpochMs {
        let now = system.saturating_add(self.ahead);
        if now < self.last {
            self.ahead += self.last - now;
            return self.last;
        }
        self.last = now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set back by an hour, time goes on from where it was, at its pace.
    #[test]
    fn time_never_goes_back_and_never_stands_still() {
        let mut clock = Clock::default();
        assert_eq!(clock.at(10_000_000), 10_000_000);
        assert_eq!(clock.at(6_400_000), 10_000_000);
        assert_eq!(clock.at(6_400_500), 10_000_500);
        assert_eq!(clock.at(50_000_000), 53_600_000, "a jump ahead (a laptop that slept) just passes");
    }
}
