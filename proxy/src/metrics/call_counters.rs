//! Counts the calls of one data-plane thread, and sums the counts of all threads.

use std::sync::Arc;

use platform_core::{
    host_tools::ToolOutcome,
    record::{CostSource, ExchangeRecord, Kind, Outcome, Tokens, TokensSource},
    refusal::Refusal,
    route::Route,
};
use platform_runtime::metrics::{Bound, Cells, Histograms};

use super::models::Models;

/// Bounds of durations: from a cached answer to an agent's longest.
const BOUNDS: [Bound; 17] = [
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (120_000_000, "120"),
    (300_000_000, "300"),
    (600_000_000, "600"),
    (1_800_000_000, "1800"),
    (3_600_000_000, "3600"),
];

const ROUTES: usize = Route::ALL.len();
const OUTCOMES: usize = Outcome::ALL.len();
/// Number of reasons for refusals, and one for none.
const REASONS: usize = Refusal::ALL.len() + 1;

/// Kinds of tokens.
pub(super) const KINDS: [&str; 6] =
    ["input", "output", "cached", "cache_written", "cache_written_1h", "reasoning"];

/// Kind of answer. First bytes are timed apart, because the first byte of an answer in one piece is also one of its
/// last.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnswerKind {
    Whole,
    Streamed,
}

impl AnswerKind {
    pub(super) const ALL: [Self; 2] = [Self::Whole, Self::Streamed];

    /// Returns the value of the label `stream`.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Whole => "false",
            Self::Streamed => "true",
        }
    }
}

/// Counters of calls that have ended.
#[derive(Debug)]
pub(super) struct CallCounters {
    models: Arc<Models>,
    /// Calls by route, outcome and refusal.
    calls: Cells,
    /// Calls by the source of their tokens, and of their cost.
    metered: Cells,
    /// Bytes of bodies, by route.
    requests: Cells,
    responses: Cells,
    /// Tokens by model and kind.
    tokens: Cells,
    /// Cost in billionths of a dollar, by model.
    cost: Cells,
    /// Times to the first byte, by route and kind of answer.
    pub(super) first_byte: Histograms,
    /// Calls of host tools, by outcome.
    tools: Cells,
    /// Durations by route.
    pub(super) duration: Histograms,
}

impl CallCounters {
    pub(super) fn new(models: &Arc<Models>) -> Self {
        Self {
            models: Arc::clone(models),
            calls: Cells::new(ROUTES * OUTCOMES * REASONS),
            metered: Cells::new(TokensSource::ALL.len() * CostSource::ALL.len()),
            requests: Cells::new(ROUTES),
            responses: Cells::new(ROUTES),
            tokens: Cells::new(models.count() * KINDS.len()),
            cost: Cells::new(models.count()),
            first_byte: Histograms::new(ROUTES * AnswerKind::ALL.len(), &BOUNDS),
            tools: Cells::new(ToolOutcome::ALL.len()),
            duration: Histograms::new(ROUTES, &BOUNDS),
        }
    }

    /// Counts a call that has ended.
    pub(super) fn count(&self, record: &ExchangeRecord) {
        let route = record.route as usize;
        self.calls.add(calls_index(record.route, record.outcome, record.refusal), record.calls);
        self.requests.add(route, record.request_bytes);
        self.responses.add(route, record.response_bytes);
        // The speed of refusals says nothing about the speed of service.
        if record.outcome == Outcome::Refused {
            return;
        }
        self.duration.observe(route, record.duration_us);
        if record.kind == Kind::Tool {
            if let Some(tool) = &record.tool {
                self.tools.add(tool.outcome as usize, record.calls);
            }
            return;
        }
        self.metered.add(metered_index(record.tokens_source, record.cost_source), 1);
        if let Some(first_byte) = record.ttfb_us {
            let answer = if record.stream { AnswerKind::Streamed } else { AnswerKind::Whole };
            self.first_byte.observe(first_byte_index(record.route, answer), first_byte);
        }
        let model = self.models.index(record.model_asked.as_ref());
        let Tokens { input, output, cached, cache_written, cache_written_1h, reasoning } = record.tokens;
        let amounts = [input, output, cached, cache_written, cache_written_1h, reasoning];
        for (kind, amount) in amounts.into_iter().enumerate() {
            self.tokens.add(model * KINDS.len() + kind, amount);
        }
        self.cost.add(model, record.cost_nanodollars.unwrap_or_default().0);
    }

    /// Adds the counters of another thread.
    pub(super) fn absorb(&self, other: &Self) {
        self.calls.absorb(&other.calls);
        self.metered.absorb(&other.metered);
        self.requests.absorb(&other.requests);
        self.responses.absorb(&other.responses);
        self.tokens.absorb(&other.tokens);
        self.cost.absorb(&other.cost);
        self.first_byte.absorb(&other.first_byte);
        self.duration.absorb(&other.duration);
        self.tools.absorb(&other.tools);
    }

    pub(super) fn calls(&self, route: Route, outcome: Outcome, refusal: Option<Refusal>) -> u64 {
        self.calls.get(calls_index(route, outcome, refusal))
    }

    /// Returns the calls of host tools with this outcome.
    pub(super) fn tool_calls(&self, outcome: ToolOutcome) -> u64 {
        self.tools.get(outcome as usize)
    }

    pub(super) fn metered(&self, tokens: TokensSource, cost: CostSource) -> u64 {
        self.metered.get(metered_index(tokens, cost))
    }

    /// Returns the bytes of requests and of responses.
    pub(super) fn bytes(&self, route: Route) -> (u64, u64) {
        (self.requests.get(route as usize), self.responses.get(route as usize))
    }

    /// Returns each model's label, its tokens by kind, and its cost in billionths of a dollar.
    pub(super) fn by_model(&self) -> impl Iterator<Item = (&str, [u64; KINDS.len()], u64)> {
        self.models.labels().enumerate().map(|(model, label)| {
            let tokens = std::array::from_fn(|kind| self.tokens.get(model * KINDS.len() + kind));
            (label, tokens, self.cost.get(model))
        })
    }
}

const fn calls_index(route: Route, outcome: Outcome, refusal: Option<Refusal>) -> usize {
    let reason = match refusal {
        None => 0,
        Some(refusal) => refusal as usize + 1,
    };
    (route as usize * OUTCOMES + outcome as usize) * REASONS + reason
}

const fn metered_index(tokens: TokensSource, cost: CostSource) -> usize {
    tokens as usize * CostSource::ALL.len() + cost as usize
}

/// Returns the index of a route's histogram of first bytes.
pub(super) const fn first_byte_index(route: Route, answer: AnswerKind) -> usize {
    route as usize * AnswerKind::ALL.len() + answer as usize
}
