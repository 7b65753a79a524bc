//! Keeps the consumers of the journal, and the cursor that each has acknowledged.
//!
//! A record that a consumer has not acknowledged is not removed. A cursor names a line with its hash, so consumers can
//! check the journal against what they acknowledged.

use std::{collections::BTreeMap, io, path::PathBuf};

use platform_core::{
    control::{Consumer, Cursor},
    json::{self, Bounds},
};
use platform_runtime::sync::Mutex;

use super::{Error, Journal};
use crate::state;

/// Reason why a cursor is not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcknowledgeError {
    #[error("a consumer's name has 1 to 64 of a-z, 0-9 and -, not {0:?}")]
    Name(String),
    #[error("{name} has acknowledged line {seq} already")]
    Backwards { name: String, seq: u64 },
    #[error("line {seq} has another hash here, or is not there: the journal was rewritten or cut short")]
    Rewritten { seq: u64 },
    #[error(transparent)]
    Journal(#[from] Error),
    #[error("the acknowledgement cannot be stored")]
    Write(#[source] io::Error),
}

/// All consumers, by name.
#[derive(Debug)]
pub(super) struct Consumers {
    file: PathBuf,
    acknowledged: Mutex<BTreeMap<String, Cursor>>,
}

impl Consumers {
    /// Reads the consumers from `file`.
    pub(super) fn open(file: PathBuf) -> Result<Self, Error> {
        let text = state::read(&file).map_err(Error::io("read", &file))?;
        let acknowledged = match text.as_str() {
            "" => BTreeMap::new(),
            text => json::from_str(text, Bounds::STORED)
                .map_err(|_error| Error::Corrupt { path: file.clone(), offset: 0 })?,
        };
        Ok(Self { file, acknowledged: Mutex::new(acknowledged) })
    }

    /// Returns the line that all of them have acknowledged, and the number of them; `u64::MAX` if there are none.
    pub(super) fn slowest(&self) -> (u64, u64) {
        let acknowledged = self.acknowledged.lock();
        let slowest = acknowledged.values().map(|cursor| cursor.seq).min().unwrap_or(u64::MAX);
        (slowest, acknowledged.len() as u64)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Cursor>)) -> io::Result<()> {
        let mut acknowledged = self.acknowledged.lock();
        let mut changed = acknowledged.clone();
        change(&mut changed);
        state::replace(&self.file, &serde_json::to_vec(&changed)?)?;
        *acknowledged = changed;
        Ok(())
    }
}

impl Journal {
    /// Returns all consumers, by name.
    pub(crate) fn consumers(&self) -> Vec<Consumer> {
        let last = self.last_seq();
        let consumer = |(name, cursor): (&String, &Cursor)| Consumer {
            name: name.clone(),
            acknowledged: cursor.clone(),
            lag: last.saturating_sub(cursor.seq),
        };
        self.consumers.acknowledged.lock().iter().map(consumer).collect()
    }

    /// Returns the number of consumers, and the lines that the slowest has still to acknowledge.
    pub(crate) fn lag(&self) -> (u64, u64) {
        let (slowest, count) = self.consumers.slowest();
        (count, self.last_seq().saturating_sub(slowest))
    }

    /// Records that `name` has read everything up to and with the line at `cursor`.
    ///
    /// # Errors
    /// If that line is not in this journal, or `name` has acknowledged more before.
    pub(crate) fn acknowledge(&self, name: &str, cursor: Cursor) -> Result<Consumer, AcknowledgeError> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(AcknowledgeError::Name(name.to_owned()));
        }
        self.check_id(&cursor.journal)?;
        let before = self.consumers.acknowledged.lock().get(name).cloned();
        if let Some(before) = before.filter(|before| before.seq > cursor.seq) {
            return Err(AcknowledgeError::Backwards { name: name.to_owned(), seq: before.seq });
        }
        if self.hash_of(cursor.seq)?.is_none_or(|hash| hash[..] != *cursor.hash.as_bytes()) {
            return Err(AcknowledgeError::Rewritten { seq: cursor.seq });
        }
        let lag = self.last_seq().saturating_sub(cursor.seq);
        let acknowledged = cursor.clone();
        self.consumers
            .change(|all| drop(all.insert(name.to_owned(), cursor)))
            .map_err(AcknowledgeError::Write)?;
        Ok(Consumer { name: name.to_owned(), acknowledged, lag })
    }

    /// Removes the consumer `name`, so that no records are kept for it; returns whether there was one.
    pub(crate) fn forget(&self, name: &str) -> io::Result<bool> {
        if !self.consumers.acknowledged.lock().contains_key(name) {
            return Ok(false);
        }
        self.consumers.change(|all| drop(all.remove(name)))?;
        Ok(true)
    }
}
