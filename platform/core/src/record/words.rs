//! Gives the words that the journal writes for the values of a record.

use std::fmt;

use super::{CostSource, Identity, Kind, Outcome, Tap, Timeout, TokensSource};

impl Identity {
    /// All sources, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 5] = [Self::Socket, Self::Token, Self::Trace, Self::Slot, Self::None];

    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Token => "token",
            Self::Trace => "trace",
            Self::Slot => "slot",
            Self::None => "none",
        }
    }
}

impl Kind {
    /// All kinds, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 3] = [Self::Model, Self::Tool, Self::Correction];

    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Correction => "correction",
        }
    }
}

impl TokensSource {
    /// All sources, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Partial, Self::Estimated, Self::None];

    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Partial => "partial",
            Self::Estimated => "estimated",
            Self::None => "none",
        }
    }
}

impl CostSource {
    /// All sources, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Upstream, Self::Priced, Self::Unconfirmed, Self::None];

    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Priced => "priced",
            Self::Unconfirmed => "unconfirmed",
            Self::None => "none",
        }
    }
}

impl Timeout {
    /// All timeouts, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 7] =
        [Self::Body, Self::Connect, Self::Tls, Self::FirstByte, Self::BetweenBytes, Self::Client, Self::Call];

    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::BetweenBytes => "between_bytes",
            Self::Client => "client",
            Self::Call => "call",
        }
    }
}

impl Outcome {
    /// All outcomes, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 9] = [
        Self::Complete,
        Self::StreamError,
        Self::ClientGone,
        Self::UpstreamGone,
        Self::TimedOut,
        Self::Refused,
        Self::RunClosed,
        Self::Frozen,
        Self::Interrupted,
    ];

    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::StreamError => "stream_error",
            Self::ClientGone => "client_gone",
            Self::UpstreamGone => "upstream_gone",
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::RunClosed => "run_closed",
            Self::Frozen => "frozen",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Tap {
    /// Returns the word that the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Text => "text",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_what_the_journal_writes() {
        let check = |written: String, word: &str, declared_at: usize, at: usize| {
            assert_eq!(written, format!("\"{word}\""));
            assert_eq!(declared_at, at, "{word} stands where it is declared");
        };
        for (at, outcome) in Outcome::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&outcome).unwrap(), outcome.word(), outcome as usize, at);
        }
        for (at, timeout) in Timeout::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&timeout).unwrap(), timeout.word(), timeout as usize, at);
        }
        for (at, source) in TokensSource::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&source).unwrap(), source.word(), source as usize, at);
        }
        for (at, source) in CostSource::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&source).unwrap(), source.word(), source as usize, at);
        }
        for (at, identity) in Identity::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&identity).unwrap(), identity.word(), identity as usize, at);
        }
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&kind).unwrap(), kind.word(), kind as usize, at);
        }
    }
}
