//! Parses the part of a journal line that filters and sums need. The result borrows from the line, because a journal
//! may be a gigabyte long.

use std::borrow::Cow;

use platform_core::{
    json::{self, Bounds},
    money::NanoDollars,
    record::{Correction, Kind, Outcome, Tokens, TokensSource, known_version},
    refusal::Refusal,
};
use serde::Deserialize;

/// Part of a record that filters and sums need.
#[derive(Debug, Deserialize)]
pub struct Entry<'l> {
    #[serde(rename = "v", deserialize_with = "known_version")]
    _version: u32,
    /// Number of the record's line in the journal, from 1.
    pub seq: u64,
    #[serde(borrow)]
    ts: FieldText<'l>,
    #[serde(borrow)]
    run_id: FieldText<'l>,
    #[serde(borrow)]
    account: FieldText<'l>,
    #[serde(borrow)]
    model_asked: Option<FieldText<'l>>,
    #[serde(borrow)]
    model_answered: Option<FieldText<'l>>,
    pub(crate) status: u16,
    /// Outcome of the call.
    pub outcome: Outcome,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) ttfb_us: Option<u64>,
    pub(crate) duration_us: u64,
    pub(crate) tokens: Tokens,
    pub(crate) tokens_source: TokensSource,
    pub(crate) cost_nanodollars: Option<NanoDollars>,
    #[serde(borrow, default)]
    tool: Option<EntryTool<'l>>,
    /// Kind of call that the record describes.
    pub kind: Kind,
    #[serde(default = "default_calls")]
    pub(crate) calls: u64,
    #[serde(default)]
    pub(crate) correction: Option<Correction>,
}

/// Part of a tool call that sums need.
#[derive(Debug, Deserialize)]
struct EntryTool<'l> {
    #[serde(borrow)]
    name: FieldText<'l>,
}

/// Text of a field, borrowed unless it has an escape. Lines that a proxy wrote have no escapes in these fields.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct FieldText<'l>(#[serde(borrow)] Cow<'l, str>);

const fn default_calls() -> u64 {
    1
}

impl<'l> Entry<'l> {
    /// Parses `line`.
    ///
    /// # Errors
    /// If the line is not a record, or has a later version than this build reads.
    pub fn parse(line: &'l [u8]) -> Result<Self, json::Error> {
        json::from_slice(line, Bounds::STORED)
    }

    /// Returns the time at which the call began, as the journal writes it. Such texts sort like the times themselves.
    pub(crate) fn ts(&self) -> &str {
        &self.ts.0
    }

    /// Returns the id of the run that made the call.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id.0
    }

    /// Returns the account that pays for the call.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account.0
    }

    /// Returns the requested model, even if the answer names another. If no model was requested, returns the answer's,
    /// or `-`. A call of a host tool has the tool's name in its place.
    pub(crate) fn model(&self) -> &str {
        if let Some(tool) = &self.tool {
            return &tool.name.0;
        }
        self.model_asked.as_ref().or(self.model_answered.as_ref()).map_or("-", |model| &model.0)
    }

    /// Returns whether an admitted call failed. A client that disconnected is not a failure, nor is a closed run or a
    /// freeze.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        match self.outcome {
            Outcome::StreamError | Outcome::UpstreamGone | Outcome::TimedOut | Outcome::Interrupted => true,
            Outcome::Complete => self.status >= 400,
            Outcome::ClientGone | Outcome::Refused | Outcome::RunClosed | Outcome::Frozen => false,
        }
    }
}
