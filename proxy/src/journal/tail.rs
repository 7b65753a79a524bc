//! Appends to the end of the journal, and changes from one file to the next.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use platform_core::{
    record::{ExchangeRecord, Lost, SCHEMA_VERSION, hash},
    record_text,
};
use platform_runtime::report;

use super::{
    ahead::{FullSegment, NextSegment},
    checkpoint::LineTotals,
    end::End,
    segments::Segment,
    space::{Extent, Space},
};

/// Delay before a new segment is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Most full segments that wait for the maintenance thread to give back their space.
const MAX_FULL: usize = 64;

/// Most ranges of lost lines that one line reports: its length has a bound.
const MAX_LOST_REPORTED: usize = 16;

/// End of the last segment.
#[derive(Debug)]
pub(super) struct Tail {
    dir: PathBuf,
    segment: Segment,
    file: Arc<File>,
    /// Time of the rotation to this segment; `None` if an earlier proxy did that.
    began: Option<SystemTime>,
    /// Segment to go on in, if it is ready.
    next: Option<NextSegment>,
    /// Full segments, until their space is given back.
    full: Vec<FullSegment>,
    length: u64,
    seq: u64,
    hash: [u8; 64],
    /// Lines that are being written.
    text: Vec<u8>,
    space: Arc<Space>,
    fullness: Fullness,
    /// Time at which a new segment is tried again.
    retry_at: Option<Instant>,
    /// Lost lines that the next line reports.
    lost: Vec<Lost>,
    /// Sums over the records that were appended one by one, since they were last taken.
    totals: LineTotals,
}

/// Lines that were written together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    /// Number of the last of them.
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

impl Tail {
    /// Creates the tail of a journal in `dir`, with segments of about `size` bytes.
    pub(super) fn new(dir: PathBuf, end: End, size: u64, space: Arc<Space>) -> Self {
        let End { segment, file, length, seq, hash } = end;
        Self {
            dir,
            segment,
            file: Arc::new(file),
            began: None,
            next: None,
            full: Vec::new(),
            length,
            seq,
            hash,
            text: Vec::new(),
            space,
            fullness: Fullness::At(size),
            retry_at: None,
            lost: Vec::new(),
            totals: LineTotals::default(),
        }
    }

    /// Adds the `lost` lines to the next line, which reports them.
    pub(super) fn report_lost(&mut self, lost: &[Lost]) {
        self.lost = lost.iter().copied().take(MAX_LOST_REPORTED).collect();
    }

    /// Takes the sums over the records that were appended by [`Tail::append`] since this was last done.
    pub(super) fn take_totals(&mut self) -> LineTotals {
        std::mem::take(&mut self.totals)
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

    /// Returns the time at which this proxy began the current segment; `None` if an earlier one did.
    pub(super) const fn began(&self) -> Option<SystemTime> {
        self.began
    }

    /// Returns the segment to go on in, if it is ready.
    pub(super) const fn next_segment(&self) -> Option<&NextSegment> {
        self.next.as_ref()
    }

    /// Takes the segment to go on in: then none is ready any more.
    pub(super) const fn take_next(&mut self) -> Option<NextSegment> {
        self.next.take()
    }

    /// Goes on in `next` when the current segment is full.
    pub(super) fn offer_next(&mut self, next: NextSegment) {
        self.next = Some(next);
    }

    /// Takes the full segments that have not given back their space.
    pub(super) fn take_full(&mut self) -> Vec<FullSegment> {
        std::mem::take(&mut self.full)
    }

    /// Returns the ends of the current segment's lines and of what is allocated behind them.
    pub(super) fn extent(&self) -> Extent {
        Extent { length: self.length, end: self.length + self.space.allocated() }
    }

    /// Notes that `file` is allocated up to `end`, unless lines go to another file meanwhile.
    pub(super) fn note_allocated(&mut self, file: &Arc<File>, end: u64) {
        if Arc::ptr_eq(file, &self.file) {
            self.space.note_allocated(end.saturating_sub(self.length));
        }
    }

    /// Syncs the current segment and the directory.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        File::open(&self.dir)?.sync_all()
    }

