//! What `sluice` and `sluice-proxy` say to each other over the control socket.
//!
//! HTTP/1.1 with JSON bodies. Every request carries [`crate::name::header::CONTROL_PROTOCOL`]; another
//! version is refused with [`Problem`]. Routes:
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/health` | [`Health`]: it lives |
//! | `GET /v1/ready` | [`Readiness`]: it serves, with 200, or it does not, with 503 |
//! | `GET /v1/metrics` | Prometheus' text, `text/plain; version=0.0.4` |
//! | `GET /v1/upstream` | [`UpstreamHealth`] |
//! | `GET /v1/runs` | list of [`RunView`] |
//! | `PUT /v1/runs/{run}` with [`Register`] | [`Registered`], once agents can connect; 409 `fenced` if the run is in a later epoch, `socket_in_use` if its directory is another's |
//! | `GET /v1/runs/{run}` | [`RunView`] |
//! | `DELETE /v1/runs/{run}?drain_ms=N&epoch=N` | [`RunView`], after the calls in flight have ended or were cut; 409 `fenced` if the run is in a later epoch |
//! | `PUT /v1/runs/{run}/traces/{id}`, `PUT /v1/runs/{run}/slots/{id}` | `{}`; calls with this [`Correlation`] are the run's |
//! | `DELETE` of the same, `?grace_ms=N` | `{}`; they are no more, after the grace |
//! | `PUT /v1/runs/{run}/revoked` | [`Revoked`]; no token of the run holds any more, for good, and calls in flight that came by one are cut; 507 `not_stored` as below |
//! | `PUT /v1/sockets/{dir}` | [`SocketDir`], empty, for a run that is registered with it later |
//! | `DELETE /v1/sockets/{dir}` | `{}`; no run came for it, and it is gone. 409 `socket_in_use` if one did |
//! | `PUT /v1/gateways/{gateway}` with [`GatewayDoor`] | [`SocketDir`]; a gateway's calls are heard there, each of which proves whose it is; 409 `socket_in_use` if the directory is another's |
//! | `DELETE /v1/gateways/{gateway}` | `{}`; nobody is heard there any more, and the directory is gone |
//! | `GET /v1/frozen` | list of [`Frozen`] |
//! | `POST /v1/freeze` or `/v1/thaw` with a list of [`Frozen`] | [`FreezeChange`]; what is frozen has its calls in flight cut; 507 `not_stored` if it holds and the disk did not take it |
//! | `POST /v1/reload` | [`Reloaded`]; configuration, key and token secrets were read again and hold for calls to come |
//! | `PUT /v1/runs/{run}/budget` with [`Budget`] | [`RunView`]; from now on these limits hold, and none that is not named; what was used is counted in |
//! | `GET /v1/accounts` | list of [`AccountView`] |
//! | `PUT /v1/accounts` with [`AccountBudget`] | [`AccountView`] |
//! | `GET /v1/runs/{run}/trace` | NDJSON of [`crate::trace::TraceEvent`], until the run is closed |
//! | `GET /v1/runs/{run}/tap[?after=N]` | NDJSON of [`TapLine`], those that are kept and those that come, until the run is closed |
//! | `GET /v1/journal?after=SEQ[&journal=ID][&follow]` | NDJSON of [`crate::record::JournalLine`]; 409 if it is another journal, 410 if those lines were removed |
//! | `GET /v1/consumers` | list of [`Consumer`] |
//! | `PUT /v1/consumers/{name}` with [`Cursor`] | [`Consumer`]; what it has not acknowledged is not removed |
//! | `DELETE /v1/consumers/{name}` | `{}`; nothing is kept for it any more |

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    budget::{Budget, LimitView},
    grant::RunGrant,
    id::{AccountId, GatewayId, ModelName, RunId, SocketDirName},
    record::{CallEnd, Lost},
};
pub use crate::{
    tap::{TapEvent, TapLine},
    usage::Usage,
};

/// Opens a run. Saying the same thing twice is harmless; saying something else about a live run is refused. Whoever takes a run
/// over says the same in a later epoch: who held it before can then neither register nor close it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// What the run may do.
    pub grant: RunGrant,
    /// The epoch in whose name this is asked. A run is in the latest one that it was registered in.
    #[serde(default)]
    pub epoch: u64,
    /// Name of its socket directory, chosen by whoever registers it; a random one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_dir: Option<SocketDirName>,
}

/// Answer to [`Register`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The run's socket directory; absent if it calls on the shared listener.
    #[serde(flatten)]
    pub socket: Option<SocketDir>,
    /// Where the shared listener is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SocketAddr>,
}

/// A run's socket directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketDir {
    /// Its name.
    #[serde(rename = "socket_dir")]
    pub name: SocketDirName,
    /// Its path on the host, to be mounted into the sandbox.
    pub path: PathBuf,
}

/// Opens the socket of a gateway that has no network. Saying the same thing twice is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayDoor {
    /// Only processes of this uid, as the host counts, are heard.
    pub peer_uid: u32,
    /// Name of the socket's directory.
    pub socket_dir: SocketDirName,
}

/// By what, besides a token, calls on a listener that serves gateways are known to be a run's. 128 bits that nobody
/// guesses: fresh random ones, never derived from a run's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Correlation {
    /// A W3C trace id.
    Trace(u128),
    /// The slot in `/slot/<id>/v1/…`.
    Slot(u128),
}

impl Correlation {
    /// The trace id written as 32 lower-case hexadecimal digits, not all of them zero.
    #[must_use]
    pub fn trace(text: &str) -> Option<Self> {
        digits(text).map(Self::Trace)
    }

    /// The slot written likewise.
    #[must_use]
    pub fn slot(text: &str) -> Option<Self> {
        digits(text).map(Self::Slot)
    }
}

fn digits(text: &str) -> Option<u128> {
    let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u128::from_str_radix(text, 16).ok()).flatten().filter(|bits| *bits != 0)
}

/// What an operator has stopped. Calls of it are refused, and those in flight are cut; it holds over restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum Frozen {
    /// Every call.
    All,
    /// Calls of an account.
    Account(AccountId),
    /// Calls that ask for a model, by the very name they ask for.
    Model(ModelName),
}

/// Answer to a freeze or a thaw, which is carried out whatever the names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeChange {
    /// Everything that is frozen now.
    pub frozen: Vec<Frozen>,
    /// Of what was to be frozen: accounts that no call, run or configuration of the proxy
    /// names, and models that no price and no open run does. Of what was to be
    /// thawed: what was not frozen.
    #[serde(default)]
    pub unmatched: Vec<Frozen>,
}

/// Answer to a revocation, which holds whatever the run's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Whether the run is open, is in the configuration, or was closed. A token may also be older than its run.
    pub known: bool,
}

/// State of a run at the proxy. It only moves down this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Calls pass.
    Open,
    /// New calls are refused; those in flight may end.
    Closing,
    /// Nothing is in flight any more.
    Closed,
}

/// A run as the proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// What it may do.
    pub grant: RunGrant,
    /// Where it stands.
    pub state: RunState,
    /// Calls in flight.
    pub in_flight: u64,
    /// What it used, of calls that have ended.
    pub usage: Usage,
    /// How the one of its calls ended that ended last, whichever proxy it was made with; absent if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CallEnd>,
    /// How far each of its limits is used.
    pub limits: Vec<LimitView>,
    /// The epoch it is in.
    #[serde(default)]
    pub epoch: u64,
    /// Its socket directory, as long as it is there; absent if it has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketDir>,
}

/// An account as the proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    /// The account.
    pub account: AccountId,
    /// How far each of its limits is used, by all its runs, also by those of proxies before.
    pub limits: Vec<LimitView>,
}

/// New limits for an account; until the proxy stops, or a reload brings other limits for that account. Then those of the
/// configuration hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountBudget {
    /// The account.
    pub account: AccountId,
    /// What it may use in all from now on, what it has used counted in.
    pub budget: Budget,
}

/// A place in the journal: everything up to and with this line was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Id of the journal; sequence numbers only compare within one.
    pub journal: String,
    /// Sequence number of the line; 0 is before the first.
    pub seq: u64,
    /// SHA-256 of that line without its line feed, in hexadecimal: whoever keeps it can show that the journal was rewritten.
    pub hash: String,
}

/// Somebody who reads the journal and says how far: what they have not acknowledged is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// How far it has come.
    pub acknowledged: Cursor,
    /// Lines after that.
    pub lag: u64,
}

/// Whether the journal takes records. Calls are only let through while it has space for theirs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// It does.
    #[default]
    Open,
    /// It does, and is larger than its budget on disk: a consumer does not acknowledge.
    Over,
    /// The disk is full: no calls, until there is space.
    Full,
    /// It exceeds its budget on disk by a whole file: no calls, until a consumer acknowledges or is removed.
    Shut,
    /// A write has failed: no calls, until a restart.
    Stopped,
}

impl JournalState {
    /// Whether calls are let through.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Over)
    }
}

/// Health of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Version of the program.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Runs that are open.
    pub runs: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Id of the journal; sequence numbers only compare within one.
    pub journal_id: String,
    /// Sequence number of the last record.
    pub journal_seq: u64,
    /// Whether it takes records.
    #[serde(default)]
    pub journal: JournalState,
    /// Lines of the journal that were gone when the proxy started, although they were never removed.
    #[serde(default)]
    pub lost: Vec<Lost>,
    /// Changes that hold and are not stored yet, because the disk refuses them: a restart would forget them.
    #[serde(default)]
    pub unstored: Vec<Unstored>,
    /// Base URL of the upstream.
    pub upstream: String,
    /// Whether calls are sent to it.
    pub upstream_state: UpstreamState,
    /// Longest time from a stop to the end of the process, milliseconds.
    pub longest_stop_ms: u64,
}

/// A kind of change that holds at once, and is stored after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unstored {
    /// Freezes and thaws.
    Freezes,
    /// Tokens that were revoked.
    Revocations,
    /// Runs that were closed.
    ClosedRuns,
}

/// Whether calls are sent to the upstream. Times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum UpstreamState {
    /// They are.
    Up,
    /// They are refused at once: it could not be reached several times in a row.
    Down {
        /// Since when.
        since: String,
        /// Why it could not be reached last, in words.
        reason: String,
        /// Milliseconds until it is tried again.
        probe_in_ms: u64,
    },
    /// They are refused, and it is being tried.
    Probing {
        /// Down since when.
        since: String,
        /// Why it could not be reached last, in words.
        reason: String,
    },
}

impl UpstreamState {
    /// The words for the states, in the order in which they are declared.
    pub const WORDS: [&'static str; 3] = ["up", "down", "probing"];

    /// The state in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Up => Self::WORDS[0],
            Self::Down { .. } => Self::WORDS[1],
            Self::Probing { .. } => Self::WORDS[2],
        }
    }
}

/// Whether calls would pass, as far as the proxy can say without making one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether calls pass; those of single runs may not.
    pub ready: bool,
    /// What there is against it, and the runs whose calls do not pass.
    pub reasons: Vec<NotReady>,
}

impl From<Vec<NotReady>> for Readiness {
    fn from(reasons: Vec<NotReady>) -> Self {
        Self { ready: reasons.iter().all(NotReady::is_of_one), reasons }
    }
}

impl NotReady {
    /// Returns whether it stands against the calls of one run or gateway only. The others are served: one of them must
    /// not have the proxy taken out of service.
    #[must_use]
    pub const fn is_of_one(&self) -> bool {
        matches!(self, Self::RunNotOpen { .. } | Self::GatewayNotOpen { .. })
    }
}

/// Why calls would not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NotReady {
    /// No call could be recorded.
    Journal {
        /// Why not.
        state: JournalState,
    },
    /// The upstream could not be reached several times in a row.
    Upstream {
        /// Since when: RFC 3339, UTC.
        since: String,
        /// Why not, in words.
        why: String,
    },
    /// The proxy was told to stop.
    Draining,
    /// A run of the configuration, or of the proxy before, could not be opened. It is tried again.
    RunNotOpen {
        /// The run.
        run: RunId,
        /// Why not, in words.
        why: String,
    },
    /// The socket of a gateway that the proxy before heard could not be opened. It is tried again.
    GatewayNotOpen {
        /// The gateway.
        gateway: GatewayId,
        /// Why not, in words.
        why: String,
    },
}

/// What reading the configuration again has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Settings that have another value now, by their dotted key, and what is read from files: `upstream.key_file (its
    /// content)`.
    pub changed: Vec<String>,
    /// Runs of the configuration that could not be opened, with the reason. All else was done.
    pub not_open: Vec<NotReady>,
}

/// What the upstream said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum UpstreamHealth {
    /// It answered, and accepted the key.
    Ready {
        /// Its version, if it says so.
        version: Option<String>,
        /// Models it offers.
        models: Vec<String>,
    },
    /// It answered, but not with a list of models.
    Refused {
        /// HTTP status of the answer.
        status: u16,
    },
    /// It did not answer.
    Unreachable {
        /// Why, in words.
        reason: String,
    },
}

/// Body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong.
    pub error: ProblemDetail,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemDetail {
    /// As a code.
    pub code: String,
    /// In words, with the way to mend it.
    pub message: String,
}

/// Path of a run's resource.
#[must_use]
pub fn run_path(run: &RunId) -> String {
    format!("/v1/runs/{run}")
}
