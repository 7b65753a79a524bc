//! Quarantines slots of closed runs that were not given back. A gateway may not know yet that its turn is over, and
//! its calls there must not count for another run. A quarantine goes on over a restart of the proxy.

use std::{collections::BTreeSet, fs, io, sync::Arc, time::Duration};

use platform_core::{control::Correlation, id::RunId};
use platform_runtime::task;
use serde::{Deserialize, Serialize};

use super::Runs;
use crate::clock;

/// Duration of a quarantine; longer than a bridge tries to tell its gateway that a turn is over.
const REST: Duration = Duration::from_secs(150);

/// Quarantined slots of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resting {
    pub(super) run: RunId,
    pub(super) slots: BTreeSet<Correlation>,
    /// End of the quarantine, in milliseconds since 1970.
    pub(super) until_ms: u64,
}

impl Runs {
    /// Ends the correlations of a closed run.
    pub(super) fn withdraw(&self, run: &RunId) {
        self.directory.withdraw_all(run);
        self.rest(run, self.directory.resting(run));
    }

    /// Quarantines `slots`, which were `run`'s.
    pub(super) fn rest(&self, run: &RunId, slots: BTreeSet<Correlation>) {
        if slots.is_empty() {
            return;
        }
        let until = clock::now() + REST;
        let until_ms = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        let resting = Resting { run: run.clone(), slots, until_ms };
        if let Err(error) = self.kept.write_resting(&resting) {
            tracing::error!(%run, %error, "that the run's slots rest is forgotten by the next proxy");
        }
        self.rest_until(resting);
    }

    /// Resumes the quarantines that an earlier proxy began.
    pub(super) fn rest_on(&self) -> io::Result<()> {
        self.kept.all_resting()?.into_iter().for_each(|resting| self.rest_until(resting));
        Ok(())
    }

    fn rest_until(&self, resting: Resting) {
        let Resting { run, slots, until_ms } = resting;
        // A clock that was set back must not prolong the quarantine.
        let left = Duration::from_millis(until_ms).saturating_sub(clock::now()).min(REST);
        self.directory.rest(&run, slots);
        let (directory, file) = (Arc::clone(&self.directory), self.kept.resting_path(&run));
        task::spawn("rest of a slot", async move {
            tokio::time::sleep(left).await;
            directory.rested(&run);
            if let Err(error) = fs::remove_file(file) {
                tracing::debug!(%run, %error, "nothing is kept of the slots that rested");
            }
        });
    }
}
