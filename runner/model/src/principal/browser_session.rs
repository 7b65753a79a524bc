//! Defines the id of a browser session, and the hash that the store keeps of it.
//!
//! A person signs in with a token, and the browser gets the id as a cookie. It has 256 random bits, so no search finds
//! it from a plain SHA-256.

use std::fmt;

use platform_core::secret::Secret;
use sha2::{Digest, Sha256};

use super::token::is_hex;

const DIGITS: usize = 64;

/// Id of a browser session: 64 hexadecimal digits that only the browser has.
#[derive(Debug)]
pub struct BrowserSessionId(Secret);

/// SHA-256 of a browser session's id, which names the session everywhere but in its cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct BrowserSessionHash(Box<str>);

impl BrowserSessionId {
    /// Returns the id that spells these bits, which must come from the system's random source.
    #[must_use]
    pub fn from_random([high, low]: [u128; 2]) -> Self {
        Self(Secret::new(format!("{high:032x}{low:032x}")))
    }

    /// Reads an id; `None` if `text` has not its form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == DIGITS && is_hex(text)).then(|| Self(Secret::new(text.to_owned())))
    }

    /// Returns the id itself, for the cookie.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the hash that is stored instead of the id.
    #[must_use]
    pub fn hash(&self) -> BrowserSessionHash {
        let hash = Sha256::digest(self.expose().as_bytes());
        BrowserSessionHash(hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

impl BrowserSessionHash {
    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BrowserSessionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrowserSessionHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let id = BrowserSessionId::from_random([0xab, 2]);
        assert_eq!(id.expose(), format!("{:032x}{:032x}", 0xab, 2));
        let read = BrowserSessionId::parse(id.expose()).unwrap();
        assert_eq!(read.hash(), id.hash());
        assert_ne!(BrowserSessionId::from_random([0xab, 3]).hash(), id.hash());
        for other in [&id.expose()[1..], "", &id.expose().to_uppercase(), &format!("{}0", id.expose())] {
            assert!(BrowserSessionId::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn debug_output_shows_no_session() {
        let id = BrowserSessionId::from_random([0xabcd, 0xef01]);
        let shown = format!("{id:?} {:?}", id.hash());
        assert!(!shown.contains("abcd") && !shown.contains(id.hash().as_str()), "{shown}");
    }
}
