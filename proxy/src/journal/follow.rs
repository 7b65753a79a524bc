//! Reading the journal while it grows.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use bytes::Bytes;
use tokio::sync::watch;

use super::Error;

/// How much is handed over at a time, about.
const BATCH: usize = 64 << 10;

/// A reader at some place of the journal. Sees only whole lines.
#[derive(Debug)]
pub(crate) struct Follower {
    reader: BufReader<File>,
    /// Sequence number of the last line that was read.
    at: u64,
    after: u64,
    last: watch::Receiver<u64>,
}

impl Follower {
    pub(super) fn open(path: &Path, after: u64, last: watch::Receiver<u64>) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        Ok(Self { reader: BufReader::new(file), at: 0, after, last })
    }

    /// The next lines there are, some kilobytes of them; empty at the end of the journal.
    pub(crate) fn batch(&mut self) -> std::io::Result<Bytes> {
        let written = *self.last.borrow_and_update();
        let mut lines = Vec::new();
        while self.at < written && lines.len() < BATCH {
            let start = lines.len();
            self.reader.read_until(b'\n', &mut lines)?;
            self.at += 1;
            if self.at <= self.after {
                lines.truncate(start);
            }
        }
        Ok(lines.into())
    }

    /// Ready when there may be more. Cancel safe.
    pub(crate) async fn more(&mut self) {
        if self.last.changed().await.is_err() {
            // The journal is gone, which only happens while the process ends: there will be no more.
            std::future::pending::<()>().await;
        }
    }
}
