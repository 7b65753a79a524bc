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

use crate::{report, retry::Backoff};

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
                        self.backoff.wait().await;
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
        let intervals = self.began.elapsed().as_millis() / self.interval.as_millis().max(1);
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

    use tokio::time;

    use super::*;

    /// Listener whose calls fail until the number in it has counted down to zero.
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

    #[tokio::test(start_paused = true)]
    async fn delays_grow_while_accept_fails() {
        for (failures, waited) in [(0, 0), (1, 50), (3, 350), (6, 2350)] {
            let began = time::Instant::now();
            acceptor(failures).accept().await;
            assert_eq!(began.elapsed(), Duration::from_millis(waited), "{failures} failures");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_freed_descriptor_is_used_at_once() {
        let began = time::Instant::now();
        acceptor(3).accept_or(|| AfterFailure::AcceptAgain).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn the_interval_of_a_log_may_be_longer() {
        let log = RateLimitedLog::every(Duration::from_secs(3600));
        let mut written = Vec::new();
        log.write(|suppressed| written.push(suppressed));
        std::thread::sleep(Duration::from_millis(1100));
        log.write(|suppressed| written.push(suppressed));
        assert_eq!(written, [0], "a second later");
    }

    #[test]
    fn one_line_a_second_is_written() {
        let log = RateLimitedLog::default();
        let mut written = Vec::new();
        for _ in 0..5 {
            log.write(|suppressed| written.push(suppressed));
        }
        assert_eq!(written, [0]);
        std::thread::sleep(Duration::from_secs(1));
        log.write(|suppressed| written.push(suppressed));
        assert_eq!(written, [0, 4]);
    }
}
