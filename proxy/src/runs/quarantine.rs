//! Quarantines slots of closed runs that were not given back. A gateway may not know yet that its turn has ended, and
//! its calls there must not count for another run. A quarantine goes on over a restart of the proxy.

use std::{collections::BTreeSet, fs, io, sync::Arc, time::Duration};

use platform_core::{control::Correlation, id::RunId};
use platform_runtime::{report, task};
use serde::{Deserialize, Serialize};

use super::Runs;
use crate::clock;

/// Duration of a quarantine; longer than a bridge keeps trying to notify its gateway of the end of a turn.
const QUARANTINE_RETENTION: Duration = Duration::from_secs(150);

/// Quarantined slots of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuarantinedSlots {
    #[serde(rename = "run")]
    pub(super) run_id: RunId,
    pub(super) slots: BTreeSet<Correlation>,
    /// End of the quarantine, in milliseconds since 1970.
    pub(super) until_ms: u64,
}

impl Runs {
    /// Ends the correlations of a closed run.
    pub(super) fn withdraw(&self, run_id: &RunId) {
        self.registry.withdraw_all(run_id);
        self.quarantine(run_id, self.registry.quarantined(run_id));
    }

    /// Quarantines `slots`, which were the run's.
    pub(super) fn quarantine(&self, run_id: &RunId, slots: BTreeSet<Correlation>) {
        if slots.is_empty() {
            return;
        }
        let until = clock::now() + QUARANTINE_RETENTION;
        let until_ms = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        let quarantined = QuarantinedSlots { run_id: run_id.clone(), slots, until_ms };
        if let Err(error) = self.state_dir.write_quarantined(&quarantined) {
            let error = report::chain(&error);
            tracing::error!(run = %run_id, error, "quarantine not stored: the next proxy will forget it");
        }
        self.release_later(quarantined);
    }

    /// Resumes the quarantines that an earlier proxy began.
    pub(super) fn resume_quarantines(&self) -> io::Result<()> {
        self.state_dir.all_quarantined()?.into_iter().for_each(|slots| self.release_later(slots));
        Ok(())
    }

    fn release_later(&self, quarantined: QuarantinedSlots) {
        let QuarantinedSlots { run_id, slots, until_ms } = quarantined;
        // A clock that was set back must not prolong the quarantine.
        let remaining =
            Duration::from_millis(until_ms).saturating_sub(clock::now()).min(QUARANTINE_RETENTION);
        self.registry.quarantine(&run_id, slots);
        let registry = Arc::clone(&self.registry);
        let file = self.state_dir.quarantine_path(&run_id);
        task::spawn("quarantine of slots", async move {
            tokio::time::sleep(remaining).await;
            registry.release_quarantine(&run_id);
            if let Err(error) = fs::remove_file(file) {
                let error = report::chain(&error);
                tracing::debug!(run = %run_id, error, "quarantine ended; its file was not there");
            }
        });
    }
}
