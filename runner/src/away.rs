//! What is away for a moment is asked again; what says no is not.

use std::time::Duration;

/// Why something was not done.
pub(crate) trait Away {
    /// How long whoever does it may be away.
    const PATIENCE: Duration;

    /// Whether nobody answered: whether it was done is not known, and asking again is worth a try.
    fn is_away(&self) -> bool;
}
