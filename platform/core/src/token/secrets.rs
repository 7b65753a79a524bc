//! The secrets that sign run tokens.
//!
//! Several hold at once, so that one can take another's place while tokens of both are about: the first signs,
//! all verify. Of a secret only the state that HMAC makes of it is kept; that is wiped when dropped.

use std::{collections::HashSet, fmt};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::TAG;
use crate::{id::SecretId, secret::Secret};

/// Fewer bytes than these can be guessed.
pub const SECRET_MIN: usize = 16;

/// A wrong token costs one HMAC per secret, so there are not many. Rotation needs two.
pub const SECRETS_MAX: usize = 8;

/// Why secrets are not used. None of it shows a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It could be guessed.
    #[error("secret {0} is shorter than {SECRET_MIN} bytes")]
    TooShort(SecretId),
    /// One reader would trim it, another would not.
    #[error("secret {0} begins or ends with a blank, or holds a control character such as a line feed")]
    Blanks(SecretId),
    /// Two have one name.
    #[error("there are two secrets {0}")]
    Twice(SecretId),
    /// Wrong tokens would be dear.
    #[error("there are {0} secrets, at most {SECRETS_MAX} can be in use")]
    TooMany(usize),
}

/// A secret that can sign and verify, and its name.
pub struct NamedSecret {
    id: SecretId,
    /// Ready to go on with data: 0.1 µs less per token than beginning with the secret.
    keyed: Hmac<Sha256>,
    /// Kept to be recognised where it must not be said.
    text: Secret,
}

impl NamedSecret {
    /// Makes `secret` ready; its bytes are used as they are.
    ///
    /// # Errors
    /// If it is short, or not the same text to everybody.
    pub fn new(id: SecretId, secret: &Secret) -> Result<Self, Unusable> {
        let text = secret.expose();
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(Unusable::Blanks(id));
        }
        if text.len() < SECRET_MIN {
            return Err(Unusable::TooShort(id));
        }
        let keyed = Hmac::new_from_slice(text.as_bytes()).expect("HMAC takes a key of any length");
        Ok(Self { id, keyed, text: Secret::new(text.to_owned()) })
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> &SecretId {
        &self.id
    }

    pub(super) fn sign(&self, data: &[u8]) -> [u8; TAG] {
        self.keyed.clone().chain_update(data).finalize().into_bytes().into()
    }

    /// In constant time.
    fn has_signed(&self, data: &[u8], tag: &[u8; TAG]) -> bool {
        self.keyed.clone().chain_update(data).verify_slice(tag).is_ok()
    }
}

impl fmt::Debug for NamedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedSecret({}, …)", self.id)
    }
}

/// The secrets in use, the one that mints first. With none, every token is invalid and none can be minted.
#[derive(Debug, Default)]
pub struct Secrets(Vec<NamedSecret>);

impl Secrets {
    /// Takes them in this order.
    ///
    /// # Errors
    /// If two have one name, or there are too many.
    pub fn new(secrets: Vec<NamedSecret>) -> Result<Self, Unusable> {
        if secrets.len() > SECRETS_MAX {
            return Err(Unusable::TooMany(secrets.len()));
        }
        let mut seen = HashSet::new();
        match secrets.iter().find(|secret| !seen.insert(&secret.id)) {
            Some(second) => Err(Unusable::Twice(second.id.clone())),
            None => Ok(Self(secrets)),
        }
    }

    /// The one that mints.
    #[must_use]
    pub fn minting(&self) -> Option<&NamedSecret> {
        self.0.first()
    }

    /// Their names, the one that mints first.
    pub fn ids(&self) -> impl Iterator<Item = &SecretId> {
        self.0.iter().map(NamedSecret::id)
    }

    /// Returns the secrets themselves, to be recognised in what others say.
    pub fn expose(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|secret| secret.text.expose())
    }

    pub(super) fn signer(&self, data: &[u8], tag: &[u8; TAG]) -> Option<&SecretId> {
        self.0.iter().find(|secret| secret.has_signed(data, tag)).map(NamedSecret::id)
    }
}
