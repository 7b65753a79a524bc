//! Defines the closed list of reasons for which Sluicegate answers a call itself, instead of the upstream.
//!
//! This module has only the codes: clients act on them and the journal keeps them. The data plane decides in one place
//! what each code looks like over HTTP.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// Reason why Sluicegate answered a call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The route does not exist, or does not take this method.
    RouteUnknown,
    /// The route of a host tool does not take this method.
    MethodNotAllowed,
    /// The route would be opened as a WebSocket, and takes plain HTTP alone.
    WebsocketUnsupported,
    /// The head is framed or addressed in a way that two parsers could read differently.
    HeadInvalid,
    /// The head is larger than any SDK sends.
    HeadTooLarge,
    /// The head did not arrive whole in time, or other connections needed its memory.
    HeadTooSlow,
    /// The body is larger than the run may send.
    BodyTooLarge,
    /// The body did not arrive whole, or is not the JSON object that the route takes.
    BodyInvalid,
    /// The body has an encoding that is not read, or is not whole in it.
    BodyEncoded,
    /// The body did not arrive in the time that the run allows.
    BodyTooSlow,
    /// The bodies held for this run, or for all runs, fill the memory set aside for them.
    BodyMemoryExhausted,
    /// The body has a field that is not on the route's list.
    FieldUnknown,
    /// The body requests a capability, or offers a tool, that the run was not granted.
    NotGranted,
    /// The body names a model this run was not granted.
    ModelNotGranted,
    /// No run token came with a call on the shared listener.
    TokenMissing,
    /// The value sent as a run token does not have the form of one.
    TokenMalformed,
    /// The run token has expired.
    TokenExpired,
    /// The run token is not signed with any secret in use, or belongs to another attempt.
    TokenInvalid,
    /// The run's tokens were revoked.
    TokenRevoked,
    /// The run is not registered here, or not for the shared listener.
    RunUnknown,
    /// The call proves two identities, and they disagree.
    IdentityConflict,
    /// The call proves no identity.
    Unattributed,
    /// The calls come faster than the run or its account may make them.
    RateLimited,
    /// As many calls are in flight as the run or its account may have.
    ConcurrencyLimited,
    /// The rest of a limit is reserved for calls in flight.
    QuotaReserved,
    /// A limit of the run or its account is exhausted.
    QuotaExhausted,
    /// The balance of the account is below its floor.
    BalanceExhausted,
    /// A limit of cost applies, and the model has no price.
    ModelUnpriced,
    /// As many connections are open as are allowed. Nothing was read from this one.
    TooManyConnections,
    /// The run has expired.
    RunDeadlineExceeded,
    /// The operator has stopped calls of this account, of this model, or all.
    Frozen,
    /// The run was closed.
    RunClosed,
    /// The proxy is shutting down.
    Draining,
    /// The journal cannot store a record, so no call may pass.
    JournalUnavailable,
    /// The connection to the upstream failed: nothing was sent.
    UpstreamUnreachable,
    /// The upstream could not be reached several times in a row: no call is sent until a probe has reached it.
    UpstreamUnavailable,
    /// The connection to the upstream broke before a byte of its answer came. A model call may be sent again.
    UpstreamReset,
    /// The upstream broke off in its answer, or its answer is malformed; it has worked on the call.
    UpstreamFailed,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream refused Sluicegate's own key or money, which no agent can fix.
    UpstreamAuth,
    /// The upstream refused the request; a gateway does not get the upstream's words.
    UpstreamRefused,
    /// The upstream failed or is overloaded; a gateway does not get the upstream's words.
    UpstreamBusy,
    /// The conversation is too long for the model. An agent that is not a gateway gets the upstream's words.
    ContextOverflow,
    /// The run was not granted the host tool, or no host tool at all.
    PolicyDenied,
    /// The body of a tool call names another run than the one that calls.
    RunMismatch,
    /// The control plane, which executes host tools, cannot be reached: nothing ran.
    ToolsUnavailable,
    /// The host tool did not end in time; it may have had its effect.
    ToolTimeout,
    /// The connection broke after a tool call was sent; the tool may have had its effect. The call is not repeated.
    OutcomeUnknown,
    /// The answer of a host tool is larger than the run may receive. The tool has run.
    ToolAnswerTooLarge,
}

