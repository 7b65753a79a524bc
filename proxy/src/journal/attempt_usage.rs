//! Sums up the usage of a run's latest attempt. Each attempt has its own budget, so earlier ones do not count.

use std::cmp::Ordering;

use platform_core::{
    id::RunId,
    record::{ExchangeRecord, Kind},
};
use serde::{Deserialize, Serialize};

use crate::run_usage::RunUsage;

/// Test whether an attempt of a run is closed.
pub(super) type IsClosed = dyn Fn(&RunId, u32) -> bool + Send;

/// Usage of the latest attempt of a run.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct AttemptUsage {
    #[serde(default, skip_serializing_if = "is_first")]
    pub(super) attempt: u32,
    #[serde(flatten)]
    pub(super) run_usage: RunUsage,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_first(attempt: &u32) -> bool {
    *attempt == 0
}

/// Sums over some lines of the latest attempt of a run, which one thread wrote.
#[derive(Debug, Default)]
pub(super) struct LineTotalsOfRun {
    attempt: u32,
    run_usage: RunUsage,
    /// Number of the line of the call that ended last. Lines of one run may come from several threads.
    last_line: u64,
}

impl LineTotalsOfRun {
    /// Adds the calls of `record`, which is in line `seq`.
    pub(super) fn add(&mut self, seq: u64, record: &ExchangeRecord) {
        match record.attempt.cmp(&self.attempt) {
            Ordering::Less => return,
            Ordering::Equal => {}
            Ordering::Greater => *self = Self { attempt: record.attempt, ..Self::default() },
        }
        self.run_usage.usage.add(record);
        // A line for several calls reports calls that ended at some time before.
        // Nor does a tool call say how the last call of a model ended.
        if record.calls == 1 && record.kind == Kind::Model {
            self.run_usage.last = Some(record.into());
            self.last_line = seq;
        }
    }
}

impl AttemptUsage {
    /// Adds the sums of a thread. `newest` is the last line of the threads that were added before.
    pub(super) fn add(&mut self, totals: LineTotalsOfRun, newest: &mut u64) {
        let LineTotalsOfRun { attempt, run_usage: RunUsage { usage, last }, last_line } = totals;
        match attempt.cmp(&self.attempt) {
            Ordering::Less => return,
            Ordering::Equal => {}
            Ordering::Greater => {
                *self = Self { attempt, ..Self::default() };
                *newest = 0;
            }
        }
        self.run_usage.usage += usage;
        if last_line > *newest {
            *newest = last_line;
            self.run_usage.last = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::record;

    fn totals(attempts: &[u32]) -> LineTotalsOfRun {
        let mut totals = LineTotalsOfRun::default();
        for (seq, attempt) in (1..).zip(attempts) {
            totals.add(seq, &ExchangeRecord { attempt: *attempt, ..record("r1") });
        }
        totals
    }

    #[test]
    fn only_the_latest_attempt_counts() {
        for (threads, attempt, calls) in [
            (&[&[0, 0][..], &[0]][..], 0, 3),
            (&[&[0, 0, 1], &[1]], 1, 2),
            (&[&[1, 1], &[0]], 1, 2),
            (&[&[0], &[1, 0], &[2]], 2, 1),
        ] {
            let mut used = AttemptUsage::default();
            let mut newest = 0;
            threads.iter().for_each(|attempts| used.add(totals(attempts), &mut newest));
            assert_eq!((used.attempt, used.run_usage.usage.calls), (attempt, calls), "{threads:?}");
        }
    }

    #[test]
    fn earlier_sums_are_of_the_first_attempt() {
        let written = serde_json::to_value(AttemptUsage::default()).unwrap();
        assert_eq!(written, serde_json::to_value(RunUsage::default()).unwrap());
        assert_eq!(serde_json::from_value::<AttemptUsage>(written).unwrap().attempt, 0);
    }
}
