//! Floods of calls of which nothing was sent, because they are refused, end before that, or are answered here: beyond a rate per
//! run they are counted and summed up, so that nobody fills the disk with them. The same happens to them when there is no space
//! for lines. They have used nothing that costs.
//!
//! In memory only: a proxy that is killed loses what was counted in the last second.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use platform_core::{
    id::RunId,
    limit::journal::{UNSENT_AT_ONCE, UNSENT_PER_SECOND},
    record::ExchangeRecord,
};

/// Sums of one run that are kept apart by what was decided; agents choose some of the words.
const APART: usize = 64;

/// What was counted, by run.
#[derive(Debug, Default)]
pub(super) struct Floods {
    runs: Mutex<HashMap<RunId, Flood>>,
}

#[derive(Debug, Default)]
struct Flood {
    /// When all that was written one by one fits the rate.
    due: Duration,
    sums: Vec<Sum>,
}

#[derive(Debug)]
struct Sum {
    /// The first call, with the numbers of all.
    record: ExchangeRecord,
    /// When it ended.
    first: Duration,
}

impl Floods {
    /// Whether `record` is to be written at `now`. If not, it is counted.
    pub(super) fn passes(&self, record: &ExchangeRecord, now: Duration) -> bool {
        let between = Duration::from_secs(1) / UNSENT_PER_SECOND;
        let mut runs = self.runs();
        let flood = match runs.get_mut(&record.run_id) {
            Some(flood) => flood,
            None => runs.entry(record.run_id.clone()).or_default(),
        };
        let due = flood.due.max(now) + between;
        if due > now + between * UNSENT_AT_ONCE {
            flood.count(record, now);
            return false;
        }
        flood.due = due;
        true
    }

    /// Counts `record`, which is not written.
    pub(super) fn count(&self, record: &ExchangeRecord, now: Duration) {
        self.runs().entry(record.run_id.clone()).or_default().count(record, now);
    }

    /// Takes what was counted, of `run` or of all.
    pub(super) fn take(&self, run: Option<&RunId>, now: Duration) -> Vec<ExchangeRecord> {
        let mut runs = self.runs();
        let mut taken = Vec::new();
        match run {
            Some(run) => taken.extend(runs.remove(run).into_iter().flat_map(|flood| flood.sums)),
            None => runs.retain(|_, flood| {
                taken.append(&mut flood.sums);
                flood.due > now
            }),
        }
        taken.into_iter().map(|sum| sum.record).collect()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Flood>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flood {
    fn count(&mut self, record: &ExchangeRecord, now: Duration) {
        let mut sum_of = record.clone();
        if self.sums.len() >= APART {
            sum_of.rule = None;
        }
        if let Some(sum) = self.sums.iter_mut().find(|sum| sum.is_like(&sum_of)) {
            return sum.add(record, now);
        }
        // What differs from call to call is nobody's.
        (sum_of.model_asked, sum_of.stream, sum_of.tools) = (None, false, Vec::new());
        if record.calls == 1 {
            sum_of.duration_us = 0;
        }
        self.sums.push(Sum { record: sum_of, first: now });
    }
}

impl Sum {
    fn is_like(&self, other: &ExchangeRecord) -> bool {
        let one = &self.record;
        (one.outcome, one.refusal, one.timeout) == (other.outcome, other.refusal, other.timeout)
            && (one.identity, one.route, one.attempt, one.status)
                == (other.identity, other.route, other.attempt, other.status)
            && one.rule == other.rule
            && one.account == other.account
    }

    fn add(&mut self, record: &ExchangeRecord, now: Duration) {
        let sum = &mut self.record;
        sum.calls = sum.calls.saturating_add(record.calls);
        sum.request_bytes = sum.request_bytes.saturating_add(record.request_bytes);
        sum.response_bytes = sum.response_bytes.saturating_add(record.response_bytes);
        let span = now.saturating_sub(self.first).as_micros();
        sum.duration_us = sum.duration_us.max(u64::try_from(span).unwrap_or(u64::MAX));
    }
}
