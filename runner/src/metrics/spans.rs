//! What is counted of traces.

use platform_runtime::metrics::Cells;

/// Why spans were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// More waited than there is room for.
    NoRoom,
    /// The collector was away for too long.
    Away,
    /// The collector does not want them.
    Refused,
    /// What they are made of could not be read.
    Unreadable,
}

impl Dropped {
    pub(super) const ALL: [Self; 4] = [Self::NoRoom, Self::Away, Self::Refused, Self::Unreadable];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::Away => "away",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Spans that were told, and those that were not.
#[derive(Debug)]
pub(crate) struct Spans {
    told: Cells,
    dropped: Cells,
}

impl Default for Spans {
    fn default() -> Self {
        Self { told: Cells::new(1), dropped: Cells::new(Dropped::ALL.len()) }
    }
}

impl Spans {
    /// So many were taken.
    pub(crate) fn told(&self, count: u64) {
        self.told.add(0, count);
    }

    /// So many were dropped; returns whether they are the first ones for this reason.
    pub(crate) fn dropped(&self, why: Dropped, count: u64) -> bool {
        let before = self.dropped.get(why as usize);
        self.dropped.add(why as usize, count);
        before == 0
    }

    pub(super) fn read(&self) -> (u64, [(Dropped, u64); Dropped::ALL.len()]) {
        (self.told.get(0), Dropped::ALL.map(|why| (why, self.dropped.get(why as usize))))
    }
}
