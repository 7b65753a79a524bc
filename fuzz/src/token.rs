//! Checks run tokens. An input is a text that claims to be one; its bytes also choose a token that is minted and then
//! damaged in one place.
//!
//! A text is valid only if it is, byte for byte, what one of the secrets mints for its claims. A minted token is valid
//! until its last second and no longer. A token with one byte changed is never valid.

use std::{sync::LazyLock, time::Duration};

use platform_core::{
    id::{RunId, SecretId},
    secret::Secret,
    token::{NamedSecret, RunToken, Secrets, SignedToken, TokenError, UnixSeconds, looks_like_token},
};

use crate::SPOILED;

static OURS: LazyLock<Secrets> =
    LazyLock::new(|| secrets(&[("new", "0123456789abcdef"), ("old", "fedcba9876543210")]));
static OLD: LazyLock<Secrets> = LazyLock::new(|| secrets(&[("old", "fedcba9876543210")]));
static FOREIGN: LazyLock<Secrets> = LazyLock::new(|| secrets(&[("new", "0123456789abcdeF")]));

fn secrets(list: &[(&str, &str)]) -> Secrets {
    let named = |(id, text): &(&str, &str)| {
        NamedSecret::new(SecretId::parse(id).expect("an id"), &Secret::new((*text).to_owned()))
    };
    let list: Result<Vec<_>, _> = list.iter().map(named).collect();
    Secrets::new(list.expect("good secrets")).expect("few secrets")
}

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        claimed(text);
    }
    if let [at, byte, run @ ..] = input {
        let token = RunToken {
            run_id: run_of(run),
            attempt: run.iter().fold(0, |sum: u32, byte| sum.wrapping_mul(257).wrapping_add((*byte).into())),
            expiry: UnixSeconds(
                run.iter().rev().fold(0, |sum: u64, byte| sum.rotate_left(9) ^ u64::from(*byte)),
            ),
        };
        minted(&token, (usize::from(*at), *byte));
    }
}

/// Checks a text of unknown origin.
fn claimed(text: &str) {
    let Ok(token) = SignedToken::parse(text) else { return };
    assert!(looks_like_token(text), "a token does not look like one");
    let claims = token.claims();
    let said = RunToken {
        run_id: claims.run().parse().expect("the run of a token is a run id"),
        attempt: claims.attempt(),
        expiry: claims.expiry(),
    };
    let holds = token.verify(&OURS, UnixSeconds(0), Duration::ZERO).is_ok();
    let genuine = [&OURS, &OLD].iter().any(|by| mint(&said, by) == text);
    assert_eq!(holds, genuine, "it holds, and nobody has minted it, or the other way round");
    assert_eq!(token.verify(&FOREIGN, UnixSeconds(0), Duration::ZERO).is_ok(), mint(&said, &FOREIGN) == text);
    let (data, _) =
        mint(&said, &OURS).rsplit_once('.').map(|(data, tag)| (data.to_owned(), tag.len())).expect("a dot");
    assert_eq!(text.rsplit_once('.').map(|(data, _)| data), Some(data.as_str()), "a second spelling");
    let many = (4..u32::MAX).contains(&claims.attempt());
    assert!(!SPOILED || !many, "the control: nobody tries that often");
}

/// Checks a token of ours, whole and with one byte changed.
fn minted(token: &RunToken, (at, byte): (usize, u8)) {
    let text = mint(token, &OURS);
    let signed = SignedToken::parse(&text).expect("what was minted is a token");
    let claims = signed.claims();
    assert_eq!(
        (claims.run(), claims.attempt(), claims.expiry()),
        (token.run_id.as_str(), token.attempt, token.expiry)
    );
    let skew = Duration::from_secs(5);
    let last = UnixSeconds(token.expiry.0.saturating_add(5));
    assert!(signed.verify(&OURS, last, skew).is_ok(), "it holds to its last second");
    if let Some(late) = last.0.checked_add(1) {
        assert_eq!(signed.verify(&OURS, UnixSeconds(late), skew), Err(TokenError::Expired));
    }
    assert_eq!(signed.verify(&FOREIGN, last, skew), Err(TokenError::Invalid));

    let mut damaged = text.clone().into_bytes();
    let at = at % damaged.len();
    damaged[at] = byte;
    if damaged != text.as_bytes()
        && let Ok(damaged) = std::str::from_utf8(&damaged)
        && let Ok(signed) = SignedToken::parse(damaged)
    {
        assert_eq!(signed.verify(&OURS, UnixSeconds(0), skew), Err(TokenError::Invalid), "{damaged}");
    }
}

fn mint(token: &RunToken, secrets: &Secrets) -> String {
    token.mint(secrets.minting().expect("a secret that mints")).expose().to_owned()
}

fn run_of(bytes: &[u8]) -> RunId {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut text: String =
        bytes.iter().take(62).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect();
    text.push('r');
    text.parse().expect("a run id")
}
