//! Refuses requests of clients, and closes their connections, in the words of OpenClaw's protocol.

use std::time::Duration;

use gateway_bridge::client_frame::FrameRefusal;
use platform_core::code::{Code, Coded};
use serde_json::{Value, json};

use crate::error::Error;

/// Longest reason of a close, in bytes (RFC 6455).
const MAX_REASON: usize = 123;
/// Delay after which a client may ask again for what is only away for a moment.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Reason why a request is refused.
#[derive(Debug, Clone)]
pub(super) struct SocketRefusal {
    /// Class of the error, on which clients act.
    kind: RefusalKind,
    message: String,
    /// Stable code of the reason.
    detail: &'static str,
    /// Delay after which the same request may succeed.
    retry_after: Option<Duration>,
}

/// Class of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalKind {
    Invalid,
    Forbidden,
    Unavailable,
}

impl SocketRefusal {
    /// Refuses a request that cannot be answered as it is.
    pub(super) fn invalid(detail: &'static str, message: impl Into<String>) -> Self {
        Self { kind: RefusalKind::Invalid, message: message.into(), detail, retry_after: None }
    }

    /// Refuses a request that needs more rights.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        let detail = Code::Forbidden.word();
        Self { kind: RefusalKind::Forbidden, message: message.into(), detail, retry_after: None }
    }

    /// Refuses a request that may succeed later.
    pub(super) fn unavailable(
        detail: &'static str,
        message: impl Into<String>,
        retry_after: Duration,
    ) -> Self {
        let retry_after = Some(retry_after);
        Self { kind: RefusalKind::Unavailable, message: message.into(), detail, retry_after }
    }

    /// Returns the refusal as the `error` of a response.
    pub(super) fn to_json(&self) -> Value {
        let code = match self.kind {
            RefusalKind::Invalid => "INVALID_REQUEST",
            RefusalKind::Forbidden => "FORBIDDEN",
            RefusalKind::Unavailable => "UNAVAILABLE",
        };
        let mut error = json!({ "code": code, "message": self.message, "details": { "code": self.detail } });
        if let Some(retry_after) = self.retry_after {
            error["retryable"] = true.into();
            error["retryAfterMs"] = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX).into();
        }
        error
    }

    /// Returns the close that follows the refusal.
    pub(super) fn farewell(&self, code: u16) -> Farewell {
        Farewell { code, reason: self.message.clone() }
    }
}

impl From<FrameRefusal> for SocketRefusal {
    fn from(refusal: FrameRefusal) -> Self {
        Self::invalid(refusal.cause.word(), refusal.message)
    }
}

impl From<Error> for SocketRefusal {
    fn from(error: Error) -> Self {
        let detail = error.code().word();
        let status = error.status().as_u16();
        let kind = match status {
            401 | 403 => RefusalKind::Forbidden,
            429 | 500.. => RefusalKind::Unavailable,
            _ => RefusalKind::Invalid,
        };
        let retry_after = error.retry_after().map(Duration::from_secs);
        Self { kind, message: error.detail(), detail, retry_after }
    }
}

impl From<runner_store::Error> for SocketRefusal {
    fn from(error: runner_store::Error) -> Self {
        Error::from(error).into()
    }
}

/// End of a connection, in a code and in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Farewell {
    pub(super) code: u16,
    reason: String,
}

impl Farewell {
    /// The client is gone.
    pub(super) fn gone() -> Self {
        Self::new(1000, "")
    }

    /// The client broke a rule of the protocol, or may not go on.
    pub(super) fn policy(reason: &str) -> Self {
        Self::new(1008, reason)
    }

    /// A frame is larger than clients may send.
    pub(super) fn too_large() -> Self {
        Self::new(1009, "the frame has more than 524288 bytes")
    }

    /// The API ends. Clients connect again.
    pub(super) fn restart() -> Self {
        Self::new(1012, "service restart")
    }

    /// Something is away that is needed. Clients connect again.
    pub(super) fn internal(reason: &str) -> Self {
        Self::new(1011, reason)
    }

    fn new(code: u16, reason: &str) -> Self {
        Self { code, reason: reason.to_owned() }
    }

    /// Returns the reason, as long as a close may have it.
    pub(super) fn reason(&self) -> &str {
        let end = self.reason.floor_char_boundary(MAX_REASON);
        &self.reason[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_api_are_sorted_for_clients() {
        for (error, code, retryable) in [
            (Error::Route, "INVALID_REQUEST", false),
            (Error::LimitedPrincipal, "FORBIDDEN", false),
            (Error::Starting, "UNAVAILABLE", true),
        ] {
            let json = SocketRefusal::from(error).to_json();
            assert_eq!((&json["code"], json["retryable"] == true), (&code.into(), retryable), "{json}");
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let farewell = Farewell::policy(&"ä".repeat(100));
        assert_eq!(farewell.reason().len(), 122);
    }
}
