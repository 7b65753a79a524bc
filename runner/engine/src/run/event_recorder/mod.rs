//! Records the events of a run: at once for a reader in this process, and in batches in the store for all others.
//!
//! Nothing here waits for a reader: one that is too slow misses live pieces. What waits for the store is bounded by
//! what is kept of a run at all. It can therefore stay in memory for as long as the store is unavailable.

mod pending;
#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    time::Duration,
};

use platform_core::{
    control::TapLine,
    event::{AgentEvent, OutputStream, Phase},
    limit::{ByteSize, events as limit},
};
use platform_runtime::{
    report,
    retry::{Backoff, Transient},
    settings::Stream,
};
use runner_docker::{ContainerExit, Piece};
use runner_model::tap_event;
use runner_store::{Batch, EventCursor};
use tokio::{
    sync::{Notify, mpsc},
    time::sleep,
};

use self::pending::PendingEvents;
use super::leased_run::LeasedRun;

/// Shortest time for which events are gathered into a batch. It grows for an agent that goes on.
const MIN_BATCH_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time for which events are gathered into a batch.
const MAX_BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Delay after the store did not take a batch.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Name of the tool by which an OpenClaw agent starts a sub-agent.
const SUB_AGENT_TOOL: &str = "sessions_spawn";

/// Recorder of a run's events.
#[derive(Debug)]
pub(super) struct EventRecorder<'r> {
    reader: &'r mpsc::Sender<AgentEvent>,
    stream: Stream,
    /// Most bytes that are kept of an output's beginning, and of its end.
    max_kept: ByteSize,
    pending: RefCell<PendingEvents>,
    added: Notify,
    /// Number of tool calls that are not stored, because there were too many.
    uncounted_tools: Cell<u64>,
    /// Number of events that the reader missed because it was too slow, and that no event has reported yet.
    missed: Cell<u64>,
    /// True once the agent has started sub-agents, which may go on when it is done.
    has_sub_agents: Cell<bool>,
}

impl<'r> EventRecorder<'r> {
    /// Continues after the position that the previous worker recorded. Of outputs no more is stored than what
    /// `capture_limit` lets be kept of them.
    pub(super) fn new(
        recorded: EventCursor,
        reader: &'r mpsc::Sender<AgentEvent>,
        stream: Stream,
        capture_limit: ByteSize,
    ) -> Self {
        Self {
            reader,
            stream,
            max_kept: ByteSize(limit::LOG_END.0.min(capture_limit.0 / 2)),
            pending: RefCell::new(PendingEvents::after(recorded)),
            added: Notify::new(),
            uncounted_tools: Cell::new(0),
            missed: Cell::new(0),
            // An event recorded before may have been that.
            has_sub_agents: Cell::new(recorded.tap > 0),
        }
    }

    /// Sends the phase that the run enters. The transition itself records it in the store.
    pub(super) fn send_phase(&self, phase: Phase) {
        self.send(AgentEvent::Status { phase });
    }

    /// Records a piece of the agent's output.
    pub(super) fn record_output(&self, piece: Piece) {
        let Piece { stream, text, to } = piece;
        let mut pending = self.pending.borrow_mut();
        let recorded = *pending.cursor.of(stream);
        // After a gap, what follows is no longer the beginning.
        if recorded.bytes.max(recorded.kept) < self.max_kept.0 && recorded.events < limit::LOG_EVENTS {
            pending.push_output(stream, &text);
            pending.cursor.of(stream).bytes = to;
            self.added.notify_one();
        }
        drop(pending);
        self.send(AgentEvent::Log { stream, text });
    }

