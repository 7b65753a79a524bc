//! Counts the passes of the reaper, and their results.

use platform_runtime::{metrics::Cells, sync::Mutex};
use runner_store::ResourceKind;

/// Counters of the reaper's passes, and the results of the last one.
#[derive(Debug)]
pub(super) struct ReaperCounters {
    passes: Cells,
    /// Removed resources by kind.
    removed: Cells,
    last: Mutex<GcCounts>,
}

/// Counts of one pass of the reaper, each by kind of resource.
#[derive(Debug, Clone, Default)]
pub struct GcCounts {
    /// Sources that could not be read.
    pub blind: Vec<&'static str>,
    /// Dead resources that were removed.
    pub removed: [u64; ResourceKind::ALL.len()],
    /// Dead resources that could not be removed.
    pub failed: [u64; ResourceKind::ALL.len()],
    /// Resources with an unknown owner.
    pub unknown: [u64; ResourceKind::ALL.len()],
}

/// Sources that a pass reads.
pub(super) const PARTS: [&str; 4] = ["docker", "proxy", "store", "workspaces"];

impl Default for ReaperCounters {
    fn default() -> Self {
        Self { passes: Cells::new(1), removed: Cells::new(ResourceKind::ALL.len()), last: Mutex::default() }
    }
}

impl ReaperCounters {
    pub(super) fn count(&self, counts: GcCounts) {
        self.passes.add(0, 1);
        for (kind, removed) in counts.removed.iter().enumerate() {
            self.removed.add(kind, *removed);
        }
        *self.last.lock() = counts;
    }

    pub(super) fn passes(&self) -> u64 {
        self.passes.get(0)
    }

    pub(super) fn removed(&self, kind: ResourceKind) -> u64 {
        self.removed.get(kind as usize)
    }

    pub(super) fn last(&self) -> GcCounts {
        self.last.lock().clone()
    }
}
