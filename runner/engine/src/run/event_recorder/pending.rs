//! Collects the events of a run that wait for the store, in batches.

use std::rc::Rc;

use platform_core::{
    event::{AgentEvent, OutputStream},
    limit::{ByteSize, events as limit},
};
use runner_docker::Captured;
use runner_model::json_len;
use runner_store::{Batch, EventCursor};

/// Events that wait for the store.
#[derive(Debug)]
pub(super) struct PendingEvents {
    /// Position of the run's events once all pending events are stored.
    pub(super) cursor: EventCursor,
    pub(super) events: Vec<AgentEvent>,
    /// Batch that was handed out and is not known to be stored.
    pub(super) handed_out: Option<Rc<Batch>>,
    /// Number of the last batch.
    last_batch: u64,
    /// Length of the last event's text in JSON, if that event is a piece of output or of text.
    pub(super) last_length: usize,
}

impl PendingEvents {
    /// Returns an empty collection that continues after the position `cursor`.
    pub(super) const fn after(cursor: EventCursor) -> Self {
        Self { cursor, events: Vec::new(), handed_out: None, last_batch: 0, last_length: 0 }
    }

    /// Returns the batch to store next. Repeats the batch that was handed out before, if it is not known to be stored.
    pub(super) fn next_batch(&mut self) -> Option<Rc<Batch>> {
        if self.handed_out.is_none() && !self.events.is_empty() {
            self.last_batch += 1;
            let events = std::mem::take(&mut self.events);
            self.handed_out = Some(Rc::new(Batch { number: self.last_batch, events, cursor: self.cursor }));
        }
        self.handed_out.clone()
    }

    /// Adds a count of missed events, in the last event if that is such a count.
    pub(super) fn push_missed(&mut self, more: u64) {
        match self.events.last_mut() {
            Some(AgentEvent::Missed { count }) => *count += more,
            _ => self.events.push(AgentEvent::Missed { count: more }),
        }
    }

    /// Adds a piece of output, to the last event if that is of the same output and has capacity left.
    pub(super) fn push_output(&mut self, stream: OutputStream, piece: &str) {
        let max_length = limit::LOG_EVENT.as_usize();
        let length = json_len::length(piece);
        self.cursor.of(stream).kept += length as u64;
        match self.events.last_mut() {
            Some(AgentEvent::Log { stream: last, text })
                if *last == stream && self.last_length + length <= max_length =>
            {
                text.push_str(piece);
                self.last_length += length;
            }
            _ => {
                self.cursor.of(stream).events += 1;
                self.events.push(AgentEvent::Log { stream, text: piece.to_owned() });
                self.last_length = length;
            }
        }
    }

    /// Adds the end of an output, with at most `max_kept` bytes.
    pub(super) fn push_output_end(&mut self, stream: OutputStream, captured: &Captured, max_kept: ByteSize) {
        let rest = captured.after(self.cursor.of(stream).bytes, max_kept.as_usize());
        if rest.cut > 0 {
            self.events.push(AgentEvent::LogCut { stream, bytes: rest.cut });
        }
        for piece in event_texts(&rest.text) {
            self.push_output(stream, piece);
        }
    }
}

/// Splits `text` into pieces that each fit into an event.
pub(super) fn event_texts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = json_len::beginning(rest, limit::LOG_EVENT.as_usize());
        rest = &rest[piece.len()..];
        (!piece.is_empty()).then_some(piece)
    })
}
