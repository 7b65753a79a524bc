//! What a gateway says of itself when a connection is made.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::boot::Boot;

/// The dialect of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Protocol 3, until 2026.4 or so: a turn is a `chat.send`, because nothing else can be aborted.
    Three,
    /// Protocol 4: a turn is an `agent`.
    Four,
}

/// A gateway's hello, as far as anybody here needs it.
#[derive(Debug, Clone)]
pub struct Hello {
    /// The dialect.
    pub generation: Generation,
    /// The gateway's version as it says: `dev` on protocol 3.
    pub version: Version,
    /// Which start of the gateway it is.
    pub boot: Boot,
    /// For how long the gateway is up, if it says.
    pub(crate) uptime: Option<Duration>,
    /// Names this connection.
    pub connection: String,
    /// Largest frame that the gateway takes.
    pub max_payload: usize,
    /// What it may have in its buffer for us before it gives the connection up.
    pub max_buffered: usize,
    /// Time between two ticks.
    pub tick: Duration,
    /// Methods that can be called.
    pub methods: Arc<BTreeSet<String>>,
}

impl Hello {
    /// Whether `method` can be called.
    #[must_use]
    pub fn has(&self, method: &str) -> bool {
        self.methods.contains(method)
    }

    /// Whether a trace id on a request reaches the model calls.
    #[must_use]
    pub fn takes_traces(&self) -> bool {
        self.version.at_least(2026, 8)
    }
}

/// A gateway's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    text: String,
    numbers: Option<(u32, u32)>,
}

impl Version {
    /// Reads `year.month…`; any other text is a version of unknown age.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split('.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse().ok()
        });
        let numbers = match (parts.next().flatten(), parts.next().flatten()) {
            (Some(year), Some(month)) if year >= 2000 => Some((year, month)),
            _ => None,
        };
        let text = text.chars().filter(|c| !c.is_control()).take(64).collect();
        Self { text, numbers }
    }

    /// The version as the gateway says it, without control characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is known to be this one or a later one.
    #[must_use]
    pub fn at_least(&self, year: u32, month: u32) -> bool {
        self.numbers.is_some_and(|numbers| numbers >= (year, month))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_version_is_new_enough() {
        for (text, takes_traces) in [
            ("2026.9.6", true),
            ("2026.8.0", true),
            ("2026.10.1-beta", true),
            ("2027.1", true),
            ("2026.7.35", false),
            ("2026.2.6-3", false),
            ("dev", false),
            ("", false),
            ("9.9", false),
        ] {
            assert_eq!(Version::parse(text).at_least(2026, 8), takes_traces, "{text}");
        }
    }
}
