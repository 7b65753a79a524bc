//! Counts attempts to sign in, and answers wrong ones.
//!
//! A right one is accepted however many wrong ones there were, so that no stranger locks people out. What signs in has 256
//! random bits: no number of attempts finds it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use runner_telemetry::metrics::{Metrics, SignInResult, SignInWay};

use crate::{attempts::AttemptLimit, error::Error};

/// Wrong attempts that are answered at once, and the interval of further ones.
const WRONG_AT_ONCE: u32 = 20;
const WRONG_ATTEMPT_INTERVAL: Duration = Duration::from_secs(3);

/// Attempts to sign in. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct SignInAttempts {
    wrong: AttemptLimit,
    metrics: Arc<Metrics>,
}

impl SignInAttempts {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { wrong: AttemptLimit::new(WRONG_AT_ONCE, WRONG_ATTEMPT_INTERVAL), metrics }
    }

    /// Counts a session that began.
    pub(crate) fn accepted(&self, way: SignInWay) {
        self.metrics.signed_in(way, SignInResult::Accepted);
    }

    /// Counts a wrong attempt; returns the error that answers it.
    pub(crate) fn refused(&self, way: SignInWay) -> Error {
        match self.wrong.take(Instant::now()) {
            Ok(()) => {
                self.metrics.signed_in(way, SignInResult::Refused);
                match way {
                    SignInWay::Token => Error::Unauthenticated,
                    SignInWay::Link => Error::SignInLink,
                }
            }
            Err(wait) => {
                self.metrics.signed_in(way, SignInResult::Limited);
                Error::TooManyAttempts { wait }
            }
        }
    }
}
