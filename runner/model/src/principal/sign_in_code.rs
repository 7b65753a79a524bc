//! Defines the code of a link with which a browser signs in once, and the hash that the store keeps of it.

use std::fmt;

use super::browser_session::{BrowserSessionHash, BrowserSessionId};

/// Code of a link: 64 hexadecimal digits from 256 random bits, as of a browser session.
#[derive(Debug)]
pub struct SignInCode(BrowserSessionId);

/// SHA-256 of a code.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInCodeHash(BrowserSessionHash);

impl SignInCode {
    /// Returns the code that spells these bits, which must come from the system's random source.
    #[must_use]
    pub fn from_random(bits: [u128; 2]) -> Self {
        Self(BrowserSessionId::from_random(bits))
    }

    /// Reads a code; `None` if `text` has not its form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        BrowserSessionId::parse(text).map(Self)
    }

    /// Returns the code itself, for the link.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the hash that is stored instead of the code.
    #[must_use]
    pub fn hash(&self) -> SignInCodeHash {
        SignInCodeHash(self.0.hash())
    }
}

impl SignInCodeHash {
    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Debug for SignInCodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignInCodeHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_was_written() {
        let code = SignInCode::from_random([0xab, 2]);
        assert_eq!(SignInCode::parse(code.expose()).unwrap().hash(), code.hash());
        assert_ne!(SignInCode::from_random([0xab, 3]).hash(), code.hash());
        for other in ["", "0", &code.expose().to_uppercase(), &format!("{}0", code.expose())] {
            assert!(SignInCode::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn debug_output_shows_no_code() {
        let code = SignInCode::from_random([0xabcd, 0xef01]);
        let shown = format!("{code:?} {:?}", code.hash());
        assert!(!shown.contains("abcd") && !shown.contains(code.hash().as_str()), "{shown}");
    }
}
