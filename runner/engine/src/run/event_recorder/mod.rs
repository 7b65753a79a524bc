//! Records the events of a run. Sends them to a reader in this process at once, and stores them in batches for all
//! others.
//!
//! Nothing here waits for a reader: one that is too slow misses live events. Events that wait for the store are bounded
//! by the limits on stored events of a run. They can therefore stay in memory for as long as the store is unavailable.

mod pending;
mod reported;
#[cfg(test)]
mod tests;
mod turn;
mod turn_record;

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
use runner_model::{line_buffer::LineBuffer, tap_event};
use runner_store::{Batch, EventCursor};
use tokio::{
    sync::{Notify, mpsc},
    time::sleep,
};

pub(super) use self::turn_record::TurnRecord;
use self::{pending::PendingEvents, turn::TurnTools};
use super::leased_run::LeasedRun;

/// Shortest time for which events are gathered into a batch. The time grows while the agent runs.
const MIN_BATCH_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time for which events are gathered into a batch.
const MAX_BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before a batch that was not stored is stored again.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Name of the tool by which an OpenClaw agent starts a sub-agent.
const SUB_AGENT_TOOL: &str = "sessions_spawn";

/// Recorder of a run's events.
#[derive(Debug)]
pub(super) struct EventRecorder<'r> {
    reader: &'r mpsc::Sender<AgentEvent>,
    stream: Stream,
    reporter: Reporter,
    /// Standard output of an agent that reports its events there; absent for other agents.
    reported: Option<RefCell<LineBuffer>>,
    /// Maximum number of bytes that are kept of an output's beginning, and of its end.
    max_kept: ByteSize,
    pending: RefCell<PendingEvents>,
    added: Notify,
    /// Number of tool calls beyond the limit, which are not stored.
    excess_tools: Cell<u64>,
    /// Number of events that the slow reader missed and that were not reported to it yet.
    missed: Cell<u64>,
    /// Events of the turn that are recorded, of a run on a gateway.
    turn: RefCell<TurnRecord>,
    /// Source of the tool calls of that turn.
    turn_tools: Cell<TurnTools>,
    /// True once the agent has started sub-agents, which may continue after its end.
    has_sub_agents: Cell<bool>,
}

/// Settings of an agent that say how its output is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputRules {
    pub(super) reporter: Reporter,
    pub(super) stream: Stream,
    pub(super) capture_limit: ByteSize,
}

/// Party that reports the text and the tool calls of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reporter {
    /// The data plane, which observes what models write.
    DataPlane,
    /// The agent, in lines on its standard output.
    Agent,
    /// The gateway that runs the agent.
    Gateway,
}

impl<'r> EventRecorder<'r> {
    /// Returns a recorder that continues after the position `recorded` by the previous worker. Stores the beginning and
    /// the end of each output, each up to half of the agent's capture limit.
    pub(super) fn new(
        recorded: EventCursor,
        reader: &'r mpsc::Sender<AgentEvent>,
        output: OutputRules,
    ) -> Self {
        let OutputRules { reporter, stream, capture_limit } = output;
        let reports_events = reporter == Reporter::Agent;
        Self {
            reader,
            stream,
            reporter,
            reported: reports_events.then(|| RefCell::new(LineBuffer::new(limit::AGENT_LINE.as_usize()))),
            max_kept: ByteSize(limit::LOG_END.0.min(capture_limit.0 / 2)),
            pending: RefCell::new(PendingEvents::after(recorded)),
            added: Notify::new(),
            excess_tools: Cell::new(0),
            missed: Cell::new(0),
            turn: RefCell::default(),
            turn_tools: Cell::default(),
            // A recorded tool call may have started a sub-agent.
            has_sub_agents: Cell::new(recorded.tap > 0),
        }
    }

    /// Sends the phase that the run enters. The transition itself records it in the store.
    pub(super) fn send_phase(&self, phase: Phase) {
        self.send(AgentEvent::Status { phase });
    }

    /// Records a piece of the agent's output.
    pub(super) fn record_output(&self, piece: Piece) {
        if let (OutputStream::Stdout, Some(lines)) = (piece.stream, &self.reported) {
            return self.record_lines(lines, &piece);
        }
        let Piece { stream, text, to, .. } = piece;
        let mut pending = self.pending.borrow_mut();
        let position = *pending.cursor.of(stream);
        // Output after a gap is not part of the beginning.
        if position.bytes.max(position.kept) < self.max_kept.0 && position.events < limit::LOG_EVENTS {
            pending.push_output(stream, &text);
            pending.cursor.of(stream).bytes = to;
            self.added.notify_one();
        }
        drop(pending);
        self.send(AgentEvent::Log { stream, text });
    }

