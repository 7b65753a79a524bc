//! Defines the problems that the API answers with.
//!
//! Does not decide which error is which problem: `error` and `foreign_error` do.

use axum::http::StatusCode;

/// Help for requests with an unknown outcome.
const ASK_AGAIN: &str =
    "send the request again; repeat an order only with its `Idempotency-Key`, or it may run twice";
/// Help for requests that a browser may have sent for a page of another origin.
const OWN_PAGE: &str = "send it from a page whose origin is in `api.origins`";

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
        "the `Host` header is not one of the API's names, or there are several",
        "send one Host header: localhost on the API's host, else a host of `api.origins`",
    );
    pub(crate) const WRONG_SITE: Self = Self::new(
        StatusCode::FORBIDDEN,
        "wrong_site",
        "a browser sent the request for a page of another site, or of an origin that is not in `api.origins`",
        OWN_PAGE,
    );
    pub(crate) const WRONG_ORIGIN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "wrong_origin",
        "with a session, a request that changes something, and not for certain from a page of the API itself",
        OWN_PAGE,
    );
    pub(crate) const UNAUTHENTICATED: Self = Self::new(
        StatusCode::UNAUTHORIZED,
        "unauthenticated",
        "no valid token or session; no answer says what is wrong with it",
        "send `Authorization: Bearer TOKEN`, or sign in again; `sluice principals add` prints a token",
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
    pub(crate) const REPOSITORY_FORBIDDEN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "repository_forbidden",
        "the account may not use the repository",
        "order a run on a repository of `relay.repositories`, or of `repositories` of the account",
    );
    pub(crate) const REPOSITORY_NOT_ALLOWED: Self = Self::new(
        StatusCode::FORBIDDEN,
        "repository_not_allowed",
        "the principal may not use the repository, although its account may",
        "order a run on a repository of the principal, or add a principal with `--repository` for this one",
    );
    pub(crate) const INVALID_REPOSITORY: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "invalid_repository",
        "no run of the agent can work on such a repository or branch; `detail` says why",
        "correct `repository`, or order an agent with a container of its own",
    );
    pub(crate) const LIMITS_EXCEEDED: Self = Self::new(
        StatusCode::FORBIDDEN,
        "limits_exceeded",
        "the run may use more than the principal's own runs",
        "order a new run, or ask an operator",
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
    pub(crate) const BODY_TIMEOUT: Self = Self::new(
        StatusCode::REQUEST_TIMEOUT,
        "body_timeout",
        "the body arrives too slowly: it has 5 seconds, and another one for each 16 KiB",
        "send the whole body at once",
    );
    pub(crate) const UNSUPPORTED_MEDIA_TYPE: Self = Self::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body is not `application/json`; with a session, a request without a body says so, too",
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
        "the caller holds 32 streams open; a file that is being sent counts",
        "close a stream before opening another",
    );
    pub(crate) const TOO_MANY_ATTEMPTS: Self = Self::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_attempts",
        "many wrong tokens or links came before, or many reports; `retry-after` says when to try again",
        "try again after `retry-after`; a right token or link is accepted at any time",
    );
    pub(crate) const LINK_INVALID: Self = Self::new(
        StatusCode::UNAUTHORIZED,
        "link_invalid",
        "the link was used, is older than two minutes, or never signed in; no answer says which",
        "`sluice dashboard` prints another link",
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
        "the agent may not ask that model; `models` has those that it may ask, `defaultModelId` the default",
        "order one of `models`, or none for the default",
    );
    pub(crate) const TOOL_NOT_GRANTED: Self = Self::new(
        StatusCode::FORBIDDEN,
        "tool_not_granted",
        "the agent or the account does not have a host tool of the order; `detail` has those of such a run",
        "order tools of the agent, or leave `hostTools` out",
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
    pub(crate) const THREAD_BUSY: Self = Self::new(
        StatusCode::CONFLICT,
        "thread_busy",
        "the last run of the thread has not ended",
        "wait for the end of the thread's last run, or cancel it",
    );
    pub(crate) const RUN_ACTIVE: Self = Self::new(
        StatusCode::CONFLICT,
        "run_active",
        "a run whose texts would be removed has not ended",
        "cancel the run, or wait for its end",
    );
    pub(crate) const RUN_NOT_ENDED: Self = Self::new(
        StatusCode::CONFLICT,
        "run_not_ended",
        "the run has not ended",
        "ask again when the run has ended",
    );
    pub(crate) const OTHER_ATTEMPT: Self = Self::new(
        StatusCode::CONFLICT,
        "other_attempt",
        "the next attempt of the run has another number",
        "read the run, and ask for the attempt after its `attempt`, or for none",
    );
    pub(crate) const CALL_NOT_WAITING: Self = Self::new(
        StatusCode::CONFLICT,
        "call_not_waiting",
        "the run has no such call, it was decided, it needs no approval, or its run has ended",
        "list the calls that wait",
    );
    pub(crate) const NOT_REPEATABLE: Self = Self::new(
        StatusCode::CONFLICT,
        "not_repeatable",
        "the agent runs on a gateway, or the run's files are no longer kept",
        "order a new run",
    );
    /// Failure of a run for which the client waits. Answers have the code of the failure in place of this one.
    pub(crate) const RUN_FAILED: Self = Self::new(
        StatusCode::BAD_GATEWAY,
        "run_failed",
        "the run has failed; `code` is the code of its failure, such as `timeout`",
        "`sluice runs show` has the details of the run",
    );
    pub(crate) const BALANCE_EXHAUSTED: Self = Self::new(
        StatusCode::PAYMENT_REQUIRED,
        "balance_exhausted",
        "the balance of the account is below its floor, and the model is not free",
        "give the account credits, `sluice billing credit`, or order a free model",
    );
    pub(crate) const IDEMPOTENCY_KEY_TAKEN: Self = Self::new(
        StatusCode::CONFLICT,
        "idempotency_key_taken",
        "another top-up has this idempotency key",
        "use another key for another top-up",
    );
    pub(crate) const NO_FILES: Self = Self::new(
        StatusCode::NOT_FOUND,
        "no_files",
        "the run received no files, or they are no longer kept",
        "start runs with `sluice run --workspace`; the agent's `keep` says how long files stay",
    );
    pub(crate) const NO_FILES_YET: Self = Self::new(
        StatusCode::CONFLICT,
        "no_files_yet",
        "the run has no workspace yet",
        "ask again when the run has started",
    );
    pub(crate) const FILE_REFUSED: Self = Self::new(
        StatusCode::CONFLICT,
        "file_refused",
        "the file is a link, has several names or changes",
        "only plain files with one name are given out; `sluice runs files` says why others are not",
    );
    pub(crate) const TOO_MANY_FILES: Self = Self::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "result_too_large",
        "the run has too many files",
        "let the agent remove what it does not need",
    );
    pub(crate) const DIFFERENCE_TOO_LARGE: Self = Self::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "result_too_large",
        "the difference is too large for one answer",
        "name a directory with `?path=`, or use `sluice runs diff`",
    );
    pub(crate) const DATA_PLANE_UNAVAILABLE: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "data_plane_unavailable",
        "the data plane does not answer",
        "send the request again; `sluice status` says what the data plane lacks",
    );
    pub(crate) const DOCKER_UNAVAILABLE: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "docker_unavailable",
        "Docker does not answer, or refuses",
        "send the request again; `sluice doctor` says what Docker lacks",
    );
    pub(crate) const REPOSITORY_UNREACHABLE: Self = Self::new(
        StatusCode::BAD_GATEWAY,
        "repository_unreachable",
        "the repository could not be fetched; agents see the commit from before",
        "send the request again; `sluice repo ls` has the reason",
    );
    pub(crate) const CONNECTIONS_OFF: Self = Self::new(
        StatusCode::CONFLICT,
        "connection_not_configured",
        "this installation has no connections, or their keys cannot be read",
        "an operator has to set `connections.key_file`",
    );
    pub(crate) const CONNECTION_EXISTS: Self = Self::new(
        StatusCode::CONFLICT,
        "connection_exists",
        "the account has a connection for the provider and the scope",
        "send `replace`, or remove the other connection",
    );
    pub(crate) const CONNECTIONS_EXHAUSTED: Self = Self::new(
        StatusCode::CONFLICT,
        "connections_exhausted",
        "the account has as many connections as it may have; `detail` names the bound",
        "remove a connection that is not used",
    );
    pub(crate) const CONNECTION_UNUSABLE: Self = Self::new(
        StatusCode::CONFLICT,
        "connection_unusable",
        "the connection gives no credential that its provider takes; `detail` says why",
        "add it again with `replace`",
    );
    pub(crate) const PROVIDER_UNAVAILABLE: Self = Self::new(
        StatusCode::BAD_GATEWAY,
        "provider_unavailable",
        "the provider of the connection does not answer, or not as it should",
        "send the request again",
    );
    pub(crate) const NOT_STORED: Self = Self::new(
        StatusCode::INSUFFICIENT_STORAGE,
        "not_stored",
        "the change is active but not persisted: the data plane's disk is full, and a restart may lose it",
        "free the data plane's disk: until then a restart may lose the change",
    );

    /// Problems of every route.
    pub(crate) const EVERYWHERE: [Self; 4] =
        [Self::WRONG_SITE, Self::WRONG_HOST, Self::INTERNAL, Self::TIMED_OUT];
    /// Problems that are found before a request reaches its route. They are problem details on every route.
    pub(crate) const BEFORE_ROUTES: [Self; 2] = [Self::WRONG_SITE, Self::WRONG_HOST];
    /// Problems of every route that demands a role.
    pub(crate) const GUARDED: [Self; 4] =
        [Self::UNAUTHENTICATED, Self::FORBIDDEN, Self::STARTING, Self::STORE_UNAVAILABLE];
    /// Problems of every route that demands a role and changes something, for callers with a session.
    pub(crate) const GUARDED_CHANGES: [Self; 2] = [Self::WRONG_ORIGIN, Self::UNSUPPORTED_MEDIA_TYPE];
    /// Problems of an order, beyond those of its form.
    pub(crate) const OF_ORDERS: [Self; 14] = [
        Self::BALANCE_EXHAUSTED,
        Self::UNKNOWN_AGENT,
        Self::MODEL_NOT_GRANTED,
        Self::TOOL_NOT_GRANTED,
        Self::NO_MODEL,
        Self::MODEL_UNPRICED,
        Self::AGENT_FORBIDDEN,
        Self::PRIORITY_TOO_HIGH,
        Self::RUN_ID_TAKEN,
        Self::QUEUE_FULL,
        Self::CONFIGURATION_INVALID,
        Self::REPOSITORY_FORBIDDEN,
        Self::REPOSITORY_NOT_ALLOWED,
        Self::INVALID_REPOSITORY,
    ];

    const fn new(status: StatusCode, code: &'static str, when: &'static str, help: &'static str) -> Self {
        Self { status, code, when, help }
    }
}
