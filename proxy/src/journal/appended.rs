//! Tells followers of new lines, at no cost to a call while nothing follows.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

/// Number of the journal's last line, which followers wait for.
#[derive(Debug)]
pub(super) struct LastLine {
    /// Padded, because each commit changes it.
    seq: CachePadded<AtomicU64>,
    followers: AtomicUsize,
    notify: Notify,
}

/// Wait of one follower for lines behind those it has seen.
#[derive(Debug)]
pub(super) struct LineWatch {
    last: Arc<LastLine>,
    seen: u64,
}

impl LastLine {
    pub(super) fn new(seq: u64) -> Arc<Self> {
        Arc::new(Self {
            seq: AtomicU64::new(seq).into(),
            followers: AtomicUsize::new(0),
            notify: Notify::new(),
        })
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq.load(Ordering::SeqCst)
    }

    /// Notes that line `seq` is written. Threads may call this out of order.
    pub(super) fn advance(&self, seq: u64) {
        self.seq.fetch_max(seq, Ordering::SeqCst);
        // A follower counts itself before it reads the number, so it misses no line.
        if self.followers.load(Ordering::SeqCst) > 0 {
            self.notify.notify_waiters();
        }
    }
}

impl LineWatch {
    pub(super) fn new(last: &Arc<LastLine>) -> Self {
        last.followers.fetch_add(1, Ordering::SeqCst);
        Self { last: Arc::clone(last), seen: 0 }
    }

    /// Returns the number of the last line, which counts as seen.
    pub(super) fn see(&mut self) -> u64 {
        self.seen = self.last.seq();
        self.seen
    }

    /// Waits for a line behind those that were seen. Cancel safe.
    pub(super) async fn wait(&self) {
        loop {
            let notified = self.last.notify.notified();
            tokio::pin!(notified);
            // Registered before the number is read.
            notified.as_mut().enable();
            if self.last.seq() > self.seen {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for LineWatch {
    fn drop(&mut self) {
        self.last.followers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    const APPENDERS: u64 = 4;
    const LINES_EACH: u64 = 5_000;

    /// Four threads write lines; a follower that comes and goes waits for each number that it has not seen.
    #[tokio::test]
    async fn a_follower_misses_none_of_four_appenders() {
        let last = LastLine::new(0);
        let next = Arc::new(AtomicU64::new(0));
        let appenders: Vec<_> = (0..APPENDERS)
            .map(|_| {
                let last = Arc::clone(&last);
                let next = Arc::clone(&next);
                thread::spawn(move || {
                    for _ in 0..LINES_EACH {
                        last.advance(next.fetch_add(1, Ordering::SeqCst) + 1);
                    }
                })
            })
            .collect();
        let follow = async {
            let mut seen = 0;
            while seen < APPENDERS * LINES_EACH {
                let mut watch = LineWatch::new(&last);
                seen = watch.see();
                for _ in 0..seen % 3 {
                    if seen < APPENDERS * LINES_EACH {
                        watch.wait().await;
                        assert!(watch.see() > seen, "it is woken for a new line");
                        seen = watch.seen;
                    }
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), follow).await.expect("it is woken for each line");
        appenders.into_iter().for_each(|appender| appender.join().unwrap());
        assert_eq!(last.followers.load(Ordering::SeqCst), 0);
    }
}
