//! Classes of failures, for the metrics.

/// Kinds of failures, distinguished by who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The store did not answer, or was too busy. That passes by itself, or the operator has to look.
    Unavailable,
    /// Another worker has the run by now: no action is needed.
    Fenced,
    /// The request cannot be met: no such run, another order of this id, out of order.
    Refused,
    /// The store is not what it should be.
    Broken,
}

impl ErrorClass {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Unavailable, Self::Fenced, Self::Refused, Self::Broken];

    /// Returns the class in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unavailable => "away",
            Self::Fenced => "fenced",
            Self::Refused => "refused",
            Self::Broken => "broken",
        }
    }
}
