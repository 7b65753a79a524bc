//! Implements durability `disk`: what was written is on the disk before any caller relies on it.
//!
//! One thread calls `fdatasync` for all calls that wait at that moment; they wait without blocking their threads. A
//! mark is cleared when its record is on the disk, never before: a machine may write what comes second first.

use std::{
    fmt,
    fs::File,
    future::Future,
    io,
    path::Path,
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    thread,
};

use tokio::sync::watch;

use super::{
    Error,
    marks::{Marks, Slot},
};

/// Future that is ready when what was written is as durable as the settings want it. At `process` it is ready at once.
/// Dropping it changes nothing.
#[must_use = "it may not be durable yet"]
pub(crate) enum Synced {
    /// Ready already.
    Now,
    /// Ready once the data is on the disk.
    Later(Pin<Box<dyn Future<Output = Result<(), Error>> + Send + Sync>>),
}

impl Synced {
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

impl Future for Synced {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now => Poll::Ready(Ok(())),
            Self::Later(synced) => synced.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "Now",
            Self::Later(_) => "Later",
        })
    }
}

/// Handle of the thread that syncs. When it is dropped, the thread ends after a last sync.
#[derive(Debug)]
pub(super) struct Disk {
    orders: Arc<Orders>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Orders {
    asked: Mutex<Asked>,
    wake: Condvar,
    done: watch::Sender<u64>,
    /// True once the journal has stopped; nothing is durable any more.
    stopped: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Asked {
    /// Number of requests so far.
    times: u64,
    files: Vec<Arc<File>>,
    /// Slots to free after the next sync.
    slots: Vec<Slot>,
    is_last: bool,
}

impl Disk {
    pub(super) fn start(marks: Arc<Marks>, stopped: Arc<AtomicBool>) -> io::Result<Self> {
        let orders = Arc::new(Orders {
            asked: Mutex::default(),
            wake: Condvar::new(),
            done: watch::Sender::new(0),
            stopped,
        });
        let taken = Arc::clone(&orders);
        let thread =
            thread::Builder::new().name("journal-sync".to_owned()).spawn(move || taken.serve(&marks))?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Syncs `file`, and then frees `slot`.
    pub(super) fn of(&self, file: &Arc<File>, slot: Option<Slot>) -> Synced {
        let mut asked = self.orders.asked();
        asked.times += 1;
        let time = asked.times;
        if !asked.files.iter().any(|other| Arc::ptr_eq(other, file)) {
            asked.files.push(Arc::clone(file));
        }
        asked.slots.extend(slot);
        drop(asked);
        self.orders.wake.notify_one();
        let (mut done, stopped) = (self.orders.done.subscribe(), Arc::clone(&self.orders.stopped));
        Synced::Later(Box::pin(async move {
            let waited = done.wait_for(|done| *done >= time).await.is_ok();
            if waited && !stopped.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::Stopped) }
        }))
    }
}

impl Disk {
    /// Prepares for a new file in `dir`: the data in the file `before` must be synced as well.
    pub(super) fn rotated(&self, before: &Arc<File>, dir: &Path) {
        let dir = File::open(dir)
            .inspect_err(|error| tracing::error!(%error, "cannot sync the journal's directory"));
        let mut asked = self.orders.asked();
        asked.files.push(Arc::clone(before));
        asked.files.extend(dir.map(Arc::new));
    }
}

impl Orders {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, marks: &Marks) {
        let mut done = 0;
        loop {
            let mut asked = self
                .wake
                .wait_while(self.asked(), |asked| asked.times == done && !asked.is_last)
                .unwrap_or_else(PoisonError::into_inner);
            let (files, slots) = (std::mem::take(&mut asked.files), std::mem::take(&mut asked.slots));
            let is_last = asked.is_last && asked.times == done;
            done = asked.times;
            drop(asked);
            if is_last {
                return;
            }
            match files.iter().try_for_each(|file| file.sync_data()) {
                Ok(()) => slots.into_iter().for_each(|slot| marks.release(slot)),
                Err(error) => {
                    tracing::error!(%error, "the journal cannot be written to the disk: no more calls are let through");
                    self.stopped.store(true, Ordering::Relaxed);
                }
            }
            self.done.send_replace(done);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.orders.asked().is_last = true;
        self.orders.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs the journal panicked");
        }
    }
}
