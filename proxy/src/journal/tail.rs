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
use serde::Serialize;

use super::{
    checkpoint::SoFar,
    segments::{End, Segment},
    space::Space,
};

/// Delay before a failed step is tried again: allocating space, creating a file.
const AGAIN: Duration = Duration::from_millis(100);

/// Most ranges of lost lines that one line reports: its length has a bound.
const MAX_LOST_TOLD: usize = 16;

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
    again: Option<Instant>,
    /// Lost lines that the next line reports.
    lost: Vec<Lost>,
    /// Sums over the lines that were appended since they were last taken.
    counted: SoFar,
}

/// Sums over lines, with the last of them and its hash.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) spent: SoFar,
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
struct Line<'a> {
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
        let line = Vec::with_capacity(1024);
        let fullness = Fullness::At(size);
        let (file, again, lost, counted) = (Arc::new(file), None, Vec::new(), SoFar::default());
        Self { dir, segment, file, length, seq, hash, line, space, fullness, again, lost, counted }
    }

    /// Reports with the next line that `lost` ones are gone.
    pub(super) fn tell_lost(&mut self, lost: &[Lost]) {
        self.lost = lost.iter().copied().take(MAX_LOST_TOLD).collect();
    }

    /// Takes the sums over the lines that were appended since this was last done; `None` if there were no lines.
    pub(super) fn take_counted(&mut self) -> Option<Counted> {
        let spent = std::mem::take(&mut self.counted);
        (!spent.by_account.is_empty()).then_some(Counted { spent, seq: self.seq, hash: self.hash })
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

    /// Hands everything to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        File::open(&self.dir)?.sync_all()
    }

    /// Appends a line, in a new segment if the last one is full.
    pub(super) fn append(&mut self, record: &ExchangeRecord) -> io::Result<Appended> {
        if self.is_full()
            && self.is_time()
            && let Err(error) = self.rotate()
        {
            tracing::warn!(%error, "cannot begin a new file of the journal: going on in the full one");
            self.again = Some(Instant::now() + AGAIN);
        }
        let seq = self.seq + 1;
        let prev = std::str::from_utf8(&self.hash).map_err(io::Error::other)?;
        self.line.clear();
        serde_json::to_writer(
            &mut self.line,
            &Line { v: SCHEMA_VERSION, seq, record, prev, lost: &self.lost },
        )?;
        let hash = hash(&self.line);
        self.line.push(b'\n');
        self.file.write_all_at(&self.line, self.length)?;
        let bytes = self.line.len() as u64;
        self.length += bytes;
        self.space.used(bytes);
        (self.seq, self.hash) = (seq, hash);
        self.lost.clear();
        self.counted.add(record);
        Ok(Appended { seq, bytes })
    }

    /// Allocates the space that rooms need.
    pub(super) fn set_aside(&mut self) -> io::Result<()> {
        if !self.is_time() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match self.space.set_aside(&self.file, self.length) {
            Ok(bytes) => {
                self.space.is_set_aside(bytes);
                Ok(())
            }
            Err(error) => {
                self.again = Some(Instant::now() + AGAIN);
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

    fn is_time(&self) -> bool {
        self.again.is_none_or(|again| Instant::now() >= again)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = Segment::new(&self.dir, self.seq + 1);
        let file = next.create()?;
        // Rooms that were given are good in the new file before a line goes there; no more are given meanwhile.
        let before = self.space.is_set_aside(0);
        let set_aside = self.space.set_aside(&file, 0).inspect_err(|_error| {
            self.space.is_set_aside(before);
            drop(std::fs::remove_file(&next.path));
        })?;
        // The space allocated behind the end of the full file goes back.
        self.file.set_len(self.length)?;
        self.space.is_set_aside(set_aside);
        (self.segment, self.file, self.length, self.again) = (next, Arc::new(file), 0, None);
        let (Fullness::At(size) | Fullness::Now(size)) = self.fullness;
        self.fullness = Fullness::At(size);
        Ok(())
    }
}
