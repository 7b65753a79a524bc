//! Defines the position up to which the events of a run are recorded.

use platform_core::{
    event::OutputStream,
    json::{self, Bounds},
};
use serde::{Deserialize, Serialize};

use super::Error;

/// Position up to which a run's events between transitions are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCursor {
    /// Position in the agent's standard output.
    pub stdout: OutputPosition,
    /// Position in the agent's standard error.
    pub stderr: OutputPosition,
    /// Number of tool calls.
    pub tools: u64,
    /// Number of the last event of the data plane's tap that is recorded.
    pub tap: u64,
    /// Counts of the events that the agent reported itself. Absent in rows of agents that report none.
    #[serde(default, skip_serializing_if = "ReportedEvents::is_empty")]
    pub reported: ReportedEvents,
}

/// Counts of the events that an agent reported itself, up to a position in its standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedEvents {
    /// Number of tool calls, results and reports of usage that are stored.
    pub tools: u64,
    /// Number of bytes of their arguments and results, as they are stored.
    pub tool_bytes: u64,
    /// Number of events of text that are stored.
    pub texts: u64,
    /// Number of bytes of these texts, as they are stored.
    pub text_bytes: u64,
    /// Number of events that were left out.
    pub left_out: u64,
    /// Number of bytes of other output that were left out.
    pub log_bytes_left_out: u64,
}

impl ReportedEvents {
    /// Returns whether nothing was reported.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Position up to which an output is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPosition {
    /// Number of bytes from the beginning of the output.
    pub bytes: u64,
    /// Number of events for these bytes.
    pub events: u64,
    /// Number of bytes of the events' texts, as they are stored; 0 in older rows. For those, at most as many bytes were
    /// stored as printed.
    #[serde(default)]
    pub kept: u64,
}

/// Recorded position, with the epoch and the batch that recorded it.
#[derive(Serialize, Deserialize)]
pub(super) struct RecordedPosition {
    pub(super) epoch: u64,
    pub(super) batch: u64,
    #[serde(flatten)]
    pub(super) cursor: EventCursor,
}

impl EventCursor {
    /// Returns the position in one of the two outputs, to be changed.
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
        json::from_str::<RecordedPosition>(text, Bounds::STORED)
            .map(|recorded| recorded.cursor)
            .map_err(corrupt)
    }
}
