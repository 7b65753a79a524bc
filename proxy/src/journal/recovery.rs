//! Recovers calls that were in flight when a proxy died: they get their record when the next one starts.
//!
//! A mark means nothing if its call is in the journal after the line that the mark names. Stale marks are cleared every
//! second. So recovery reads only the lines of the last second, or of the longest call in flight. Marks are cleared
//! only after all records are written, so that recovery itself may be killed at any point.

use std::collections::HashMap;

use platform_core::{id::CallId, record::ExchangeRecord};
use serde::Deserialize;

use super::{Error, Journal, in_flight};

#[derive(Deserialize)]
struct CallIdOfLine {
    litellm_call_id: CallId,
}

/// Writes the records of marked calls that the journal does not know, and clears all marks.
pub(super) fn recover(journal: &Journal) -> Result<(), Error> {
    let mut logs = Vec::new();
    let mut recovered = Vec::new();
    for (log, calls) in in_flight::open_all(&journal.dir)? {
        logs.push(log);
        recovered.extend(calls);
    }
    let Some(after) = recovered.iter().map(|mark| mark.after).min() else { return Ok(()) };
    let mut lost: HashMap<CallId, ExchangeRecord> =
        recovered.into_iter().map(|mark| (mark.record.litellm_call_id, mark.record)).collect();
    let mut reader = match journal.read_from(after + 1) {
        Err(Error::Removed { oldest }) => journal.read_from(oldest)?,
        reader => reader?,
    };
    let mut text = Vec::new();
    while let Some(CallIdOfLine { litellm_call_id }) = reader.parse(&mut text)? {
        lost.remove(&litellm_call_id);
    }
    let mut lost: Vec<_> = lost.into_values().collect();
    // Calls of one millisecond come in the order of their ids, not in that of the map.
    lost.sort_by(|one, other| (&one.ts, one.litellm_call_id).cmp(&(&other.ts, other.litellm_call_id)));
    for record in &lost {
        journal.write(record)?;
    }
    if !lost.is_empty() {
        tracing::warn!(
            calls = lost.len(),
            "calls were in flight when the proxy ended: journaled as interrupted"
        );
    }
    // Syncs before the marks are gone for good, whatever the durability.
    journal.tail().sync().map_err(Error::io("write", &journal.dir))?;
    logs.iter().try_for_each(|log| log.clear_all().map_err(Error::io("clear", log.path())))
}
