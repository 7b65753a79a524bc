//! Accepts connections, and waits after a failure instead of spinning.
//!
//! accept(2) fails for a connection that is closed already, and when the process has no descriptors left. The second
//! failure lasts, so delays grow. Meanwhile connections stay in the kernel's backlog.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::{
    clock::{Clock, SystemClock},
    report,
    retry::Backoff,
};

/// First delay after accept(2) has failed.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Longest delay after accept(2) has failed again and again.
const MAX_ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(800);

/// Listener on a TCP port or a unix socket.
pub trait Listener {
    /// Stream of an accepted connection.
    type Stream;

    /// Accepts one connection. Cancel safe.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        Ok(Self::accept(self).await?.0)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(Self::accept(self).await?.0)
    }
}

/// Accepts the connections of one listener.
#[derive(Debug)]
pub struct Acceptor<L> {
    listener: L,
    backoff: Backoff,
    log: Arc<RateLimitedLog>,
}

impl<L: Listener> Acceptor<L> {
    /// Creates an acceptor for `listener`. Failures go to `log`, which listeners may share.
    pub const fn new(listener: L, log: Arc<RateLimitedLog>) -> Self {
        Self { listener, backoff: Backoff::new(ACCEPT_RETRY_DELAY, MAX_ACCEPT_RETRY_DELAY), log }
    }

    /// Returns the next connection. Cancel safe.
    pub async fn accept(&mut self) -> L::Stream {
        self.accept_or(|| AfterFailure::Wait).await
    }

    /// Returns the next connection; `after_failure` may make accept(2) possible again. Cancel safe.
    pub async fn accept_or(&mut self, after_failure: impl Fn() -> AfterFailure) -> L::Stream {
        self.accept_by(&SystemClock, after_failure).await
    }

    async fn accept_by(&mut self, clock: &impl Clock, after_failure: impl Fn() -> AfterFailure) -> L::Stream {
        loop {
            match self.listener.accept().await {
                Ok(stream) => {
                    self.backoff.reset();
                    return stream;
                }
                Err(error) => {
                    self.log.write(|suppressed| {
                        tracing::warn!(suppressed, error = report::chain(&error), "cannot accept connections")
                    });
                    if after_failure() == AfterFailure::Wait {
                        clock.sleep(self.backoff.next_delay()).await;
                    }
                }
            }
        }
    }
}

/// Next step after accept(2) has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Wait, longer each time.
    Wait,
    /// Accept again at once: a descriptor was freed.
    AcceptAgain,
}

/// Log for lines that may be frequent: at most one in each interval is written.
#[derive(Debug)]
pub struct RateLimitedLog {
    began: Instant,
    interval: Duration,
    /// Interval of the last line, counted from 1.
    last: AtomicU64,
    suppressed: AtomicU64,
}

impl Default for RateLimitedLog {
    fn default() -> Self {
        Self::every(Duration::from_secs(1))
    }
}

impl RateLimitedLog {
    /// Returns a log that writes at most one line in each `interval`.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { began: Instant::now(), interval, last: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Calls `line` with the number of lines that were suppressed since the last one, unless a line was written in the
    /// same interval.
    pub fn write(&self, line: impl FnOnce(u64)) {
        self.write_after(self.began.elapsed(), line);
    }

    fn write_after(&self, elapsed: Duration, line: impl FnOnce(u64)) {
        let intervals = elapsed.as_millis() / self.interval.as_millis().max(1);
        let now = u64::try_from(intervals).unwrap_or(u64::MAX - 1) + 1;
        if self.last.swap(now, Ordering::Relaxed) == now {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
        } else {
            line(self.suppressed.swap(0, Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::tests::{TestClock, run};

    /// Listener that fails calls until the number in it has counted down to zero.
    struct Failing(Mutex<u32>);

    impl Listener for Failing {
        type Stream = ();

        async fn accept(&self) -> io::Result<()> {
            let mut left = self.0.lock().unwrap();
            *left = left.checked_sub(1).unwrap_or_default();
            if *left == 0 { Ok(()) } else { Err(io::Error::other("no descriptors")) }
        }
    }

    fn acceptor(failures: u32) -> Acceptor<Failing> {
        Acceptor::new(Failing(Mutex::new(failures + 1)), Arc::default())
    }

    #[test]
    fn delays_grow_while_accept_fails() {
        for (failures, waited) in [(0, 0), (1, 50), (3, 350), (6, 2350)] {
            let clock = TestClock::new();
            run(acceptor(failures).accept_by(&clock, || AfterFailure::Wait)).expect("it is accepted");
            assert_eq!(clock.elapsed(), Duration::from_millis(waited), "{failures} failures");
        }
    }

    #[test]
    fn a_freed_descriptor_is_used_at_once() {
        let clock = TestClock::new();
        run(acceptor(3).accept_by(&clock, || AfterFailure::AcceptAgain)).expect("it is accepted");
        assert_eq!(clock.elapsed(), Duration::ZERO);
    }

    #[test]
    fn the_interval_of_a_log_may_be_longer() {
        let log = RateLimitedLog::every(Duration::from_secs(3600));
        let mut written = Vec::new();
        for seconds in [0, 1, 3599] {
            log.write_after(Duration::from_secs(seconds), |suppressed| written.push((seconds, suppressed)));
        }
        assert_eq!(written, [(0, 0)], "within the hour");
        log.write_after(Duration::from_secs(3600), |suppressed| written.push((3600, suppressed)));
        assert_eq!(written, [(0, 0), (3600, 2)]);
    }

    #[test]
    fn one_line_a_second_is_written() {
        let log = RateLimitedLog::default();
        let mut written = Vec::new();
        for milliseconds in [0, 1, 2, 3, 999, 1000] {
            let elapsed = Duration::from_millis(milliseconds);
            log.write_after(elapsed, |suppressed| written.push((milliseconds, suppressed)));
        }
        assert_eq!(written, [(0, 0), (1000, 4)]);
    }

    #[test]
    fn the_time_of_a_log_begins_with_it() {
        let log = RateLimitedLog::every(Duration::from_secs(3600));
        let mut written = Vec::new();
        log.write(|suppressed| written.push(suppressed));
        log.write(|suppressed| written.push(suppressed));
        assert_eq!(written, [0]);
    }
}
