//! Repeats operations after failures that pass, with delays between the tries.
//!
//! Behaviour while a backend is unavailable is decided here: which failures are repeated ([`Transient`]), how long
//! ([`Transient::RETRY_TIMEOUT`] or a deadline), and how often ([`Backoff`]).

use std::{convert::Infallible, error::Error, time::Duration};

use tokio::time::Instant;

use crate::{
    clock::{Clock, SystemClock},
    report,
};

/// Failure of an operation, which may be worth another try.
pub trait Transient {
    /// Time after which callers stop repeating an operation on this backend.
    const RETRY_TIMEOUT: Duration;

    /// Returns whether the backend did not answer. The operation may have taken effect or not, and may be repeated.
    fn is_transient(&self) -> bool;
}

/// Delays between tries, which double up to a longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Creates delays that begin with `first` and double up to `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// Creates delays that are all the same.
    #[must_use]
    pub const fn constant(delay: Duration) -> Self {
        Self::new(delay, delay)
    }

    /// Returns the delay before the next try.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(self.longest);
        delay
    }

    /// Returns to the first delay, after a success.
    pub const fn reset(&mut self) {
        self.next = self.first;
    }

    /// Waits before the next try. Cancel safe.
    pub async fn wait(&mut self) {
        SystemClock.sleep(self.next_delay()).await;
    }
}

/// Repeats `operation` until it succeeds, fails for good, or [`Transient::RETRY_TIMEOUT`] has passed.
///
/// # Errors
/// The last failure.
pub async fn retry_transient<T, E: Transient>(
    backoff: Backoff,
    operation: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    retry_transient_by(&SystemClock, backoff, operation).await
}

/// Repeats `operation` until it succeeds, its failure is not `retryable`, or `deadline` has passed. The deadline does
/// not interrupt a try.
///
/// # Errors
/// The last failure.
pub async fn retry_until<T, E>(
    deadline: Instant,
    backoff: Backoff,
    retryable: impl Fn(&E) -> bool,
    operation: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    retry_until_by(&SystemClock, deadline, backoff, retryable, operation).await
}

/// Repeats `operation`, which only ends with a failure, for ever. Passes each failure to `warn`, unless it has the text
/// of the one before. Delays begin anew after an operation that took longer than the longest delay.
pub async fn repeat_forever<E: Error>(
    backoff: Backoff,
    operation: impl AsyncFnMut() -> Result<Infallible, E>,
    warn: impl Fn(&str),
) -> Infallible {
    repeat_forever_by(&SystemClock, backoff, operation, warn).await
}

async fn retry_transient_by<T, E: Transient>(
    clock: &impl Clock,
    backoff: Backoff,
    operation: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    retry_until_by(clock, clock.now() + E::RETRY_TIMEOUT, backoff, E::is_transient, operation).await
}

async fn retry_until_by<T, E>(
    clock: &impl Clock,
    deadline: Instant,
    mut backoff: Backoff,
    retryable: impl Fn(&E) -> bool,
    mut operation: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    loop {
        match operation().await {
            Err(error) if retryable(&error) && clock.now() < deadline => {
                clock.sleep(backoff.next_delay()).await;
            }
            result => return result,
        }
    }
}

async fn repeat_forever_by<E: Error>(
    clock: &impl Clock,
    mut backoff: Backoff,
    mut operation: impl AsyncFnMut() -> Result<Infallible, E>,
    warn: impl Fn(&str),
) -> Infallible {
    let mut reported = String::new();
    loop {
        let began = clock.now();
        let Err(error) = operation().await;
        let error = report::chain(&error);
        if error != reported {
            warn(&error);
            reported = error;
        }
        if clock.now() - began > backoff.longest {
            backoff.reset();
        }
        clock.sleep(backoff.next_delay()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::pending, io};

    use super::*;
    use crate::clock::tests::{TestClock, run};

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Debug, PartialEq, Eq)]
    enum Failed {
        Unavailable,
        Refused,
    }

    impl Transient for Failed {
        const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

        fn is_transient(&self) -> bool {
            *self == Self::Unavailable
        }
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::new(SECOND, 5 * SECOND);
        let delays: Vec<_> = (0..5).map(|_| backoff.next_delay().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.next_delay(), SECOND);
    }

    #[test]
    fn only_transient_failures_are_repeated() {
        for (answers, expected, seconds) in [
            (vec![Ok(1)], Ok(1), 0),
            (vec![Err(Failed::Unavailable), Err(Failed::Unavailable), Ok(2)], Ok(2), 3),
            (vec![Err(Failed::Unavailable), Err(Failed::Refused)], Err(Failed::Refused), 1),
        ] {
            let mut answers = answers.into_iter();
            let clock = TestClock::new();
            let backoff = Backoff::new(SECOND, 4 * SECOND);
            let operation = async || answers.next().expect("no more tries");
            let result = run(retry_transient_by(&clock, backoff, operation));
            assert_eq!((result, clock.elapsed()), (Some(expected), seconds * SECOND));
        }
    }

    #[test]
    fn equal_failures_are_reported_once() {
        let reported = RefCell::new(Vec::new());
        let mut errors = ["a", "a", "long", "b", "a"].into_iter();
        let clock = TestClock::new();
        let mut tries = Vec::new();
        let operation = async || {
            tries.push(clock.elapsed().as_secs());
            match errors.next() {
                Some("long") => clock.sleep(5 * SECOND).await,
                Some(error) => return Err(io::Error::other(error)),
                None => pending().await,
            }
            Err(io::Error::other("long"))
        };
        let report = |error: &str| reported.borrow_mut().push(error.to_owned());
        let repeated = repeat_forever_by(&clock, Backoff::new(SECOND, 4 * SECOND), operation, report);
        assert!(run(repeated).is_none(), "the last try never ends");
        assert_eq!(reported.into_inner(), ["a", "long", "b", "a"]);
        assert_eq!(tries, [0, 1, 3, 9, 11, 15], "the long one begins the delays anew");
    }

    #[test]
    fn a_backend_that_stays_away_is_given_up() {
        let clock = TestClock::new();
        let mut tries = 0;
        let failed = retry_transient_by(&clock, Backoff::constant(SECOND), async || {
            tries += 1;
            Err::<(), _>(Failed::Unavailable)
        });
        assert_eq!(run(failed), Some(Err(Failed::Unavailable)));
        assert_eq!((tries, clock.elapsed()), (11, 10 * SECOND));
    }
}
