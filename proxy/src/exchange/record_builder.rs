//! Builds the record of a call from the facts known so far, and estimates unreported usage.
//!
//! Pure. `settle` decides when a call ends and what becomes of its record then.

use std::sync::atomic::{AtomicBool, Ordering};

use platform_core::{
    id::CallId,
    money::NanoDollars,
    record::{CostSource, ExchangeRecord, Figures, Kind, Outcome, Tokens, TokensSource},
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};

use super::{
    cost,
    identify::Caller,
    silence::{SILENCE_THRESHOLD_US, Silence},
};
use crate::{
    budget::KnownPrice,
    trace::Progress,
    usage::{Finality, PromptEstimate, UsageReport, estimate},
};

/// Microseconds of a second.
const MICROSECONDS: u64 = 1_000_000;

/// Route of a call that was refused before its route was known.
pub(super) const NO_ROUTE: Route = Route::Unknown;

/// Unfinished record, with what is needed to estimate unreported usage.
#[derive(Debug)]
pub(super) struct RecordBuilder {
    pub(super) record: ExchangeRecord,
    /// Tokens of the prompt, if the upstream counts none.
    pub(super) prompt: PromptEstimate,
    /// Set if the upstream has refused the call with a good status.
    is_refused: bool,
    /// Set once some of the call may have gone upstream.
    pub(super) sent: AtomicBool,
    /// Bytes of text that the answer had; `None` as long as none of it was read.
    text_bytes: Option<u64>,
    /// Time at which the call went upstream, microseconds from its beginning.
    pub(super) sent_us: u64,
    /// Waits for the text of the answer.
    pub(super) silence: Silence,
    /// The most that the call can use.
    pub(super) granted: Tokens,
    /// Answers that the call requests; the model writes them at the same time.
    pub(super) answers: u64,
    /// Prices of the model for the service that the call asks for, if they are known.
    pub(super) price: Option<KnownPrice>,
    /// Progress of the answer, for watchers of its trace.
    pub(super) progress: Progress,
}

impl RecordBuilder {
    /// Begins the record of a call that starts at `ts`.
    pub(super) fn new(caller: &Caller, call_id: CallId, ts: String) -> Self {
        let grant = &caller.run.grant;
        let record = ExchangeRecord {
            ts,
            run_id: grant.run_id.clone(),
            attempt: grant.attempt,
            account: grant.account.clone(),
            user: grant.correlation.user.clone(),
            graph: grant.graph.clone(),
            identity: caller.identity,
            route: NO_ROUTE,
            model_asked: None,
            model_answered: None,
            finish_reason: None,
            stream: false,
            status: 0,
            outcome: Outcome::Refused,
            refusal: None,
            rule: None,
            timeout: None,
            request_bytes: 0,
            response_bytes: 0,
            ttfb_us: None,
            duration_us: 0,
            tokens: Tokens::default(),
            tokens_source: TokensSource::None,
            cost_nanodollars: None,
            cost_source: CostSource::None,
            litellm_call_id: call_id,
            tools: Vec::new(),
            kind: Kind::Model,
            calls: 1,
            tap: grant.tap,
            tool: None,
            seen: None,
            output_rate: None,
            correction: None,
        };
        Self {
            record,
            prompt: PromptEstimate::default(),
            is_refused: false,
            sent: AtomicBool::new(false),
            text_bytes: None,
            sent_us: 0,
            silence: Silence::default(),
            granted: Tokens::default(),
            answers: 1,
            price: None,
            progress: Progress::default(),
        }
    }

    /// Records the usage that the answer reported.
    pub(super) fn add_usage(&mut self, report: UsageReport) {
        let record = &mut self.record;
        self.text_bytes = Some(report.text_bytes);
        self.is_refused = report.is_refusal();
        if let Some(tokens) = report.tokens().filter(|_| record.route.costs_tokens()) {
            record.tokens = tokens;
            record.tokens_source = match report.finality {
                Finality::Final => TokensSource::Exact,
                Finality::Preliminary => TokensSource::Partial,
            };
        }
        record.model_answered = report.model;
        record.finish_reason = report.finish;
        record.tools = report.tools;
        record.cost_nanodollars = cost::reported(report.cost, record).or(record.cost_nanodollars);
    }

