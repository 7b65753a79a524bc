//! The part of a journal line that picking and summing need, borrowed from the line: a journal may have a gigabyte.

use std::borrow::Cow;

use platform_core::{
    money::NanoDollars,
    record::{Kind, Outcome, Tokens, TokensSource, known_version},
    refusal::Refusal,
};
use serde::Deserialize;

/// A record, as far as it is picked and summed by.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry<'l> {
    #[serde(rename = "v", deserialize_with = "known_version")]
    _version: u32,
    pub(crate) seq: u64,
    #[serde(borrow)]
    ts: Text<'l>,
    #[serde(borrow)]
    run_id: Text<'l>,
    #[serde(borrow)]
    account: Text<'l>,
    #[serde(borrow)]
    model_asked: Option<Text<'l>>,
    #[serde(borrow)]
    model_answered: Option<Text<'l>>,
    pub(crate) status: u16,
    pub(crate) outcome: Outcome,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) ttfb_us: Option<u64>,
    pub(crate) duration_us: u64,
    pub(crate) tokens: Tokens,
    pub(crate) tokens_source: TokensSource,
    pub(crate) cost_nanodollars: Option<NanoDollars>,
    pub(crate) kind: Kind,
    #[serde(default = "one")]
    pub(crate) calls: u64,
}

/// Borrowed wherever it stands in the line without an escape, which is everywhere in a line that a proxy wrote.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Text<'l>(#[serde(borrow)] Cow<'l, str>);

const fn one() -> u64 {
    1
}

impl<'l> Entry<'l> {
    /// Reads `line`.
    ///
    /// # Errors
    /// If it is not a record, or one of a version that says more than this build understands.
    pub(crate) fn parse(line: &'l [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }

    /// When the call began, as the journal writes it: such texts compare as the times do.
    pub(crate) fn ts(&self) -> &str {
        &self.ts.0
    }

    pub(crate) fn run(&self) -> &str {
        &self.run_id.0
    }

    pub(crate) fn account(&self) -> &str {
        &self.account.0
    }

    /// The model that was asked for: what answered may name itself otherwise.
    pub(crate) fn model(&self) -> &str {
        self.model_asked.as_ref().or(self.model_answered.as_ref()).map_or("-", |model| &model.0)
    }

    /// Whether a call that was let through went wrong. That a client left, or somebody closed or stopped its run, is no error.
    pub(crate) const fn is_error(&self) -> bool {
        match self.outcome {
            Outcome::StreamError | Outcome::UpstreamGone | Outcome::TimedOut | Outcome::Interrupted => true,
            Outcome::Complete => self.status >= 400,
            Outcome::ClientGone | Outcome::Refused | Outcome::RunClosed | Outcome::Frozen => false,
        }
    }
}
