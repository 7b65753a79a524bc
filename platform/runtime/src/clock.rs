//! Time of what polls and repeats, so that its tests say what time it is.

use std::time::Duration;

use tokio::time::Instant;

/// Time that passes, and waits for it.
pub(crate) trait Clock {
    /// Returns the present time.
    fn now(&self) -> Instant;

    /// Waits. Cancel safe.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// Clock of the system.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        cell::Cell,
        future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    /// Clock that only waits move, at once and by as much as they last.
    pub(crate) struct TestClock {
        began: Instant,
        now: Cell<Instant>,
    }

    impl TestClock {
        pub(crate) fn new() -> Self {
            let began = Instant::now();
            Self { began, now: Cell::new(began) }
        }

        /// Returns how long all waits so far lasted.
        pub(crate) fn elapsed(&self) -> Duration {
            self.now() - self.began
        }
    }

    impl Clock for TestClock {
        fn now(&self) -> Instant {
            self.now.get()
        }

        fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
            self.now.set(self.now() + duration);
            future::ready(())
        }
    }

    /// Runs what waits for nothing but a [`TestClock`]. Returns `None` if it waits for anything else.
    pub(crate) fn run<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }
}
