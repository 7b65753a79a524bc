//! Passes a turn's events from the connection to the turn's driver and to its reader.
//!
//! The connection never waits for the reader: unread events are kept up to a bound, and text above it is counted.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use platform_core::id::RunId;
use tokio::sync::Notify;

use crate::{
    counts::Cells,
    delta::Deltas,
    outcome::{Ending, Event, Failure, Phase},
    session::SessionKey,
    verdict::Evidence,
    wire::run::{Over, Signal},
};

/// Most events besides text that are kept for a reader.
const EVENTS_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: RunId,
    pub(crate) session: SessionKey,
    unread_max: usize,
    cells: Arc<Cells>,
    state: Mutex<State>,
    /// Wakes the reader; there is only one.
    news: Notify,
    /// Wakes the driver; there is only one.
    over: Notify,
}

#[derive(Debug, Default)]
struct State {
    deltas: Deltas,
    queue: VecDeque<Event>,
    unread: usize,
    evidence: Evidence,
    over: Option<Over>,
    ending: Option<Ending>,
    was_slow: bool,
}

impl Live {
    pub(crate) fn new(id: RunId, session: SessionKey, unread_max: usize, cells: Arc<Cells>) -> Self {
        let state = Mutex::default();
        Self { id, session, unread_max, cells, state, news: Notify::new(), over: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what the connection received for this turn.
    pub(crate) fn observe(&self, signal: Signal<'_>) {
        let mut state = self.state();
        match signal {
            Signal::Text(text) => {
                if let Some(new) = state.deltas.add(&text) {
                    self.tell_in(&mut state, Event::Text(new));
                }
                state.evidence.answered = state.deltas.any();
            }
            Signal::Tool { name, state: tool } => self.tell_in(&mut state, Event::Tool { name, state: tool }),
            Signal::Phase(phase) => self.tell_in(&mut state, Event::Status(phase)),
            Signal::Usage(usage) => self.tell_in(&mut state, Event::Usage(usage)),
            Signal::Hint(hint) => state.evidence.hint = hint,
            Signal::Over(over) => {
                if let Over::Failed(hint) = &over {
                    state.evidence.hint.timed_out |= hint.timed_out;
                    if hint.code.is_some() {
                        state.evidence.hint.code.clone_from(&hint.code);
                    }
                }
                state.over.get_or_insert(over);
                self.over.notify_one();
            }
            Signal::Begins => {
                if state.over.is_some() {
                    state.evidence.again = true;
                } else {
                    self.tell_in(&mut state, Event::Status(Phase::Started));
                }
            }
            Signal::Nothing => {}
        }
    }

    /// Records an event of this turn's run that names no session. The event is unattributed, and the reader sees
    /// nothing of it. But a run that begins after its end was not over.
    pub(crate) fn observe_stray(&self, signal: &Signal<'_>) {
        let mut state = self.state();
        if *signal == Signal::Begins && state.over.is_some() {
            state.evidence.again = true;
        }
    }

    /// Reports to the reader an event that the gateway did not send.
    pub(crate) fn tell(&self, event: Event) {
        self.tell_in(&mut self.state(), event);
    }

    fn tell_in(&self, state: &mut State, event: Event) {
        if state.ending.is_some() {
            return;
        }
        match event {
            Event::Text(text) => self.tell_text(state, text),
            other if state.queue.len() < EVENTS_MAX => state.queue.push_back(other),
            _ => {}
        }
        self.news.notify_one();
    }

    /// Queues text for the reader. A reader that is behind gets one longer piece, or the number of bytes it missed.
    fn tell_text(&self, state: &mut State, text: String) {
        if state.unread + text.len() > self.unread_max || state.queue.len() >= EVENTS_MAX {
            if !state.was_slow {
                state.was_slow = true;
                self.cells.slow_readers.add_one();
            }
            match state.queue.back_mut() {
                Some(Event::Missed { bytes }) => *bytes += text.len(),
                _ => state.queue.push_back(Event::Missed { bytes: text.len() }),
            }
            return;
        }
        state.unread += text.len();
        match state.queue.back_mut() {
            Some(Event::Text(last)) => last.push_str(&text),
            _ => state.queue.push_back(Event::Text(text)),
        }
    }

    pub(crate) fn evidence(&self) -> Evidence {
        self.state().evidence.clone()
    }

    /// Returns the end that the conversation reported, if it did.
    pub(crate) fn is_over(&self) -> Option<Over> {
        self.state().over.clone()
    }

    /// Waits until the conversation reports the turn's end. Cancel safe; for the driver alone.
    pub(crate) async fn conversation_over(&self) -> Over {
        loop {
            if let Some(over) = self.is_over() {
                return over;
            }
            self.over.notified().await;
        }
    }

    /// Returns the text that the reader has not read yet.
    #[cfg(test)]
    pub(crate) fn unread_text(&self) -> String {
        let state = self.state();
        let texts = state.queue.iter().filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Records the ending. Only the first one counts.
    pub(crate) fn end(&self, ending: Ending) {
        self.state().ending.get_or_insert(ending);
        self.news.notify_one();
    }

    /// Returns the next event; `None` when the turn is over and everything is read. Cancel safe; for the reader alone.
    pub(crate) async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut state = self.state();
                if let Some(event) = state.queue.pop_front() {
                    if let Event::Text(text) = &event {
                        state.unread -= text.len();
                    }
                    return Some(event);
                }
                if state.ending.is_some() {
                    return None;
                }
            }
            self.news.notified().await;
        }
    }

    /// Waits for the ending. For the reader alone: events that were not read are dropped.
    pub(crate) async fn ending(&self) -> Ending {
        while self.next().await.is_some() {}
        self.state().ending.clone().unwrap_or(Ending::Failed(Failure::Lost))
    }
}
