//! Defines the results of refreshing a connection's credential.

/// Result of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshResult {
    /// The provider gave a credential.
    Refreshed,
    /// The provider takes the refresh token no longer.
    NeedsAuthorisation,
    /// The provider refused for another reason.
    Refused,
    /// The provider did not answer, or not as it should.
    Unavailable,
}

impl RefreshResult {
    /// All results, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Refreshed, Self::NeedsAuthorisation, Self::Refused, Self::Unavailable];

    /// Returns the name of the result, as metrics show it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refreshed => "refreshed",
            Self::NeedsAuthorisation => "needs_authorisation",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}
