//! What is away for a moment is asked again; what says no is not.

/// Why something was not done.
pub(crate) trait Away {
    /// Whether nobody answered: whether it was done is not known, and asking again is worth a try.
    fn is_away(&self) -> bool;
}
