//! Finds lines in the journal's files by number, and reads on from there, from file to file.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use platform_core::json::{self, Bounds};
use platform_runtime::file;
use serde::de::DeserializeOwned;

use super::{
    Error,
    gaps::Gaps,
    line_ends::{line_end_before, seq_of},
    segments::{Segment, list},
};

/// Rest of a file that is searched line by line.
const MAX_LINEAR_SCAN: u64 = 32 << 10;

/// Reads lines in their order.
#[derive(Debug)]
pub(super) struct LineReader {
    dir: PathBuf,
    path: PathBuf,
    file: BufReader<File>,
    /// Position at which the next line begins.
    offset: u64,
    /// Number of the next line.
    next: u64,
    /// Lines that are gone: they are skipped.
    gaps: Gaps,
}

impl LineReader {
    /// Creates a reader at line `seq`, or at the end of the journal if it does not reach so far. It skips `gaps`.
    pub(super) fn at(dir: &Path, gaps: &Gaps, seq: u64) -> Result<Self, Error> {
        let seq = gaps.next_present(seq);
        let mut reader = loop {
            let segments = list(dir)?;
            let oldest = segments.first().map_or(1, |segment| segment.first);
            let segment = segments
                .into_iter()
                .rfind(|segment| segment.first <= seq.max(1))
                .ok_or(Error::Removed { oldest })?;
            match Self::of(dir, gaps, segment) {
                // The file was removed after it was listed.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                reader => break reader?,
            }
        };
        reader.skip_to(seq)?;
        Ok(reader)
    }

    fn of(dir: &Path, gaps: &Gaps, segment: Segment) -> Result<Self, Error> {
        let file = file::open_own(OpenOptions::new().read(true), &segment.path)
            .map_err(Error::io("open", &segment.path))?;
        Ok(Self {
            dir: dir.to_owned(),
            path: segment.path,
            file: BufReader::with_capacity(128 << 10, file),
            offset: 0,
            // In a file that was emptied the first line is gone, too.
            next: gaps.next_present(segment.first),
            gaps: gaps.clone(),
        })
    }

    /// Returns the number of the line that is read next.
    pub(super) const fn next_seq(&self) -> u64 {
        self.next
    }

    /// Adds the next line, with its line feed, to `lines`; returns false at the end of the journal.
    pub(super) fn read(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        loop {
            let start = lines.len();
            let read = self.file.read_until(b'\n', lines).map_err(Error::io("read", &self.path))?;
            if read > 0 && lines.ends_with(b"\n") {
                self.offset += read as u64;
                self.next = self.gaps.next_present(self.next + 1);
                return Ok(true);
            }
            lines.truncate(start);
            let next = Segment::new(&self.dir, self.next);
            if next.path == self.path || !next.path.exists() {
                // The rest is a line that is being written.
                self.file.seek(SeekFrom::Start(self.offset)).map_err(Error::io("read", &self.path))?;
                return Ok(false);
            }
            *self = Self::of(&self.dir, &self.gaps, next)?;
        }
    }

    /// Parses the next line; `None` at the end of the journal. Its text, with the line feed, is then in `text`.
    pub(super) fn parse<T: DeserializeOwned>(&mut self, text: &mut Vec<u8>) -> Result<Option<T>, Error> {
        text.clear();
        if !self.read(text)? {
            return Ok(None);
        }
        json::from_slice(text, Bounds::STORED)
            .map(Some)
            .map_err(|_error| Error::unreadable(text, &self.path, self.offset - text.len() as u64))
    }

    fn skip_to(&mut self, seq: u64) -> Result<(), Error> {
        let near = self.search(seq)?;
        self.file.seek(SeekFrom::Start(near)).map_err(Error::io("read", &self.path))?;
        self.offset = near;
        let mut line = Vec::new();
        while self.next < seq && self.read(&mut line)? {
            line.clear();
        }
        Ok(())
    }

    /// Returns the beginning of a line not far before line `seq`; stores its number.
    fn search(&mut self, seq: u64) -> Result<u64, Error> {
        let file = self.file.get_ref();
        let failed = |action| Error::io(action, &self.path);
        let length = file.metadata().map_err(failed("look at"))?.len();
        let mut low = 0;
        let mut high = line_end_before(file, length).map_err(failed("read"))?;
        while high - low > MAX_LINEAR_SCAN {
            let start = line_end_before(file, u64::midpoint(low, high)).map_err(failed("read"))?;
            let mut text = [0; 128];
            let length = file.read_at(&mut text, start).map_err(failed("read"))?;
            let found = seq_of(&text[..length])
                .ok_or_else(|| Error::Corrupt { path: self.path.clone(), offset: start })?;
            if found > seq {
                high = start;
            } else if start == low {
                break;
            } else {
                low = start;
                self.next = found;
            }
        }
        Ok(low)
    }
}