    /// Returns the record of a call that has ended. Each answer may have had `rate` tokens a second that were not seen.
    pub(super) fn finish(mut self, outcome: Outcome, duration_us: u64, rate: u64) -> ExchangeRecord {
        let counted = self.record.tokens;
        let reported = self.record.cost_nanodollars;
        self.fill_in(outcome, duration_us, rate);
        if self.record.is_correctable() {
            self.record.seen = Some(Box::new(self.seen(counted, reported)));
        }
        self.record
    }

    /// Returns the figures of what was seen of a call, of which the upstream has `counted` these tokens, and `reported`
    /// this cost: those that it would have if it had ended with the text that came.
    fn seen(&self, counted: Tokens, reported: Option<NanoDollars>) -> Figures {
        let output = self.text_bytes.map_or(0, estimate::tokens);
        let mut seen = ExchangeRecord {
            tokens: counted,
            tokens_source: TokensSource::Partial,
            cost_nanodollars: reported,
            ..self.record.clone()
        };
        add_estimate(
            &mut seen,
            self.granted,
            Tokens { input: self.prompt.usual(), output, ..Tokens::default() },
        );
        cost::settle(&mut seen, self.price);
        Figures::from(&seen)
    }

    /// Returns the model that the call asks for.
    pub(super) fn model(&self) -> &str {
        self.record.model_asked.as_ref().map_or("", JournalText::as_str)
    }

    /// Returns whether text of a stream was read, and its tokens are not known.
    pub(super) fn is_partly_seen(&self) -> bool {
        let is_exact = self.record.tokens_source == TokensSource::Exact;
        self.record.stream && self.text_bytes.is_some() && !is_exact
    }

    /// Returns the rate at which the model has generated each answer of a call that ends now, in tokens a second, if the
    /// upstream has counted them. A call counts for as long as the shortest silence at least.
    pub(super) fn exact_rate(&self, duration_us: u64) -> Option<u64> {
        let time_us = duration_us.saturating_sub(self.sent_us).max(SILENCE_THRESHOLD_US);
        let output = self.record.tokens.output.checked_div(self.answers)?;
        let is_exact = self.record.tokens_source == TokensSource::Exact;
        is_exact.then(|| output.saturating_mul(MICROSECONDS) / time_us)
    }

    /// Calls `show` with the record that the call gets if it is sent and nothing more becomes known of it.
    pub(super) fn as_interrupted<T>(
        &mut self,
        duration_us: u64,
        show: impl FnOnce(&ExchangeRecord) -> T,
    ) -> T {
        let ExchangeRecord { outcome, duration_us: duration, tokens, tokens_source, .. } = self.record;
        let cost = self.record.cost_nanodollars;
        let cost_source = self.record.cost_source;
        let sent = std::mem::replace(self.sent.get_mut(), true);
        self.fill_in(Outcome::Interrupted, duration_us, 0);
        let shown = show(&self.record);
        *self.sent.get_mut() = sent;
        let record = &mut self.record;
        record.outcome = outcome;
        record.duration_us = duration;
        record.tokens = tokens;
        record.tokens_source = tokens_source;
        record.cost_nanodollars = cost;
        record.cost_source = cost_source;
        shown
    }

