//! Run tokens: how a client that has no socket of its own says which run it is.
//!
//! The form is specified: `{run}|{attempt}|{expiry}.{signature}`, where the signature is HMAC-SHA256 over
//! everything before the last dot, in base64url without padding. The token names no secret, so each is tried.
//! A token has one spelling only: a number with a sign or a leading zero, padding, or bits that base64 would
//! ignore make it malformed.
//!
//! What this module does not know: which runs there are, and which of their tokens were revoked.

mod secrets;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

pub use self::secrets::{NamedSecret, SECRET_MIN, SECRETS_MAX, Secrets, Unusable};
use crate::{
    id::{RunId, SecretId},
    secret::Secret,
};

/// Bytes of an HMAC-SHA256.
const TAG: usize = 32;
/// The same in base64url without padding.
const SIGNATURE: usize = 43;
/// No token is longer: run id, attempt, expiry and signature at their longest, and three separators.
const LENGTH_MAX: usize = 63 + 10 + 20 + SIGNATURE + 3;

/// A moment: whole seconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixSeconds(pub u64);

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunToken {
    /// The run.
    pub run: RunId,
    /// Its attempt.
    pub attempt: u32,
    /// The last second in which it holds.
    pub expiry: UnixSeconds,
}

impl RunToken {
    /// Signs it. The result is a credential until it expires or its run is closed.
    #[must_use]
    pub fn mint(&self, secret: &NamedSecret) -> Secret {
        let mut text = String::with_capacity(LENGTH_MAX);
        text += &format!("{}|{}|{}", self.run, self.attempt, self.expiry.0);
        let tag = secret.sign(text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut text);
        Secret::new(text)
    }
}

/// A text in the form of a token. What it claims is not proven.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignedToken<'t> {
    claims: Claims<'t>,
    /// What was signed.
    data: &'t str,
    tag: [u8; TAG],
}

/// What a token says, in the text it was read from. Comes from [`SignedToken::parse`] alone, so the run id is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims<'t> {
    run: &'t str,
    attempt: u32,
    expiry: UnixSeconds,
}

/// What a token proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified<'t, 's> {
    claims: Claims<'t>,
    secret: &'s SecretId,
}

/// Which part of a text keeps it from being a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Longer than any token.
    #[error("it is longer than a run token can be")]
    TooLong,
    /// Not four parts.
    #[error("it is not `run|attempt|expiry.signature`")]
    Parts,
    /// The first part.
    #[error("its run id is none")]
    Run,
    /// The second.
    #[error("its attempt is not a plain number")]
    Attempt,
    /// The third.
    #[error("its expiry is not a plain number of seconds since 1970")]
    Expiry,
    /// The last.
    #[error("its signature is not 32 bytes in base64url without padding")]
    Signature,
}

/// Why a token does not identify its bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is none.
    #[error("this is not a run token")]
    Malformed(#[from] Malformed),
    /// No secret that is in use has signed it.
    #[error("the run token was not signed with a secret in use here")]
    Invalid,
    /// It is genuine, and its time has passed.
    #[error("the run token's time has passed")]
    Expired,
}

impl Failure {
    /// The code as clients and the journal see it.
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
        if text.len() > LENGTH_MAX {
            return Err(Malformed::TooLong);
        }
        let (data, signature) = text.rsplit_once('.').ok_or(Malformed::Parts)?;
        let mut parts = data.split('|');
        let (Some(run), Some(attempt), Some(expiry), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Malformed::Parts);
        };
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

    /// What it claims, proven or not.
    #[must_use]
    pub const fn claims(&self) -> Claims<'t> {
        self.claims
    }

    /// The secret that signed it, whatever the time.
    #[must_use]
    pub fn signer<'s>(&self, secrets: &'s Secrets) -> Option<&'s SecretId> {
        secrets.signer(self.data.as_bytes(), &self.tag)
    }

    /// What it proves `now`. It holds for the whole seconds of `skew` beyond its expiry, for clocks that differ.
    ///
    /// The signature is checked before the expiry: only who holds a genuine token can learn that its time has
    /// passed. To everybody else every token is equally wrong.
    ///
    /// # Errors
    /// [`Failure::Invalid`] or [`Failure::Expired`].
    pub fn verify<'s>(
        &self,
        secrets: &'s Secrets,
        now: UnixSeconds,
        skew: Duration,
    ) -> Result<Verified<'t, 's>, Failure> {
        let secret = self.signer(secrets).ok_or(Failure::Invalid)?;
        if now.0 > self.claims.expiry.0.saturating_add(skew.as_secs()) {
            return Err(Failure::Expired);
        }
        Ok(Verified { claims: self.claims, secret })
    }
}

/// Without the signature, which makes it a credential.
impl fmt::Debug for SignedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedToken").field("claims", &self.claims).finish_non_exhaustive()
    }
}

impl<'t> Claims<'t> {
    /// The run: a text that [`RunId::accepts`], and that finds a run in a map of them.
    #[must_use]
    pub const fn run(&self) -> &'t str {
        self.run
    }

    /// Its attempt.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The last second in which the token holds.
    #[must_use]
    pub const fn expiry(&self) -> UnixSeconds {
        self.expiry
    }
}

impl<'t, 's> Verified<'t, 's> {
    /// What is proven.
    #[must_use]
    pub const fn claims(&self) -> Claims<'t> {
        self.claims
    }

    /// By which secret, for metrics and for knowing when an old one is used no more.
    #[must_use]
    pub const fn secret(&self) -> &'s SecretId {
        self.secret
    }
}

/// Whether a bearer key is meant to be a run token: two bars and a dot after them. Keys of model APIs have no bars.
#[must_use]
pub fn looks_like_token(key: &str) -> bool {
    key.rsplit_once('.').is_some_and(|(data, _)| data.bytes().filter(|byte| *byte == b'|').count() >= 2)
}

/// A number as the specified minting function writes it.
fn plain_number<N: FromStr>(text: &str) -> Option<N> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok())?
}

fn decode(signature: &str) -> Option<[u8; TAG]> {
    let mut tag = [0; TAG];
    let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut tag).ok()?;
    (length == TAG).then_some(tag)
}
