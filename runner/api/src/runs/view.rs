//! Writes a run as JSON, in the form that clients see.

use std::time::{Duration, UNIX_EPOCH};

use platform_core::{control::Usage, event::RunErrorCode, id::ExternalId};
use runner_engine::request::RunRequest;
use runner_store::{QueuePosition, Record, Run, UnixMillis};
use serde::Serialize;

use crate::caller::Caller;

/// Run, as clients see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunView<'r> {
    run_id: &'r str,
    account: &'r str,
    agent_id: &'r str,
    /// Principal that ordered the run, or the user that `sluice run` was given.
    user: Option<&'r str>,
    state: &'static str,
    attempt: u32,
    priority: &'static str,
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureView<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageView>,
    #[serde(flatten)]
    details: Option<Details>,
    /// Position in the queue, while the run waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<PositionView>,
}

/// Fields of a single run, which a list does not show.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_key: Option<String>,
    answer: Option<String>,
    /// Bytes that were cut from the end of the answer.
    answer_cut_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureView<'r> {
    code: RunErrorCode,
    message: &'r str,
    /// Cause, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'r str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageView {
    calls: u64,
    refused_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PositionView {
    /// Runs of the same account and priority that begin earlier.
    ahead: u64,
    /// All waiting runs.
    waiting: u64,
}

impl<'r> RunView<'r> {
    /// Returns `run` as `caller` may see it.
    pub(super) fn of(run: &'r Run, caller: &Caller) -> Self {
        let error = run.error.as_ref().map(|failure| FailureView {
            code: failure.code,
            message: &failure.message,
            detail: failure
                .detail
                .as_ref()
                .map(|detail| detail.for_operators())
                .filter(|_| caller.is_operator()),
        });
        Self {
            run_id: run.run_id.as_str(),
            account: run.account.as_str(),
            agent_id: run.agent.as_str(),
            user: run.correlation.user.as_ref().map(ExternalId::as_str),
            state: run.state.name(),
            attempt: run.attempt,
            priority: run.priority.name(),
            created_at: rfc3339(run.created),
            started_at: run.started.map(rfc3339),
            ended_at: run.ended.map(rfc3339),
            error,
            usage: run.usage.as_ref().map(UsageView::of),
            details: None,
            queue: None,
        }
    }

    /// Adds the fields that a list does not show.
    pub(super) fn with_record(mut self, record: &Record) -> Self {
        let spec = RunRequest::stored(record).map(|request| request.spec).ok();
        let stored = record.answer.as_ref().map_or(0, String::len) as u64;
        let whole = record.answer_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default();
        self.details = Some(Details {
            model: spec.as_ref().map(|spec| spec.model.clone()),
            state_key: spec.and_then(|spec| spec.state_key).map(|key| key.to_string()),
            answer: record.answer.clone(),
            answer_cut_bytes: whole.saturating_sub(stored),
        });
        self
    }

    /// Adds the run's position in the queue, if it waits there.
    pub(super) fn with_position(mut self, position: Option<QueuePosition>) -> Self {
        self.queue = position.map(|QueuePosition { ahead, waiting, .. }| PositionView { ahead, waiting });
        self
    }
}

impl UsageView {
    const fn of(usage: &Usage) -> Self {
        Self {
            calls: usage.calls,
            refused_calls: usage.refused,
            input_tokens: usage.tokens.input,
            output_tokens: usage.tokens.output,
            cached_tokens: usage.tokens.cached,
        }
    }
}

/// Formats a time as RFC 3339 with milliseconds.
pub(crate) fn rfc3339(time: UnixMillis) -> String {
    let since = Duration::from_millis(u64::try_from(time.0).unwrap_or_default());
    humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
}
