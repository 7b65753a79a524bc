//! Appends to the end of the journal, and changes from one file to the next.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use platform_core::record::{ExchangeRecord, Lost, SCHEMA_VERSION, hash};
use platform_runtime::report;
use serde::Serialize;

use super::{
    checkpoint::UsageTotals,
    segments::{End, Segment},
    space::Space,
};

/// Delay before a failed step is tried again: allocating space, creating a file.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Most ranges of lost lines that one line reports: its length has a bound.
const MAX_LOST_REPORTED: usize = 16;

/// End of the last segment.
#[derive(Debug)]
pub(super) struct Tail {
    dir: PathBuf,
    segment: Segment,
    file: Arc<File>,
    length: u64,
    seq: u64,
    hash: [u8; 64],
    line: Vec<u8>,
    space: Arc<Space>,
    fullness: Fullness,
    /// Time at which a failed step is tried again.
    retry_at: Option<Instant>,
    /// Lost lines that the next line reports.
    lost: Vec<Lost>,
    /// Sums over the lines that were appended since they were last taken.
    totals: UsageTotals,
}

/// Sums over lines, with the last of them and its hash.
#[derive(Debug)]
pub(super) struct TailTotals {
    pub(super) totals: UsageTotals,
    pub(super) seq: u64,
    pub(super) hash: [u8; 64],
}

/// Line that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    pub(super) seq: u64,
    pub(super) bytes: u64,
}

/// Condition for the next line to begin a new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fullness {
    /// At so many bytes.
    At(u64),
    /// Now, because the segment is old; the size is kept for the next one.
    Now(u64),
}

#[derive(Serialize)]
struct WrittenLine<'a> {
    v: u32,
    seq: u64,
    #[serde(flatten)]
    record: &'a ExchangeRecord,
    prev: &'a str,
    #[serde(skip_serializing_if = "<[Lost]>::is_empty")]
    lost: &'a [Lost],
}

impl Tail {
    /// Creates the tail of a journal in `dir`, whose segments have about `size` bytes.
    pub(super) fn new(dir: PathBuf, end: End, size: u64, space: Arc<Space>) -> Self {
        let End { segment, file, length, seq, hash } = end;
        Self {
            dir,
            segment,
            file: Arc::new(file),
            length,
            seq,
            hash,
            line: Vec::with_capacity(1024),
            space,
            fullness: Fullness::At(size),
            retry_at: None,
            lost: Vec::new(),
            totals: UsageTotals::default(),
        }
    }

    /// Adds the `lost` lines to the next line, which reports them.
    pub(super) fn report_lost(&mut self, lost: &[Lost]) {
        self.lost = lost.iter().copied().take(MAX_LOST_REPORTED).collect();
    }

    /// Takes the sums over the lines that were appended since this was last done; `None` if there were no lines.
    pub(super) fn take_totals(&mut self) -> Option<TailTotals> {
        let totals = std::mem::take(&mut self.totals);
        (!totals.by_account.is_empty()).then_some(TailTotals { totals, seq: self.seq, hash: self.hash })
    }

    /// Returns the number of the last line.
    pub(super) const fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the last line's hash.
    pub(super) const fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    /// Returns the file that lines go to.
    pub(super) const fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Returns the current segment and its length.
    pub(super) const fn segment(&self) -> (&Segment, u64) {
        (&self.segment, self.length)
    }

    /// Syncs the current segment and the directory.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        File::open(&self.dir)?.sync_all()
    }

    /// Appends a line, in a new segment if the last one is full.
    pub(super) fn append(&mut self, record: &ExchangeRecord) -> io::Result<Appended> {
        if self.is_full()
            && self.may_retry()
            && let Err(error) = self.rotate()
        {
            tracing::warn!(
                error = report::chain(&error),
                "cannot begin a new file of the journal: going on in the full one"
            );
            self.retry_at = Some(Instant::now() + RETRY_DELAY);
        }
        let seq = self.seq + 1;
        let prev = std::str::from_utf8(&self.hash).map_err(io::Error::other)?;
        self.line.clear();
        serde_json::to_writer(
            &mut self.line,
            &WrittenLine { v: SCHEMA_VERSION, seq, record, prev, lost: &self.lost },
        )?;
        let hash = hash(&self.line);
        self.line.push(b'\n');
        self.file.write_all_at(&self.line, self.length)?;
        let bytes = self.line.len() as u64;
        self.length += bytes;
        self.space.note_written(bytes);
        self.seq = seq;
        self.hash = hash;
        self.lost.clear();
        self.totals.add(record);
        Ok(Appended { seq, bytes })
    }

    /// Allocates the space that reservations need.
    pub(super) fn preallocate(&mut self) -> io::Result<()> {
        if !self.may_retry() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match self.space.preallocate(&self.file, self.length) {
            Ok(bytes) => {
                self.space.set_allocated(bytes);
                Ok(())
            }
            Err(error) => {
                self.retry_at = Some(Instant::now() + RETRY_DELAY);
                Err(error)
            }
        }
    }

    /// Lets the next line begin a new segment.
    pub(super) const fn end_segment(&mut self) {
        let (Fullness::At(size) | Fullness::Now(size)) = self.fullness;
        self.fullness = Fullness::Now(size);
    }

    const fn is_full(&self) -> bool {
        match self.fullness {
            Fullness::At(size) => self.length >= size,
            Fullness::Now(_) => self.length > 0,
        }
    }

    fn may_retry(&self) -> bool {
        self.retry_at.is_none_or(|retry_at| Instant::now() >= retry_at)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = Segment::new(&self.dir, self.seq + 1);
        let file = next.create()?;
        // The new file covers all reservations before a line goes there; no new ones succeed meanwhile.
        let before = self.space.set_allocated(0);
        let allocated = self.space.preallocate(&file, 0).inspect_err(|_error| {
            self.space.set_allocated(before);
            drop(std::fs::remove_file(&next.path));
        })?;
        // The space allocated behind the end of the full file goes back.
        self.file.set_len(self.length)?;
        self.space.set_allocated(allocated);
        self.segment = next;
        self.file = Arc::new(file);
        self.length = 0;
        self.retry_at = None;
        let (Fullness::At(size) | Fullness::Now(size)) = self.fullness;
        self.fullness = Fullness::At(size);
        Ok(())
    }
}
