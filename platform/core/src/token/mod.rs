//! Reads, mints and verifies run tokens, by which a client without its own socket proves its run.
//!
//! The form is specified: `{run}|{attempt}|{expiry}.{signature}`. The signature is HMAC-SHA256 over everything before
//! the last dot, in base64url without padding. The token names no secret, so each secret is tried. A token has one
//! spelling only. A number with a sign or a leading zero, padding, or bits that base64 would ignore make it malformed.
//!
//! This module knows neither the runs that exist nor the tokens that were revoked.

mod secrets;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

pub use self::secrets::{MAX_SECRETS, MIN_SECRET_LENGTH, NamedSecret, Secrets, Unusable};
use crate::{
    id::{RunId, SecretId},
    secret::Secret,
};

/// Length of an HMAC-SHA256 in bytes.
const TAG_LENGTH: usize = 32;
/// Length of a signature in base64url without padding.
const SIGNATURE_LENGTH: usize = 43;
/// Length of the longest token: run id, attempt, expiry and signature at their longest, and three separators.
const MAX_LENGTH: usize = 63 + 10 + 20 + SIGNATURE_LENGTH + 3;

/// Moment in whole seconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixSeconds(pub u64);

/// Claims of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunToken {
    /// Run the token is for.
    pub run_id: RunId,
    /// Attempt of the run.
    pub attempt: u32,
    /// Last second in which the token is valid.
    pub expiry: UnixSeconds,
}

impl RunToken {
    /// Signs the token. The result is a credential until it expires or its run is closed.
    #[must_use]
    pub fn mint(&self, secret: &NamedSecret) -> Secret {
        let mut text = String::with_capacity(MAX_LENGTH);
        text += &format!("{}|{}|{}", self.run_id, self.attempt, self.expiry.0);
        let tag = secret.sign(text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut text);
        Secret::new(text)
    }
}

/// Text in the form of a token. Its claims are not proven.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignedToken<'t> {
    claims: Claims<'t>,
    /// Text that was signed.
    data: &'t str,
    tag: [u8; TAG_LENGTH],
}

/// Claims of a token, in the text they were read from. Only [`SignedToken::parse`] creates them, so the run id is
/// valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims<'t> {
    run: &'t str,
    attempt: u32,
    expiry: UnixSeconds,
}

/// Claims that a signature proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified<'t, 's> {
    claims: Claims<'t>,
    secret: &'s SecretId,
}

/// Part of a text that breaks the form of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The text is longer than any token.
    #[error("it is longer than a run token can be")]
    TooLong,
    /// The text does not have four parts.
    #[error("it is not `run|attempt|expiry.signature`")]
    Parts,
    /// The run id, the first part, is invalid.
    #[error("its run id is invalid")]
    Run,
    /// The attempt, the second part, is invalid.
    #[error("its attempt is not a plain number")]
    Attempt,
    /// The expiry, the third part, is invalid.
    #[error("its expiry is not a plain number of seconds since 1970")]
    Expiry,
    /// The signature, the last part, is invalid.
    #[error("its signature is not 32 bytes in base64url without padding")]
    Signature,
}

/// Reason why a token does not identify its bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is not a token.
    #[error("this is not a run token")]
    Malformed(#[from] Malformed),
    /// No secret in use has signed the token.
    #[error("the run token was not signed with a secret in use here")]
    Invalid,
    /// The token is genuine but has expired.
    #[error("the run token's time has passed")]
    Expired,
}

impl TokenError {
    /// Returns the code as clients and the journal see it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Malformed(_) => "token_malformed",
            Self::Invalid => "token_invalid",
            Self::Expired => "token_expired",
        }
    }
}

