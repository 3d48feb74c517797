//! Stand-in until the engine room's own lands.
use crate::turn::{TurnCommand, TurnEvent, TurnId, TurnSpec};
use tokio::sync::mpsc;
#[derive(Debug)]
pub struct TurnReport {
    pub turn: TurnId,
    pub event: TurnEvent,
}
#[derive(Clone, Debug)]
pub struct TurnHandle;
impl TurnHandle {
    pub fn tell(&self, _command: TurnCommand) {}
}
#[derive(Debug)]
pub struct Engine;
impl Engine {
    pub fn start(&self, _spec: TurnSpec, _reports: mpsc::Sender<TurnReport>) -> TurnHandle {
        TurnHandle
    }
}
