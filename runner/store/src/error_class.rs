//! Defines classes of failures, for the metrics.

/// Class of a failure, by the party that has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The store did not answer, or was too busy. This passes by itself, or the operator has to act.
    Unavailable,
    /// Another worker has taken the run over: no action is needed.
    Fenced,
    /// The request cannot be met: for example, the run does not exist, or its state does not allow the request.
    Refused,
    /// The store, its configuration or its content is faulty: the operator has to act.
    Broken,
}

impl ErrorClass {
    /// All classes, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Unavailable, Self::Fenced, Self::Refused, Self::Broken];

    /// Returns the name of the class, as metrics show it.
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
