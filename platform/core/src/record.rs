//! One record per call: the contract between the data plane and everyone who bills, audits or explains.
//!
//! Never a prompt, an answer or a secret. Texts chosen by an agent or an upstream enter only as
//! [`JournalText`]. The order of the fields is the order on disk.

use std::{fmt, ops::AddAssign};

use serde::{Deserialize, Deserializer, Serialize, de};
use sha2::{Digest, Sha256};

use crate::{
    grant::Tap,
    id::{AccountId, AgentId, CallId, ExternalId, RunId},
    money::NanoDollars,
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};

/// Version of [`ExchangeRecord`] that this build writes. It reads this one and all before it.
pub const SCHEMA_VERSION: u32 = 3;

/// Reads the version of a journal line, and refuses one that is newer than this build: its fields may mean something else.
///
/// # Errors
/// If it is no number, or a newer version.
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
    /// Place in the journal, from 1, without gaps.
    pub seq: u64,
    /// The call.
    #[serde(flatten)]
    pub record: ExchangeRecord,
    /// SHA-256 of the line before, without its line feed, in hexadecimal; zeros before the first line.
    pub prev: String,
    /// Lines that the proxy found to be gone when it started; in the first line that it wrote after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Lost>,
}

/// A range of lines that are gone from a journal, both ends included. At the end of a journal it also spans numbers that may
/// never have been used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

impl Lost {
    /// Returns whether line `seq` is one of them.
    #[must_use]
    pub const fn holds(&self, seq: u64) -> bool {
        self.from <= seq && seq <= self.to
    }
}

/// What [`JournalLine::prev`] holds in the first line.
pub const NO_LINE: [u8; 64] = [b'0'; 64];

/// SHA-256 of a line without its line feed, in hexadecimal.
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

/// What became of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// When the call began: RFC 3339, UTC, microseconds.
    pub ts: String,
    /// The run it was made by.
    pub run_id: RunId,
    /// Attempt of that run.
    pub attempt: u32,
    /// Who pays.
    pub account: AccountId,
    /// User on whose behalf the run was started.
    pub user: Option<ExternalId>,
    /// The agent that ran.
    pub graph: AgentId,
    /// What the identity was read from.
    pub identity: Identity,
    /// Route of the model API.
    pub route: Route,
    /// Model the agent asked for.
    pub model_asked: Option<JournalText>,
    /// Model the upstream says has answered.
    pub model_answered: Option<JournalText>,
    /// Why the model stopped, in the upstream's word; of several answers to one call, the first to end.
    #[serde(default)]
    pub finish_reason: Option<JournalText>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// HTTP status: the upstream's real one, or Sluicegate's own when it answered itself.
    pub status: u16,
    /// How the call ended.
    pub outcome: Outcome,
    /// Why Sluicegate answered itself, if it did.
    pub refusal: Option<Refusal>,
    /// What decided that it was refused, such as `run.total_tokens` or `field:mcp_servers`; see `sluice audit show`.
    #[serde(default)]
    pub rule: Option<JournalText>,
    /// Which time limit passed, if one did.
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
    /// How well the tokens are known.
    pub tokens_source: TokensSource,
    /// What it cost.
    pub cost_nanodollars: Option<NanoDollars>,
    /// Where the cost is from.
    pub cost_source: CostSource,
    /// Id under which the upstream knows the call. Assigned by Sluicegate.
    pub litellm_call_id: CallId,
    /// Names of the tools the answer called.
    pub tools: Vec<JournalText>,
    /// What kind of call it was.
    pub kind: Kind,
    /// How many calls it stands for: more than one only where a flood of calls is summed up of which nothing was sent.
    #[serde(default = "one")]
    pub calls: u64,
    /// Whether the answer could be watched.
    pub tap: Tap,
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
    /// Those of the prompt that were read from a cache.
    pub cached: u64,
    /// Those of the prompt that were written to a cache.
    #[serde(default)]
    pub cache_written: u64,
    /// Those of them that the cache keeps for an hour, which costs more.
    #[serde(default)]
    pub cache_written_1h: u64,
    /// Those of the answer that were spent on reasoning.
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

