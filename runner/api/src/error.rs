//! Defines the errors of the API, and writes each as problem details (RFC 9457). No other module writes an error.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use platform_core::{
    code::{Code, Coded},
    credits::Credits,
    event::RunErrorCode,
    id::{AccountId, AgentId, GatewayAgentId, GatewayId, ModelName},
};
use platform_runtime::{report, retry::Transient};
use runner_connections::{AddError, CredentialError};
use runner_control_client as data_plane;
use runner_engine::{
    relay::InvalidRepo,
    run::{LeaseError, NotAttempted},
    run_files::RunFilesError,
    run_order::OrderError,
};
use runner_files::Unreadable;
use runner_model::principal::PrincipalRole;
use runner_proposals::NotProposed;
use runner_repos as repos;
use runner_store as store;
use serde_json::{Value, json};

use crate::{
    foreign_error::{files_detail, repository_detail},
    problem::Problem,
    problem_details::ProblemDetails,
    stream_permits::MAX_STREAMS,
};

/// Seconds after which a client may ask again for what is only away for a moment.
const RETRY_SECONDS: u64 = 2;

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
    /// The link signs in no longer, or never did.
    #[error("the link does not sign in")]
    SignInLink,
    /// Strangers have tried too much.
    #[error("there were too many attempts")]
    TooManyAttempts {
        /// Time until another attempt is answered.
        wait: Duration,
    },
    /// The role of the principal does not allow the action.
    #[error("this needs the role {needed}, and the principal is {role}")]
    Role {
        /// Smallest role that allows the action.
        needed: PrincipalRole,
        /// Role of the principal.
        role: PrincipalRole,
    },
    /// The principal is limited to agents or repositories, and the action concerns all of its account.
    #[error(
        "the principal is limited to agents or repositories, and runs of its whole account use connections"
    )]
    LimitedPrincipal,
    /// A managed gateway cannot be acted on.
    #[error(transparent)]
    Gateway(Box<runner_gateways::managed::Error>),
    /// The gateway does not say what it is configured as.
    #[error("gateway {gateway} cannot be asked: {why}")]
    GatewayUnavailable {
        /// The gateway.
        gateway: GatewayId,
        /// Reason.
        why: String,
    },
    /// The gateway runs elsewhere, and so do its agents.
    #[error("gateway {0} runs on another host, which has its agents' files")]
    GatewayFilesElsewhere(GatewayId),
    /// Another agent of the gateway has the id.
    #[error("the gateway has an agent with this id already")]
    GatewayAgentExists {
        /// That agent, as the API shows it.
        current: Box<Value>,
    },
    /// The agent, or its behaviour file, was changed since the request's revision.
    #[error("it was changed meanwhile: `current` has its revision")]
    GatewayAgentChanged {
        /// The agent or the file now, as the API shows it.
        current: Box<Value>,
        /// Settings or text that the request had.
        yours: Box<Value>,
    },
    /// The configuration describes the agent.
    #[error("the agent `{0}` is described by the configuration file")]
    GatewayAgentFixed(GatewayAgentId),
    /// The gateway has too many agents.
    #[error("the gateway has {0} agents, and takes no more")]
    GatewayAgentsExhausted(u32),
    /// The proposal is not stored.
    #[error(transparent)]
    NotProposed(Box<NotProposed>),
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
    /// The body does not arrive in time.
    #[error("the body arrives too slowly")]
    SlowBody,
    /// The body has another form than JSON.
    #[error("the body is not JSON, according to its content type")]
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
    /// The balance of the account does not allow a run.
    #[error("the balance of account {account} is {credits} credits, below its floor of {floor}")]
    BalanceExhausted {
        /// The account.
        account: AccountId,
        /// Its balance.
        credits: Credits,
        /// Its floor.
        floor: Credits,
    },
    /// The settings do not allow the order.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The run is not attempted again.
    #[error(transparent)]
    NotAttempted(#[from] NotAttempted),
    /// The run is not stored.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The call of a host tool does not wait for a decision.
    #[error(transparent)]
    NotDecided(store::DecideError),
    /// The connection gives no credential.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The connection cannot be added.
    #[error(transparent)]
    Connection(AddError),
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
    /// A mirrored repository cannot be refreshed.
    #[error(transparent)]
    Repository(Arc<repos::Error>),
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
    /// Returns the kind of problem that the client is told.
    fn problem(&self) -> Problem {
        Problem::of(self.code())
    }

    /// Returns the status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.problem().status()
    }

    /// Returns the text for the client. The causes of failures are for operators, in the log.
    pub(crate) fn detail(&self) -> String {
        match self {
            error if error.problem().status() == StatusCode::INTERNAL_SERVER_ERROR => {
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
            // Its cause names a file of the host.
            Self::Order(error @ OrderError::Repo(InvalidRepo::NoCredential { .. })) => {
                tracing::warn!(error = report::chain(error), "an order of a pull request is refused");
                error.to_string()
            }
            // Its causes name files of the host.
            Self::Credential(error) => {
                tracing::warn!(error = report::chain(error), "a connection gave no credential");
                error.to_string()
            }
            Self::DataPlane(error) if !error.is_refusal() => {
                tracing::warn!(error = report::chain(error), "a request of the API found no data plane");
                "the data plane does not answer".to_owned()
            }
            Self::Repository(error) => repository_detail(error),
            Self::GatewayUnavailable { gateway, why } => {
                tracing::warn!(%gateway, why, "a request of the API found no gateway");
                format!("gateway {gateway} does not answer")
            }
            error => report::chain(error),
        }
    }

    fn details(&self) -> ProblemDetails {
        let mut details = ProblemDetails::of(self.problem(), self.detail());
        match self {
            Self::Order(OrderError::UnknownAgent { known, .. }) => {
                details.agents = known.iter().map(AgentId::to_string).collect();
            }
            Self::Order(OrderError::NotGranted { models, default, .. }) => {
                details.models = models.iter().map(ModelName::to_string).collect();
                details.default_model_id.clone_from(default);
            }
            Self::GatewayAgentExists { current } => details.current = Some((**current).clone()),
            Self::GatewayAgentChanged { current, yours } => {
                details.current = Some((**current).clone());
                details.yours = Some((**yours).clone());
            }
            // Clients act on the reason of the run's failure.
            Self::RunFailed { code, .. } => details = details.with_code(code.code()),
            _ => {}
        }
        details
    }

    /// Returns the time after which the request may succeed.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Starting | Self::TimedOut | Self::TooManyStreams => Some(RETRY_SECONDS),
            Self::TooManyAttempts { wait } => Some(wait.as_secs() + 1),
            Self::DataPlane(error) if !error.is_refusal() => Some(RETRY_SECONDS),
            Self::Repository(_) if self.problem() != Problem::NOT_FOUND => Some(RETRY_SECONDS),
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

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Route => Code::NotFound,
            Self::Method => Code::MethodNotAllowed,
            Self::Host => Code::WrongHost,
            Self::Site => Code::WrongSite,
            Self::Origin => Code::WrongOrigin,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::SignInLink => Code::LinkInvalid,
            Self::TooManyAttempts { .. } => Code::TooManyAttempts,
            Self::Role { .. } | Self::LimitedPrincipal => Code::Forbidden,
            Self::Gateway(error) => error.code(),
            Self::GatewayFilesElsewhere(_) => Code::GatewayMisused,
            Self::GatewayUnavailable { .. } => Code::GatewayUnavailable,
            Self::GatewayAgentExists { .. } => Code::GatewayAgentExists,
            Self::GatewayAgentChanged { .. } => Code::GatewayAgentChanged,
            Self::GatewayAgentFixed(_) => Code::GatewayAgentFixed,
            Self::GatewayAgentsExhausted(_) => Code::GatewayAgentsExhausted,
            Self::NotProposed(error) => error.code(),
            Self::Agent { .. } => Code::AgentForbidden,
            Self::Limits => Code::LimitsExceeded,
            Self::Account { .. } => Code::AccountForbidden,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::SlowBody => Code::BodyTimeout,
            Self::MediaType => Code::UnsupportedMediaType,
            Self::Invalid(_) => Code::InvalidRequest,
            Self::TooManyStreams => Code::TooManyStreams,
            Self::Starting => Code::Starting,
            Self::TimedOut => Code::TimedOut,
            Self::BalanceExhausted { .. } => Code::BalanceExhausted,
            Self::Files(error) => error.code(),
            Self::File(_) => Code::FileRefused,
            Self::LargeDiff { .. } => Code::DifferenceTooLarge,
            Self::DataPlane(error) => error.code(),
            Self::Repository(error) => error.code(),
            Self::Order(error) => error.code(),
            Self::NotAttempted(error) => error.code(),
            Self::NotDecided(error) => error.code(),
            Self::Credential(error) => error.code(),
            Self::Connection(error) => error.code(),
            Self::Lease(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::RunFailed { .. } => Code::RunFailed,
            Self::Internal => Code::Internal,
        }
    }
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Store(error) => error.into(),
            AddError::Keys(error) => error.into(),
            AddError::Secret { problem } => Self::Invalid(format!("`secret`: it {problem}")),
            error => Self::Connection(error),
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
        let problem = self.problem();
        let mut response = (problem.status(), json!(self.details()).to_string()).into_response();
        // The check of a route's documentation reads it.
        response.extensions_mut().insert(problem);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(ProblemDetails::MEDIA_TYPE));
        if problem.status() == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sluicegate\""));
        }
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
