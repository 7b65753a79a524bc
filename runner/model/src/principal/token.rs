//! Defines the token that a principal sends, and the hash that the store keeps of it.
//!
//! A token is `slp_<key id>_<secret>`. The key id is public: it finds the row, and names the token in lists. The secret
//! has 256 random bits, so no search finds it from a plain SHA-256.

use std::fmt;

use platform_core::secret::Secret;
use serde::Serialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// First characters of every token, by which scanners of repositories recognise one.
const PREFIX: &str = "slp_";
const KEY_ID_DIGITS: usize = 16;
const SECRET_DIGITS: usize = 64;

/// Token of a principal.
#[derive(Debug)]
pub struct ApiToken {
    key_id: KeyId,
    text: Secret,
}

/// Public part of a token: 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct KeyId(Box<str>);

/// SHA-256 of a token's text.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl ApiToken {
    /// Returns the token that spells these bits, which must come from the system's random source.
    #[must_use]
    pub fn from_random(key_id: u64, [high, low]: [u128; 2]) -> Self {
        let key_id = KeyId(format!("{key_id:016x}").into());
        let text = Secret::new(format!("{PREFIX}{}_{high:032x}{low:032x}", key_id.0));
        Self { key_id, text }
    }

    /// Reads a token; `None` if `text` has not its form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (key_id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_secret = secret.len() == SECRET_DIGITS && is_hex(secret);
        Some(Self { key_id: KeyId::parse(key_id).filter(|_| is_secret)?, text: Secret::new(text.to_owned()) })
    }

    /// Returns the public part.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// Returns the token itself, to be shown once to its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// Returns the hash that is stored instead of the token.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.text.expose().as_bytes()).into())
    }
}

impl KeyId {
    /// Reads a key id; `None` if `text` is not 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == KEY_ID_DIGITS && is_hex(text)).then(|| Self(text.into()))
    }

    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TokenHash {
    /// Reads a stored hash; `None` if `text` is not 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != 2 * hash.len() || !is_hex(text) {
            return None;
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// Returns whether `token` has this hash, in a time that does not depend on the answer.
    #[must_use]
    pub fn is_of(&self, token: &ApiToken) -> bool {
        self.0.ct_eq(&token.hash().0).into()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_by_its_hash_alone() {
        let token = ApiToken::from_random(0x1f, [1, 2]);
        let text = token.expose().to_owned();
        assert_eq!(text, format!("slp_000000000000001f_{:032x}{:032x}", 1, 2));
        let read = ApiToken::parse(&text).unwrap();
        assert_eq!((read.key_id().as_str(), read.expose()), ("000000000000001f", text.as_str()));
        let stored = TokenHash::parse(&token.hash().to_string()).unwrap();
        assert!(stored.is_of(&read));
        for other in [ApiToken::from_random(0x1f, [1, 3]), ApiToken::from_random(0x1e, [1, 2])] {
            assert!(!stored.is_of(&other), "{}", other.expose());
        }
    }

    #[test]
    fn a_text_of_another_form_is_no_token() {
        let text = ApiToken::from_random(7, [8, 9]).expose().to_owned();
        let others = [
            String::new(),
            "slp_".to_owned(),
            text.replace("slp_", "slq_"),
            text.replace("0000000000000007", "7"),
            text.to_uppercase(),
            text.replace('9', "g"),
            text[..text.len() - 1].to_owned(),
            format!("{text}0"),
            format!(" {text}"),
            text.replace('9', "é"),
        ];
        for other in others {
            assert!(ApiToken::parse(&other).is_none(), "{other}");
        }
        assert!(TokenHash::parse(&"é".repeat(32)).is_none());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let token = ApiToken::from_random(7, [0xabcd, 0xef01]);
        let shown = format!("{token:?} {:?}", token.hash());
        assert!(!shown.contains("abcd") && !shown.contains(&token.hash().to_string()), "{shown}");
    }
}
