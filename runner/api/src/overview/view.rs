//! Writes the figures of an overview as JSON.

use std::collections::BTreeMap;

use platform_core::{credits::Credits, id::AccountId, money::SignedNanoDollars};
use runner_store::{RunWaits, RunsEnded, StoredToolCall, TimeGrid, UnixMillis, UsageSums, WAIT_BOUNDS};
use serde::Serialize;
use utoipa::ToSchema;

use super::OverviewRange;
use crate::{operation::schemas, rfc3339::rfc3339};

/// Figures as the store has them.
pub(super) struct Figures {
    pub(super) by_time: Vec<(UnixMillis, UsageSums)>,
    pub(super) by_account: Vec<(AccountId, UsageSums)>,
    pub(super) by_model: Vec<(String, UsageSums)>,
    pub(super) refusals: Vec<(String, u64)>,
    pub(super) ended: Vec<RunsEnded>,
    pub(super) waits: RunWaits,
    pub(super) approvals: Vec<StoredToolCall>,
}

/// Figures of a span of time.
#[derive(Serialize, ToSchema)]
#[schema(as = Overview)]
#[serde(rename_all = "camelCase")]
pub(super) struct OverviewView<'f> {
    /// Span of time that was asked for.
    range: OverviewRange,
    #[schema(format = DateTime)]
    from: String,
    /// End of the last span, which is under way.
    #[schema(format = DateTime)]
    until: String,
    /// Seconds of each span.
    span_seconds: i64,
    /// Sum of all calls.
    total: UsageView,
    /// Use in each span, the oldest first.
    by_time: Vec<TimeUsageView>,
    /// Use of each account, the dearest first.
    by_account: Vec<AccountUsageView<'f>>,
    /// Use of each model, the dearest first.
    by_model: Vec<ModelUsageView<'f>>,
    /// Runs that ended in each span, the oldest first.
    runs: Vec<RunsView>,
    /// Runs without an answer by error code, the most frequent first; cancelled ones are none of them.
    failures: Vec<CodeCountView<'f>>,
    /// Refused calls by code of the refusal, the most frequent first.
    refusals: Vec<CodeCountView<'f>>,
    /// Waits for a worker, of the runs that ended.
    waits: WaitsView,
    approvals: WaitingApprovalsView,
}

/// Use of calls.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageFigures)]
#[serde(rename_all = "camelCase")]
struct UsageView {
    calls: u64,
    /// Number of those without a price: the cost is higher.
    unpriced: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Dollars, as text, so that no float rounds them; negative if corrections lower earlier costs.
    cost: String,
    #[schema(value_type = i64)]
    credits: Credits,
}

/// Use of the calls in one span.
#[derive(Serialize, ToSchema)]
#[schema(as = TimeUsage)]
struct TimeUsageView {
    /// Beginning of the span.
    #[schema(format = DateTime)]
    at: String,
    #[serde(flatten)]
    usage: UsageView,
}

/// Use of the calls of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountUsage)]
struct AccountUsageView<'f> {
    #[schema(value_type = schemas::AccountId)]
    account: &'f AccountId,
    #[serde(flatten)]
    usage: UsageView,
}

/// Use of the calls of a model.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelUsage)]
struct ModelUsageView<'f> {
    /// The model; null of calls that name none.
    #[schema(required = true)]
    model: Option<&'f str>,
    #[serde(flatten)]
    usage: UsageView,
}

/// Numbers of runs that ended in one span.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = RunOutcomes)]
#[serde(rename_all = "camelCase")]
struct RunsView {
    /// Beginning of the span.
    #[schema(format = DateTime)]
    at: String,
    succeeded: u64,
    failed: u64,
    cancelled: u64,
    timed_out: u64,
}

/// Number of events with one code.
#[derive(Serialize, ToSchema)]
#[schema(as = CodeCount)]
struct CodeCountView<'f> {
    code: &'f str,
    count: u64,
}

/// Waits of runs for a worker.
#[derive(Serialize, ToSchema)]
#[schema(as = RunWaits)]
#[serde(rename_all = "camelCase")]
struct WaitsView {
    /// Numbers of runs by their wait, the shortest first.
    groups: Vec<WaitGroupView>,
    /// Longest wait; 0 if no run waited.
    longest_ms: i64,
}

/// Runs with similar waits.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitGroup)]
#[serde(rename_all = "camelCase")]
struct WaitGroupView {
    /// Milliseconds that they waited less than; null for those that waited longer than all others.
    #[schema(required = true)]
    below_ms: Option<i64>,
    runs: u64,
}

