//! Counts a run's calls: their usage, and the end of the last one. The sums come from the journal once; then each
//! settled call is added. Atomics, no locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use platform_core::{
    control::{InexactCalls, Usage},
    money::NanoDollars,
    record::{CallEnd, Correction, ExchangeRecord, Kind, Outcome, Tokens},
    refusal::Refusal,
};
use serde::{Deserialize, Serialize};

use crate::sum;

/// Totals of a run's calls that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunUsage {
    #[serde(flatten)]
    pub(crate) usage: Usage,
    /// End of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<CallEnd>,
}

/// The same totals while they grow, except of inexact calls: the run's [`crate::budget::Spending`] counts those.
#[derive(Debug)]
pub(crate) struct UsageCounters {
    calls: AtomicU64,
    refused: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
    cached: AtomicU64,
    cache_written: AtomicU64,
    cache_written_1h: AtomicU64,
    reasoning: AtomicU64,
    nanodollars: AtomicU64,
    tool_calls: AtomicU64,
    last: AtomicU32,
}

impl UsageCounters {
    /// Adds a call that has ended.
    pub(crate) fn add(&self, record: &ExchangeRecord) {
        let add = |counter: &AtomicU64, amount| sum::add(counter, amount, Ordering::Relaxed);
        let counter = match (record.outcome, record.kind) {
            (Outcome::Refused, _) => &self.refused,
            (_, Kind::Model | Kind::Correction) => &self.calls,
            (_, Kind::Tool) => &self.tool_calls,
        };
        add(counter, record.calls);
        if record.kind == Kind::Tool {
            // It has no tokens and no cost, and its end says nothing about the model.
            return;
        }
        add(&self.input, record.tokens.input);
        add(&self.output, record.tokens.output);
        add(&self.cached, record.tokens.cached);
        add(&self.cache_written, record.tokens.cache_written);
        add(&self.cache_written_1h, record.tokens.cache_written_1h);
        add(&self.reasoning, record.tokens.reasoning);
        add(&self.nanodollars, record.cost_nanodollars.unwrap_or_default().0);
        self.last.store(packed(record.into()), Ordering::Relaxed);
    }

    /// Corrects the figures of a call that has ended.
    pub(crate) fn correct(&self, Correction { before, after, .. }: &Correction) {
        sum::replace(&self.input, before.input, after.input);
        sum::replace(&self.output, before.output, after.output);
        sum::replace(&self.nanodollars, before.cost_nanodollars.0, after.cost_nanodollars.0);
    }

    /// Returns the present totals, with those of `inexact` calls.
    pub(crate) fn usage(&self, inexact: InexactCalls) -> RunUsage {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tokens = Tokens {
            input: read(&self.input),
            output: read(&self.output),
            cached: read(&self.cached),
            cache_written: read(&self.cache_written),
            cache_written_1h: read(&self.cache_written_1h),
            reasoning: read(&self.reasoning),
        };
        let cost_nanodollars = NanoDollars(read(&self.nanodollars));
        let [calls, refused, tool_calls] = [&self.calls, &self.refused, &self.tool_calls].map(read);
        let usage = Usage { calls, refused, tokens, cost_nanodollars, inexact, tool_calls };
        RunUsage { usage, last: unpacked(self.last.load(Ordering::Relaxed)) }
    }
}

impl From<RunUsage> for UsageCounters {
    fn from(RunUsage { usage, last }: RunUsage) -> Self {
        Self {
            calls: usage.calls.into(),
            refused: usage.refused.into(),
            input: usage.tokens.input.into(),
            output: usage.tokens.output.into(),
            cached: usage.tokens.cached.into(),
            reasoning: usage.tokens.reasoning.into(),
            cache_written: usage.tokens.cache_written.into(),
            cache_written_1h: usage.tokens.cache_written_1h.into(),
            nanodollars: usage.cost_nanodollars.0.into(),
            tool_calls: usage.tool_calls.into(),
            last: last.map_or(0, packed).into(),
        }
    }
}

/// Packs `end` into one word, so that no reader sees half of one and half of another. The status comes lowest, above
/// it the index of the outcome, from 1, above that the refusal's, or 0.
fn packed(end: CallEnd) -> u32 {
    let refusal = end.refusal.map_or(0, |refusal| refusal as u32 + 1);
    refusal << 24 | (end.outcome as u32 + 1) << 16 | u32::from(end.status)
}

fn unpacked(word: u32) -> Option<CallEnd> {
    let [refusal, outcome, status @ ..] = word.to_be_bytes();
    let outcome = *Outcome::ALL.get(usize::from(outcome).checked_sub(1)?)?;
    let refusal = usize::from(refusal).checked_sub(1).and_then(|at| Refusal::ALL.get(at).copied());
    Some(CallEnd { outcome, status: u16::from_be_bytes(status), refusal })
}

#[cfg(test)]
mod tests {
    use platform_core::{budget::Budget, record::TokensSource};

    use super::*;
    use crate::budget::Spending;

    #[test]
    fn the_last_end_is_read_back_as_it_was_written() {
        let refusals = Refusal::ALL.map(Some).into_iter().chain([None]);
        for (refusal, outcome) in refusals.flat_map(|refusal| Outcome::ALL.map(|outcome| (refusal, outcome)))
        {
            for status in [0, 200, 599, u16::MAX] {
                let end = CallEnd { outcome, status, refusal };
                assert_eq!(unpacked(packed(end)), Some(end));
            }
        }
        assert_eq!(
            UsageCounters::from(RunUsage::default()).usage(InexactCalls::default()),
            RunUsage::default(),
            "there was none"
        );
    }

    #[test]
    fn live_sums_saturate_as_restored_ones_do() {
        let full = Tokens { input: u64::MAX, output: u64::MAX, cached: u64::MAX, ..Tokens::default() };
        let usage = Usage {
            calls: u64::MAX,
            refused: u64::MAX,
            tokens: full,
            cost_nanodollars: NanoDollars(u64::MAX),
            inexact: InexactCalls { unpriced: u64::MAX, estimated: u64::MAX },
            tool_calls: u64::MAX,
        };
        let spending = Spending::new(&Budget::default(), &usage);
        let live = UsageCounters::from(RunUsage { usage, last: None });
        let mut restored = usage;
        for outcome in [Outcome::Complete, Outcome::Refused] {
            let record = ExchangeRecord {
                outcome,
                tokens: full,
                cost_nanodollars: Some(NanoDollars(u64::MAX)),
                tokens_source: TokensSource::Estimated,
                ..crate::journal::tests::record("r1")
            };
            live.add(&record);
            spending.add_inexact((&record).into());
            restored.add(&record);
        }
        assert_eq!((live.usage(spending.inexact()).usage, restored), (usage, usage));
    }

    #[test]
    fn sums_of_an_earlier_program_say_nothing_of_it() {
        let usage = Usage { calls: 3, ..Usage::default() };
        let earlier = serde_json::to_string(&usage).unwrap();
        assert_eq!(serde_json::from_str::<RunUsage>(&earlier).unwrap(), RunUsage { usage, last: None });
        let last =
            CallEnd { outcome: Outcome::TimedOut, status: 504, refusal: Some(Refusal::UpstreamTimeout) };
        let run_usage = RunUsage { usage, last: Some(last) };
        let kept = serde_json::to_string(&run_usage).unwrap();
        assert_eq!(serde_json::from_str::<RunUsage>(&kept).unwrap(), run_usage);
    }
}
