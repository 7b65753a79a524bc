//! Passes a turn's events from the connection to the turn's task and to its reader.
//!
//! The connection never waits for the reader: unread events are kept up to a bound, and text above it is counted.

use std::{collections::VecDeque, sync::Arc};

use platform_core::id::RunId;
use platform_runtime::sync::Mutex;
use tokio::sync::Notify;

use crate::{
    counts::Cells,
    delta::Deltas,
    outcome::{Ending, ToolCall, TurnEvent, TurnFailure, TurnPhase},
    session::SessionKey,
    verdict::Evidence,
    wire::run::{ConversationEnd, Signal},
};

/// Most events besides text that are kept for a reader.
const MAX_QUEUED_EVENTS: usize = 1024;

/// State of a running turn, shared by the connection, the turn's task and the reader.
#[derive(Debug)]
pub(crate) struct TurnState {
    pub(crate) run_id: RunId,
    pub(crate) session: SessionKey,
    max_unread: usize,
    cells: Arc<Cells>,
    state: Mutex<State>,
    /// Wakes the reader; there is only one.
    wake_reader: Notify,
    /// Wakes the turn's task; there is only one.
    wake_task: Notify,
}

#[derive(Debug, Default)]
struct State {
    deltas: Deltas,
    queue: VecDeque<TurnEvent>,
    unread: usize,
    evidence: Evidence,
    end: Option<ConversationEnd>,
    ending: Option<Ending>,
    was_slow: bool,
}

impl TurnState {
    pub(crate) fn new(run_id: RunId, session: SessionKey, max_unread: usize, cells: Arc<Cells>) -> Self {
        let state = Mutex::default();
        Self {
            run_id,
            session,
            max_unread,
            cells,
            state,
            wake_reader: Notify::new(),
            wake_task: Notify::new(),
        }
    }

    /// Records what the connection received for this turn.
    pub(crate) fn observe(&self, signal: Signal<'_>) {
        let mut state = self.state.lock();
        match signal {
            Signal::Text(text) => {
                if let Some(new) = state.deltas.add(&text) {
                    self.push(&mut state, TurnEvent::Text(new));
                }
                state.evidence.answered = state.deltas.has_text();
            }
            Signal::Tool { name, state: tool, call } => {
                self.push(&mut state, TurnEvent::Tool { name, state: tool, call });
            }
            Signal::Phase(phase) => self.push(&mut state, TurnEvent::Status(phase)),
            Signal::Usage(usage) => self.push(&mut state, TurnEvent::Usage(usage)),
            Signal::Hint(hint) => state.evidence.hint = hint,
            Signal::Ended(end) => {
                if let ConversationEnd::Failed(hint) = &end {
                    state.evidence.hint.timed_out |= hint.timed_out;
                    if hint.code.is_some() {
                        state.evidence.hint.code.clone_from(&hint.code);
                    }
                }
                state.end.get_or_insert(end);
                self.wake_task.notify_one();
            }
            Signal::Started => {
                if state.end.is_some() {
                    state.evidence.retried = true;
                } else {
                    self.push(&mut state, TurnEvent::Status(TurnPhase::Started));
                }
            }
            Signal::Nothing => {}
        }
    }

    /// Records an event of this turn's run that names no session. The event is unattributed, and the reader sees
    /// nothing of it. But a run that begins again after its reported end is retried by the gateway.
    pub(crate) fn observe_stray(&self, signal: &Signal<'_>) {
        let mut state = self.state.lock();
        if *signal == Signal::Started && state.end.is_some() {
            state.evidence.retried = true;
        }
    }

    /// Reports to the reader an event that the gateway did not send.
    pub(crate) fn report(&self, event: TurnEvent) {
        self.push(&mut self.state.lock(), event);
    }

    fn push(&self, state: &mut State, event: TurnEvent) {
        if state.ending.is_some() {
            return;
        }
        match event {
            TurnEvent::Text(text) => self.push_text(state, text),
            TurnEvent::Tool { name, state: tool, call: Some(call) }
                if state.queue.len() < MAX_QUEUED_EVENTS =>
            {
                let call = self.within_bound(state, call);
                state.queue.push_back(TurnEvent::Tool { name, state: tool, call: Some(call) });
            }
            other if state.queue.len() < MAX_QUEUED_EVENTS => state.queue.push_back(other),
            _ => {}
        }
        self.wake_reader.notify_one();
    }

    /// Queues text for the reader. A reader that is behind gets one longer piece, or the number of bytes it missed.
    fn push_text(&self, state: &mut State, text: String) {
        if state.unread + text.len() > self.max_unread || state.queue.len() >= MAX_QUEUED_EVENTS {
            if !state.was_slow {
                state.was_slow = true;
                self.cells.slow_readers.add_one();
            }
            match state.queue.back_mut() {
                Some(TurnEvent::Missed { bytes }) => *bytes += text.len(),
                _ => state.queue.push_back(TurnEvent::Missed { bytes: text.len() }),
            }
            return;
        }
        state.unread += text.len();
        match state.queue.back_mut() {
            Some(TurnEvent::Text(last)) => last.push_str(&text),
            _ => state.queue.push_back(TurnEvent::Text(text)),
        }
    }

    /// Counts the text of a tool call as unread. Cuts it if the reader is behind.
    fn within_bound(&self, state: &mut State, mut call: ToolCall) -> ToolCall {
        if state.unread + call.text.len() > self.max_unread {
            call.cut_bytes += call.text.len();
            call.text.clear();
        }
        state.unread += call.text.len();
        call
    }

    pub(crate) fn evidence(&self) -> Evidence {
        self.state.lock().evidence.clone()
    }

    /// Returns the end that the conversation has reported, if any.
    pub(crate) fn conversation_end(&self) -> Option<ConversationEnd> {
        self.state.lock().end.clone()
    }

    /// Waits until the conversation reports the turn's end. Cancel safe; for the turn's task alone.
    pub(crate) async fn wait_for_conversation_end(&self) -> ConversationEnd {
        loop {
            if let Some(end) = self.conversation_end() {
                return end;
            }
            self.wake_task.notified().await;
        }
    }

    /// Returns the text that the reader has not read yet.
    #[cfg(test)]
    pub(crate) fn unread_text(&self) -> String {
        let state = self.state.lock();
        let texts = state.queue.iter().filter_map(|event| match event {
            TurnEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Records the ending. Only the first one counts.
    pub(crate) fn end(&self, ending: Ending) {
        self.state.lock().ending.get_or_insert(ending);
        self.wake_reader.notify_one();
    }

    /// Returns the next event; `None` when the turn has ended and everything is read. Cancel safe; for the reader
    /// alone.
    pub(crate) async fn next(&self) -> Option<TurnEvent> {
        loop {
            {
                let mut state = self.state.lock();
                if let Some(event) = state.queue.pop_front() {
                    match &event {
                        TurnEvent::Text(text) => state.unread -= text.len(),
                        TurnEvent::Tool { call: Some(call), .. } => state.unread -= call.text.len(),
                        _ => {}
                    }
                    return Some(event);
                }
                if state.ending.is_some() {
                    return None;
                }
            }
            self.wake_reader.notified().await;
        }
    }

    /// Waits for the ending. For the reader alone: events that were not read are dropped.
    pub(crate) async fn ending(&self) -> Ending {
        while self.next().await.is_some() {}
        self.state.lock().ending.clone().unwrap_or(Ending::Failed(TurnFailure::Lost))
    }
}
