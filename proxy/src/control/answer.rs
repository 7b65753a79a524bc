//! Builds the answers of the control socket: JSON documents, NDJSON streams, and problems.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use platform_core::{
    control::{Problem, ProblemDetail},
    name::{CONTROL_PROTOCOL, header as own},
};
use platform_runtime::report;
use serde::Serialize;

use super::reload;
use crate::{
    journal::{self, AcknowledgeError},
    registry::CorrelationTaken,
    runs,
    upstream::SpendError,
};

pub(super) type ControlResponse = Response<BoxBody<Bytes, std::io::Error>>;

/// Reason that a control request is not fulfilled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(
        "the request has no header {header}: send `{header}: {CONTROL_PROTOCOL}`",
        header = own::CONTROL_PROTOCOL
    )]
    NoProtocol,
    #[error(
        "the request's header {header} is {theirs}, and this proxy speaks control protocol {CONTROL_PROTOCOL}: use a `sluice` of the same version, or send `{header}: {CONTROL_PROTOCOL}`",
        header = own::CONTROL_PROTOCOL
    )]
    Protocol { theirs: String },
    #[error("no such resource")]
    NotFound,
    #[error("this proxy does not know run {0}")]
    UnknownRun(String),
    #[error("the proxy failed in {0}, and its log says how")]
    Failed(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("run {0} was registered without a tap")]
    NoTap(String),
    #[error(transparent)]
    Register(#[from] runs::Error),
    #[error(transparent)]
    Taken(#[from] CorrelationTaken),
    #[error(
        "it holds from now on, and is not stored: a restart of the proxy would forget it. Free space in proxy.state_dir; it is tried again every second until it is stored, see `sluice doctor`"
    )]
    NotStored(#[source] std::io::Error),
    #[error(transparent)]
    Reload(#[from] reload::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Acknowledge(#[from] AcknowledgeError),
    #[error(transparent)]
    Spend(#[from] SpendError),
}

impl Error {
    const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoProtocol | Self::Protocol { .. } => (StatusCode::BAD_REQUEST, "protocol_mismatch"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Self::UnknownRun(_) => (StatusCode::NOT_FOUND, "run_unknown"),
            Self::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "proxy_failed"),
            Self::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::NoTap(_) => (StatusCode::CONFLICT, "no_tap"),
            Self::Register(runs::Error::Conflict { .. }) => (StatusCode::CONFLICT, "run_conflict"),
            Self::Register(runs::Error::Closed { .. }) => (StatusCode::CONFLICT, "run_closed"),
            Self::Register(runs::Error::Fenced { .. }) => (StatusCode::CONFLICT, "fenced"),
            Self::Register(runs::Error::SocketInUse { .. }) => (StatusCode::CONFLICT, "socket_in_use"),
            Self::Register(runs::Error::GatewayConflict { .. }) => (StatusCode::CONFLICT, "gateway_conflict"),
            Self::Taken(_) => (StatusCode::CONFLICT, "correlation_taken"),
            Self::Register(runs::Error::NoSuchListener { .. }) => (StatusCode::CONFLICT, "no_such_listener"),
            Self::NotStored(_) | Self::Register(runs::Error::NotStored { .. }) => {
                (StatusCode::INSUFFICIENT_STORAGE, "not_stored")
            }
            Self::Spend(SpendError::Unavailable { .. }) => (StatusCode::BAD_GATEWAY, "ledger_unavailable"),
            Self::Spend(SpendError::TooLarge { .. } | SpendError::TooMany { .. }) => {
                (StatusCode::BAD_GATEWAY, "ledger_page_too_large")
            }
            Self::Spend(_) => (StatusCode::BAD_GATEWAY, "ledger_refused"),
            Self::Reload(_) => (StatusCode::CONFLICT, "reload_refused"),
            Self::Register(runs::Error::NotPersisted { .. } | runs::Error::GatewayNotPersisted { .. }) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "keep_failed")
            }
            Self::Register(_) => (StatusCode::INTERNAL_SERVER_ERROR, "listener_failed"),
            Self::Journal(error) | Self::Acknowledge(AcknowledgeError::Journal(error)) => match error {
                journal::Error::Changed { .. } => (StatusCode::CONFLICT, "journal_changed"),
                journal::Error::Removed { .. } => (StatusCode::GONE, "journal_removed"),
                _ => (StatusCode::INTERNAL_SERVER_ERROR, "journal_failed"),
            },
            Self::Acknowledge(AcknowledgeError::Name(_)) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::Acknowledge(AcknowledgeError::Backwards { .. }) => {
                (StatusCode::CONFLICT, "acknowledged_before")
            }
            Self::Acknowledge(AcknowledgeError::Rewritten { .. }) => {
                (StatusCode::CONFLICT, "journal_rewritten")
            }
            Self::Acknowledge(AcknowledgeError::Write(_)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "acknowledgement_failed")
            }
        }
    }

    pub(super) fn into_response(self) -> ControlResponse {
        let (status, code) = self.status_and_code();
        let message = report::chain(&self);
        let problem = Problem { error: ProblemDetail { code: code.to_owned(), message } };
        let mut answer = json(&problem);
        *answer.status_mut() = status;
        answer
    }
}

/// Answers with `value` as a JSON document.
pub(super) fn json(value: &impl Serialize) -> ControlResponse {
    let text =
        serde_json::to_vec(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}").into_bytes());
    self::text("application/json", text)
}

/// Answers with `text` as a document.
pub(super) fn text(content_type: &'static str, text: impl Into<Bytes>) -> ControlResponse {
    answer(content_type, Full::from(text.into()).map_err(|never| match never {}).boxed())
}

/// Answers with `pieces` of NDJSON, as they come.
pub(super) fn ndjson(
    pieces: impl Stream<Item = std::io::Result<Bytes>> + Send + Sync + 'static,
) -> ControlResponse {
    answer(
        "application/x-ndjson",
        BodyExt::boxed(StreamBody::new(pieces.map(|piece| piece.map(Frame::data)))),
    )
}

fn answer(content_type: &'static str, body: BoxBody<Bytes, std::io::Error>) -> ControlResponse {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
