//! Defines the errors of the API, and writes each as problem details (RFC 9457). No other module writes an error.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use platform_core::{
    event::RunErrorCode,
    id::{AccountId, AgentId},
};
use platform_runtime::{report, retry::Transient};
use runner_control_client as data_plane;
use runner_engine::{
    order::OrderError,
    run::{LeaseError, NotAttempted},
    run_files::RunFilesError,
};
use runner_files::Unreadable;
use runner_model::principal::PrincipalRole;
use runner_store as store;
use serde_json::{Value, json};

use crate::{
    explanation::{
        ASK_AGAIN, Explanation, admission_explanation, attempt_explanation, data_plane_explanation,
        explanation, files_detail, files_explanation, internal, not_found, order_explanation,
        store_explanation,
    },
    stream_permits::MAX_STREAMS,
};

/// Seconds after which a client may ask again for what is only away for a moment.
const RETRY_SECONDS: u64 = 2;
/// Help for requests that a browser may have sent for a page of another origin.
const OWN_PAGE: &str = "send it from a page whose origin is in `api.origins`";

/// Reason why the API refuses a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// No resource exists at this path.
    #[error("no such resource")]
    Route,
    /// The path exists, but not for this method.
    #[error("the path does not take this method")]
    Method,
    /// The request was sent to a name that is not the API's own.
    #[error("only requests to the API's own names are answered")]
    Host,
    /// A browser sent the request for a page from another site.
    #[error("requests from pages of other sites are refused")]
    Site,
    /// A page of another origin sent the request, or none that is known, and a cookie identifies the sender.
    #[error("with a session, only pages of the API's own origins change something")]
    Origin,
    /// The request carries no token and no session of a principal. A wrong one gets the same answer.
    #[error("the request carries no valid token")]
    Unauthenticated,
    /// The role of the principal does not allow the action.
    #[error("this needs the role {needed}, and the principal is {role}")]
    Role {
        /// Smallest role that allows the action.
        needed: PrincipalRole,
        /// Role of the principal.
        role: PrincipalRole,
    },
    /// The principal may not run the agent.
    #[error("the principal may not run {agent}")]
    Agent {
        /// Agent that was ordered.
        agent: AgentId,
    },
    /// The run has limits that the principal may not give.
    #[error("the run may use more than runs of the principal")]
    Limits,
    /// The principal orders a run for an account of others.
    #[error("the principal orders runs for its own account alone, and the order names {account}")]
    Account {
        /// Account of the order.
        account: AccountId,
    },
    /// The body is larger than the route takes.
    #[error("the body has more than {most} bytes")]
    TooLarge {
        /// Largest body, in bytes.
        most: usize,
    },
    /// The body has another form than JSON.
    #[error("the body is no JSON, according to its content type")]
    MediaType,
    /// The body or the query cannot be read.
    #[error("{0}")]
    Invalid(String),
    /// The caller holds as many streams open as it may.
    #[error("{MAX_STREAMS} streams are open already")]
    TooManyStreams,
    /// The store is not open yet.
    #[error("the store of runs is not open yet")]
    Starting,
    /// The handler took too long.
    #[error("the request took too long")]
    TimedOut,
    /// The settings do not allow the order.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The run is not attempted again.
    #[error(transparent)]
    NotAttempted(#[from] NotAttempted),
    /// The run is not stored.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The files of the run are not there, or cannot be read.
    #[error(transparent)]
    Files(#[from] RunFilesError),
    /// The file is not given out.
    #[error("the file {0}")]
    File(Unreadable),
    /// The difference is larger than an answer may be.
    #[error("the difference has more than {most} bytes")]
    LargeDiff {
        /// Largest difference, in bytes.
        most: usize,
    },
    /// The data plane failed or refused.
    #[error(transparent)]
    DataPlane(#[from] data_plane::Error),
    /// The run that a client waited for has failed.
    #[error("{message}")]
    RunFailed {
        /// Reason of the failure.
        code: RunErrorCode,
        /// Message for people.
        message: String,
    },
    /// The API itself failed.
    #[error("the request failed")]
    Internal,
}

impl Error {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Route => not_found(),
            Self::Method => {
                explanation(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "`allow` has the methods")
            }
            Self::Host
            | Self::Site
            | Self::Origin
            | Self::Unauthenticated
            | Self::Role { .. }
            | Self::Agent { .. }
            | Self::Limits
            | Self::Account { .. } => self.access_explanation(),
            Self::TooLarge { .. } => explanation(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "send less"),
            Self::MediaType => explanation(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "send `Content-Type: application/json`",
            ),
            Self::Invalid(_) => {
                explanation(StatusCode::BAD_REQUEST, "invalid_request", "correct the request")
            }
            Self::TooManyStreams => explanation(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_streams",
                "close a stream before opening another",
            ),
            Self::Starting => {
                explanation(StatusCode::SERVICE_UNAVAILABLE, "starting", "send the request again")
            }
            Self::TimedOut => explanation(StatusCode::SERVICE_UNAVAILABLE, "timed_out", ASK_AGAIN),
            Self::Files(error) => files_explanation(error),
            Self::File(_) => explanation(
                StatusCode::CONFLICT,
                "file_refused",
                "only plain files with one name are given out; `sluice runs files` says why others are not",
            ),
            Self::LargeDiff { .. } => explanation(
                StatusCode::UNPROCESSABLE_ENTITY,
                "result_too_large",
                "name a directory with `?path=`, or use `sluice runs diff`",
            ),
            Self::DataPlane(error) => data_plane_explanation(error),
            Self::Order(error) => order_explanation(error),
            Self::NotAttempted(error) => attempt_explanation(error),
            Self::Lease(LeaseError::NotStored(error)) | Self::Store(error) => store_explanation(error),
            Self::Lease(LeaseError::NotAdmitted(error)) => admission_explanation(error),
            Self::RunFailed { code, .. } => explanation(
                StatusCode::BAD_GATEWAY,
                code.code(),
                "`sluice runs show` has the details of the run",
            ),
            Self::Lease(_) | Self::Internal => internal(),
        }
    }

    /// Explains an error of a sender that may not do what it asks for.
    fn access_explanation(&self) -> Explanation {
        match self {
            Self::Host => explanation(
                StatusCode::MISDIRECTED_REQUEST,
                "wrong_host",
                "send one Host header: localhost on the API's host, else a host of `api.origins`",
            ),
            Self::Site => explanation(StatusCode::FORBIDDEN, "wrong_site", OWN_PAGE),
            Self::Origin => explanation(StatusCode::FORBIDDEN, "wrong_origin", OWN_PAGE),
            Self::Unauthenticated => explanation(
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "send `Authorization: Bearer TOKEN`, or sign in again; `sluice principals add` prints a token",
            ),
            Self::Role { .. } => {
                explanation(StatusCode::FORBIDDEN, "forbidden", "use the token of a principal with that role")
            }
            Self::Agent { .. } => explanation(
                StatusCode::FORBIDDEN,
                "agent_forbidden",
                "order another agent, or add a principal that may run this one",
            ),
            Self::Limits => {
                explanation(StatusCode::FORBIDDEN, "limits_exceeded", "order a new run, or ask an operator")
            }
            Self::Account { .. } => explanation(
                StatusCode::FORBIDDEN,
                "account_forbidden",
                "leave `account` out, or use an operator's token",
            ),
            _ => internal(),
        }
    }

    /// Returns the text for the client. The causes of failures are for operators, in the log.
    fn detail(&self) -> String {
        match self {
            error if error.explanation().status == StatusCode::INTERNAL_SERVER_ERROR => {
                tracing::error!(error = report::chain(error), "a request of the API failed");
                "the request failed".to_owned()
            }
            Self::Lease(LeaseError::NotStored(error))
            | Self::NotAttempted(NotAttempted::Store(error))
            | Self::Order(OrderError::Store(error))
            | Self::Store(error) => match error {
                store::Error::Unknown { run_id } => format!("no run {run_id}"),
                store::Error::Conflict { run_id } => format!("run id {run_id} belongs to another order"),
                error if error.is_transient() => {
                    tracing::warn!(error = report::chain(error), "a request of the API found no store");
                    "the store of runs does not answer".to_owned()
                }
                error => error.to_string(),
            },
            Self::Files(error) => files_detail(error),
            Self::DataPlane(error) if !error.is_refusal() => {
                tracing::warn!(error = report::chain(error), "a request of the API found no data plane");
                "the data plane does not answer".to_owned()
            }
            error => report::chain(error),
        }
    }

    fn body(&self) -> Value {
        let Explanation { status, code, help } = self.explanation();
        let mut body = json!({
            "type": format!("urn:sluicegate:error:{code}"),
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "code": code,
            "detail": self.detail(),
            "help": help,
        });
        if let Self::Order(OrderError::UnknownAgent { known, .. }) = self {
            body["agents"] = json!(known);
        }
        if let Self::Order(OrderError::NotGranted { models, .. }) = self {
            body["models"] = json!(models);
        }
        body
    }

    /// Returns the time after which the request may succeed.
    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Starting | Self::TimedOut | Self::TooManyStreams => Some(RETRY_SECONDS),
            Self::DataPlane(error) if !error.is_refusal() => Some(RETRY_SECONDS),
            Self::Lease(LeaseError::NotStored(error))
            | Self::NotAttempted(NotAttempted::Store(error))
            | Self::Order(OrderError::Store(error))
            | Self::Store(error) => match error {
                store::Error::Full(full) => Some(full.retry_after.as_secs().max(1)),
                error if error.is_transient() => Some(RETRY_SECONDS),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<runner_files::Error> for Error {
    fn from(error: runner_files::Error) -> Self {
        Self::Files(error.into())
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = self.explanation().status;
        let mut response = (status, self.body().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sluicegate\""));
        }
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
