//! Keeps the table of what each refusal looks like over HTTP.

use http::StatusCode;
use platform_core::refusal::Refusal;

/// Advice to a client on sending the call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// The call can only fail again.
    Never,
    /// Nothing of an answer came, and no call of the route has an effect beside its cost.
    Safe,
    /// The call was not worked on; after so many seconds it may pass.
    After(u64),
}

/// The kinds of error that official SDKs know.
const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

/// Returns the status, kind and retry of each refusal.
pub(super) const fn row(refusal: Refusal) -> (StatusCode, &'static str, Retry) {
    match refusal {
        Refusal::RouteUnknown => (StatusCode::NOT_FOUND, INVALID, Retry::Never),
        // Codex then sends the call over HTTP at once; on 404 it tries seven times before.
        Refusal::WebsocketUnsupported => (StatusCode::UPGRADE_REQUIRED, INVALID, Retry::Never),
        Refusal::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, INVALID, Retry::Never),
        Refusal::HeadTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, INVALID, Retry::Never),
        // Nothing was worked on: SDKs send it again.
        Refusal::HeadTooSlow | Refusal::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, SERVER, Retry::After(1)),
        Refusal::TooManyConnections => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::UpstreamBusy => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::UpstreamRefused
        | Refusal::ContextOverflow
        | Refusal::HeadInvalid
        | Refusal::BodyInvalid
        | Refusal::BodyEncoded
        | Refusal::FieldUnknown
        | Refusal::NotGranted
        | Refusal::ModelNotGranted
        | Refusal::IdentityConflict
        | Refusal::Unattributed => (StatusCode::BAD_REQUEST, INVALID, Retry::Never),
        Refusal::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, INVALID, Retry::Never),
        Refusal::PolicyDenied | Refusal::RunMismatch => (StatusCode::FORBIDDEN, INVALID, Retry::Never),
        Refusal::ToolsUnavailable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::ToolTimeout => (StatusCode::GATEWAY_TIMEOUT, SERVER, Retry::Never),
        // The tool may have had its effect, so no client may repeat the call by itself.
        Refusal::OutcomeUnknown | Refusal::ToolAnswerTooLarge => {
            (StatusCode::BAD_GATEWAY, SERVER, Retry::Never)
        }
        // Only clients with their own token ever see these: a gateway would lock its provider.
        Refusal::TokenMissing
        | Refusal::TokenMalformed
        | Refusal::TokenExpired
        | Refusal::TokenInvalid
        | Refusal::TokenRevoked
        | Refusal::RunUnknown => (StatusCode::UNAUTHORIZED, INVALID, Retry::Never),
        Refusal::BodyMemoryExhausted => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::RateLimited | Refusal::ConcurrencyLimited | Refusal::QuotaReserved => {
            (StatusCode::TOO_MANY_REQUESTS, SERVER, Retry::After(1))
        }
        Refusal::QuotaExhausted
        | Refusal::BalanceExhausted
        | Refusal::ModelUnpriced
        | Refusal::RunDeadlineExceeded
        | Refusal::Frozen
        | Refusal::RunClosed => (StatusCode::BAD_REQUEST, INVALID, Retry::Never),
        Refusal::Draining => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1)),
        Refusal::JournalUnavailable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(5)),
        Refusal::UpstreamUnreachable | Refusal::UpstreamUnavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, SERVER, Retry::After(1))
        }
        // SDKs send it again after their own pause. Host tools have `OutcomeUnknown` for this.
        Refusal::UpstreamReset => (StatusCode::BAD_GATEWAY, SERVER, Retry::Safe),
        Refusal::UpstreamFailed => (StatusCode::BAD_GATEWAY, SERVER, Retry::Never),
        Refusal::UpstreamTimeout => (StatusCode::GATEWAY_TIMEOUT, SERVER, Retry::Never),
        // This kind shows OpenClaw that the call can only fail again, whatever the status.
        Refusal::UpstreamAuth => (StatusCode::BAD_GATEWAY, INVALID, Retry::Never),
    }
}

/// Returns the status of `refusal`.
pub(crate) const fn status(refusal: Refusal) -> StatusCode {
    row(refusal).0
}
