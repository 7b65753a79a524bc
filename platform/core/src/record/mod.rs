//! Defines the record of a call: the contract between the data plane and all readers that bill, audit or explain calls.
//!
//! A record never holds a prompt, an answer or a secret. Texts chosen by an agent or an upstream enter only as
//! [`JournalText`]. The order of the fields is the order on disk.

mod correction;
mod tool;
mod words;

use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize, de};
use sha2::{Digest, Sha256};

pub use self::{
    correction::{Correction, CorrectionEffect, Figures, LedgerFigures, MAX_CORRECTIONS},
    tool::{ToolCall, ToolOutcome},
};
use crate::{
    id::{AccountId, AgentId, CallId, ExternalId, RunId},
    money::NanoDollars,
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};

/// Version of [`ExchangeRecord`] that this build writes. It reads this version and all before it.
pub const SCHEMA_VERSION: u32 = 5;

/// Reads the version of a journal line, and refuses one that is newer than this build: its fields may mean something
/// else.
///
/// # Errors
/// If the value is not a number, or the version is newer.
pub fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version <= SCHEMA_VERSION {
        return Ok(version);
    }
    Err(de::Error::custom(format_args!(
        "schema version {version}, and this program reads up to {SCHEMA_VERSION}: use a newer `sluice` and `sluice-proxy`"
    )))
}

/// A line of the journal: the record, with its place in the sequence and in the hash chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLine {
    /// Version of this schema.
    #[serde(deserialize_with = "known_version")]
    pub v: u32,
    /// Number of the line in the journal, from 1, without gaps.
    pub seq: u64,
    /// The call.
    #[serde(flatten)]
    pub record: ExchangeRecord,
    /// SHA-256 of the line before, without its line feed, in hexadecimal; zeros before the first line.
    pub prev: String,
    /// Lines that the proxy found missing when it started; stated in the first line that it wrote after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Lost>,
}

/// A range of lines that are missing from a journal, both ends included. At the end of a journal it also covers numbers
/// that may never have been used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// First line that is missing.
    pub from: u64,
    /// Last line that is missing.
    pub to: u64,
}

impl Lost {
    /// Returns whether line `seq` is in the range.
    #[must_use]
    pub const fn holds(&self, seq: u64) -> bool {
        self.from <= seq && seq <= self.to
    }
}

/// Value of [`JournalLine::prev`] in the first line.
pub const NO_LINE: [u8; 64] = [b'0'; 64];

/// Returns the SHA-256 of a line without its line feed, in hexadecimal.
#[must_use]
pub fn hash(line: &[u8]) -> [u8; 64] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = NO_LINE;
    for (pair, byte) in text.chunks_exact_mut(2).zip(Sha256::digest(line)) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 0xf)];
    }
    text
}

/// Record of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// Time at which the call began: RFC 3339, UTC, microseconds.
    pub ts: String,
    /// Run that made the call.
    pub run_id: RunId,
    /// Attempt of that run.
    pub attempt: u32,
    /// Account that pays.
    pub account: AccountId,
    /// User that the run was started for.
    pub user: Option<ExternalId>,
    /// Agent that ran.
    pub graph: AgentId,
    /// Source of the identity.
    pub identity: Identity,
    /// Route of the model API, or of host tools.
    pub route: Route,
    /// Model that the agent requested.
    pub model_asked: Option<JournalText>,
    /// Model that answered, as the upstream says.
    pub model_answered: Option<JournalText>,
    /// Reason why the model stopped, in the upstream's word; of several answers to one call, the first to end.
    #[serde(default)]
    pub finish_reason: Option<JournalText>,
    /// True if a stream was requested.
    pub stream: bool,
    /// HTTP status: the upstream's real one, or Sluicegate's own when it answered itself.
    pub status: u16,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Reason why Sluicegate answered itself, if it did.
    pub refusal: Option<Refusal>,
    /// Rule that decided the refusal, such as `run.total_tokens` or `field:mcp_servers`; see `sluice audit show`.
    #[serde(default)]
    pub rule: Option<JournalText>,
    /// Timeout that passed, if one did.
    #[serde(default)]
    pub timeout: Option<Timeout>,
    /// Bytes of request body that arrived.
    pub request_bytes: u64,
    /// Bytes of response body that were passed on.
    pub response_bytes: u64,
    /// Microseconds from the call's beginning to the first byte of the upstream's answer.
    pub ttfb_us: Option<u64>,
    /// Microseconds from the call's beginning to its end.
    pub duration_us: u64,
    /// Tokens used.
    pub tokens: Tokens,
    /// Accuracy of the token counts.
    pub tokens_source: TokensSource,
    /// Cost of the call.
    pub cost_nanodollars: Option<NanoDollars>,
    /// Source of the cost.
    pub cost_source: CostSource,
    /// Id under which the upstream knows the call. Assigned by Sluicegate.
    pub litellm_call_id: CallId,
    /// Names of the tools the answer called.
    pub tools: Vec<JournalText>,
    /// Kind of the call.
    pub kind: Kind,
    /// Number of calls in the record: more than one only for a flood of calls that were never sent, none for a
    /// correction.
    #[serde(default = "one")]
    pub calls: u64,
    /// Setting of the tap: whether the answer could be watched.
    pub tap: Tap,
    /// Call of a host tool that the record is of; absent for calls of the model API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<ToolCall>>,
    /// Figures of what was seen of a call with tokens estimated at least in part; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Box<Figures>>,
    /// Tokens a second of each answer that the upstream has counted; absent up to the rate that holds without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_rate: Option<u64>,
    /// Correction that the record is; absent for calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<Box<Correction>>,
}

