//! Limits the journal lines of calls that were not sent upstream: they were refused, ended early, or were answered
//! here.
//!
//! Beyond a rate per run such calls are counted and summed up, so that no client fills the disk with them. The same
//! happens to them when the space for lines is used up. They have used nothing that costs.
//!
//! All their lines together have a share of the journal, so that they push no record of a sent call out of it. A run
//! may use as much of the share as is left. A run with a flood of them leaves half of it, a second one a quarter, and
//! another run always finds some. Single lines have one half of the share, sums the other. Used bytes come back with
//! time, and with each record of a call that was sent.
//!
//! Counts are in memory only. A proxy that is killed loses the counts of the last second, or minute where the share is
//! used up. The used part of the share is kept with the sums of full segments.

use std::{collections::HashMap, time::Duration};

use platform_core::{
    id::RunId,
    limit::journal::{UNSENT_AT_ONCE, UNSENT_PER_SECOND},
    record::ExchangeRecord,
};
use platform_runtime::{settings, sync::Mutex};

/// Most sums of one run that are kept per rule. Agents choose some of the words in rules.
const MAX_SUMS_PER_RUN: usize = 64;
/// Divisor for the part of the journal that these lines may use, and for the part of each other line that comes back to
/// them.
const SHARE_DIVISOR: u64 = 16;
/// Interval at which sums are written where single lines have used up their half of the share.
const SCARCE_INTERVAL: Duration = Duration::from_secs(60);

/// Refused calls that were counted instead of written, by run.
#[derive(Debug)]
pub(super) struct RefusalAggregator {
    /// Bytes that these lines may use.
    share: u64,
    /// Time in which all of the share comes back.
    keep: Duration,
    state: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    runs: HashMap<RunId, RunRefusals>,
    /// Bytes of the share that are used, by ended runs and by all.
    used_before: u64,
    used: u64,
    /// Bytes that have come back with time.
    returned: u64,
}

#[derive(Debug, Default)]
struct RunRefusals {
    /// Time at which all single lines written so far fit the rate.
    due: Duration,
    /// Bytes of the share that this run uses.
    used: u64,
    sums: Vec<Sum>,
}

#[derive(Debug)]
struct Sum {
    /// Record of the first call, with the numbers of all.
    record: ExchangeRecord,
    /// End of the first call.
    first: Duration,
}

/// Selection of sums to write.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flush<'r> {
    /// All sums of a run that ends.
    Run(&'r RunId),
    /// Sums that are due.
    Due,
    /// All sums, because the proxy ends.
    All,
}

impl RefusalAggregator {
    /// Creates empty counts. Their lines have a share of a journal with such `settings`; earlier proxies have `used`
    /// some of it.
    pub(super) fn new(settings: &settings::Journal, used: u64) -> Self {
        let keep = settings.retention.duration().max(Duration::from_secs(1));
        let state = Counted { used_before: used, used, ..Counted::default() };
        Self { share: settings.disk_budget.0 / SHARE_DIVISOR, keep, state: Mutex::new(state) }
    }

    /// Returns whether `record` is to be written at `now`. If not, counts it.
    pub(super) fn admit_or_count(&self, record: &ExchangeRecord, now: Duration) -> bool {
        let between = Duration::from_secs(1) / UNSENT_PER_SECOND;
        let mut state = self.state.lock();
        let left = (self.share / 2).saturating_sub(state.used);
        let refusals = match state.runs.get_mut(&record.run_id) {
            Some(refusals) => refusals,
            None => state.runs.entry(record.run_id.clone()).or_default(),
        };
        let due = refusals.due.max(now) + between;
        if due > now + between * UNSENT_AT_ONCE || refusals.used >= left {
            refusals.count(record, now);
            return false;
        }
        refusals.due = due;
        true
    }

    /// Counts `record` instead of writing it.
    pub(super) fn count(&self, record: &ExchangeRecord, now: Duration) {
        self.state.lock().runs.entry(record.run_id.clone()).or_default().count(record, now);
    }

    /// Records that a line of the run `run_id` was written.
    pub(super) fn note_written(&self, run_id: &RunId, bytes: u64) {
        let mut state = self.state.lock();
        state.used += bytes;
        match state.runs.get_mut(run_id) {
            Some(refusals) => refusals.used += bytes,
            None => state.used_before += bytes,
        }
    }

    /// Returns how many bytes of the share are used.
    pub(super) fn used(&self) -> u64 {
        self.state.lock().used
    }

    /// Gives back the bytes that have become free by `now`, while calls that were sent have had `sent` bytes written.
    /// All runs that use the share get back alike.
    pub(super) fn give_back(&self, sent: u64, now: Duration) {
        let mut state = self.state.lock();
        let share = u128::from(self.share);
        let in_time = u64::try_from(share * now.as_millis() / self.keep.as_millis()).unwrap_or(u64::MAX);
        let bytes = in_time.saturating_sub(state.returned) + sent / SHARE_DIVISOR;
        state.returned = state.returned.max(in_time);
        let Counted { runs, used_before, used, .. } = &mut *state;
        let users = || runs.values().filter(|refusals| refusals.used > 0).count() as u64;
        let each = bytes.div_ceil(users() + 1);
        let all = runs.values_mut().map(|refusals| &mut refusals.used).chain([used_before]);
        for used_by_one in all {
            let back = each.min(*used_by_one);
            *used_by_one -= back;
            *used -= back;
        }
    }

    /// Takes the sums that `flush` selects.
    pub(super) fn take(&self, flush: Flush<'_>, now: Duration) -> Vec<ExchangeRecord> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        match flush {
            Flush::Run(run) => {
                let refusals = state.runs.remove(run).unwrap_or_default();
                state.used_before += refusals.used;
                taken.extend(refusals.sums);
            }
            Flush::All => state.runs.values_mut().for_each(|refusals| taken.append(&mut refusals.sums)),
            Flush::Due if state.used >= self.share => {}
            Flush::Due => {
                let is_scarce = state.used >= self.share / 2;
                state.runs.retain(|_, refusals| {
                    let first = refusals.sums.first().map_or(now, |sum| sum.first);
                    if !is_scarce || now.saturating_sub(first) >= SCARCE_INTERVAL {
                        taken.append(&mut refusals.sums);
                    }
                    refusals.due > now || refusals.used > 0 || !refusals.sums.is_empty()
                });
            }
        }
        taken.into_iter().map(|sum| sum.record).collect()
    }
}

impl RunRefusals {
    fn count(&mut self, record: &ExchangeRecord, now: Duration) {
        let mut sum_of = record.clone();
        if self.sums.len() >= MAX_SUMS_PER_RUN {
            sum_of.rule = None;
        }
        if let Some(sum) = self.sums.iter_mut().find(|sum| sum.is_like(&sum_of)) {
            return sum.add(record, now);
        }
        // A sum leaves out the fields that differ from call to call.
        sum_of.model_asked = None;
        sum_of.stream = false;
        sum_of.tools = Vec::new();
        sum_of.tool = None;
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
