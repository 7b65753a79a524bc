//! The journal: one line per call, appended before the call's last bytes leave.
//!
//! NDJSON in a file of its own directory, sequenced and hash-chained: each line holds the SHA-256 of the one
//! before it. Appending is a short write under a lock, made by the thread that serves the call, so that a
//! call never waits for another thread. What a line holds: [`platform_core::record`].
//!
//! Not here yet, and made room for: marks of calls in flight, rotation, fdatasync.

mod follow;
mod segment;
mod spent;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use platform_core::{
    id::RunId,
    record::{ExchangeRecord, SCHEMA_VERSION},
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

pub(crate) use self::{follow::Follower, spent::SoFar};

/// Why the journal cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A line is not what this program writes. Nothing was changed.
    #[error("{}: the line at byte {offset} is not a journal line; move the file away to start a new journal", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
    },
    /// Another proxy writes it.
    #[error("another proxy has the journal {} open: stop it, or use another proxy.state_dir", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A write failed before; nothing is appended after a gap.
    #[error("the journal stopped after a failed write")]
    Stopped,
}

impl Error {
    fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// The journal of one proxy. Shared by all its threads.
#[derive(Debug)]
pub(crate) struct Journal {
    id: String,
    path: PathBuf,
    tail: Mutex<Tail>,
    stopped: AtomicBool,
    /// Sequence number of the last line, for those who follow.
    last: watch::Sender<u64>,
}

/// The end of the file, where the next line goes.
#[derive(Debug)]
struct Tail {
    file: File,
    seq: u64,
    hash: [u8; 64],
    line: Vec<u8>,
}

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    seq: u64,
    #[serde(flatten)]
    record: &'a ExchangeRecord,
    prev: &'a str,
}

impl Journal {
    /// Opens the journal in `dir`, or begins one. An unfinished last line, left by a crash in mid-write, is
    /// cut off: its call was never released to its client.
    ///
    /// # Errors
    /// If the directory cannot be used, or holds something that is no journal.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let id = segment::journal_id(dir)?;
        let path = segment::path(dir);
        let end = segment::open_at_end(&path)?;
        let tail = Tail { file: end.file, seq: end.seq, hash: end.hash, line: Vec::with_capacity(1024) };
        Ok(Self {
            id,
            path,
            last: watch::Sender::new(tail.seq),
            tail: Mutex::new(tail),
            stopped: AtomicBool::new(false),
        })
    }

    /// Id of this journal: sequence numbers only compare within one.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Sequence number of the last line.
    pub(crate) fn last_seq(&self) -> u64 {
        *self.last.borrow()
    }

    /// Whether a call may be let through: its record will find a place.
    pub(crate) fn is_open(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Appends `record`; when this returns, it has been handed to the kernel.
    ///
    /// # Errors
    /// If it could not be written whole. The journal then stops for good: calls are refused, not forgotten.
    pub(crate) fn append(&self, record: &ExchangeRecord) -> Result<u64, Error> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_open() {
            return Err(Error::Stopped);
        }
        let seq = tail.append(record).inspect_err(|_error| self.stopped.store(true, Ordering::Relaxed));
        let seq = seq.map_err(Error::io("append to", &self.path))?;
        self.last.send_replace(seq);
        Ok(seq)
    }

    /// What was spent so far, by accounts and by runs of which not `is_closed`. Reads all of it.
    pub(crate) fn spent(&self, is_closed: impl Fn(&RunId) -> bool) -> Result<SoFar, Error> {
        spent::read(&self.path, is_closed).map_err(Error::io("sum up", &self.path))
    }

    /// Reads from the line after `after`, now and as long as lines are added.
    pub(crate) fn follow(&self, after: u64) -> Result<Follower, Error> {
        Follower::open(&self.path, after, self.last.subscribe())
    }
}

impl Tail {
    fn append(&mut self, record: &ExchangeRecord) -> io::Result<u64> {
        let seq = self.seq + 1;
        let prev = std::str::from_utf8(&self.hash).map_err(io::Error::other)?;
        self.line.clear();
        serde_json::to_writer(&mut self.line, &Line { v: SCHEMA_VERSION, seq, record, prev })?;
        let hash = hash(&self.line);
        self.line.push(b'\n');
        self.file.write_all(&self.line)?;
        (self.seq, self.hash) = (seq, hash);
        Ok(seq)
    }
}

/// What `prev` holds in the first line.
const NO_LINE: [u8; 64] = [b'0'; 64];

/// SHA-256 of a line without its line feed, in hexadecimal.
fn hash(line: &[u8]) -> [u8; 64] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = NO_LINE;
    for (pair, byte) in text.chunks_exact_mut(2).zip(Sha256::digest(line)) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 0xf)];
    }
    text
}
