//! What is counted of the store: how long it takes to answer, how often it was asked again, what failed.

use std::time::Duration;

use platform_runtime::metrics::{Bound, Cells, Distribution, Histograms};

use super::Error;

/// From a row that is in memory to a lock that is waited for to the last.
const BOUNDS: [Bound; 13] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// Kinds of failures, told apart by who has to do something about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It did not answer, or was too busy: that passes by itself, or whoever runs it has to look.
    Away,
    /// The run is another worker's by now: nobody has to do anything.
    Fenced,
    /// What was asked cannot be: no such run, another order of this id, out of order.
    Refused,
    /// It is not what it should be.
    Broken,
}

impl Class {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Away, Self::Fenced, Self::Refused, Self::Broken];

    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Fenced => "fenced",
            Self::Refused => "refused",
            Self::Broken => "broken",
        }
    }
}

/// The counters.
#[derive(Debug)]
pub(super) struct Meter {
    durations: Histograms,
    retries: Cells,
    /// By class.
    errors: Cells,
}

/// What was counted up to now.
#[derive(Debug)]
pub struct Metered {
    /// From a question to its answer, tries again included.
    pub durations: Distribution,
    /// Tries after the first one.
    pub retries: u64,
    /// Questions that got no answer in the end, by class.
    pub errors: [(Class, u64); Class::ALL.len()],
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            durations: Histograms::new(1, &BOUNDS),
            retries: Cells::new(1),
            errors: Cells::new(Class::ALL.len()),
        }
    }
}

impl Meter {
    /// It was asked something, which took so long, and failed if that is so.
    pub(super) fn asked(&self, took: Duration, failed: Option<&Error>) {
        self.durations.observe(0, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if let Some(error) = failed {
            self.errors.add(error.class() as usize, 1);
        }
    }

    /// It is asked again.
    pub(super) fn again(&self) {
        self.retries.add(0, 1);
    }

    pub(super) fn read(&self) -> Metered {
        Metered {
            durations: self.durations.read(0),
            retries: self.retries.get(0),
            errors: Class::ALL.map(|class| (class, self.errors.get(class as usize))),
        }
    }
}
