//! Tells up to where the events of a run are recorded.

use platform_core::event::OutputStream;
use serde::{Deserialize, Serialize};

use super::Error;

/// Position up to which a run's events between its moves are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCursor {
    /// Position in what its agent printed on standard output.
    pub stdout: OutputPosition,
    /// Position in what its agent printed on standard error.
    pub stderr: OutputPosition,
    /// Number of tool calls.
    pub tools: u64,
    /// Number of the last event of the data plane's tap that is accounted for.
    pub tap: u64,
}

/// Position up to which an output is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPosition {
    /// Bytes from its beginning.
    pub bytes: u64,
    /// Number of events for these bytes.
    pub events: u64,
    /// Bytes of the events' texts, as they are stored. Older rows have none; for those no more bytes were stored than
    /// printed.
    #[serde(default)]
    pub kept: u64,
}

/// Recorded position, with the hold and the batch that recorded it.
#[derive(Serialize, Deserialize)]
pub(super) struct RecordedPosition {
    pub(super) epoch: u64,
    pub(super) batch: u64,
    #[serde(flatten)]
    pub(super) told: EventCursor,
}

impl EventCursor {
    /// Returns the position of one of the two outputs.
    #[must_use]
    pub const fn of(&mut self, stream: OutputStream) -> &mut OutputPosition {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    /// Reads the position from its column.
    pub(super) fn read(text: Option<&str>) -> Result<Self, Error> {
        let Some(text) = text else { return Ok(Self::default()) };
        let corrupt = |_error| Error::Corrupt { what: "event position", value: text.to_owned() };
        serde_json::from_str::<RecordedPosition>(text).map(|recorded| recorded.told).map_err(corrupt)
    }
}