    fn fill_in(&mut self, outcome: Outcome, duration_us: u64, rate: u64) {
        let may_cost = self.may_cost();
        let generated = self.most_generated(duration_us, rate);
        let Self { record, prompt, text_bytes, granted, price, .. } = self;
        record.outcome = outcome;
        record.duration_us = duration_us;
        match (record.tokens_source, record.outcome) {
            (TokensSource::Exact, _) => {}
            _ if !may_cost => {}
            (_, Outcome::Complete) => {
                let input = prompt.usual();
                let output = text_bytes.map_or(granted.output, estimate::tokens);
                add_estimate(record, *granted, Tokens { input, output, ..Tokens::default() });
            }
            _ => {
                let most = Tokens { input: prompt.most(), output: generated, ..Tokens::default() };
                add_estimate(record, *granted, most);
            }
        }
        cost::settle(record, *price);
    }

    /// Returns the most tokens that a call that was cut may have generated: an agent that leaves early must not pay
    /// less. The upstream finishes an answer in one piece although nothing waits for it. A stream has at most the text
    /// that came, and what the model can generate in silence.
    fn most_generated(&self, duration_us: u64, rate: u64) -> u64 {
        let Some(text_bytes) = self.text_bytes.filter(|_| self.record.stream) else {
            return self.granted.output;
        };
        let silent_us = self.silence.until(duration_us);
        let hidden = silent_us.saturating_mul(rate).saturating_mul(self.answers) / MICROSECONDS;
        text_bytes.saturating_add(hidden)
    }

    /// Returns whether a model may have worked on the call.
    fn may_cost(&self) -> bool {
        let record = &self.record;
        let unreached =
            matches!(record.refusal, Some(Refusal::UpstreamUnreachable | Refusal::UpstreamUnavailable));
        let reached = self.sent.load(Ordering::Relaxed) && !unreached;
        let refused = record.ttfb_us.is_some() && !(200..300).contains(&record.status);
        reached && !refused && !self.is_refused && record.route.costs_tokens()
    }
}

/// Adds an estimate of input and output to the upstream's count, which is a lower bound. An estimate never exceeds
/// the reservation; a count may.
fn add_estimate(record: &mut ExchangeRecord, granted: Tokens, estimate: Tokens) {
    let counted = &mut record.tokens;
    if counted.input == 0 {
        counted.input = estimate.input.min(granted.input);
    }
    counted.output = counted.output.max(estimate.output.min(granted.output));
    if record.tokens_source != TokensSource::Partial {
        record.tokens_source = TokensSource::Estimated;
    }
}

#[cfg(test)]
mod tests {
    use platform_core::record::JournalLine;

    use super::*;

    const GRANTED: Tokens =
        Tokens { input: 1000, output: 500, cached: 0, cache_written: 0, cache_written_1h: 0, reasoning: 0 };

    fn record(tokens_source: TokensSource, (input, output): (u64, u64)) -> ExchangeRecord {
        let line: JournalLine =
            serde_json::from_str(include_str!("../../tests/golden/journal-line.json")).unwrap();
        ExchangeRecord { tokens_source, tokens: Tokens { input, output, ..Tokens::default() }, ..line.record }
    }

    /// A count is a lower bound, and the estimate beside it never exceeds the reservation.
    #[test]
    fn an_estimate_is_bounded_and_a_count_is_not() {
        use TokensSource::{Estimated, None, Partial};
        let table = [
            (None, (0, 0), (40, 50), Estimated, (40, 50)),
            (None, (0, 0), (74_604, 5_024_191), Estimated, (1000, 500)),
            (Partial, (100, 0), (40, 50), Partial, (100, 50)),
            (Partial, (100, 70), (40, 50), Partial, (100, 70)),
            (Partial, (0, 70), (40, 50), Partial, (40, 70)),
            (Partial, (2000, 900), (40, 5_000), Partial, (2000, 900)),
        ];
        for (source, counted, estimate, booked, expected) in table {
            let mut record = record(source, counted);
            let (input, output) = estimate;
            add_estimate(&mut record, GRANTED, Tokens { input, output, ..Tokens::default() });
            assert_eq!(record.tokens_source, booked, "{counted:?}");
            assert_eq!((record.tokens.input, record.tokens.output), expected, "{counted:?} {estimate:?}");
        }
    }
}