/// Calls of host tools that wait for a person now.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingApprovals)]
#[serde(rename_all = "camelCase")]
struct WaitingApprovalsView {
    /// Number of them, at most 200.
    waiting: usize,
    /// Time at which the oldest one was made.
    #[schema(required = true, format = DateTime)]
    oldest_at: Option<String>,
}

impl UsageView {
    fn of(sums: &UsageSums) -> Self {
        let UsageSums { calls, unpriced, input_tokens, output_tokens, cost, credits } = *sums;
        Self { calls, unpriced, input_tokens, output_tokens, cost: cost.to_plain_text(), credits }
    }
}

impl RunsView {
    fn add(&mut self, ended: &RunsEnded) {
        let count = match ended.state.as_str() {
            "succeeded" => &mut self.succeeded,
            "cancelled" => &mut self.cancelled,
            "timed_out" => &mut self.timed_out,
            _ => &mut self.failed,
        };
        *count += ended.runs;
    }
}

impl<'f> OverviewView<'f> {
    pub(super) fn of(range: OverviewRange, grid: &TimeGrid, figures: &'f Figures) -> Self {
        let account = |(account, sums)| AccountUsageView { account, usage: UsageView::of(sums) };
        let model = |(model, sums): &'f (String, UsageSums)| ModelUsageView {
            model: Some(model.as_str()).filter(|model| !model.is_empty()),
            usage: UsageView::of(sums),
        };
        let refusal = |(code, count): &'f (String, u64)| CodeCountView { code, count: *count };
        Self {
            range,
            from: rfc3339(grid.from),
            until: rfc3339(grid.until()),
            span_seconds: grid.span.length() / 1000,
            total: UsageView::of(&total(figures)),
            by_time: by_time(grid, figures),
            by_account: figures.by_account.iter().map(|(name, sums)| account((name, sums))).collect(),
            by_model: figures.by_model.iter().map(model).collect(),
            runs: runs(grid, figures),
            failures: failures(figures),
            refusals: figures.refusals.iter().map(refusal).collect(),
            waits: waits(&figures.waits),
            approvals: WaitingApprovalsView {
                waiting: figures.approvals.len(),
                oldest_at: figures.approvals.first().map(|call| rfc3339(call.began)),
            },
        }
    }
}

fn total(figures: &Figures) -> UsageSums {
    let mut total = UsageSums { cost: SignedNanoDollars(0), ..UsageSums::default() };
    for (_, sums) in &figures.by_time {
        total.calls = total.calls.saturating_add(sums.calls);
        total.unpriced = total.unpriced.saturating_add(sums.unpriced);
        total.input_tokens = total.input_tokens.saturating_add(sums.input_tokens);
        total.output_tokens = total.output_tokens.saturating_add(sums.output_tokens);
        total.cost = total.cost + sums.cost;
        total.credits = total.credits + sums.credits;
    }
    total
}

fn by_time(grid: &TimeGrid, figures: &Figures) -> Vec<TimeUsageView> {
    let known: BTreeMap<_, _> = figures.by_time.iter().map(|(at, sums)| (*at, sums)).collect();
    let none = UsageSums::default();
    let view = |at| TimeUsageView {
        at: rfc3339(at),
        usage: UsageView::of(known.get(&at).copied().unwrap_or(&none)),
    };
    grid.begins().map(view).collect()
}

fn runs(grid: &TimeGrid, figures: &Figures) -> Vec<RunsView> {
    let empty = |at| (at, RunsView { at: rfc3339(at), ..RunsView::default() });
    let mut runs: BTreeMap<UnixMillis, RunsView> = grid.begins().map(empty).collect();
    for ended in &figures.ended {
        if let Some(view) = runs.get_mut(&ended.began) {
            view.add(ended);
        }
    }
    runs.into_values().collect()
}

fn failures(figures: &Figures) -> Vec<CodeCountView<'_>> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for ended in figures.ended.iter().filter(|ended| ended.state != "cancelled") {
        if let Some(code) = &ended.code {
            *counts.entry(code).or_default() += ended.runs;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(code, count)| CodeCountView { code, count }).collect();
    counts.sort_by_key(|view| std::cmp::Reverse(view.count));
    counts
}

fn waits(waits: &RunWaits) -> WaitsView {
    let bounds = WAIT_BOUNDS.into_iter().map(Some).chain([None]);
    let groups = bounds.zip(waits.runs).map(|(below_ms, runs)| WaitGroupView { below_ms, runs });
    WaitsView { groups: groups.collect(), longest_ms: waits.longest }
}
