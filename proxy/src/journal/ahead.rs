//! Prepares the journal's growth on the maintenance thread, so that no call waits for the file system's allocations.
//!
//! Space is allocated ahead of the last line. The next segment is created and its space allocated before it is wanted:
//! rotating then only gives it its name. The space behind a full segment's end goes back later.
//!
//! All of this is an advantage in time alone. A thread that finds nothing prepared allocates and creates by itself.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use platform_runtime::report;

use super::{Error, Journal, end, segments, space::Extent};

/// Delay before a failed allocation is tried again for a call.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Right to allocate space behind the last line. Locked before the journal's tail.
#[derive(Debug, Default)]
pub(super) struct Allocation {
    /// Time at which a failed allocation is tried again for a call.
    retry_at: Option<Instant>,
}

/// File without lines that the journal goes on in when the last segment is full.
#[derive(Debug, Clone)]
pub(super) struct NextSegment {
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
    /// Bytes that are allocated in it.
    pub(super) allocated: u64,
}

/// Segment that is full. Space behind its end is still allocated.
#[derive(Debug)]
pub(super) struct FullSegment {
    pub(super) file: Arc<File>,
    pub(super) length: u64,
}

/// Returns the path of the next segment in `dir` before it has its name, which its first line decides.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("next")
}

/// Frees the space in `dir` that a proxy which died had allocated ahead, except behind the last line.
pub(super) fn clean_up(dir: &Path) -> Result<(), Error> {
    let next = path(dir);
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &next)(error)),
        _ => end::trim_full(dir),
    }
}

impl NextSegment {
    /// Creates an empty file at `path`. A crash may have left one without a line, which is emptied.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = Arc::new(segments::create_empty(&path)?);
        Ok(Self { path, file, allocated: 0 })
    }

    pub(super) fn remove(&self) {
        fs::remove_file(&self.path).ok();
    }
}

impl FullSegment {
    /// Gives back the space behind its end.
    pub(super) fn trim(&self) {
        if let Err(error) = self.file.set_len(self.length) {
            tracing::warn!(
                error = report::chain(&error),
                "cannot give back the space behind a full file of the journal"
            );
        }
    }
}

impl Journal {
    /// Gives back the space behind full segments, allocates space ahead, and makes the next segment ready. What fails
    /// is tried again in the next round.
    pub(super) fn prepare(&self) {
        let mut allocation = self.allocation.lock();
        // Cleared first: a demand that comes up meanwhile is served after this.
        self.space.demand().clear();
        let full = self.tail().take_full();
        full.iter().for_each(FullSegment::trim);
        if let Err(error) = self.extend_last(&mut allocation).and_then(|()| self.extend_next()) {
            self.space.demand().suppress();
            tracing::debug!(error = report::chain(&error), "no space ahead for records");
        }
    }

    /// Allocates the space that reservations need, unless another thread has done so meanwhile.
    pub(super) fn allocate_now(&self) -> io::Result<()> {
        let mut allocation = self.allocation.lock();
        // Again if calls have reserved more meanwhile, or the journal went on in another file.
        while !self.space.is_backed() {
            if allocation.retry_at.is_some_and(|retry_at| Instant::now() < retry_at) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.extend(&mut allocation)?;
        }
        Ok(())
    }

    /// Ends what was prepared: the space is free for others.
    pub(super) fn end_preparation(&self) {
        let _allocation = self.allocation.lock();
        let mut tail = self.tail();
        let full = tail.take_full();
        let next = tail.take_next();
        drop(tail);
        full.iter().for_each(FullSegment::trim);
        if let Some(next) = next {
            next.remove();
        }
    }

    fn extend_last(&self, allocation: &mut Allocation) -> io::Result<()> {
        if !self.space.is_low() && !self.space.is_full() {
            return Ok(());
        }
        self.extend(allocation)?;
        if self.space.is_low() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Allocates space behind the last line. Lines are written meanwhile.
    fn extend(&self, allocation: &mut Allocation) -> io::Result<()> {
        let tail = self.tail();
        let file = Arc::clone(tail.file());
        let extent = tail.extent();
        drop(tail);
        allocation.retry_at = None;
        let end = self
            .space
            .extend(&file, extent)
            .inspect_err(|_error| allocation.retry_at = Some(Instant::now() + RETRY_DELAY))?;
        self.tail().note_allocated(&file, end);
        Ok(())
    }

    /// Creates the next segment, or allocates more in it if reservations have grown.
    fn extend_next(&self) -> io::Result<()> {
        let mut tail = self.tail();
        if tail.next_segment().is_some_and(|next| self.space.is_ahead(next.allocated)) {
            return Ok(());
        }
        // Taken, so that no other thread allocates in it.
        let present = tail.take_next();
        drop(tail);
        let next = present.map_or_else(|| NextSegment::create(path(&self.dir)), Ok)?;
        let extended = self.space.extend_far(&next.file, Extent { length: 0, end: next.allocated });
        // An empty one without much space is useless: the space that is left is for the lines of calls in flight.
        let allocated = extended.inspect_err(|_error| next.remove())?;
        self.tail().offer_next(NextSegment { allocated, ..next });
        Ok(())
    }
}
