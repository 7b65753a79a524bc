//! Separates failures that pass, which are tried again, from refusals, which are not.

use std::time::Duration;

/// Reason why an operation was not done.
pub trait Away {
    /// Time for which the other side may be unavailable.
    const PATIENCE: Duration;

    /// Returns whether there was no answer: the operation may have been done or not, and asking again is worth a try.
    fn is_away(&self) -> bool;
}
