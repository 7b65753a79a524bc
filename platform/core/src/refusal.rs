//! The closed list of reasons for which Sluicegate itself answers a call, instead of the upstream.
//!
//! Only the codes: clients act on them and the journal keeps them. What each looks like over HTTP is
//! decided in one place in the data plane.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// Why a call was answered by Sluicegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No such route, or not with this method.
    RouteUnknown,
    /// The head is framed or addressed in a way that two readers could see differently.
    HeadInvalid,
    /// The head is larger than any SDK sends.
    HeadTooLarge,
    /// The head did not arrive whole in time, or others needed the memory that it held.
    HeadTooSlow,
    /// The body is larger than the run may send.
    BodyTooLarge,
    /// The body did not arrive whole, or is not the JSON object that the route takes.
    BodyInvalid,
    /// The body is compressed or otherwise encoded.
    BodyEncoded,
    /// The body did not arrive in the time that the run allows.
    BodyTooSlow,
    /// The bodies that are held for this run, or for all, fill the memory set aside for them.
    BodiesInFlight,
    /// The body has a field that is not on the route's list.
    FieldUnknown,
    /// The body asks for something this run was not granted, or offers a tool that it was not.
    NotGranted,
    /// The body names a model this run was not granted.
    ModelNotGranted,
    /// No run token came with a call on the shared listener.
    TokenMissing,
    /// What came as a run token has not the shape of one.
    TokenMalformed,
    /// The run token's time is over.
    TokenExpired,
    /// The run token is not signed with any of our secrets, or is another attempt's.
    TokenInvalid,
    /// The run's tokens were revoked.
    TokenRevoked,
    /// The run is not registered here, or not for the shared listener.
    RunUnknown,
    /// The call says in two ways whose it is, and they disagree.
    IdentityConflict,
    /// Nothing says whose the call is.
    Unattributed,
    /// The calls come faster than the run or its account may make them.
    TooFast,
    /// As many calls are in flight as the run or its account may have.
    TooManyAtOnce,
    /// What is left under a limit is set aside for calls in flight.
    LimitHeld,
    /// A limit of the run or its account is used up.
    LimitUsedUp,
    /// There is a limit of money, and no price for the model.
    ModelUnpriced,
    /// As many connections are open as there may be. Nothing was read of this one.
    TooManyConnections,
    /// The run's time is over.
    RunOver,
    /// The operator has stopped calls of this account, of this model, or all.
    Frozen,
    /// The run was closed.
    RunClosed,
    /// This proxy is going down.
    Draining,
    /// The journal cannot take a record, so no call may pass.
    JournalUnavailable,
    /// No connection to the upstream: nothing was sent.
    UpstreamUnreachable,
    /// The upstream could not be reached several times in a row: nothing is tried until a probe has reached it.
    UpstreamDown,
    /// The connection to the upstream broke before it answered; it may have worked on the call.
    UpstreamFailed,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream refused Sluicegate's own key or money, which no agent can mend.
    UpstreamAuth,
    /// The upstream refused the request; a gateway is not told its words.
    UpstreamRefused,
    /// The upstream failed or has too much to do; a gateway is not told its words.
    UpstreamBusy,
    /// The conversation is too long for the model. An agent that is no gateway is told so in the upstream's words.
    ContextOverflow,
}

impl Refusal {
    /// All of them, for tables and tests.
    pub const ALL: [Self; 39] = [
        Self::RouteUnknown,
        Self::HeadInvalid,
        Self::HeadTooLarge,
        Self::HeadTooSlow,
        Self::BodyTooLarge,
        Self::BodyInvalid,
        Self::BodyEncoded,
        Self::BodyTooSlow,
        Self::BodiesInFlight,
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
        Self::TooFast,
        Self::TooManyAtOnce,
        Self::LimitHeld,
        Self::LimitUsedUp,
        Self::ModelUnpriced,
        Self::TooManyConnections,
        Self::RunOver,
        Self::Frozen,
        Self::RunClosed,
        Self::Draining,
        Self::JournalUnavailable,
        Self::UpstreamUnreachable,
        Self::UpstreamDown,
        Self::UpstreamFailed,
        Self::UpstreamTimeout,
        Self::UpstreamAuth,
        Self::UpstreamRefused,
        Self::UpstreamBusy,
        Self::ContextOverflow,
    ];

    /// The code as clients and the journal see it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::RouteUnknown => "route_unknown",
            Self::HeadInvalid => "head_invalid",
            Self::HeadTooLarge => "head_too_large",
            Self::HeadTooSlow => "head_too_slow",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyInvalid => "body_invalid",
            Self::BodyEncoded => "body_encoded",
            Self::BodyTooSlow => "body_too_slow",
            Self::BodiesInFlight => "bodies_in_flight",
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
            Self::TooFast => "too_fast",
            Self::TooManyAtOnce => "too_many_at_once",
            Self::LimitHeld => "limit_held",
            Self::LimitUsedUp => "limit_used_up",
            Self::ModelUnpriced => "model_unpriced",
            Self::TooManyConnections => "too_many_connections",
            Self::RunOver => "run_over",
            Self::Frozen => "frozen",
            Self::RunClosed => "run_closed",
            Self::Draining => "draining",
            Self::JournalUnavailable => "journal_unavailable",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamDown => "upstream_down",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamAuth => "upstream_auth",
            Self::UpstreamRefused => "upstream_refused",
            Self::UpstreamBusy => "upstream_busy",
            Self::ContextOverflow => "context_overflow",
        }
    }
}

/// Codes that earlier programs wrote, and what they are called now. Lines of the journal are never rewritten, so a code that is
/// renamed is added here: it is read as long as there may be such lines, and never written again.
const RETIRED: &[(&str, Refusal)] = &[];

/// All codes, for what is said of an unknown one.
const CODES: [&str; Refusal::ALL.len()] = {
    let mut codes = [""; Refusal::ALL.len()];
    let mut at = 0;
    while at < codes.len() {
        codes[at] = Refusal::ALL[at].code();
        at += 1;
    }
    codes
};

/// Returns the refusal with this code, or that was called so once.
fn find(code: &str, retired: &[(&str, Refusal)]) -> Option<Refusal> {
    let now = Refusal::ALL.into_iter().find(|refusal| refusal.code() == code);
    now.or_else(|| retired.iter().find_map(|(was, refusal)| (*was == code).then_some(*refusal)))
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ByCode)
    }
}

struct ByCode;

impl de::Visitor<'_> for ByCode {
    type Value = Refusal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the code of a refusal")
    }

    fn visit_str<E: de::Error>(self, code: &str) -> Result<Refusal, E> {
        find(code, RETIRED).ok_or_else(|| E::unknown_variant(code, &CODES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_code_is_read_by_its_new_name() {
        let retired = [("key_rejected", Refusal::UpstreamAuth)];
        assert_eq!(find("key_rejected", &retired), Some(Refusal::UpstreamAuth));
        assert_eq!(find("upstream_auth", &retired), Some(Refusal::UpstreamAuth));
        assert_eq!(find("key_rejected", &[]), None, "the control");
        for (was, refusal) in RETIRED {
            assert_eq!(serde_json::from_value::<Refusal>((*was).into()).unwrap(), *refusal);
            assert!(!CODES.contains(was), "{was} is a code of today");
        }
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
