//! Opens a journal at its end, and reads the last lines of its files.
//!
//! Reads only ends: a journal of any length opens at once.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use platform_core::{
    json::{self, Bounds},
    record::{JournalLine, NO_LINE, hash},
};
use platform_runtime::{file, report};

use super::{
    Error,
    checkpoint::Expected,
    line_ends::{line_before, line_end_before, seq_of},
    segments::{Segment, create_empty, list},
};

/// Most lines that may have been written after the last checkpoint. If the end of the journal is gone, their numbers
/// are not used again.
pub(super) const MAX_UNSUMMED: u64 = 1 << 20;
/// Unit in which the kernel counts a file's space.
const BLOCK: u64 = 512;
/// Most bytes that a file system may use for a file besides its content.
const MAX_UNUSED: u64 = 256 << 10;

/// End of a journal, where its next line goes.
#[derive(Debug)]
pub(super) struct End {
    pub(super) segment: Segment,
    pub(super) file: File,
    pub(super) length: u64,
    /// Number of the last line.
    pub(super) seq: u64,
    pub(super) hash: [u8; 64],
}

/// Opens the last segment in `dir` for appending after its last whole line, or a new one far behind the line that is
/// `expected`, if that is gone.
pub(super) fn open_at_end(dir: &Path, expected: Option<&Expected>) -> Result<End, Error> {
    let expected = expected.filter(|expected| expected.seq > 0);
    let (there, expected) = match (last_end(dir), expected) {
        (Ok(end), Some(expected)) if end.seq < expected.seq => (end.segment, expected),
        // One empty file is left.
        (Err(Error::Missing { .. }), Some(expected)) => (list(dir)?.remove(0), expected),
        (end, _) => return end,
    };
    if last_number(&there)?.is_some_and(|last| last < there.first) {
        fs::remove_file(&there.path).map_err(Error::io("remove", &there.path))?;
    }
    let seq = expected.seq.saturating_add(MAX_UNSUMMED);
    let segment = Segment::new(dir, seq + 1);
    let file = create_empty(&segment.path).map_err(Error::io("create", &segment.path))?;
    Ok(End { file, length: 0, seq, hash: expected.hash, segment })
}

/// Returns the number of the last line in `segment`; of an empty one, that of the line before; `None` if the file is
/// not a journal's.
pub(super) fn last_number(segment: &Segment) -> Result<Option<u64>, Error> {
    let path = &segment.path;
    let file = file::open_own(OpenOptions::new().read(true), path).map_err(Error::io("open", path))?;
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    let end = line_end_before(&file, length).map_err(Error::io("read", path))?;
    if end == 0 {
        return Ok(Some(segment.first - 1));
    }
    let (_, line) = line_before(&file, end).map_err(Error::io("read", path))?;
    Ok(seq_of(&line))
}

/// Opens the last segment in `dir` after its last whole line. An unfinished last line, left by a crash in mid-write, is
/// cut off.
fn last_end(dir: &Path) -> Result<End, Error> {
    let mut segments = list(dir)?;
    let segment = segments.pop().unwrap_or_else(|| Segment::new(dir, 1));
    let path = &segment.path;
    let file = file::open_own(OpenOptions::new().create(true).truncate(false).read(true).write(true), path)
        .map_err(Error::io("open", path))?;
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    let whole = line_end_before(&file, length).map_err(Error::io("read", path))?;
    if length > whole {
        tracing::warn!(path = %path.display(), bytes = length - whole, "cutting off an unfinished line of the journal");
        file.set_len(whole).map_err(Error::io("shorten", path))?;
    }
    if whole > 0 {
        let (seq, hash) = last(&file, path, whole)?;
        return Ok(End { file, length: whole, seq, hash, segment });
    }
    // A crash has left it without a line: the chain continues from the segment before.
    let Some(before) = segments.pop() else {
        let is_new = segment.first == 1;
        return if is_new {
            Ok(End { file, length: 0, seq: 0, hash: NO_LINE, segment })
        } else {
            Err(Error::Missing { seq: 1 })
        };
    };
    let file_before = file::open_own(OpenOptions::new().read(true), &before.path)
        .map_err(Error::io("open", &before.path))?;
    let length = file_before.metadata().map_err(Error::io("look at", &before.path))?.len();
    match last(&file_before, &before.path, length) {
        Ok((seq, hash)) if segment.first == seq + 1 => Ok(End { file, length: 0, seq, hash, segment }),
        Ok(_) | Err(Error::Corrupt { .. }) => {
            tracing::error!(path = %path.display(), "the last lines before this file are lost, as when power fails");
            fs::remove_file(path).map_err(Error::io("remove", path))?;
            last_end(dir)
        }
        Err(error) => Err(error),
    }
}

/// Returns the sequence number and hash of the line that ends at `end`.
fn last(file: &File, path: &Path, end: u64) -> Result<(u64, [u8; 64]), Error> {
    let (start, line) = line_before(file, end).map_err(Error::io("read", path))?;
    let parsed: JournalLine =
        json::from_slice(&line, Bounds::STORED).map_err(|_error| Error::unreadable(&line, path, start))?;
    Ok((parsed.seq, hash(&line)))
}

/// Gives back the space behind the last lines of full segments in `dir`, which a crash has left allocated.
pub(super) fn trim_full(dir: &Path) -> Result<(), Error> {
    let mut full = list(dir)?;
    full.pop();
    for Segment { path, .. } in full {
        if let Err(error) = trim(&path) {
            let error = report::chain(&error);
            tracing::warn!(path = %path.display(), error, "cannot give back the space behind this file's end");
        }
    }
    Ok(())
}

fn trim(path: &Path) -> io::Result<()> {
    let file = file::open_own(OpenOptions::new().read(true).write(true), path)?;
    let metadata = file.metadata()?;
    let end = written_end(&file, metadata.len())?;
    if end < metadata.len() || metadata.blocks() * BLOCK > end + MAX_UNUSED {
        file.set_len(end)?;
    }
    Ok(())
}

/// Returns the end of the last line, if only zeros follow in a file of `length` bytes; otherwise `length`.
fn written_end(file: &File, length: u64) -> io::Result<u64> {
    let whole = line_end_before(file, length)?;
    let mut piece = [0; 4096];
    let mut end = length;
    while end > whole {
        let start = end.saturating_sub(piece.len() as u64).max(whole);
        let read = &mut piece[..usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(read, start)?;
        if read.iter().any(|byte| *byte != 0) {
            return Ok(length);
        }
        end = start;
    }
    Ok(whole)
}