    /// Records an event of the data plane's tap. Leaves out text and tool calls that the agent or its gateway reports.
    pub(super) fn record_tap_line(&self, line: TapLine) {
        let mut pending = self.pending.borrow_mut();
        if line.n > 0 {
            pending.cursor.tap = line.n;
        }
        let Some(event) = tap_event::event(line.event, self.stream) else { return };
        if let AgentEvent::Tool { name } = &event {
            self.note_tool(name.as_str());
        }
        if self.is_reported(&event) {
            return;
        }
        match &event {
            AgentEvent::Tool { .. } if pending.cursor.tools < limit::TOOLS => {
                pending.cursor.tools += 1;
                pending.events.push(event.clone());
                self.added.notify_one();
            }
            AgentEvent::Tool { .. } => self.excess_tools.set(self.excess_tools.get() + 1),
            AgentEvent::Missed { count } => {
                pending.push_missed(*count);
                self.added.notify_one();
            }
            _ => {}
        }
        drop(pending);
        self.send(event);
    }

    /// Records an event of the run itself, once it is stored with the next batch or transition.
    pub(super) fn record(&self, event: AgentEvent) {
        self.pending.borrow_mut().events.push(event.clone());
        self.send(event);
    }

    /// Returns whether another party than the data plane reports events of this kind.
    fn is_reported(&self, event: &AgentEvent) -> bool {
        match self.reporter {
            Reporter::DataPlane => false,
            Reporter::Agent => true,
            Reporter::Gateway => {
                self.turn_tools.get() == TurnTools::Gateway || !matches!(event, AgentEvent::Tool { .. })
            }
        }
    }

    /// Notes the use of a tool, to detect sub-agents. A model that searches for tools calls all of them by one name;
    /// only its gateway knows the tool's own name.
    pub(super) fn note_tool(&self, tool: &str) {
        if tool == SUB_AGENT_TOOL {
            self.has_sub_agents.set(true);
        }
    }

    /// Returns whether the agent has started sub-agents, which may continue after its end.
    pub(super) const fn has_sub_agents(&self) -> bool {
        self.has_sub_agents.get()
    }

    /// Returns the number of the last event of the tap that is recorded.
    pub(super) fn tap_position(&self) -> u64 {
        self.pending.borrow().cursor.tap
    }

    /// Records the end of each output, and the number of bytes that were left out before it.
    pub(super) fn record_output_end(&self, container: &ContainerExit) {
        let excess = self.excess_tools.take();
        let mut pending = self.pending.borrow_mut();
        if excess > 0 {
            pending.events.push(AgentEvent::Missed { count: excess });
        }
        match &self.reported {
            Some(lines) => self.record_last_line(lines, &mut pending),
            None => pending.push_output_end(OutputStream::Stdout, &container.stdout, self.max_kept),
        }
        pending.push_output_end(OutputStream::Stderr, &container.stderr, self.max_kept);
    }

    /// Returns the batches that are not known to be stored, in the order in which they must be stored.
    pub(super) fn pending_batches(&self) -> Vec<Batch> {
        let mut pending = self.pending.borrow_mut();
        let handed_out = pending.handed_out.take();
        let rest = pending.next_batch();
        pending.handed_out.take();
        handed_out.into_iter().chain(rest).map(|batch| Batch::clone(&batch)).collect()
    }

    /// Stores pending batches, for as long as this is polled.
    pub(super) async fn store_batches(&self, run: &LeasedRun) -> Infallible {
        let mut gather_delay = Backoff::new(MIN_BATCH_INTERVAL, MAX_BATCH_INTERVAL);
        loop {
            self.added.notified().await;
            gather_delay.wait().await;
            let Some(batch) = self.pending.borrow_mut().next_batch() else { continue };
            while let Err(error) = run.record_events(&batch).await {
                let is_transient = error.is_transient();
                let run_id = &run.request.run_id;
                let error = report::chain(&error);
                if !is_transient {
                    // Another worker has taken the run over, which `LeasedRun::keep_lease` detects.
                    tracing::debug!(run = %run_id, error, "events not stored");
                    return std::future::pending().await;
                }
                tracing::warn!(run = %run_id, error, "events not stored yet; trying again");
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
        let misses_this = missed > 0 || self.reader.try_send(event).is_err();
        self.missed.set(missed + u64::from(misses_this));
    }
}
