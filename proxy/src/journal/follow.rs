//! Reading the journal while it grows, over rotations and from any line that is kept.

use std::path::Path;

use bytes::Bytes;
use tokio::sync::watch;

use super::{Error, lines::Reader};

/// How much is handed over at a time, about.
const BATCH: usize = 64 << 10;

/// A reader at some place of the journal. Sees only whole lines.
#[derive(Debug)]
pub(crate) struct Follower {
    reader: Reader,
    after: u64,
    last: watch::Receiver<u64>,
}

impl Follower {
    pub(super) fn open(dir: &Path, after: u64, last: watch::Receiver<u64>) -> Result<Self, Error> {
        Ok(Self { reader: Reader::at(dir, after.saturating_add(1))?, after, last })
    }

    /// The next lines there are, some kilobytes of them; empty at the end of the journal.
    ///
    /// # Errors
    /// If they cannot be read; [`Error::Missing`] if they were removed before they were read.
    pub(crate) fn batch(&mut self) -> Result<Bytes, Error> {
        let written = *self.last.borrow_and_update();
        let mut lines = Vec::new();
        while self.reader.next() <= written && lines.len() < BATCH {
            let (start, seq) = (lines.len(), self.reader.next());
            if !self.reader.read(&mut lines)? {
                return Err(Error::Missing { seq });
            }
            if seq <= self.after {
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
