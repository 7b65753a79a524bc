//! Implements durability `disk`: written data is on the disk before any caller relies on it.
//!
//! One thread calls `fdatasync` for all calls that wait at that moment; they wait without blocking their threads. A
//! mark is cleared when its record is on the disk, never before: a machine may reorder the two writes.

use std::{
    fmt,
    fs::File,
    future::Future,
    io,
    path::Path,
    pin::Pin,
    sync::{
        Arc, Condvar,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    thread,
};

use platform_runtime::{
    report,
    sync::{Mutex, wait_while},
};
use tokio::sync::watch;

use super::{
    Error,
    in_flight::{InFlightLog, LogSlot},
};

/// Future that is ready when the written data is as durable as the settings require. At `process` it is ready at once.
/// Dropping it changes nothing.
#[must_use = "it may not be durable yet"]
pub(crate) enum Durable {
    /// Ready already.
    Now,
    /// Ready once the data is on the disk.
    Later(Pin<Box<dyn Future<Output = Result<(), Error>> + Send + Sync>>),
}

impl Durable {
    /// Creates a future that fails: the data was not even written.
    pub(crate) fn failed(error: Error) -> Self {
        Self::Later(Box::pin(std::future::ready(Err(error))))
    }

    /// Returns the same future, which holds `held` until it is ready.
    pub(crate) fn holding<T: Send + Sync + 'static>(self, held: T) -> Self {
        match self {
            Self::Now => Self::Now,
            Self::Later(synced) => Self::Later(Box::pin(async move {
                let outcome = synced.await;
                drop(held);
                outcome
            })),
        }
    }
}

impl Future for Durable {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now => Poll::Ready(Ok(())),
            Self::Later(synced) => synced.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "Now",
            Self::Later(_) => "Later",
        })
    }
}

/// Handle of the thread that syncs. When it is dropped, the thread ends after a last sync.
#[derive(Debug)]
pub(super) struct SyncThread {
    queue: Arc<SyncQueue>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct SyncQueue {
    pending: Mutex<PendingSync>,
    wake: Condvar,
    done: watch::Sender<u64>,
    /// True once the journal has stopped; nothing is durable any more.
    stopped: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct PendingSync {
    /// Number of requests so far.
    requests: u64,
    files: Vec<Arc<File>>,
    /// Slots to free after the next sync.
    slots: Vec<LogSlot>,
    is_last: bool,
}

impl SyncThread {
    pub(super) fn start(marks: Arc<InFlightLog>, stopped: Arc<AtomicBool>) -> io::Result<Self> {
        let queue = Arc::new(SyncQueue {
            pending: Mutex::default(),
            wake: Condvar::new(),
            done: watch::Sender::new(0),
            stopped,
        });
        let served = Arc::clone(&queue);
        let thread =
            thread::Builder::new().name("journal-sync".to_owned()).spawn(move || served.serve(&marks))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Requests that `file` is synced, and `slot` freed after that.
    pub(super) fn request(&self, file: &Arc<File>, slot: Option<LogSlot>) -> Durable {
        let mut pending = self.queue.pending.lock();
        pending.requests += 1;
        let number = pending.requests;
        if !pending.files.iter().any(|other| Arc::ptr_eq(other, file)) {
            pending.files.push(Arc::clone(file));
        }
        pending.slots.extend(slot);
        drop(pending);
        self.queue.wake.notify_one();
        let mut done = self.queue.done.subscribe();
        let stopped = Arc::clone(&self.queue.stopped);
        Durable::Later(Box::pin(async move {
            let waited = done.wait_for(|done| *done >= number).await.is_ok();
            if waited && !stopped.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::Stopped) }
        }))
    }

    /// Prepares for a new file in `dir`: the data in the file `before` must be synced as well.
    pub(super) fn note_rotation(&self, before: &Arc<File>, dir: &Path) {
        let dir = File::open(dir).inspect_err(|error| {
            tracing::error!(error = report::chain(error), "cannot sync the journal's directory")
        });
        let mut pending = self.queue.pending.lock();
        pending.files.push(Arc::clone(before));
        pending.files.extend(dir.map(Arc::new));
    }
}

impl SyncQueue {
    fn serve(&self, marks: &InFlightLog) {
        let mut done = 0;
        loop {
            let is_idle = |pending: &mut PendingSync| pending.requests == done && !pending.is_last;
            let mut pending = wait_while(&self.wake, self.pending.lock(), is_idle);
            let files = std::mem::take(&mut pending.files);
            let slots = std::mem::take(&mut pending.slots);
            let is_last = pending.is_last && pending.requests == done;
            done = pending.requests;
            drop(pending);
            if is_last {
                return;
            }
            match files.iter().try_for_each(|file| file.sync_data()) {
                Ok(()) => slots.into_iter().for_each(|slot| marks.release(slot)),
                Err(error) => {
                    tracing::error!(
                        error = report::chain(&error),
                        "the journal cannot be written to the disk: no more calls are let through"
                    );
                    self.stopped.store(true, Ordering::Relaxed);
                }
            }
            self.done.send_replace(done);
        }
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.queue.pending.lock().is_last = true;
        self.queue.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs the journal panicked");
        }
    }
}
