//! Reads the journal while it grows, over rotations and from any line that is kept.

use bytes::Bytes;
use platform_core::record::{self, JournalLine};

use super::{Error, Journal, appended::LineWatch, lines::LineReader, segments};

/// Approximate size of one batch.
const BATCH_SIZE: usize = 64 << 10;

/// Reader at some position of the journal. Sees only whole lines.
#[derive(Debug)]
pub(crate) struct Follower {
    reader: LineReader,
    after: u64,
    lines: LineWatch,
}

impl Follower {
    pub(super) fn open(journal: &Journal, after: u64) -> Result<Self, Error> {
        let lines = LineWatch::new(&journal.last);
        Ok(Self { reader: journal.read_from(after.saturating_add(1))?, after, lines })
    }

    /// Returns the next lines there are, some kilobytes of them; empty at the end of the journal.
    ///
    /// # Errors
    /// If they cannot be read; [`Error::Missing`] if they were removed before they were read.
    pub(crate) fn batch(&mut self) -> Result<Bytes, Error> {
        let written = self.lines.see();
        let mut lines = Vec::new();
        while self.reader.next_seq() <= written && lines.len() < BATCH_SIZE {
            let start = lines.len();
            let seq = self.reader.next_seq();
            if !self.reader.read(&mut lines)? {
                return Err(Error::Missing { seq });
            }
            if seq <= self.after {
                lines.truncate(start);
            }
        }
        Ok(lines.into())
    }

    /// Waits until there may be more lines. Cancel safe.
    pub(crate) async fn wait_for_more(&mut self) {
        self.lines.wait().await;
    }
}

impl Journal {
    /// Reads from the line after `after`, now and as long as lines are added; from the oldest that is kept if it is
    /// `None`.
    ///
    /// # Errors
    /// If this is not the journal with the id `journal`, or those lines were removed.
    pub(crate) fn follow(&self, after: Option<u64>, journal: Option<&str>) -> Result<Follower, Error> {
        journal.map_or(Ok(()), |journal| self.check_id(journal))?;
        if let Some(after) = after {
            return Follower::open(self, after);
        }
        loop {
            match Follower::open(self, self.oldest()? - 1) {
                // The oldest line was removed after it was looked up.
                Err(Error::Removed { .. }) => {}
                follower => return follower,
            }
        }
    }

    pub(super) fn check_id(&self, journal: &str) -> Result<(), Error> {
        if journal == self.id { Ok(()) } else { Err(Error::Changed { present: self.id.clone() }) }
    }

    /// Returns the oldest line that is kept.
    pub(super) fn oldest(&self) -> Result<u64, Error> {
        Ok(segments::list(&self.dir)?.first().map_or(1, |segment| segment.first))
    }

    /// Returns the hash of line `seq`, if there is such a line. The hash of the last removed line is still known.
    pub(super) fn hash_of(&self, seq: u64) -> Result<Option<[u8; 64]>, Error> {
        let (last, hash) = {
            let tail = self.tail();
            (tail.seq(), *tail.hash())
        };
        if seq >= last {
            return Ok((seq == last).then_some(hash));
        }
        if self.gaps.contains(seq) {
            return Ok(None);
        }
        let mut text = Vec::new();
        if self.gaps.contains(seq + 1) {
            let is_there = self.read_from(seq)?.read(&mut text)?;
            return Ok(is_there.then(|| record::hash(text.trim_ascii_end())));
        }
        // Each line holds the hash of the one before it.
        let next = self.read_from(seq + 1)?.parse(&mut text)?;
        let line: JournalLine = next.ok_or(Error::Missing { seq: seq + 1 })?;
        Ok(<[u8; 64]>::try_from(line.prev.as_bytes()).ok())
    }

    /// Returns a reader at line `seq`; at the next present line, if that is gone.
    pub(super) fn read_from(&self, seq: u64) -> Result<LineReader, Error> {
        LineReader::at(&self.dir, &self.gaps, seq)
    }
}
