//! The ordered record of every request the upstream saw: what tests assert on.
//!
//! It is evidence, so nothing in it is shortened or redacted: **header values, credentials among them, are kept
//! as they came**. Use it with made-up keys. It grows until it is cleared. Requests that hyper refuses itself
//! because they are no HTTP never reach it, nor do those for `/_ledger`.
//!
//! Waiting is event driven and bounded: each change wakes the waiters, each wait has a deadline, and its error
//! says what was there instead.

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
pub use entry::{Ending, Entry, Reported};

/// The record. Clones are handles of the same one.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

struct Shared {
    book: Mutex<Book>,
    changed: watch::Sender<()>,
}

/// A wait that ran out.
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

    /// Every request so far, in order.
    #[must_use]
    pub fn all(&self) -> Vec<Entry> {
        self.book().entries.clone()
    }

    /// How many requests it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.book().entries.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.book().entries.is_empty()
    }

    /// The latest request.
    #[must_use]
    pub fn last(&self) -> Option<Entry> {
        self.book().entries.last().cloned()
    }

    /// Forgets every request, those still open too. Numbers go on where they were.
    pub fn clear(&self) {
        self.change(|book| book.entries.clear());
    }

    /// Waits until at least `count` requests are held whose bodies are complete, and returns all. Cancel safe.
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
    /// If it has not when the time is up, or was cleared away.
    pub async fn wait_for_ending(&self, seq: u64, timeout: Duration) -> Result<Entry, WaitTimedOut> {
        let ended = |book: &Book| book.entry(seq).filter(|entry| !entry.ending.is_open()).cloned();
        let entry = tokio::time::timeout(timeout, self.wait_until(ended)).await;
        entry.map_err(|_elapsed| self.timed_out(format!("the end of request {seq}"), timeout))
    }

    /// From now on also writes each entry to `out` when it ends, as a line of JSON. What a test sees as ended
    /// is written: the ledger is locked meanwhile, so `out` should be quick.
    pub fn transcribe_to(&self, out: impl Write + Send + 'static) {
        self.change(|book| book.transcript = Transcript::To(Box::new(out)));
    }

    /// Waits until a line could not be written, after which no more are. Cancel safe.
    pub async fn transcript_failed(&self) -> io::Error {
        let failed = |book: &Book| match &book.transcript {
            Transcript::Failed(error) => Some(io::Error::new(error.kind(), error.to_string())),
            Transcript::Unwanted | Transcript::To(_) => None,
        };
        self.wait_until(failed).await
    }

    /// From now on a request that is dropped is this upstream's doing, not its client's.
    pub(super) fn stopping(&self) {
        self.book().stopping = true;
    }

    /// All entries as a JSON array.
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

    /// A panic elsewhere leaves the entries as they are, and they may explain it: poison is no reason to stop.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ledger").field(&self.book().summary()).finish()
    }
}
