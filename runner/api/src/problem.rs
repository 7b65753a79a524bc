//! Describes the problems that the API answers with: one for each answer that a code of `platform-core` has.

use axum::http::StatusCode;
use platform_core::code::Code;

/// Help for requests with an unknown outcome.
const ASK_AGAIN: &str =
    "send the request again; repeat an order only with its `Idempotency-Key`, or it may run twice";
/// Help for requests that a browser may have sent for a page of another origin.
const OWN_PAGE: &str = "send it from a page whose origin is in `api.origins`";

/// Kind of problem. Its code is stable: clients act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Problem {
    code: Code,
    /// Case in which a route answers with it.
    pub(crate) when: &'static str,
    /// Action that would change the outcome.
    pub(crate) help: &'static str,
}

/// Declares the problems: name, code, case and help.
macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $code:ident: $when:expr, $help:expr;)+) => {
        impl Problem {
            const ALL: [Self; [$(Code::$code),+].len()] = [$(Self::$name),+];

            $(
                $(#[$doc])*
                pub(crate) const $name: Self = Self {
                    code: Code::$code,
                    when: $when,
                    help: $help,
                };
            )+
        }
    };
}

problems! {
    NOT_FOUND = NotFound:
        "no such route, or the object does not exist for the caller",
        "check the path and the id";
    METHOD_NOT_ALLOWED = MethodNotAllowed: "the path does not take this method", "`allow` has the methods";
    WRONG_HOST = WrongHost:
        "the `Host` header is not one of the API's names, or there are several",
        "send one Host header: localhost on the API's host, else a host of `api.origins`";
    WRONG_SITE = WrongSite:
        "a browser sent the request for a page of another site, or of an origin that is not in `api.origins`",
        OWN_PAGE;
    WRONG_ORIGIN = WrongOrigin:
        "with a session, a request that changes something, and not for certain from a page of the API itself",
        OWN_PAGE;
    UNAUTHENTICATED = Unauthenticated:
        "no valid token or session; no answer says what is wrong with it",
        "send `Authorization: Bearer TOKEN`, or sign in again; `sluice principals add` prints a token";
    FORBIDDEN = Forbidden:
        "the role does not allow the action",
        "use the token of a principal with that role";
    AGENT_FORBIDDEN = AgentForbidden:
        "the principal may not run the agent",
        "order another agent, or add a principal that may run this one";
    REPOSITORY_FORBIDDEN = RepositoryForbidden:
        "the account may not use the repository",
        "order a run on a repository of `relay.repositories`, or of `repositories` of the account";
    REPOSITORY_NOT_ALLOWED = RepositoryNotAllowed:
        "the principal may not use the repository, although its account may",
        "order a run on a repository of the principal, or add a principal with `--repository` for this one";
    INVALID_REPOSITORY = InvalidRepository:
        "no run of the agent can work on such a repository or branch; `detail` says why",
        "correct `repository`, or order an agent with a container of its own";
    LIMITS_EXCEEDED = LimitsExceeded:
        "the run may use more than the principal's own runs",
        "order a new run, or ask an operator";
    ACCOUNT_FORBIDDEN = AccountForbidden:
        "the principal may not order runs for the account",
        "leave `account` out, or use an operator's token";
    TOO_LARGE = TooLarge: "the body has more bytes than the route takes", "send less";
    BODY_TIMEOUT = BodyTimeout:
        "the body arrives too slowly: it has 5 seconds, and another one for each 16 KiB",
        "send the whole body at once";
    UNSUPPORTED_MEDIA_TYPE = UnsupportedMediaType:
        "the body is not `application/json`; with a session, a request without a body says so, too",
        "send `Content-Type: application/json`";
    INVALID_REQUEST = InvalidRequest:
        "body, query or header cannot be read; `detail` names the field",
        "correct the request";
    TOO_MANY_STREAMS = TooManyStreams:
        "the caller holds 32 streams open; a file that is being sent counts",
        "close a stream before opening another";
    TOO_MANY_ATTEMPTS = TooManyAttempts:
        "many wrong tokens or links came before, or many reports; `retry-after` says when to try again",
        "try again after `retry-after`; a right token or link is accepted at any time";
    LINK_INVALID = LinkInvalid:
        "the link was used, is older than two minutes, or never signed in; no answer says which",
        "`sluice dashboard` prints another link";
    STARTING = Starting:
        "the store is not open yet; `retry-after` says when to ask again",
        "send the request again";
    TIMED_OUT = TimedOut: "the request took too long; `retry-after` says when to ask again", ASK_AGAIN;
    STORE_UNAVAILABLE = StoreUnavailable:
        "the store does not answer; `retry-after` says when to ask again",
        ASK_AGAIN;
    INTERNAL = Internal: "the API failed", "the log of `sluice up` has the cause";
    CONFIGURATION_INVALID = ConfigurationInvalid:
        "the configuration of the agent cannot be used",
        "`sluice agents check` names the cause";
    UNKNOWN_AGENT = UnknownAgent: "no such agent; `agents` has those that exist", "order one of `agents`";
    MODEL_NOT_GRANTED = ModelNotGranted:
        "the agent may not ask that model; `models` has those that it may ask, `defaultModelId` the default",
        "order one of `models`, or none for the default";
    TOOL_NOT_GRANTED = ToolNotGranted:
        "the agent or the account does not have a host tool of the order; `detail` has those of such a run",
        "order tools of the agent, or leave `hostTools` out";
    NO_MODEL = NoModel:
        "neither the order nor the configuration names a model",
        "name a model; GET /v1/models at the proxy lists them";
    MODEL_UNPRICED = ModelUnpriced:
        "the run has a limit of cost, and the model has no price",
        "order a model with a price";
    PRIORITY_TOO_HIGH = PriorityTooHigh:
        "the account may not order this priority",
        "order a lower `priority`";
    RUN_ID_TAKEN = RunIdTaken:
        "another order has this id or key",
        "another order has this run id or idempotency key: choose another";
    QUEUE_FULL = QueueFull:
        "too many runs wait; `retry-after` says when to order again",
        "order again after `retry-after`";
    THREAD_BUSY = ThreadBusy:
        "the last run of the thread has not ended",
        "wait for the end of the thread's last run, or cancel it";
    RUN_ACTIVE = RunActive:
        "a run whose texts would be removed has not ended",
        "cancel the run, or wait for its end";
    RUN_NOT_ENDED = RunNotEnded: "the run has not ended", "ask again when the run has ended";
    OTHER_ATTEMPT = OtherAttempt:
        "the next attempt of the run has another number",
        "read the run, and ask for the attempt after its `attempt`, or for none";
    CALL_NOT_WAITING = CallNotWaiting:
        "the run has no such call, it was decided, it needs no approval, or its run has ended",
        "list the calls that wait";
    NOT_REPEATABLE = NotRepeatable:
        "the agent runs on a gateway, or the run's files are no longer kept",
        "order a new run";
    /// Failure of a run for which the client waits. Answers have the code of the failure in place of this one.
    RUN_FAILED = RunFailed:
        "the run has failed; `code` is the code of its failure, such as `timeout`",
        "`sluice runs show` has the details of the run";
    BALANCE_EXHAUSTED = BalanceExhausted:
        "the balance of the account is below its floor, and the model is not free",
        "give the account credits, `sluice billing credit`, or order a free model";
    IDEMPOTENCY_KEY_TAKEN = IdempotencyKeyTaken:
        "another top-up has this idempotency key",
        "use another key for another top-up";
    NO_FILES = NoFiles:
        "the run received no files, or they are no longer kept",
        "start runs with `sluice run --workspace`; the agent's `keep` says how long files stay";
    NO_FILES_YET = NoFilesYet: "the run has no workspace yet", "ask again when the run has started";
    FILE_REFUSED = FileRefused:
        "the file is a link, has several names or changes",
        "only plain files with one name are given out; `sluice runs files` says why others are not";
    TOO_MANY_FILES = TooManyFiles:
        "the run has too many files",
        "let the agent remove what it does not need";
    DIFFERENCE_TOO_LARGE = DifferenceTooLarge:
        "the difference is too large for one answer",
        "name a directory with `?path=`, or use `sluice runs diff`";
    DATA_PLANE_UNAVAILABLE = DataPlaneUnavailable:
        "the data plane does not answer",
        "send the request again; `sluice status` says what the data plane lacks";
    DOCKER_UNAVAILABLE = DockerUnavailable:
        "Docker does not answer, or refuses",
        "send the request again; `sluice doctor` says what Docker lacks";
    REPOSITORY_UNREACHABLE = RepositoryUnreachable:
        "the repository could not be fetched; agents see the commit from before",
        "send the request again; `sluice repo ls` has the reason";
    CONNECTIONS_OFF = ConnectionsOff:
        "this installation has no connections, or their keys cannot be read",
        "an operator has to set `connections.key_file`";
    CONNECTION_EXISTS = ConnectionExists:
        "the account has a connection for the provider and the scope",
        "send `replace`, or remove the other connection";
    CONNECTIONS_EXHAUSTED = ConnectionsExhausted:
        "the account has as many connections as it may have; `detail` names the bound",
        "remove a connection that is not used";
    CONNECTION_UNUSABLE = ConnectionUnusable:
        "the connection gives no credential that its provider takes; `detail` says why",
        "add it again with `replace`";
    PROVIDER_UNAVAILABLE = ProviderUnavailable:
        "the provider of the connection does not answer, or not as it should",
        "send the request again";
    GATEWAY_REFUSED = GatewayRefused:
        "the gateway runs elsewhere, its configuration is not safe, or its disk is full; `detail` says which",
        "correct what `detail` names; `sluice gateway check` says the same";
    GATEWAY_FAILED = GatewayFailed:
        "the gateway ended or did not answer, or its files cannot be used",
        "`sluice gateway logs` shows what it printed";
    GATEWAY_UNAVAILABLE = GatewayUnavailable:
        "the gateway does not answer",
        "send the request again; `sluice gateway check` says what the gateway lacks";
    GATEWAY_AGENT_UNKNOWN = GatewayAgentUnknown:
        "the agent runs at no gateway and describes no `openclaw_agents`, or there is no such agent for the account",
        "order one of the gateway's agents, or leave `gatewayAgent` out";
    GATEWAY_AGENT_NOT_READY = GatewayAgentNotReady:
        "the gateway does not have the agent yet; `detail` says why",
        "order again when the agent's `state` is `applied`";
    GATEWAY_AGENT_EXISTS = GatewayAgentExists:
        "another agent of the gateway has the same id; `current` is that agent",
        "choose a name with another id";
    GATEWAY_AGENT_CHANGED = GatewayAgentChanged:
        "the agent, or its behaviour file, was changed since the revision of the request; `current` is what it is now, `yours` what the request had",
        "send what you want with the `revision` of `current`";
    GATEWAY_AGENT_FIXED = GatewayAgentFixed:
        "the configuration file describes the agent",
        "change the configuration file, or make another agent";
    GATEWAY_AGENTS_EXHAUSTED = GatewayAgentsExhausted:
        "the gateway has as many agents as it may have",
        "remove an agent that is not used";
    AGENTS_REPOSITORY_MISSING = AgentsRepositoryMissing:
        "the configuration names no repository for proposals, or no folder for skills; `detail` has the setting",
        "set `agents_repository.url`, for skills also `agents_repository.skills`";
    PROPOSALS_EXHAUSTED = ProposalsExhausted:
        "the account has 20 open proposals",
        "merge or close some of their pull requests";
    NOT_STORED = NotStored:
        "the change is active but not persisted: the data plane's disk is full, and a restart may lose it",
        "free the data plane's disk: until then a restart may lose the change";
}

impl Problem {
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
    pub(crate) const OF_ORDERS: [Self; 16] = [
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
        Self::GATEWAY_AGENT_UNKNOWN,
        Self::GATEWAY_AGENT_NOT_READY,
    ];

    /// Returns the problem of an error with this code; clients learn nothing of those that the list leaves out.
    pub(crate) fn of(code: Code) -> Self {
        let same = Self::ALL.into_iter().find(|problem| problem.code == code);
        let alike = || Self::ALL.into_iter().find(|problem| problem.code.http() == code.http());
        same.or_else(alike).unwrap_or(Self::INTERNAL)
    }

    /// Returns the status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        let status = self.code.http().and_then(|answer| StatusCode::from_u16(answer.status).ok());
        status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the code of the answer.
    pub(crate) fn word(self) -> &'static str {
        self.code.http().map_or(self.code.word(), |answer| answer.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_a_code_is_described() {
        for code in Code::ALL {
            let problem = Problem::of(code);
            let answer = code.http().or_else(|| Code::Internal.http());
            assert_eq!(problem.code.http(), answer, "{code:?}");
        }
    }
}
