//! Describes a gateway by its hello, which it sends when a connection is opened.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::boot_id::BootId;

/// Dialect of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Protocol 3, until 2026.4 or so: a turn is a `chat.send`, because nothing else can be aborted.
    Three,
    /// Protocol 4: a turn is an `agent`.
    Four,
}

/// Hello of a gateway, with the fields that this client uses.
#[derive(Debug, Clone)]
pub struct Hello {
    /// Dialect of the gateway.
    pub generation: Generation,
    /// Version that the gateway reports: `dev` on protocol 3.
    pub version: GatewayVersion,
    /// Start of the gateway that this connection reaches.
    pub boot: BootId,
    /// Uptime of the gateway, if it reports one.
    pub(crate) uptime: Option<Duration>,
    /// Name of this connection.
    pub connection: String,
    /// Largest frame that the gateway accepts.
    pub max_payload: usize,
    /// Bytes that the gateway may buffer for this client before it gives the connection up.
    pub max_buffered: usize,
    /// Time between two ticks.
    pub tick: Duration,
    /// Methods that can be called.
    pub methods: Arc<BTreeSet<String>>,
}

impl Hello {
    /// Returns whether `method` can be called.
    #[must_use]
    pub fn has(&self, method: &str) -> bool {
        self.methods.contains(method)
    }

    /// Returns whether each conversation can have another directory (measured with 2026.9.6).
    #[must_use]
    pub fn takes_directories(&self) -> bool {
        self.version.at_least(2026, 9)
    }

    /// Returns whether a trace id on a request reaches the model calls.
    #[must_use]
    pub fn takes_traces(&self) -> bool {
        self.version.at_least(2026, 8)
    }
}

/// Version of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayVersion {
    text: String,
    numbers: Option<(u32, u32)>,
}

impl GatewayVersion {
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

    /// Returns the version as the gateway reports it, without control characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the version is known to be this one or a later one.
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
            assert_eq!(GatewayVersion::parse(text).at_least(2026, 8), takes_traces, "{text}");
        }
    }
}
