//! Defines the protocol that `sluice` and `sluice-proxy` speak over the control socket.
//!
//! Requests are HTTP/1.1 with JSON bodies. Every request carries [`crate::name::header::CONTROL_PROTOCOL`]. Another
//! version is refused with [`Problem`]. Routes:
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/health` | [`Health`]: the proxy is alive |
//! | `GET /v1/ready` | [`Readiness`]: 200 if the proxy serves calls, 503 if it does not |
//! | `GET /v1/metrics` | metrics in Prometheus' text format, `text/plain; version=0.0.4` |
//! | `GET /v1/upstream` | [`UpstreamHealth`] |
//! | `GET /v1/prices` | list of [`ModelPrice`]: those that limits count with |
//! | `GET /v1/upstream/spend?from=S&until=S[&page=N][&page_size=N]` | [`crate::spend::SpendPage`]; 502 `ledger_unavailable` or `ledger_refused` if the upstream does not show its ledger, `ledger_page_too_large` if the page has more than 32 MiB, or more rows than asked for |
//! | `GET /v1/runs` | list of [`RunView`] |
//! | `PUT /v1/runs/{run}` with [`Register`] | [`Registered`], once agents can connect; 409 `fenced` if the run is in a later epoch, `socket_in_use` if another listener has its directory |
//! | `GET /v1/runs/{run}` | [`RunView`] |
//! | `DELETE /v1/runs/{run}?drain_ms=N&attempt=N&epoch=N` | [`RunView`], after the calls in flight have ended or were cut; this attempt and earlier ones are closed for good; 409 `fenced` if the run is in a later epoch |
//! | `PUT /v1/runs/{run}/traces/{id}`, `PUT /v1/runs/{run}/slots/{id}` | `{}`; calls with this [`Correlation`] belong to the run |
//! | `DELETE` of the same, `?grace_ms=N` | `{}`; after the grace such calls no longer belong to the run |
//! | `PUT /v1/runs/{run}/revoked` | [`Revoked`]; all tokens of the run are invalid for good, and calls in flight that used one are cut; 507 `not_stored` as below |
//! | `PUT /v1/sockets/{dir}` | [`SocketDir`], empty, for a run that will be registered with it |
//! | `DELETE /v1/sockets/{dir}` | `{}`; no run used the directory, and it was removed. 409 `socket_in_use` if one did |
//! | `PUT /v1/gateways/{gateway}` with [`GatewayListener`] | [`SocketDir`]; the proxy accepts a gateway's calls there, and each call proves its run; 409 `socket_in_use` if another listener has the directory |
//! | `DELETE /v1/gateways/{gateway}` | `{}`; the listener is closed and its directory removed |
//! | `GET /v1/frozen` | list of [`Frozen`] |
//! | `POST /v1/freeze` or `/v1/thaw` with a list of [`Frozen`] | [`FreezeChange`]; calls in flight of what is frozen are cut; 507 `not_stored` if the change is in effect but the disk refused it |
//! | `POST /v1/corrections` with a list of [`crate::record::LedgerFigures`] | list of [`crate::record::CorrectionEffect`], in the same order; repeating it is harmless |
//! | `GET /v1/exhausted`, `PUT` of the same with [`ExhaustedAccounts`] | [`ExhaustedAccounts`]; a `PUT` replaces the earlier lists; later calls of these accounts are refused, those in flight go on; 507 `not_stored` as above |
//! | `POST /v1/reload` | [`Reloaded`]; configuration, key and token secrets were read again and apply to new calls |
//! | `PUT /v1/runs/{run}/budget` with [`Budget`] | [`RunView`]; from now on only the limits named here apply; what was used already counts |
//! | `GET /v1/accounts` | list of [`AccountView`] |
//! | `PUT /v1/accounts` with [`AccountBudget`] | [`AccountView`]; 507 `not_stored` as above |
//! | `GET /v1/runs/{run}/trace` | NDJSON of [`crate::trace::TraceEvent`], until the run is closed |
//! | `GET /v1/runs/{run}/tap[?after=N]` | NDJSON of [`TapLine`], kept lines first, then new ones, until the run is closed |
//! | `GET /v1/journal?after=SEQ[&journal=ID][&follow]` | NDJSON of [`crate::record::JournalLine`]; 409 if the journal is another one, 410 if those lines were removed |
//! | `GET /v1/consumers` | list of [`Consumer`] |
//! | `PUT /v1/consumers/{name}` with [`Cursor`] | [`Consumer`]; lines it has not acknowledged are kept |
//! | `DELETE /v1/consumers/{name}` | `{}`; no lines are kept for it any more |

use core::{fmt, net::SocketAddr};
use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    budget::{Budget, LimitView},
    grant::RunGrant,
    id::{AccountId, GatewayId, ModelName, RunId, SocketDirName},
    record::{CallEnd, Lost},
};
pub use crate::{
    tap::{TapEvent, TapLine},
    upstream::{ModelPrice, PriceSource, ShownPrices, UpstreamHealth, UpstreamState, offers},
    usage::{InexactCalls, Usage},
};

/// Opens a run. Repeating the same request is harmless; a different request for a live run is refused. A worker that
/// takes a run over repeats the request in a later epoch. The earlier worker can then neither register nor close the
/// run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Grant of the run.
    pub grant: RunGrant,
    /// Epoch of the worker that sends the request. A run is in the latest epoch that it was registered in.
    #[serde(default)]
    pub epoch: u64,
    /// Name of the run's socket directory, chosen by the worker that registers it; a random one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_dir: Option<SocketDirName>,
}

/// Answer to [`Register`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The run's socket directory; absent if its calls come in on the shared listener.
    #[serde(flatten)]
    pub socket: Option<SocketDir>,
    /// Address of the shared listener, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SocketAddr>,
}

/// A run's socket directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketDir {
    /// Name of the directory.
    #[serde(rename = "socket_dir")]
    pub name: SocketDirName,
    /// Path of the directory on the host, to be mounted into the sandbox.
    pub path: PathBuf,
}

/// Opens the socket of a gateway that has no network. Repeating the same request is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayListener {
    /// User id, as the host sees it, of the processes that may connect.
    pub peer_uid: u32,
    /// Name of the socket's directory.
    pub socket_dir: SocketDirName,
}

/// Proof, besides a token, that a call on a listener for gateways belongs to a run. Its 128 bits are random and new
/// each time, and never derived from a run's id, so they cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Correlation {
    /// A W3C trace id.
    Trace(u128),
    /// The slot in `/slot/<id>/v1/…`.
    Slot(u128),
}

impl Correlation {
    /// Parses a trace id of 32 lower-case hexadecimal digits, not all of them zero.
    #[must_use]
    pub fn trace(text: &str) -> Option<Self> {
        parse_digits(text).map(Self::Trace)
    }

    /// Parses a slot of the same form.
    #[must_use]
    pub fn slot(text: &str) -> Option<Self> {
        parse_digits(text).map(Self::Slot)
    }
}

fn parse_digits(text: &str) -> Option<u128> {
    let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u128::from_str_radix(text, 16).ok()).flatten().filter(|bits| *bits != 0)
}

/// Target of a freeze. Its new calls are refused, and those in flight are cut. A freeze outlasts restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum Frozen {
    /// Every call.
    All,
    /// Calls of an account.
    Account(AccountId),
    /// Calls that request a model by exactly this name.
    Model(ModelName),
}

/// Accounts with a balance below their floor. Their calls are refused, except those for models that cost nothing. The
/// lists outlast restarts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExhaustedAccounts {
    /// The accounts.
    pub accounts: BTreeSet<AccountId>,
    /// Models that cost nothing, by the name in the request.
    pub free_models: BTreeSet<ModelName>,
}

/// Answer to a freeze or a thaw. The change takes effect even for unknown names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeChange {
    /// Everything that is frozen now.
    pub frozen: Vec<Frozen>,
    /// Names that may be wrong. After a freeze: accounts that no call, run or configuration of the proxy names, and
    /// models that no price and no open run names. After a thaw: targets that were not frozen.
    #[serde(default)]
    pub unmatched: Vec<Frozen>,
}

/// Answer to a revocation. The tokens are revoked whether or not the run's id is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// True if the run is open, is in the configuration, or was closed. A token may also be older than its run.
    pub known: bool,
}

/// State of a run at the proxy. It only advances in the order of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Calls pass.
    Open,
    /// New calls are refused; those in flight may end.
    Closing,
    /// No call is in flight any more.
    Closed,
}

/// A run as the proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// Grant of the run.
    pub grant: RunGrant,
    /// State of the run.
    pub state: RunState,
    /// Calls in flight.
    pub in_flight: u64,
    /// Usage of the calls that have ended.
    pub usage: Usage,
    /// End of the call that ended last, at this proxy or an earlier one; absent if none has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CallEnd>,
    /// Use of each of the run's limits.
    pub limits: Vec<LimitView>,
    /// Epoch of the run.
    #[serde(default)]
    pub epoch: u64,
    /// Socket directory of the run while it exists; absent if the run does not have its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketDir>,
}

/// An account as the proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    /// The account.
    pub account: AccountId,
    /// Use of each of the account's limits by all its runs, including runs of earlier proxies.
    pub limits: Vec<LimitView>,
    /// Calls with inexact figures, as far as this version counted them.
    #[serde(default)]
    pub inexact: InexactCalls,
}

/// New limits for an account. They outlast restarts, and apply until the configuration has other limits for that account
/// than now. Then those apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountBudget {
    /// The account.
    pub account: AccountId,
    /// Limits that apply from now on; what the account has used already counts.
    pub budget: Budget,
}

/// Position in the journal: everything up to and including this line was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Id of the journal; sequence numbers compare only within one journal.
    pub journal: String,
    /// Sequence number of the line; 0 is before the first.
    pub seq: u64,
    /// SHA-256 of that line without its line feed, in hexadecimal. A consumer that keeps it can prove that the journal
    /// was rewritten.
    pub hash: String,
}

/// Named reader of the journal that reports its progress; lines it has not acknowledged are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Name of the consumer.
    pub name: String,
    /// Position up to which it has acknowledged.
    pub acknowledged: Cursor,
    /// Number of lines after that position.
    pub lag: u64,
}

/// State of the journal. Calls are only let through while the journal has space for their records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// Records are accepted.
    #[default]
    Open,
    /// Records are accepted, but the journal exceeds its budget on disk: a consumer does not acknowledge.
    OverBudget,
    /// The disk is full: calls are refused until there is space.
    Full,
    /// A thread cannot mark its calls in flight, as on a full disk: they are refused until it can.
    Unmarked,
    /// The journal exceeds its budget by a whole file: calls are refused until a consumer acknowledges or is removed.
    Closed,
    /// A write has failed: calls are refused until a restart.
    Stopped,
}

impl JournalState {
    /// Returns whether calls are let through.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::OverBudget)
    }
}

/// Health of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Version of the program.
    pub version: String,
    /// Process id of the proxy.
    pub pid: u32,
    /// Seconds since the proxy started.
    pub uptime_s: u64,
    /// Runs that are open.
    pub runs: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Id of the journal; sequence numbers compare only within one journal.
    pub journal_id: String,
    /// Sequence number of the last record.
    pub journal_seq: u64,
    /// State of the journal.
    #[serde(default)]
    pub journal: JournalState,
    /// Lines of the journal that were missing when the proxy started, although they were never removed.
    #[serde(default)]
    pub lost: Vec<Lost>,
    /// Changes in effect that are not stored yet, because the disk refuses them: a restart would lose them.
    #[serde(default)]
    pub unstored: Vec<Unstored>,
    /// Base URL of the upstream.
    pub upstream: String,
    /// State of the upstream.
    pub upstream_state: UpstreamState,
    /// State of the prices that the upstream shows.
    #[serde(default)]
    pub upstream_prices: ShownPrices,
    /// Longest time from a stop to the end of the process, milliseconds.
    pub longest_stop_ms: u64,
    /// Number of times that the process has read its configuration again and applied it.
    #[serde(default)]
    pub reloads: u64,
}

/// Kind of change that takes effect at once and is stored afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unstored {
    /// Freezes and thaws.
    Freezes,
    /// Tokens that were revoked.
    Revocations,
    /// Runs that were closed.
    ClosedRuns,
    /// Accounts below their floor.
    ExhaustedAccounts,
    /// Limits of accounts.
    AccountLimits,
}

/// Readiness of the proxy, as far as it is known without making a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// True if calls pass; calls of single runs may still be refused.
    pub ready: bool,
    /// Reasons why the proxy is not ready, and the runs that cannot make calls.
    pub reasons: Vec<NotReady>,
}

impl From<Vec<NotReady>> for Readiness {
    fn from(reasons: Vec<NotReady>) -> Self {
        Self { ready: reasons.iter().all(NotReady::concerns_single_run), reasons }
    }
}

impl NotReady {
    /// Returns whether the reason concerns the calls of one run or gateway only. The proxy serves all others, so a
    /// single such reason must not take it out of service.
    #[must_use]
    pub const fn concerns_single_run(&self) -> bool {
        matches!(self, Self::RunNotOpen { .. } | Self::GatewayNotOpen { .. })
    }
}

/// Reason why calls would not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NotReady {
    /// No call could be recorded.
    Journal {
        /// State of the journal.
        state: JournalState,
    },
    /// The upstream could not be reached several times in a row.
    Upstream {
        /// Time since which the upstream is down: RFC 3339, UTC.
        since: String,
        /// Reason in words.
        why: String,
    },
    /// A stop of the proxy was requested.
    Draining,
    /// A run of the configuration, or of an earlier proxy, could not be opened. The proxy tries again.
    RunNotOpen {
        /// The run.
        run_id: RunId,
        /// Reason in words.
        why: String,
    },
    /// The gateway listener of an earlier proxy could not be opened. The proxy tries again.
    GatewayNotOpen {
        /// The gateway.
        gateway: GatewayId,
        /// Reason in words.
        why: String,
    },
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal { state } => f.write_str(match state {
                JournalState::Open => "its journal is open",
                JournalState::OverBudget => "its journal exceeds its budget on disk",
                JournalState::Full => "the disk of its journal is full",
                JournalState::Unmarked => "a thread cannot mark calls in its journal, as on a full disk",
                JournalState::Closed => "its journal exceeds its budget on disk by a whole file",
                JournalState::Stopped => "a write to its journal has failed",
            }),
            Self::Upstream { since, why } => write!(f, "the upstream is unavailable since {since}: {why}"),
            Self::Draining => f.write_str("it is stopping"),
            Self::RunNotOpen { run_id, why } => write!(f, "run {run_id}: {why}"),
            Self::GatewayNotOpen { gateway, why } => write!(f, "gateway {gateway}: {why}"),
        }
    }
}

/// Changes that a reload of the configuration brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Settings with a changed value, by their dotted key, and values read from files: `upstream.key_file (its
    /// content)`. An agent is one entry. Settings that only the control plane reads are here if it applies them at a
    /// reload.
    pub changed: Vec<String>,
    /// Runs of the configuration that could not be opened, with the reason. Everything else was applied.
    pub not_open: Vec<NotReady>,
}

/// Body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Description of the error.
    pub error: ProblemDetail,
}

/// Description of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemDetail {
    /// Code of the error.
    pub code: String,
    /// Message for people, with the way to fix the error.
    pub message: String,
}

/// Returns the path of a run's resource.
#[must_use]
pub fn run_path(run_id: &RunId) -> String {
    format!("/v1/runs/{run_id}")
}
