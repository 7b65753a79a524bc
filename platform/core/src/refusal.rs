//! The closed list of reasons for which Sluicegate itself answers a call, instead of the upstream.
//!
//! Only the codes: clients act on them and the journal keeps them. What each looks like over HTTP is
//! decided in one place in the data plane.

use serde::{Deserialize, Serialize};

/// Why a call was answered by Sluicegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No such route, or not with this method.
    RouteUnknown,
    /// The body is larger than the run may send.
    BodyTooLarge,
    /// The body did not arrive whole, or is not a JSON object.
    BodyInvalid,
    /// The run was closed.
    RunClosed,
    /// This proxy is going down.
    Draining,
    /// The journal cannot take a record, so no call may pass.
    JournalUnavailable,
    /// No connection to the upstream: nothing was sent.
    UpstreamUnreachable,
    /// The connection to the upstream broke before it answered; it may have worked on the call.
    UpstreamFailed,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream refused Sluicegate's own key or money, which no agent can mend.
    UpstreamAuth,
}

impl Refusal {
    /// All of them, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::RouteUnknown,
        Self::BodyTooLarge,
        Self::BodyInvalid,
        Self::RunClosed,
        Self::Draining,
        Self::JournalUnavailable,
        Self::UpstreamUnreachable,
        Self::UpstreamFailed,
        Self::UpstreamTimeout,
        Self::UpstreamAuth,
    ];

    /// The code as clients and the journal see it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::RouteUnknown => "route_unknown",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyInvalid => "body_invalid",
            Self::RunClosed => "run_closed",
            Self::Draining => "draining",
            Self::JournalUnavailable => "journal_unavailable",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamAuth => "upstream_auth",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_what_the_journal_writes() {
        for refusal in Refusal::ALL {
            assert_eq!(serde_json::to_string(&refusal).unwrap(), format!("\"{}\"", refusal.code()));
        }
    }
}