    /// Records an event of the data plane's tap.
    pub(super) fn record_tap_line(&self, line: TapLine) {
        let mut pending = self.pending.borrow_mut();
        if line.n > 0 {
            pending.cursor.tap = line.n;
        }
        let Some(event) = tap_event::event(line.event, self.stream) else { return };
        if let AgentEvent::Tool { name } = &event {
            self.note_tool(name.as_str());
        }
        match &event {
            AgentEvent::Tool { .. } if pending.cursor.tools < limit::TOOLS => {
                pending.cursor.tools += 1;
                pending.events.push(event.clone());
                self.added.notify_one();
            }
            AgentEvent::Tool { .. } => self.uncounted_tools.set(self.uncounted_tools.get() + 1),
            AgentEvent::Missed { count } => {
                pending.push_missed(*count);
                self.added.notify_one();
            }
            _ => {}
        }
        drop(pending);
        self.send(event);
    }

    /// Sends more of the agent's answer to the reader in this process. All other readers see what models write.
    pub(super) fn send_text(&self, delta: String) {
        self.send(AgentEvent::TextDelta { delta });
    }

    /// Notes that the agent uses a tool. A model that searches for tools calls them all by one name: its gateway knows
    /// the tool's own.
    pub(super) fn note_tool(&self, tool: &str) {
        if tool == SUB_AGENT_TOOL {
            self.has_sub_agents.set(true);
        }
    }

    /// Returns whether the agent has started sub-agents, which may go on when it is done.
    pub(super) const fn has_sub_agents(&self) -> bool {
        self.has_sub_agents.get()
    }

    /// Returns the number of the last event of the tap that is accounted for.
    pub(super) fn tap_position(&self) -> u64 {
        self.pending.borrow().cursor.tap
    }

    /// Records the end of what the agent printed, and how many bytes before it are left out.
    pub(super) fn record_output_end(&self, container: &ContainerExit) {
        let uncounted = self.uncounted_tools.take();
        let mut pending = self.pending.borrow_mut();
        if uncounted > 0 {
            pending.events.push(AgentEvent::Missed { count: uncounted });
        }
        pending.push_output_end(OutputStream::Stdout, &container.stdout, self.max_kept);
        pending.push_output_end(OutputStream::Stderr, &container.stderr, self.max_kept);
    }

    /// Returns the batches that the store is not known to have, in the order in which it has to get them.
    pub(super) fn pending_batches(&self) -> Vec<Batch> {
        let mut pending = self.pending.borrow_mut();
        let handed_out = pending.handed_out.take();
        let rest = pending.next_batch();
        pending.handed_out.take();
        handed_out.into_iter().chain(rest).map(|batch| Batch::clone(&batch)).collect()
    }

    /// Stores pending batches, for as long as this is polled.
    pub(super) async fn store_batches(&self, run: &LeasedRun) -> Infallible {
        let mut gather = Backoff::new(MIN_BATCH_INTERVAL, MAX_BATCH_INTERVAL);
        loop {
            self.added.notified().await;
            gather.wait().await;
            let Some(batch) = self.pending.borrow_mut().next_batch() else { continue };
            while let Err(error) = run.record_events(&batch).await {
                let is_transient = error.is_transient();
                let run = &run.request.run_id;
                let error = report::chain(&error);
                if !is_transient {
                    // Another worker has taken the run over, which `LeasedRun::keep_lease` finds out.
                    tracing::debug!(%run, error, "events not stored");
                    return std::future::pending().await;
                }
                tracing::warn!(%run, error, "events not stored yet; trying again");
                sleep(RETRY_DELAY).await;
            }
            self.pending.borrow_mut().handed_out = None;
        }
    }

    /// Sends an event to the reader. If the reader is too far behind, missed events are counted and reported as soon as
    /// the channel has capacity.
    fn send(&self, event: AgentEvent) {
        let mut missed = self.missed.get();
        if missed > 0 && self.reader.try_send(AgentEvent::Missed { count: missed }).is_ok() {
            missed = 0;
        }
        let is_missed = missed > 0 || self.reader.try_send(event).is_err();
        self.missed.set(missed + u64::from(is_missed));
    }
}
