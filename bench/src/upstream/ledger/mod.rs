//! Records every request that the upstream saw, in order, for the assertions of tests.
//!
//! The ledger is evidence, so nothing in it is shortened or redacted. **It keeps header values as they came,
//! credentials among them.** Use it with made-up keys. It grows until it is cleared. Requests that hyper refuses
//! because they are not HTTP never reach it, nor do those for `/_ledger`.
//!
//! Waiting is event driven and bounded: each change wakes the waiters, and each wait has a deadline. The error of a
//! wait lists the requests that the ledger has instead.

mod book;
mod call;
mod entry;
mod export;

use std::{
    fmt,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::watch;

use book::{Book, End, Outcome, Transcript};

pub(super) use call::Call;
pub(super) use entry::Generation;
pub use entry::{Ending, Entry, Reported};

/// Handle of the ledger. Clones share the same entries.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

struct Shared {
    book: Mutex<Book>,
    changed: watch::Sender<()>,
}

/// Error: a wait ran out of time.
#[derive(Debug, thiserror::Error)]
#[error("waited {waited:?} for {wanted}; the ledger holds {found}")]
pub struct WaitTimedOut {
    wanted: String,
    waited: Duration,
    found: String,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared { book: Mutex::new(Book::new()), changed: watch::Sender::new(()) }))
    }

    /// Returns every request so far, in order.
    #[must_use]
    pub fn all(&self) -> Vec<Entry> {
        self.book().entries.clone()
    }

    /// Returns the number of requests in the ledger.
    #[must_use]
    pub fn len(&self) -> usize {
        self.book().entries.len()
    }

    /// Returns whether the ledger is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.book().entries.is_empty()
    }

    /// Returns the latest request.
    #[must_use]
    pub fn last(&self) -> Option<Entry> {
        self.book().entries.last().cloned()
    }

    /// Removes every request, open ones too. The numbers of later requests continue.
    pub fn clear(&self) {
        self.change(|book| book.entries.clear());
    }

    /// Waits until at least `count` requests have complete bodies, and returns all. Cancel safe.
    ///
    /// # Errors
    /// If there are fewer when the time is up.
    pub async fn wait_for(&self, count: usize, timeout: Duration) -> Result<Vec<Entry>, WaitTimedOut> {
        let enough = |book: &Book| (book.whole() >= count).then(|| book.entries.clone());
        let entries = tokio::time::timeout(timeout, self.wait_until(enough)).await;
        entries.map_err(|_elapsed| self.timed_out(format!("{count} requests"), timeout))
    }

    /// Waits until request `seq` has ended, and returns it. Cancel safe.
    ///
    /// # Errors
    /// If the request has not ended in time, or was cleared.
    pub async fn wait_for_ending(&self, seq: u64, timeout: Duration) -> Result<Entry, WaitTimedOut> {
        let ended = |book: &Book| book.entry(seq).filter(|entry| !entry.ending.is_open()).cloned();
        let entry = tokio::time::timeout(timeout, self.wait_until(ended)).await;
        entry.map_err(|_elapsed| self.timed_out(format!("the end of request {seq}"), timeout))
    }

    /// Writes each entry to `out` as well when it ends from now on, as a line of JSON. An entry is written before a
    /// test sees its end. The ledger is locked meanwhile, so `out` should be quick.
    pub fn transcribe_to(&self, out: impl Write + Send + 'static) {
        self.change(|book| book.transcript = Transcript::To(Box::new(out)));
    }

    /// Waits until a line could not be written; later lines are not attempted. Cancel safe.
    pub async fn transcript_failed(&self) -> io::Error {
        let failed = |book: &Book| match &book.transcript {
            Transcript::Failed(error) => Some(io::Error::new(error.kind(), error.to_string())),
            Transcript::Unwanted | Transcript::To(_) => None,
        };
        self.wait_until(failed).await
    }

    /// Attributes requests dropped from now on to this upstream, not to their clients.
    pub(super) fn stopping(&self) {
        self.book().stopping = true;
    }

    /// Returns all entries as a JSON array.
    pub(super) fn export(&self) -> serde_json::Result<Bytes> {
        export::array(&self.all())
    }

    fn begin(&self, entry: Entry) -> u64 {
        self.change(|book| book.begin(entry))
    }

    fn received(&self, seq: u64, body: Bytes) {
        self.change(|book| book.received(seq, body));
    }

    fn end(&self, seq: u64, end: End) {
        self.change(|book| book.end(seq, end));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let result = change(&mut self.book());
        self.0.changed.send_replace(());
        result
    }

    async fn wait_until<T>(&self, ready: impl Fn(&Book) -> Option<T>) -> T {
        let mut changed = self.0.changed.subscribe();
        loop {
            let found = ready(&self.book());
            if let Some(found) = found {
                return found;
            }
            changed.changed().await.expect("the sender lives as long as the ledger that is borrowed here");
        }
    }

    fn timed_out(&self, wanted: String, waited: Duration) -> WaitTimedOut {
        WaitTimedOut { wanted, waited, found: self.book().summary() }
    }

    /// Locks the entries and ignores poison: a panic elsewhere leaves them intact, and they may explain it.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ledger").field(&self.book().summary()).finish()
    }
}
