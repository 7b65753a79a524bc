//! Who reads the journal and says how far. What one of them has not acknowledged is not removed, and what they did acknowledge
//! they can hold against the journal: a line is named with its hash.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use platform_core::control::{Consumer, Cursor};

use super::{Error, Journal};
use crate::state;

/// Why something is not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unacknowledged {
    #[error("a consumer's name has 1 to 64 of a-z, 0-9 and -, not {0:?}")]
    Name(String),
    #[error("{name} has acknowledged line {seq} already")]
    Backwards { name: String, seq: u64 },
    #[error("line {seq} has another hash here, or is not there: the journal was rewritten or cut short")]
    Rewritten { seq: u64 },
    #[error(transparent)]
    Journal(#[from] Error),
    #[error("it cannot be written down")]
    Write(#[source] io::Error),
}

/// All consumers, by name.
#[derive(Debug)]
pub(super) struct Consumers {
    file: PathBuf,
    acknowledged: Mutex<BTreeMap<String, Cursor>>,
}

impl Consumers {
    /// Those that `file` tells of.
    pub(super) fn open(file: PathBuf) -> Result<Self, Error> {
        let text = state::read(&file).map_err(Error::io("read", &file))?;
        let acknowledged = match text.as_str() {
            "" => BTreeMap::new(),
            text => serde_json::from_str(text)
                .map_err(|_error| Error::Corrupt { path: file.clone(), offset: 0 })?,
        };
        Ok(Self { file, acknowledged: Mutex::new(acknowledged) })
    }

    /// The line that all of them have acknowledged, and the number of them; `u64::MAX` if there are none.
    pub(super) fn slowest(&self) -> (u64, u64) {
        let acknowledged = self.acknowledged();
        let slowest = acknowledged.values().map(|cursor| cursor.seq).min().unwrap_or(u64::MAX);
        (slowest, acknowledged.len() as u64)
    }

    fn acknowledged(&self) -> MutexGuard<'_, BTreeMap<String, Cursor>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Cursor>)) -> io::Result<()> {
        let mut acknowledged = self.acknowledged();
        let mut changed = acknowledged.clone();
        change(&mut changed);
        state::replace(&self.file, &serde_json::to_vec(&changed)?)?;
        *acknowledged = changed;
        Ok(())
    }
}

impl Journal {
    /// All consumers, by name.
    pub(crate) fn consumers(&self) -> Vec<Consumer> {
        let last = self.last_seq();
        let consumer = |(name, cursor): (&String, &Cursor)| Consumer {
            name: name.clone(),
            acknowledged: cursor.clone(),
            lag: last.saturating_sub(cursor.seq),
        };
        self.consumers.acknowledged().iter().map(consumer).collect()
    }

    /// How many consumers there are, and how many lines the slowest has still to acknowledge.
    pub(crate) fn lag(&self) -> (u64, u64) {
        let (slowest, count) = self.consumers.slowest();
        (count, self.last_seq().saturating_sub(slowest))
    }

    /// Takes note that `name` has read everything up to and with the line at `cursor`.
    ///
    /// # Errors
    /// If that line is not in this journal, or it has said more before.
    pub(crate) fn acknowledge(&self, name: &str, cursor: Cursor) -> Result<Consumer, Unacknowledged> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(Unacknowledged::Name(name.to_owned()));
        }
        self.is_the_same(&cursor.journal)?;
        let before = self.consumers.acknowledged().get(name).cloned();
        if let Some(before) = before.filter(|before| before.seq > cursor.seq) {
            return Err(Unacknowledged::Backwards { name: name.to_owned(), seq: before.seq });
        }
        if self.hash_of(cursor.seq)?.is_none_or(|hash| hash[..] != *cursor.hash.as_bytes()) {
            return Err(Unacknowledged::Rewritten { seq: cursor.seq });
        }
        let lag = self.last_seq().saturating_sub(cursor.seq);
        let acknowledged = cursor.clone();
        self.consumers
            .change(|all| drop(all.insert(name.to_owned(), cursor)))
            .map_err(Unacknowledged::Write)?;
        Ok(Consumer { name: name.to_owned(), acknowledged, lag })
    }

    /// Keeps nothing for `name` any more; whether there was such a consumer.
    pub(crate) fn forget(&self, name: &str) -> io::Result<bool> {
        if !self.consumers.acknowledged().contains_key(name) {
            return Ok(false);
        }
        self.consumers.change(|all| drop(all.remove(name)))?;
        Ok(true)
    }
}