impl Refusal {
    /// All refusals, for tables and tests.
    pub const ALL: [Self; 49] = [
        Self::RouteUnknown,
        Self::MethodNotAllowed,
        Self::WebsocketUnsupported,
        Self::HeadInvalid,
        Self::HeadTooLarge,
        Self::HeadTooSlow,
        Self::BodyTooLarge,
        Self::BodyInvalid,
        Self::BodyEncoded,
        Self::BodyTooSlow,
        Self::BodyMemoryExhausted,
        Self::FieldUnknown,
        Self::NotGranted,
        Self::ModelNotGranted,
        Self::TokenMissing,
        Self::TokenMalformed,
        Self::TokenExpired,
        Self::TokenInvalid,
        Self::TokenRevoked,
        Self::RunUnknown,
        Self::IdentityConflict,
        Self::Unattributed,
        Self::RateLimited,
        Self::ConcurrencyLimited,
        Self::QuotaReserved,
        Self::QuotaExhausted,
        Self::BalanceExhausted,
        Self::ModelUnpriced,
        Self::TooManyConnections,
        Self::RunDeadlineExceeded,
        Self::Frozen,
        Self::RunClosed,
        Self::Draining,
        Self::JournalUnavailable,
        Self::UpstreamUnreachable,
        Self::UpstreamUnavailable,
        Self::UpstreamReset,
        Self::UpstreamFailed,
        Self::UpstreamTimeout,
        Self::UpstreamAuth,
        Self::UpstreamRefused,
        Self::UpstreamBusy,
        Self::ContextOverflow,
        Self::PolicyDenied,
        Self::RunMismatch,
        Self::ToolsUnavailable,
        Self::ToolTimeout,
        Self::OutcomeUnknown,
        Self::ToolAnswerTooLarge,
    ];

    /// Returns the code as clients and the journal see it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::RouteUnknown => "route_unknown",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::WebsocketUnsupported => "websocket_unsupported",
            Self::HeadInvalid => "head_invalid",
            Self::HeadTooLarge => "head_too_large",
            Self::HeadTooSlow => "head_too_slow",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyInvalid => "body_invalid",
            Self::BodyEncoded => "body_encoded",
            Self::BodyTooSlow => "body_too_slow",
            Self::BodyMemoryExhausted => "body_memory_exhausted",
            Self::FieldUnknown => "field_unknown",
            Self::NotGranted => "not_granted",
            Self::ModelNotGranted => "model_not_granted",
            Self::TokenMissing => "token_missing",
            Self::TokenMalformed => "token_malformed",
            Self::TokenExpired => "token_expired",
            Self::TokenInvalid => "token_invalid",
            Self::TokenRevoked => "token_revoked",
            Self::RunUnknown => "run_unknown",
            Self::IdentityConflict => "identity_conflict",
            Self::Unattributed => "unattributed",
            Self::RateLimited => "rate_limited",
            Self::ConcurrencyLimited => "concurrency_limited",
            Self::QuotaReserved => "quota_reserved",
            Self::QuotaExhausted => "quota_exhausted",
            Self::BalanceExhausted => "balance_exhausted",
            Self::ModelUnpriced => "model_unpriced",
            Self::TooManyConnections => "too_many_connections",
            Self::RunDeadlineExceeded => "run_deadline_exceeded",
            Self::Frozen => "frozen",
            Self::RunClosed => "run_closed",
            Self::Draining => "draining",
            Self::JournalUnavailable => "journal_unavailable",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::UpstreamReset => "upstream_reset",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamAuth => "upstream_auth",
            Self::UpstreamRefused => "upstream_refused",
            Self::UpstreamBusy => "upstream_busy",
            Self::ContextOverflow => "context_overflow",
            Self::PolicyDenied => "policy_denied",
            Self::RunMismatch => "run_mismatch",
            Self::ToolsUnavailable => "tools_unavailable",
            Self::ToolTimeout => "tool_timeout",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::ToolAnswerTooLarge => "tool_answer_too_large",
        }
    }
}

/// All codes, for the message about an unknown one.
const CODES: [&str; Refusal::ALL.len()] = {
    let mut codes = [""; Refusal::ALL.len()];
    let mut at = 0;
    while at < codes.len() {
        codes[at] = Refusal::ALL[at].code();
        at += 1;
    }
    codes
};

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(CodeVisitor)
    }
}

struct CodeVisitor;

impl de::Visitor<'_> for CodeVisitor {
    type Value = Refusal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the code of a refusal")
    }

    fn visit_str<E: de::Error>(self, code: &str) -> Result<Refusal, E> {
        let found = Refusal::ALL.into_iter().find(|refusal| refusal.code() == code);
        found.ok_or_else(|| E::unknown_variant(code, &CODES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_is_named() {
        let error = serde_json::from_str::<Refusal>("\"tired\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `tired`, expected one of `route_unknown`"), "{error}");
    }

    #[test]
    fn the_code_is_what_the_journal_writes() {
        for (at, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_string(&refusal).unwrap(), format!("\"{}\"", refusal.code()));
            assert_eq!(refusal as usize, at, "{refusal:?} stands where it is declared");
        }
    }
}
