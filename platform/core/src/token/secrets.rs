//! Keeps the secrets that sign run tokens.
//!
//! Several are valid at once, so that a new one can replace an old one while tokens of both are in use. The first
//! signs, all verify. Only the HMAC state made from a secret and its text are kept; both are wiped when dropped.

use std::{collections::HashSet, fmt};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::TAG_LENGTH;
use crate::{id::SecretId, secret::Secret};

/// Least bytes of a secret; fewer can be guessed.
pub const MIN_SECRET_LENGTH: usize = 16;

/// Most secrets in use: a wrong token costs one HMAC per secret, and rotation needs only two.
pub const MAX_SECRETS: usize = 8;

/// Reason why secrets cannot be used. No variant shows a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The secret is short enough to be guessed.
    #[error("secret {0} is shorter than {MIN_SECRET_LENGTH} bytes")]
    TooShort(SecretId),
    /// The secret begins or ends with a blank, which one reader would trim and another would not, or has a control
    /// character.
    #[error("secret {0} begins or ends with a blank, or holds a control character such as a line feed")]
    Blanks(SecretId),
    /// Two secrets have the same name.
    #[error("there are two secrets {0}")]
    Twice(SecretId),
    /// The secrets are so many that checking a wrong token would be expensive.
    #[error("there are {0} secrets, at most {MAX_SECRETS} can be in use")]
    TooMany(usize),
}

/// A secret that can sign and verify, and its name.
pub struct NamedSecret {
    id: SecretId,
    /// HMAC state that already holds the secret: saves 0.1 µs per token.
    keyed: Hmac<Sha256>,
    /// Text of the secret, kept so that it can be recognised where it must not appear.
    text: Secret,
}

impl NamedSecret {
    /// Prepares `secret` for use; its bytes are used as they are.
    ///
    /// # Errors
    /// If the secret is short, or if readers could take it for different texts.
    pub fn new(id: SecretId, secret: &Secret) -> Result<Self, Unusable> {
        let text = secret.expose();
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(Unusable::Blanks(id));
        }
        if text.len() < MIN_SECRET_LENGTH {
            return Err(Unusable::TooShort(id));
        }
        let keyed = Hmac::new_from_slice(text.as_bytes()).expect("HMAC takes a key of any length");
        Ok(Self { id, keyed, text: Secret::new(text.to_owned()) })
    }

    /// Returns the name of the secret.
    #[must_use]
    pub const fn id(&self) -> &SecretId {
        &self.id
    }

    pub(super) fn sign(&self, data: &[u8]) -> [u8; TAG_LENGTH] {
        self.keyed.clone().chain_update(data).finalize().into_bytes().into()
    }

    /// Returns whether the secret signed `data` with `tag`, in constant time.
    fn has_signed(&self, data: &[u8], tag: &[u8; TAG_LENGTH]) -> bool {
        self.keyed.clone().chain_update(data).verify_slice(tag).is_ok()
    }
}

impl fmt::Debug for NamedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedSecret({}, …)", self.id)
    }
}

/// Secrets in use; the first one mints. Without any, every token is invalid and none can be minted.
#[derive(Debug, Default)]
pub struct Secrets(Vec<NamedSecret>);

impl Secrets {
    /// Creates the set of these secrets, in this order; the first one mints.
    ///
    /// # Errors
    /// If two have the same name, or there are too many.
    pub fn new(secrets: Vec<NamedSecret>) -> Result<Self, Unusable> {
        if secrets.len() > MAX_SECRETS {
            return Err(Unusable::TooMany(secrets.len()));
        }
        let mut seen = HashSet::new();
        match secrets.iter().find(|secret| !seen.insert(&secret.id)) {
            Some(second) => Err(Unusable::Twice(second.id.clone())),
            None => Ok(Self(secrets)),
        }
    }

    /// Returns the secret that mints.
    #[must_use]
    pub fn minting(&self) -> Option<&NamedSecret> {
        self.0.first()
    }

    /// Returns the names of the secrets; the first one mints.
    pub fn ids(&self) -> impl Iterator<Item = &SecretId> {
        self.0.iter().map(NamedSecret::id)
    }

    /// Returns the secrets themselves, so that they can be recognised in other texts.
    pub fn expose(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|secret| secret.text.expose())
    }

    pub(super) fn signer(&self, data: &[u8], tag: &[u8; TAG_LENGTH]) -> Option<&SecretId> {
        self.0.iter().find(|secret| secret.has_signed(data, tag)).map(NamedSecret::id)
    }
}
