//! Defines the problems that the API answers with, and their form on the wire (RFC 9457).
//!
//! Does not decide which error is which problem: `error` does.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// Help for requests whose outcome is not known.
const ASK_AGAIN: &str =
    "send the request again; repeat an order only with its `Idempotency-Key`, or it may run twice";

/// Kind of problem. Its code is stable: clients act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    /// Case in which a route answers with it.
    pub(crate) when: &'static str,
    /// Action that would change the outcome.
    pub(crate) help: &'static str,
}

impl Problem {
    pub(crate) const NOT_FOUND: Self = Self::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "no such route, or the object does not exist for the caller",
        "check the path and the id",
    );
    pub(crate) const METHOD_NOT_ALLOWED: Self = Self::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "the path does not take this method",
        "`allow` has the methods",
    );
    pub(crate) const WRONG_HOST: Self = Self::new(
        StatusCode::MISDIRECTED_REQUEST,
        "wrong_host",
        "the `Host` header is none of the host's own names, or there are several",
        "send one Host header, such as localhost",
    );
    pub(crate) const WRONG_SITE: Self = Self::new(
        StatusCode::FORBIDDEN,
        "wrong_site",
        "a browser sent the request for a page of another site",
        "send the request from a page of this host",
    );
    pub(crate) const UNAUTHENTICATED: Self = Self::new(
        StatusCode::UNAUTHORIZED,
        "unauthenticated",
        "no valid token; no answer says what is wrong with it",
        "send `Authorization: Bearer TOKEN`; `sluice principals add` prints a token",
    );
    pub(crate) const FORBIDDEN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        "the role does not allow the action",
        "use the token of a principal with that role",
    );
    pub(crate) const AGENT_FORBIDDEN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "agent_forbidden",
        "the principal may not run the agent",
        "order another agent, or add a principal that may run this one",
    );
    pub(crate) const ACCOUNT_FORBIDDEN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "account_forbidden",
        "the principal may not order runs for the account",
        "leave `account` out, or use an operator's token",
    );
    pub(crate) const TOO_LARGE: Self = Self::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        "the body has more bytes than the route takes",
        "send less",
    );
    pub(crate) const UNSUPPORTED_MEDIA_TYPE: Self = Self::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body is not `application/json`",
        "send `Content-Type: application/json`",
    );
    pub(crate) const INVALID_REQUEST: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "invalid_request",
        "body, query or header cannot be read; `detail` names the field",
        "correct the request",
    );
    pub(crate) const TOO_MANY_STREAMS: Self = Self::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_streams",
        "the caller holds as many streams open as it may",
        "close a stream before opening another",
    );
    pub(crate) const STARTING: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "starting",
        "the store is not open yet; `retry-after` says when to ask again",
        "send the request again",
    );
    pub(crate) const TIMED_OUT: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "timed_out",
        "the request took too long; `retry-after` says when to ask again",
        ASK_AGAIN,
    );
    pub(crate) const STORE_UNAVAILABLE: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "store_unavailable",
        "the store does not answer; `retry-after` says when to ask again",
        ASK_AGAIN,
    );
    pub(crate) const INTERNAL: Self = Self::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the API failed",
        "the log of `sluice up` has the cause",
    );
    pub(crate) const CONFIGURATION_INVALID: Self = Self::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "configuration_invalid",
        "the configuration of the agent cannot be used",
        "`sluice agents check` names the cause",
    );
    pub(crate) const UNKNOWN_AGENT: Self = Self::new(
        StatusCode::NOT_FOUND,
        "unknown_agent",
        "no such agent; `agents` has those that exist",
        "order one of `agents`",
    );
    pub(crate) const MODEL_NOT_GRANTED: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "model_not_granted",
        "the agent may not ask that model; `models` has those that it may ask",
        "order one of `models`, or none for the default",
    );
    pub(crate) const NO_MODEL: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "no_model",
        "neither the order nor the configuration names a model",
        "name a model; GET /v1/models at the proxy lists them",
    );
    pub(crate) const MODEL_UNPRICED: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "model_unpriced",
        "the run has a limit of cost, and the model has no price",
        "order a model with a price",
    );
    pub(crate) const NO_SESSION: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "no_session",
        "`stateKey`, and the agent has no conversations",
        "leave `stateKey` out, or order an agent of a gateway",
    );
    pub(crate) const PRIORITY_TOO_HIGH: Self = Self::new(
        StatusCode::FORBIDDEN,
        "priority_too_high",
        "the account may not order this priority",
        "order a lower `priority`",
    );
    pub(crate) const RUN_ID_TAKEN: Self = Self::new(
        StatusCode::CONFLICT,
        "run_id_taken",
        "another order has this id or key",
        "another order has this run id or idempotency key: choose another",
    );
    pub(crate) const QUEUE_FULL: Self = Self::new(
        StatusCode::TOO_MANY_REQUESTS,
        "queue_full",
        "too many runs wait; `retry-after` says when to order again",
        "order again after `retry-after`",
    );

    /// Problems of every route.
    pub(crate) const EVERYWHERE: [Self; 4] =
        [Self::WRONG_SITE, Self::WRONG_HOST, Self::INTERNAL, Self::TIMED_OUT];
    /// Problems of every route that demands a role.
    pub(crate) const GUARDED: [Self; 4] =
        [Self::UNAUTHENTICATED, Self::FORBIDDEN, Self::STARTING, Self::STORE_UNAVAILABLE];

    const fn new(status: StatusCode, code: &'static str, when: &'static str, help: &'static str) -> Self {
        Self { status, code, when, help }
    }
}

/// Answer to a request that fails, as problem details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemDetails {
    /// `urn:sluicegate:error:` and the code.
    pub(crate) r#type: String,
    /// Meaning of the status.
    pub(crate) title: &'static str,
    /// Status of the answer.
    pub(crate) status: u16,
    /// Code of the problem, on which programs may act.
    pub(crate) code: &'static str,
    /// Explanation of this case, for people.
    pub(crate) detail: String,
    /// Action that would change the outcome, for people.
    pub(crate) help: &'static str,
    /// Agents that exist, if the code is `unknown_agent`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) agents: Vec<String>,
    /// Models that the agent may ask, if the code is `model_not_granted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) models: Vec<String>,
}

impl ProblemDetails {
    /// Media type of problem details.
    pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

    /// Returns the answer for a problem of this kind.
    pub(crate) fn of(problem: Problem, detail: String) -> Self {
        Self {
            r#type: format!("urn:sluicegate:error:{}", problem.code),
            title: problem.status.canonical_reason().unwrap_or_default(),
            status: problem.status.as_u16(),
            code: problem.code,
            detail,
            help: problem.help,
            agents: Vec::new(),
            models: Vec::new(),
        }
    }
}
