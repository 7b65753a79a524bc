//! Counts the passes of the reaper and their results.

use std::sync::{Mutex, PoisonError};

use platform_runtime::metrics::Cells;

use crate::{
    reaper::{Entry, Outcome, Report},
    store::Kind,
};

/// Passes of the reaper, and their results.
#[derive(Debug)]
pub(super) struct Reaped {
    passes: Cells,
    /// Removed resources by kind.
    removed: Cells,
    last: Mutex<Last>,
}

/// Problems that the last pass found.
#[derive(Debug, Clone, Default)]
pub(super) struct Last {
    /// Parts that could not be looked at.
    pub(super) blind: Vec<&'static str>,
    /// Dead resources that could not be removed, by kind.
    pub(super) failed: [u64; Kind::ALL.len()],
    /// Resources without proof of an owner, by kind.
    pub(super) unknown: [u64; Kind::ALL.len()],
}

/// Parts that a pass looks at.
pub(super) const PARTS: [&str; 4] = ["docker", "proxy", "store", "workspaces"];

impl Default for Reaped {
    fn default() -> Self {
        Self { passes: Cells::new(1), removed: Cells::new(Kind::ALL.len()), last: Mutex::default() }
    }
}

impl Reaped {
    pub(super) fn count(&self, report: &Report) {
        self.passes.add(0, 1);
        let mut last =
            Last { blind: report.blind.iter().map(|blind| blind.part).collect(), ..Last::default() };
        for Entry { kind, outcome, .. } in &report.entries {
            match outcome {
                Outcome::Removed => self.removed.add(*kind as usize, 1),
                Outcome::Failed { .. } => last.failed[*kind as usize] += 1,
                Outcome::Unknown => last.unknown[*kind as usize] += 1,
                Outcome::Kept | Outcome::WouldRemove | Outcome::WasGone => {}
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    pub(super) fn passes(&self) -> u64 {
        self.passes.get(0)
    }

    pub(super) fn removed(&self, kind: Kind) -> u64 {
        self.removed.get(kind as usize)
    }

    pub(super) fn last(&self) -> Last {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
