//! Exposes a data-plane thread's writer of the journal.

use std::{path::Path, sync::Arc};

use platform_core::record::ExchangeRecord;
use platform_runtime::settings;

use crate::journal::{self, Committer, Journal, SpaceReservation};

/// A data-plane thread's writer of a journal.
#[derive(Debug)]
pub struct Records(Committer);

/// A call that is marked in flight.
#[derive(Debug)]
pub struct InFlight(SpaceReservation);

impl Records {
    /// Opens a journal in `dir`, and returns the writers of so many threads.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(dir: &Path, threads: usize) -> Result<Vec<Self>, journal::Error> {
        let journal = Arc::new(Journal::open(dir, settings::Journal::default())?);
        (0..threads).map(|index| Committer::new(Arc::clone(&journal), index).map(Self)).collect()
    }

    /// Reserves space for a call's `record` and marks the call in flight, in its own turn. Returns `None` if there
    /// is not a space.
    ///
    /// # Errors
    /// If no slot is free for the mark.
    pub fn mark(&self, record: &ExchangeRecord) -> Result<Option<InFlight>, journal::Error> {
        let Some(mut space) = self.0.reserve_space() else { return Ok(None) };
        drop(self.0.mark(&mut space, record)?);
        self.0.end_turn();
        Ok(Some(InFlight(space)))
    }

    /// Appends the line of a call that was marked, in its own turn. The call's mark means nothing then.
    pub fn append(&self, record: ExchangeRecord, InFlight(space): InFlight) {
        drop(self.0.append(record, Some(space), ()));
        self.0.end_turn();
    }
}
