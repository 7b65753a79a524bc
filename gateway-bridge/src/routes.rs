//! Keeps the turns under way on a connection, and delivers each event to its turn.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::value::RawValue;

use crate::{
    counts::Cells,
    error::Error,
    live::Live,
    wire::run::{self, Whose},
};

/// Most turns at once on one connection: more than any gateway runs.
const TURNS_MAX: usize = 1024;

/// Finished turns that are remembered, so that their last events are not taken for another client's.
const GONE_MAX: usize = 1024;

/// Turns under way.
#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    live: HashMap<String, Arc<Live>>,
    gone: VecDeque<String>,
}

/// Result of looking up the turn of an event.
#[derive(Debug)]
enum Found {
    /// The event belongs to this turn.
    Live(Arc<Live>),
    /// The event is unattributed: it names this turn's run, but no session.
    Stray(Arc<Live>),
    /// The event belongs to a turn that is over.
    Gone,
    /// The event belongs to no turn of this client.
    Nobody,
}

impl Routes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `live` for its events, unless a turn of its id or its session is under way.
    pub(crate) fn enter(&self, live: &Arc<Live>) -> Result<(), Error> {
        let mut table = self.table();
        let is_same = |other: &Arc<Live>| other.id == live.id || other.session == live.session;
        if table.live.values().any(is_same) {
            return Err(Error::Busy { session: live.session.to_string() });
        }
        if table.live.len() >= TURNS_MAX {
            return Err(Error::TooMany { limit: TURNS_MAX });
        }
        table.gone.retain(|gone| gone != live.id.as_str());
        table.live.insert(live.id.as_str().to_owned(), live.clone());
        Ok(())
    }

    /// Unregisters `live`: it gets no more events.
    pub(crate) fn leave(&self, live: &Live) {
        let mut table = self.table();
        if table.live.remove(live.id.as_str()).is_some() {
            if table.gone.len() >= GONE_MAX {
                table.gone.pop_front();
            }
            table.gone.push_back(live.id.as_str().to_owned());
        }
    }

    /// Delivers an event called `agent` or `chat` to the turn it belongs to, and to no other.
    pub(crate) fn deliver(&self, name: &str, payload: Option<&RawValue>, cells: &Cells) {
        let Ok((whose, signal)) = run::read(name, payload) else { return cells.malformed.add_one() };
        match self.find(&whose) {
            Found::Live(live) => live.observe(signal),
            Found::Stray(live) => {
                cells.for_nobody.add_one();
                live.observe_stray(&signal);
            }
            Found::Gone => cells.late.add_one(),
            Found::Nobody => cells.for_nobody.add_one(),
        }
    }

    /// Finds the turn of an event: run and session must both be the turn's. An event without a session is unattributed.
    fn find(&self, whose: &Whose<'_>) -> Found {
        let table = self.table();
        match (table.live.get(whose.run.as_ref()), whose.session.as_deref()) {
            (Some(live), Some(session)) if live.session.as_str() == session => Found::Live(live.clone()),
            (Some(live), None) => Found::Stray(live.clone()),
            (None, _) if table.gone.iter().any(|gone| *gone == whose.run) => Found::Gone,
            _ => Found::Nobody,
        }
    }
}
