//! A turn between the connection that hears of it, the task that drives it, and the reader who wants to know.
//!
//! The connection never waits for the reader: what is not read is kept up to a bound, and what is above it is counted.

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

/// Events besides text that are kept for a reader.
const EVENTS_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: RunId,
    pub(crate) session: SessionKey,
    unread_max: usize,
    cells: Arc<Cells>,
    state: Mutex<State>,
    /// Wakes the reader: there is one.
    news: Notify,
    /// Wakes the driver: there is one.
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

    /// Takes in what the connection heard of this turn.
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

    /// Takes in an event of this turn's run that names no session. It is nobody's, and nothing of it is told; but a run
    /// that begins after its end was not over.
    pub(crate) fn observe_stray(&self, signal: &Signal<'_>) {
        let mut state = self.state();
        if *signal == Signal::Begins && state.over.is_some() {
            state.evidence.again = true;
        }
    }

    /// Tells the reader something that the gateway did not say.
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

    /// A reader that is behind is told of one longer piece, or of how much it missed.
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

    /// What the conversation said of the turn's end, if it did.
    pub(crate) fn is_over(&self) -> Option<Over> {
        self.state().over.clone()
    }

    /// Waits until the conversation says that the turn is over. Cancel safe; for the driver alone.
    pub(crate) async fn conversation_over(&self) -> Over {
        loop {
            if let Some(over) = self.is_over() {
                return over;
            }
            self.over.notified().await;
        }
    }

    /// The text that nobody has read yet.
    #[cfg(test)]
    pub(crate) fn unread_text(&self) -> String {
        let state = self.state();
        let texts = state.queue.iter().filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The turn is over. Only the first ending counts.
    pub(crate) fn end(&self, ending: Ending) {
        self.state().ending.get_or_insert(ending);
        self.news.notify_one();
    }

    /// The next event; none when the turn is over and everything is read. Cancel safe; for the reader alone.
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

    /// The ending. For the reader alone: events that were not read are given up.
    pub(crate) async fn ending(&self) -> Ending {
        while self.next().await.is_some() {}
        self.state().ending.clone().unwrap_or(Ending::Failed(Failure::Lost))
    }
}