    /// Appends the line of `record`, and sums it up.
    pub(super) fn append(&mut self, record: &ExchangeRecord) -> io::Result<Appended> {
        let mut fields = Vec::with_capacity(1024);
        record_text::write_fields(record, &mut fields);
        let appended = self.append_all(std::iter::once(fields.as_slice()))?;
        self.totals.add(appended.seq, record);
        Ok(appended)
    }

    /// Appends a line for each of these records' fields with one write, in a new segment if the last one is full.
    pub(super) fn append_all<'f>(&mut self, records: impl Iterator<Item = &'f [u8]>) -> io::Result<Appended> {
        self.rotate_if_full();
        self.text.clear();
        let mut seq = self.seq;
        let mut hash = self.hash;
        let mut lost = std::mem::take(&mut self.lost);
        for fields in records {
            seq += 1;
            hash = write_line(seq, fields, Links { before: &hash, lost: &lost }, &mut self.text)?;
            lost.clear();
        }
        self.file.write_all_at(&self.text, self.length)?;
        let bytes = self.text.len() as u64;
        self.length += bytes;
        self.space.note_written(bytes);
        self.seq = seq;
        self.hash = hash;
        Ok(Appended { seq, bytes })
    }

    fn rotate_if_full(&mut self) {
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
        let segment = Segment::new(&self.dir, self.seq + 1);
        let next = match self.next.take() {
            Some(next) => next,
            None => NextSegment::create(segment.path.clone())?,
        };
        // The new file covers all reservations before a line goes there; no new ones succeed meanwhile.
        let before = self.space.set_allocated(0);
        let named = self.space.cover(&next.file, next.allocated).and_then(|allocated| {
            std::fs::rename(&next.path, &segment.path)?;
            Ok(allocated)
        });
        let allocated = named.inspect_err(|_error| {
            self.space.set_allocated(before);
            next.remove();
        })?;
        let full = FullSegment { file: std::mem::replace(&mut self.file, next.file), length: self.length };
        self.note_full(full);
        self.space.set_allocated(allocated);
        self.segment = segment;
        self.began = Some(SystemTime::now());
        self.length = 0;
        self.retry_at = None;
        let (Fullness::At(size) | Fullness::Now(size)) = self.fullness;
        self.fullness = Fullness::At(size);
        self.space.demand().raise();
        Ok(())
    }

    /// Notes that the space behind the end of `full` is to be given back.
    fn note_full(&mut self, full: FullSegment) {
        if self.full.len() < MAX_FULL {
            self.full.push(full);
        } else {
            full.trim();
        }
    }
}

/// Part of a line that refers to other lines.
#[derive(Debug, Clone, Copy)]
struct Links<'l> {
    /// Hash of the line before.
    before: &'l [u8; 64],
    /// Lost lines that this one reports.
    lost: &'l [Lost],
}

/// Appends line `seq` with the `fields` of its record to `text`. Returns its hash.
fn write_line(seq: u64, fields: &[u8], links: Links<'_>, text: &mut Vec<u8>) -> io::Result<[u8; 64]> {
    let start = text.len();
    text.extend_from_slice(b"{\"v\":");
    record_text::write_number(SCHEMA_VERSION.into(), text);
    text.extend_from_slice(b",\"seq\":");
    record_text::write_number(seq, text);
    text.push(b',');
    text.extend_from_slice(fields);
    text.extend_from_slice(b",\"prev\":\"");
    text.extend_from_slice(links.before);
    text.push(b'"');
    if !links.lost.is_empty() {
        text.extend_from_slice(b",\"lost\":");
        serde_json::to_writer(&mut *text, links.lost)?;
    }
    text.push(b'}');
    let hash = hash(&text[start..]);
    text.push(b'\n');
    Ok(hash)
}