const fn one() -> u64 {
    1
}

/// Tokens of one call, or the sum over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cached: u64,
    /// Tokens of the prompt that were written to a cache.
    #[serde(default)]
    pub cache_written: u64,
    /// Tokens written to a cache that keeps them for an hour, which costs more.
    #[serde(default)]
    pub cache_written_1h: u64,
    /// Tokens of the answer that were spent on reasoning.
    pub reasoning: u64,
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        let Self { input, output, cached, reasoning, cache_written, cache_written_1h } = other;
        self.input = self.input.saturating_add(input);
        self.output = self.output.saturating_add(output);
        self.cached = self.cached.saturating_add(cached);
        self.reasoning = self.reasoning.saturating_add(reasoning);
        self.cache_written = self.cache_written.saturating_add(cache_written);
        self.cache_written_1h = self.cache_written_1h.saturating_add(cache_written_1h);
    }
}

/// Source of a call's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// The unix socket the connection came in on.
    Socket,
    /// A signed run token.
    Token,
    /// A registered W3C trace id.
    Trace,
    /// A leased slot path.
    Slot,
    /// No source: the call was refused because no run could be proved for it. Its run and account are `unattributed`.
    None,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The upstream's answer reached its end and was passed on whole, whatever its status.
    Complete,
    /// The stream carried an error event, or ended without the mark that completes it.
    StreamError,
    /// The client left first.
    ClientGone,
    /// The upstream could not be reached, or broke off.
    UpstreamGone,
    /// A timeout passed.
    TimedOut,
    /// Sluicegate refused the call; nothing was sent.
    Refused,
    /// The run, or the gateway's socket that the call came in on, was closed while it was in flight.
    RunClosed,
    /// An operator froze the call's account or model, or all calls, or revoked its token, while it was in flight.
    Frozen,
    /// The proxy went down while the call was in flight.
    Interrupted,
}

/// End of a call: the part of its record that says whether the caller got a usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEnd {
    /// Outcome of the call.
    pub outcome: Outcome,
    /// HTTP status in the record.
    pub status: u16,
    /// Reason why Sluicegate answered itself, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

impl CallEnd {
    /// Returns whether the call failed: no whole answer came, or the answer is an error.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        !matches!(self.outcome, Outcome::Complete) || self.status >= 400
    }
}

impl From<&ExchangeRecord> for CallEnd {
    fn from(record: &ExchangeRecord) -> Self {
        Self { outcome: record.outcome, status: record.status, refusal: record.refusal }
    }
}

/// Timeout of a call, in the order in which they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timeout {
    /// The request's body was too slow.
    Body,
    /// The connection to the upstream was not established.
    Connect,
    /// The connection was established, but no TLS session on it.
    Tls,
    /// The upstream's answer did not begin.
    FirstByte,
    /// The upstream fell silent in the middle of its answer.
    BetweenBytes,
    /// The client did not read its answer.
    Client,
    /// The call as a whole took too long.
    Call,
}

/// Accuracy of a record's token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensSource {
    /// The upstream counted them all.
    Exact,
    /// The upstream counted some of them, or counted only up to some moment; the rest is estimated.
    Partial,
    /// Sluicegate estimated them.
    Estimated,
    /// The number of tokens is unknown.
    None,
}

/// Source of a record's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The upstream gave it.
    Upstream,
    /// The price table gave it.
    Priced,
    /// The upstream's figure and that of the price table differ by more than 5 %, and the higher one counts until the
    /// upstream's ledger decides.
    Unconfirmed,
    /// The cost is unknown.
    None,
}

/// Kind of call that a record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A call of the model API.
    Model,
    /// A call of a tool.
    Tool,
    /// No call: the correction of an earlier record.
    Correction,
}

/// Setting that decides whether a run's answers can be watched while they stream. Every record states it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tap {
    /// Answers cannot be watched.
    #[default]
    Off,
    /// Text of answers can be watched; it is held in memory only.
    Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version is read first, so the words of a later version are never parsed.
    #[test]
    fn a_newer_line_is_refused_by_its_version() {
        let newer = format!(r#"{{"v":{},"seq":1,"outcome":"sublimated"}}"#, SCHEMA_VERSION + 1);
        let error = serde_json::from_str::<JournalLine>(&newer).unwrap_err().to_string();
        assert!(
            error.starts_with("schema version 6, and this program reads up to 5: use a newer"),
            "{error}"
        );
        let control = newer.replacen('6', "5", 1);
        let error = serde_json::from_str::<JournalLine>(&control).unwrap_err().to_string();
        assert!(!error.contains("schema version"), "{error}");
    }
}