impl<'t> SignedToken<'t> {
    /// Reads `text` without allocating and without a secret.
    ///
    /// # Errors
    /// [`Malformed`], the first part that is wrong.
    pub fn parse(text: &'t str) -> Result<Self, Malformed> {
        if text.len() > MAX_LENGTH {
            return Err(Malformed::TooLong);
        }
        let (data, signature) = text.rsplit_once('.').ok_or(Malformed::Parts)?;
        let mut parts = data.split('|');
        let run = parts.next().ok_or(Malformed::Parts)?;
        let attempt = parts.next().ok_or(Malformed::Parts)?;
        let expiry = parts.next().ok_or(Malformed::Parts)?;
        if parts.next().is_some() {
            return Err(Malformed::Parts);
        }
        if !RunId::accepts(run) {
            return Err(Malformed::Run);
        }
        let claims = Claims {
            run,
            attempt: plain_number(attempt).ok_or(Malformed::Attempt)?,
            expiry: plain_number(expiry).map(UnixSeconds).ok_or(Malformed::Expiry)?,
        };
        Ok(Self { claims, data, tag: decode(signature).ok_or(Malformed::Signature)? })
    }

    /// Returns the claims, proven or not.
    #[must_use]
    pub const fn claims(&self) -> Claims<'t> {
        self.claims
    }

    /// Returns the secret that signed the token, without regard to the time.
    #[must_use]
    pub fn signer<'s>(&self, secrets: &'s Secrets) -> Option<&'s SecretId> {
        secrets.signer(self.data.as_bytes(), &self.tag)
    }

    /// Checks the token and returns what it proves `now`. A token stays valid for `skew` whole seconds beyond its
    /// expiry, because clocks differ.
    ///
    /// The signature is checked before the expiry, so only the holder of a genuine token can learn that it has expired.
    /// To any other client every token is equally wrong.
    ///
    /// # Errors
    /// [`TokenError::Invalid`] or [`TokenError::Expired`].
    pub fn verify<'s>(
        &self,
        secrets: &'s Secrets,
        now: UnixSeconds,
        skew: Duration,
    ) -> Result<Verified<'t, 's>, TokenError> {
        let secret = self.signer(secrets).ok_or(TokenError::Invalid)?;
        if now.0 > self.claims.expiry.0.saturating_add(skew.as_secs()) {
            return Err(TokenError::Expired);
        }
        Ok(Verified { claims: self.claims, secret })
    }
}

/// Leaves out the signature, which makes the text a credential.
impl fmt::Debug for SignedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedToken").field("claims", &self.claims).finish_non_exhaustive()
    }
}

impl<'t> Claims<'t> {
    /// Returns the run id, a text that [`RunId::accepts`]; it can query a map of runs.
    #[must_use]
    pub const fn run(&self) -> &'t str {
        self.run
    }

    /// Returns the attempt of the run.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the last second in which the token is valid.
    #[must_use]
    pub const fn expiry(&self) -> UnixSeconds {
        self.expiry
    }
}

impl<'t, 's> Verified<'t, 's> {
    /// Returns the proven claims.
    #[must_use]
    pub const fn claims(&self) -> Claims<'t> {
        self.claims
    }

    /// Returns the secret that signed the token, for metrics and to see when an old secret goes out of use.
    #[must_use]
    pub const fn secret(&self) -> &'s SecretId {
        self.secret
    }
}

/// Returns whether a bearer key is meant to be a run token: two bars with a dot after them. Keys of model APIs have no
/// bars.
#[must_use]
pub fn looks_like_token(key: &str) -> bool {
    key.rsplit_once('.').is_some_and(|(data, _)| data.bytes().filter(|byte| *byte == b'|').count() >= 2)
}

/// Parses a number in the only spelling that the specified minting function writes.
fn plain_number<N: FromStr>(text: &str) -> Option<N> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok())?
}

fn decode(signature: &str) -> Option<[u8; TAG_LENGTH]> {
    let mut tag = [0; TAG_LENGTH];
    let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut tag).ok()?;
    (length == TAG_LENGTH).then_some(tag)
}
