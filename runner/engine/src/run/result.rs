//! Describes the result of a run, and sends it to the reader of the run's events.

use std::time::Duration;

use platform_core::{control::Usage, event::AgentEvent};
use runner_docker::ContainerExit;
use runner_model::lifecycle::{Completion, Failure, StartKind};
use runner_store::RunRecord;
use tokio::sync::mpsc;

use super::context::RunContext;

/// End of the agent or of the turn, before anything is removed.
pub(super) struct RunEnd {
    /// Exit of the container; absent if it never ran, or another process observed the exit.
    pub(super) container: Option<ContainerExit>,
    pub(super) completion: Completion,
}

impl RunEnd {
    /// Builds the end of a run that had no container.
    pub(super) const fn without_container(answer: Result<String, Failure>) -> Self {
        Self { container: None, completion: Completion { exit_code: None, oom_seen: None, answer } }
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// Exit code of the agent's process; absent if it never ran.
    pub exit_code: Option<i64>,
    /// Exit of the container; absent if it never ran, or another process observed the exit.
    pub container_exit: Option<ContainerExit>,
    /// True if a process in the container was killed for lack of memory; absent if that is not known.
    pub oom_seen: Option<bool>,
    /// Answer, or the reason why it is missing.
    pub answer: Result<String, Failure>,
    /// Usage that the data plane counted; absent if the data plane did not report it.
    pub usage: Option<Usage>,
    /// Origin of the container; absent if this process started none.
    pub start_kind: Option<StartKind>,
    /// Time from the request to the start of the container.
    pub start_latency: Option<Duration>,
    /// Time from the request to the end.
    pub duration: Duration,
}

impl RunResult {
    pub(super) fn new(ctx: &RunContext<'_>, end: RunEnd, usage: Option<Usage>) -> Self {
        let RunEnd { container, completion: Completion { exit_code, oom_seen, answer } } = end;
        let start = ctx.run.start();
        Self {
            exit_code,
            container_exit: container,
            oom_seen,
            answer,
            usage,
            start_kind: start.map(|start| start.kind),
            start_latency: start.map(|start| start.after),
            duration: ctx.began.elapsed(),
        }
    }

    /// Builds the result of an ended run that another process executed.
    pub fn from_record(record: RunRecord) -> Self {
        let RunRecord { run, answer, .. } = record;
        Self {
            exit_code: run.exit_code,
            container_exit: None,
            oom_seen: run.oom_seen,
            answer: run.error.map_or_else(|| Ok(answer.unwrap_or_default()), Err),
            usage: run.usage,
            start_kind: None,
            start_latency: run.started.map(|started| run.created.until(started)),
            duration: run.created.until(run.ended.unwrap_or(record.now)),
        }
    }

    /// Sends the run's last events, and waits for a slow reader: the run has settled, so nothing else is delayed.
    pub(super) async fn announce(&self, events: &mpsc::Sender<AgentEvent>) {
        let (last, end) = match &self.answer {
            Ok(content) => (
                Some(AgentEvent::AssistantFinal { content: content.clone(), cut_bytes: 0 }),
                AgentEvent::Done,
            ),
            Err(Failure { code, message, .. }) => {
                (None, AgentEvent::Error { code: *code, message: message.clone() })
            }
        };
        let usage_report = |Usage { calls, tokens, .. }| AgentEvent::UsageReport { calls, tokens };
        let usage = self.usage.map(usage_report);
        for event in [last, usage, Some(end)].into_iter().flatten() {
            // The reader may be gone.
            drop(events.send(event).await);
        }
    }
}