/// What a call's identity was read from.
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
    /// Nothing: the call was refused as nobody's, and stands under the run and account `unattributed`.
    None,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The upstream's answer reached its own end and was passed on whole, whatever its status.
    Complete,
    /// The stream carried an error event, or its end without the mark that completes it.
    StreamError,
    /// The client left first.
    ClientGone,
    /// The upstream could not be reached, or broke off.
    UpstreamGone,
    /// A time limit passed.
    TimedOut,
    /// Sluicegate refused the call; nothing was sent.
    Refused,
    /// The run, or the gateway's socket that the call came in on, was closed while it was in flight.
    RunClosed,
    /// An operator stopped the call's account or model, or all, or revoked the token it came by, while it was in flight.
    Frozen,
    /// The proxy went down while the call was in flight.
    Interrupted,
}

/// How a call ended, as far as it says whether its maker got what they wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEnd {
    /// What ended it.
    pub outcome: Outcome,
    /// HTTP status that the record has.
    pub status: u16,
    /// Why Sluicegate answered itself, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

impl CallEnd {
    /// Whether it has failed: no whole answer came, or one that is an error.
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

/// The time limits of a call, in the order in which they come to matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timeout {
    /// The request's body came too slowly.
    Body,
    /// No connection to the upstream.
    Connect,
    /// A connection, and no TLS session on it.
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

/// How well a record's tokens are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensSource {
    /// The upstream counted them all.
    Exact,
    /// The upstream counted some of them, or only those up to some moment; the rest is estimated.
    Partial,
    /// Sluicegate estimated them.
    Estimated,
    /// Nobody knows.
    None,
}

/// Where a record's cost is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The upstream gave it.
    Upstream,
    /// The price table gave it.
    Priced,
    /// Nobody knows.
    None,
}

/// What kind of call a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A call of the model API.
    Model,
    /// A call of a tool.
    Tool,
}

impl Kind {
    /// All of them, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::Model, Self::Tool];

    /// The word the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

impl TokensSource {
    /// All of them, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Partial, Self::Estimated, Self::None];

    /// The word the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Partial => "partial",
            Self::Estimated => "estimated",
            Self::None => "none",
        }
    }
}

impl CostSource {
    /// All of them, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 3] = [Self::Upstream, Self::Priced, Self::None];

    /// The word the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Priced => "priced",
            Self::None => "none",
        }
    }
}

impl Timeout {
    /// All of them, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 7] =
        [Self::Body, Self::Connect, Self::Tls, Self::FirstByte, Self::BetweenBytes, Self::Client, Self::Call];

    /// The word the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::BetweenBytes => "between_bytes",
            Self::Client => "client",
            Self::Call => "call",
        }
    }
}

impl Outcome {
    /// All of them, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 9] = [
        Self::Complete,
        Self::StreamError,
        Self::ClientGone,
        Self::UpstreamGone,
        Self::TimedOut,
        Self::Refused,
        Self::RunClosed,
        Self::Frozen,
        Self::Interrupted,
    ];

    /// The word the journal writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::StreamError => "stream_error",
            Self::ClientGone => "client_gone",
            Self::UpstreamGone => "upstream_gone",
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::RunClosed => "run_closed",
            Self::Frozen => "frozen",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_what_the_journal_writes() {
        let check = |written: String, word: &str, place: usize, at: usize| {
            assert_eq!(written, format!("\"{word}\""));
            assert_eq!(place, at, "{word} stands where it is declared");
        };
        for (at, outcome) in Outcome::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&outcome).unwrap(), outcome.word(), outcome as usize, at);
        }
        for (at, timeout) in Timeout::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&timeout).unwrap(), timeout.word(), timeout as usize, at);
        }
        for (at, source) in TokensSource::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&source).unwrap(), source.word(), source as usize, at);
        }
        for (at, source) in CostSource::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&source).unwrap(), source.word(), source as usize, at);
        }
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            check(serde_json::to_string(&kind).unwrap(), kind.word(), kind as usize, at);
        }
    }

    /// The version stands first, so that the words of a later one are never met.
    #[test]
    fn a_newer_line_is_refused_by_its_version() {
        let newer = format!(r#"{{"v":{},"seq":1,"outcome":"sublimated"}}"#, SCHEMA_VERSION + 1);
        let error = serde_json::from_str::<JournalLine>(&newer).unwrap_err().to_string();
        assert!(
            error.starts_with("schema version 4, and this program reads up to 3: use a newer"),
            "{error}"
        );
        let control = newer.replacen('4', "3", 1);
        let error = serde_json::from_str::<JournalLine>(&control).unwrap_err().to_string();
        assert!(!error.contains("schema version"), "{error}");
    }
}
