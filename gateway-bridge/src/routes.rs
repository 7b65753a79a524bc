//! Keeps the running turns of a connection, and delivers each event to its turn.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use platform_core::json::Raw;
use platform_runtime::sync::Mutex;

use crate::{
    counts::Cells,
    error::Error,
    turn_state::TurnState,
    wire::run::{self, EventTarget},
};

/// Most turns at once on one connection: more than any gateway runs.
const MAX_TURNS: usize = 1024;

/// Finished turns that are remembered, so that their last events do not count as another client's.
const MAX_FINISHED_TURNS: usize = 1024;

/// Running turns of a connection.
#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    running: HashMap<String, Arc<TurnState>>,
    finished: VecDeque<String>,
}

/// Result of looking up the turn of an event.
#[derive(Debug)]
enum Destination {
    /// The event belongs to this turn.
    Turn(Arc<TurnState>),
    /// The event is unattributed: it names this turn's run, but no session.
    Unattributed(Arc<TurnState>),
    /// The event belongs to a turn that has ended.
    Finished,
    /// The event belongs to no turn of this client.
    NoTurn,
}

impl Routes {
    /// Registers `turn` for its events, unless a turn of its id or its session is running.
    pub(crate) fn register(&self, turn: &Arc<TurnState>) -> Result<(), Error> {
        let mut table = self.0.lock();
        let is_same = |other: &Arc<TurnState>| other.run_id == turn.run_id || other.session == turn.session;
        if table.running.values().any(is_same) {
            return Err(Error::Busy { session: turn.session.to_string() });
        }
        if table.running.len() >= MAX_TURNS {
            return Err(Error::TooMany { limit: MAX_TURNS });
        }
        table.finished.retain(|finished| finished != turn.run_id.as_str());
        table.running.insert(turn.run_id.as_str().to_owned(), turn.clone());
        Ok(())
    }

    /// Unregisters `turn`: it gets no more events.
    pub(crate) fn unregister(&self, turn: &TurnState) {
        let mut table = self.0.lock();
        if table.running.remove(turn.run_id.as_str()).is_some() {
            if table.finished.len() >= MAX_FINISHED_TURNS {
                table.finished.pop_front();
            }
            table.finished.push_back(turn.run_id.as_str().to_owned());
        }
    }

    /// Delivers an event called `agent` or `chat` to the turn it belongs to, and to no other.
    pub(crate) fn deliver(&self, name: &str, payload: Option<Raw<'_>>, cells: &Cells) {
        let Ok((target, signal)) = run::read(name, payload) else { return cells.malformed.add_one() };
        match self.find(&target) {
            Destination::Turn(turn) => turn.observe(signal),
            Destination::Unattributed(turn) => {
                cells.unattributed.add_one();
                turn.observe_stray(&signal);
            }
            Destination::Finished => cells.late.add_one(),
            Destination::NoTurn => cells.unattributed.add_one(),
        }
    }

    /// Finds the turn of an event: run and session must both be the turn's. An event without a session is unattributed.
    fn find(&self, target: &EventTarget<'_>) -> Destination {
        let table = self.0.lock();
        match (table.running.get(target.run_id.as_ref()), target.session.as_deref()) {
            (Some(turn), Some(session)) if turn.session.as_str() == session => {
                Destination::Turn(turn.clone())
            }
            (Some(turn), None) => Destination::Unattributed(turn.clone()),
            (None, _) if table.finished.iter().any(|finished| *finished == target.run_id) => {
                Destination::Finished
            }
            _ => Destination::NoTurn,
        }
    }
}
