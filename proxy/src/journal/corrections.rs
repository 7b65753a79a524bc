//! Corrects records with estimated tokens, by what the upstream's ledger says of their calls.
//!
//! A correction is a line behind all others, so the chain holds both figures. The checkpoint keeps the number of the last
//! line about each call that may still be corrected. A correction that is repeated finds its figures there, and adds
//! nothing.

use std::{collections::BTreeMap, sync::Arc};

use platform_core::{
    id::CallId,
    record::{Correction, ExchangeRecord, Figures, JournalLine, LedgerFigures},
};
use serde::{Deserialize, Serialize};

use super::{Error, Journal};

/// Most calls that are kept for corrections; the newest ones.
const MAX_OPEN: usize = 16 << 10;

/// Number of the last line about each call that may be corrected: its record, or its last correction.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OpenCalls(BTreeMap<CallId, u64>);

/// Effect of the ledger's figures on a call.
#[derive(Debug)]
pub(crate) enum Corrected {
    /// This record of a correction was written.
    Written(Box<ExchangeRecord>),
    /// The call counts with these figures already, or with what was seen of it.
    Unchanged,
    /// No such call may be corrected.
    NotOpen,
}

/// Call that may be corrected.
struct OpenCall {
    /// Number of its record's line.
    line: u64,
    record: ExchangeRecord,
    /// Figures that count.
    figures: Figures,
}

impl OpenCalls {
    /// Notes that line `seq` is about `call`. Lines may come in any order.
    pub(super) fn note(&mut self, call: CallId, seq: u64) {
        let last = self.0.entry(call).or_default();
        *last = seq.max(*last);
        if self.0.len() > MAX_OPEN {
            self.0.pop_first();
        }
    }

    /// Forgets the calls with lines before `first`.
    pub(super) fn forget_before(&mut self, first: u64) {
        self.0.retain(|_, seq| *seq >= first);
    }

    fn last_line(&self, call: CallId) -> Option<u64> {
        self.0.get(&call).copied()
    }
}

impl Journal {
    /// Corrects a call by what the ledger says of it, unless its tokens are exact. It never counts less than what was seen
    /// of it. The caller moves the counters of limits by the record that is returned.
    ///
    /// # Errors
    /// If the correction cannot be written, or a line cannot be read.
    pub(crate) fn correct(&self, ledger: &LedgerFigures) -> Result<Corrected, Error> {
        // Held until the correction is noted: another one of the same call waits.
        let mut sums = self.checkpoint.lock();
        let sums = self.sum_up(&mut sums)?;
        let Some(last) = sums.open.last_line(ledger.call_id) else { return Ok(Corrected::NotOpen) };
        let Some(call) = self.open_call(last)? else { return Ok(Corrected::NotOpen) };
        let after = ledger.correct(&call.record);
        if after == call.figures {
            return Ok(Corrected::Unchanged);
        }
        let record = call.record.corrected(Correction { line: call.line, before: call.figures, after });
        let space = self.reserve_from(&self.own_space).ok_or(Error::NoSpace)?;
        let seq = self.append(|tail| tail.append(&record))?.seq;
        drop(space);
        sums.open.note(ledger.call_id, seq);
        Ok(Corrected::Written(Box::new(record)))
    }

    /// Makes the corrections durable that were written so far.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn sync_corrections(&self) -> Result<(), Error> {
        let file = Arc::clone(self.tail().file());
        file.sync_data().map_err(Error::io("sync", &self.dir))
    }

    /// Returns the call that line `last` is about; `None` if its lines are gone.
    fn open_call(&self, last: u64) -> Result<Option<OpenCall>, Error> {
        let Some(record) = self.record(last)? else { return Ok(None) };
        let Some(correction) = record.correction.as_deref().copied() else {
            let figures = Figures::from(&record);
            return Ok(Some(OpenCall { line: last, record, figures }));
        };
        let line = correction.line;
        Ok(self.record(line)?.map(|record| OpenCall { line, record, figures: correction.after }))
    }

    /// Returns the record in line `seq`; `None` if the line is gone.
    fn record(&self, seq: u64) -> Result<Option<ExchangeRecord>, Error> {
        let mut reader = match self.read_from(seq) {
            Err(Error::Removed { .. }) => return Ok(None),
            reader => reader?,
        };
        let line: Option<JournalLine> = reader.parse(&mut Vec::new())?;
        Ok(line.filter(|line| line.seq == seq).map(|line| line.record))
    }
}
