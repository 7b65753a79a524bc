//! Detects leaked secrets: every secret that the harness and the tests hand out is recognisable, and is searched for
//! wherever it must not be.
//!
//! Data in transit is searched as it passes: answers to agents, output of `sluice`, messages to and from Docker. Data
//! at rest (files, metrics, environments) is searched when a world ends or stops its proxy. Each hit fails the test at
//! the end of its world. Each test has its own process, so the hits belong to one test.

mod docker;
mod forms;
mod places;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use self::{docker::Spy, places::Places};

/// The upstream's key in every world. If it shows up anywhere but in the upstream's requests, that is a leak.
pub const CANARY_KEY: &str = "sk-canary-7f3a91c2";
/// Prefix of every token secret of a shared listener.
pub const CANARY_SECRET: &str = "canary-5d20e8b1-";
/// Two token secrets for the command line.
pub const CANARY_SECRETS: [&str; 2] = ["canary-0123456789", "canary-9876543210"];

/// Names of files that exist to hold a secret; they are not searched.
const SECRET_FILES: [&str; 5] = ["key", "tokens", "token-secrets", "token", "new-key"];

/// Bytes that are kept of earlier pieces, so that a secret split between pieces is found. Longer than any form of a
/// secret.
const OVERLAP: usize = 512;

static WATCH: OnceLock<Mutex<Watch>> = OnceLock::new();

/// Secrets and the places in which they were found.
#[derive(Debug)]
struct Watch {
    known: Vec<forms::Forms>,
    /// Secrets that do not contain the common word.
    handed_out: Vec<forms::Forms>,
    found: Vec<String>,
}

fn watch() -> MutexGuard<'static, Watch> {
    let new = || {
        let secrets = [CANARY_KEY, CANARY_SECRET].into_iter().chain(CANARY_SECRETS);
        Mutex::new(Watch {
            known: secrets.map(forms::Forms::of).collect(),
            handed_out: Vec::new(),
            found: Vec::new(),
        })
    };
    WATCH.get_or_init(new).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds `secret` to the secrets that are searched for.
pub fn hand_out(secret: &str) {
    watch().handed_out.push(forms::Forms::of(secret));
    // The signature of a token is a secret even without the rest of the token.
    if let Some((_, signature)) = secret.rsplit_once('.') {
        watch().handed_out.push(forms::Forms::of(signature));
    }
}

/// Searches `bytes` for canaries and records a hit under the name `place`.
pub fn search(place: &str, bytes: &[u8]) {
    let mut watch = watch();
    let known = forms::may_hold_a_canary(bytes).then_some(&watch.known);
    let mut forms = known.into_iter().flatten().chain(&watch.handed_out);
    if let Some(form) = forms.find_map(|forms| forms.in_bytes(bytes)) {
        let line = format!("{place}: {form}");
        if !watch.found.contains(&line) {
            watch.found.push(line);
        }
    }
}

/// Returns the hits recorded so far and clears them.
#[must_use]
pub fn found() -> Vec<String> {
    std::mem::take(&mut watch().found)
}

/// Asserts that each of `pieces` is in the name of a place among `found`.
///
/// # Panics
/// If one is not.
pub fn assert_found(found: &[String], pieces: &[&str]) {
    for piece in pieces {
        assert!(found.iter().any(|place| place.contains(piece)), "nothing in {piece}: {found:#?}");
    }
}

/// Search of data that arrives in pieces.
#[derive(Debug)]
pub struct Flow {
    place: String,
    recent: Vec<u8>,
}

impl Flow {
    /// Returns a search of text that arrives in pieces from `place`.
    #[must_use]
    pub const fn of(place: String) -> Self {
        Self { place, recent: Vec::new() }
    }

    /// Searches the next piece together with the end of the earlier ones.
    pub fn piece(&mut self, piece: &[u8]) {
        self.recent.extend_from_slice(piece);
        search(&self.place, &self.recent);
        let keep = self.recent.len().saturating_sub(OVERLAP);
        self.recent.drain(..keep);
    }
}
