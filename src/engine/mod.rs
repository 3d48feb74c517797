//! Stand-in until the engine room's own lands.
use crate::turn::{TurnEvent, TurnId};
#[derive(Debug)]
pub struct TurnReport { pub turn: TurnId, pub event: TurnEvent }
