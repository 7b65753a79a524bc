//! Writes a run as JSON, in the form that clients see.

use std::borrow::Cow;

use platform_core::{control::Usage, credits::Credits, event::RunErrorCode, id::ExternalId};
use runner_engine::{relay::RelayRecord, run_request::RunRequest};
use runner_store::{ListFacts, QueuePosition, ReceiptSums, Run, RunRecord, StoredRelay, StoredToolCall};
use runner_telemetry::traces;
use serde::Serialize;
use utoipa::ToSchema;

use super::repository::{CommitsView, PullRequestView};
use crate::{caller::Caller, operation::schemas, rfc3339::rfc3339};

/// Most characters of a question that are shown.
const MAX_QUESTION: usize = 10_000;

/// Run, as clients see it in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunView<'r> {
    #[schema(value_type = schemas::RunId)]
    run_id: &'r str,
    /// Account that pays.
    #[schema(value_type = schemas::AccountId)]
    account: &'r str,
    #[schema(value_type = schemas::AgentId)]
    agent_id: &'r str,
    /// Principal that ordered the run, or the user that `sluice run` was given.
    #[schema(required = true)]
    user: Option<&'r str>,
    #[schema(value_type = schemas::RunState)]
    state: &'static str,
    /// Model that the run was ordered with; absent in lists for runs that an earlier version stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    model: Option<Cow<'r, str>>,
    /// Number of times that the run was deliberately started anew.
    attempt: u32,
    #[schema(value_type = schemas::Priority)]
    priority: &'static str,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime, required = true)]
    started_at: Option<String>,
    #[schema(format = DateTime, required = true)]
    ended_at: Option<String>,
    /// Reason why the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<FailureView<'r>>,
    /// Usage of a run that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    usage: Option<UsageView>,
    /// Sums of its receipts, which come moments after its calls. In lists and in answers about one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    receipts: Option<RunReceiptsView>,
    /// Number of runs of the same account and priority that begin earlier, while the run waits. In lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    queue_ahead: Option<u64>,
    /// Pull request of its commits, once they are published. In lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pull_request: Option<PullRequestView>,
    /// Question to the agent: in lists its first 200 characters, in answers about one run the first 10,000. Absent for
    /// lists of runs that an earlier version stored, and once the texts of the run were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    question: Option<Cow<'r, str>>,
}

/// Sums of the receipts of a run's last attempt, corrections included.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunReceipts)]
pub(super) struct RunReceiptsView {
    count: u64,
    /// Dollars, as text, so that no float rounds them.
    cost: String,
    /// Credits that the account paid.
    #[schema(value_type = i64)]
    credits: Credits,
    /// Number of receipts with an unknown cost that is not corrected yet.
    unpriced: u64,
}

/// Run with the fields that a list does not show.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunDetails)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunDetailsView<'r> {
    #[serde(flatten)]
    run: RunView<'r>,
    /// Id of the run's trace.
    trace_id: String,
    /// Conversation that the run continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    state_key: Option<String>,
    /// Answer of the agent.
    #[schema(required = true)]
    answer: Option<&'r str>,
    /// Bytes that were cut from the end of the answer.
    answer_cut_bytes: u64,
    /// Position in the queue, while the run waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    queue: Option<PositionView>,
    /// Way of its commits, if it has a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    commits: Option<CommitsView>,
    /// Ids of its calls of host tools that wait for a person's approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    waiting_tool_calls: Vec<String>,
}

/// Page of the list of runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunPage)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunPageView<'r> {
    pub(super) runs: Vec<RunView<'r>>,
    /// Value of `cursor` for the next page; null on the last page.
    #[schema(required = true)]
    pub(super) next_cursor: Option<String>,
}

/// Failure of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunFailure)]
#[serde(rename_all = "camelCase")]
struct FailureView<'r> {
    #[schema(value_type = schemas::RunErrorCode)]
    code: RunErrorCode,
    message: &'r str,
    /// Cause, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<&'r str>,
}

/// Usage of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunUsage)]
#[serde(rename_all = "camelCase")]
struct UsageView {
    calls: u64,
    refused_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
}

/// Position of a run in the queue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueuePosition)]
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
            receipts: None,
            model: run.model.as_deref().map(Cow::Borrowed),
            queue_ahead: None,
            pull_request: None,
            question: None,
        }
    }

    /// Returns the view with what a list shows beside the run's row.
    pub(super) fn with_facts(self, facts: Option<&'r ListFacts>) -> Self {
        let Some(ListFacts { ahead, published, question }) = facts else { return self };
        Self {
            queue_ahead: *ahead,
            pull_request: published.as_ref().and_then(PullRequestView::of_relay),
            question: question.as_deref().map(Cow::Borrowed),
            ..self
        }
    }

    /// Returns the view with the sums of the run's receipts.
    pub(super) fn with_receipts(self, sums: Option<&ReceiptSums>) -> Self {
        Self { receipts: sums.map(RunReceiptsView::of), ..self }
    }
}

impl<'r> RunDetailsView<'r> {
    /// Returns the run of `record` as `caller` may see it; it has a position while it waits in the queue.
    pub(super) fn of(record: &'r RunRecord, position: Option<QueuePosition>, caller: &Caller) -> Self {
        let spec = RunRequest::stored(record).map(|request| request.spec).ok();
        let model = spec.as_ref().map(|spec| Cow::Owned(spec.model.clone()));
        let question = spec.as_ref().and_then(|spec| spec.question());
        let question = question.map(|text| Cow::Owned(text.chars().take(MAX_QUESTION).collect()));
        let stored = record.answer.as_ref().map_or(0, String::len) as u64;
        let whole = record.answer_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default();
        Self {
            run: RunView { model, question, ..RunView::of(&record.run, caller) },
            trace_id: traces::trace_id(record),
            state_key: spec.and_then(|spec| spec.state_key).map(|key| key.to_string()),
            answer: record.answer.as_deref(),
            answer_cut_bytes: whole.saturating_sub(stored),
            queue: position.map(|QueuePosition { ahead, waiting, .. }| PositionView { ahead, waiting }),
            commits: None,
            waiting_tool_calls: Vec::new(),
        }
    }

    /// Returns the view with the way of the run's commits, as `caller` may see it.
    pub(super) fn with_commits(self, relay: Option<&StoredRelay>, caller: &Caller) -> Self {
        // The commits of a run are not shown after its texts were removed.
        let record = relay.and_then(|relay| RelayRecord::read(relay).ok());
        Self { commits: record.map(|record| CommitsView::of(&record, caller)), ..self }
    }

    /// Returns the view with the calls of host tools that wait for an approval.
    pub(super) fn with_waiting_tool_calls(self, calls: &[StoredToolCall]) -> Self {
        Self { waiting_tool_calls: calls.iter().map(|call| call.call.clone()).collect(), ..self }
    }

    /// Returns the view with the sums of the run's receipts.
    pub(super) fn with_receipts(self, sums: Option<&ReceiptSums>) -> Self {
        Self { run: self.run.with_receipts(sums), ..self }
    }
}

impl RunReceiptsView {
    fn of(ReceiptSums { receipts, unpriced, cost, credits }: &ReceiptSums) -> Self {
        Self { count: *receipts, cost: cost.to_plain_text(), credits: *credits, unpriced: *unpriced }
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
