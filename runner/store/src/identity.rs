//! Identifies a host by a random id, which a file on its machine keeps.
//!
//! A host name does not identify a host: it differs inside a container, and two machines may share one. The store
//! records it with the id, for people.

use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use super::UnixMillis;

/// Number of digits of an id.
const DIGITS: usize = 32;

/// Id of a host: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostId(String);

/// Identity of a host, as a store records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIdentity {
    /// Random id, by which hosts are compared.
    pub id: HostId,
    /// Host name, for people.
    pub name: String,
}

impl HostId {
    /// Returns the id with these random bits.
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// Parses an id; returns `None` if `text` is not an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The host that a store serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Identity of the host, with its name at `seen`.
    pub host: HostIdentity,
    /// Time since which the store serves the host.
    pub since: UnixMillis,
    /// Time at which a command of that host last used the store.
    pub seen: UnixMillis,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = Duration::from_millis(u64::try_from(self.seen.0).unwrap_or_default());
        let seen = humantime::format_rfc3339_seconds(UNIX_EPOCH + seen);
        write!(f, "host {} (`{}`, last seen {seen})", self.host.id, self.host.name)
    }
}
