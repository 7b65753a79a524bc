//! Counts exported and dropped spans.

use platform_runtime::metrics::Cells;

/// Reason why spans were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The queue of the exporter was full.
    QueueFull,
    /// The collector was unavailable for too long.
    Unavailable,
    /// The collector refused the spans.
    Refused,
    /// The run's record could not be read.
    Unreadable,
}

impl Dropped {
    pub(super) const ALL: [Self; 4] = [Self::QueueFull, Self::Unavailable, Self::Refused, Self::Unreadable];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Counters of exported and dropped spans.
#[derive(Debug)]
pub(crate) struct Spans {
    exported: Cells,
    dropped: Cells,
}

impl Default for Spans {
    fn default() -> Self {
        Self { exported: Cells::new(1), dropped: Cells::new(Dropped::ALL.len()) }
    }
}

impl Spans {
    /// Counts spans that the collector accepted.
    pub(crate) fn exported(&self, count: u64) {
        self.exported.add(0, count);
    }

    /// Counts dropped spans. Returns true if they are the first ones for this reason.
    pub(crate) fn dropped(&self, why: Dropped, count: u64) -> bool {
        let count_before = self.dropped.get(why as usize);
        self.dropped.add(why as usize, count);
        count_before == 0
    }

    pub(super) fn read(&self) -> (u64, [(Dropped, u64); Dropped::ALL.len()]) {
        (self.exported.get(0), Dropped::ALL.map(|why| (why, self.dropped.get(why as usize))))
    }
}
