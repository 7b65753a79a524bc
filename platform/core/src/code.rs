//! Lists the codes of errors, each with its exit code and its answer of the HTTP API. Both follow from nothing else.
//!
//! Codes of runs that failed, of calls that the data plane refused, and of host tools are lists beside this one:
//! [`crate::event::RunErrorCode`], [`crate::refusal::Refusal`] and [`crate::host_tools::ToolCode`].

use std::{error::Error, io, time::SystemTimeError};

use crate::{event::RunErrorCode, id::InvalidId};

/// Exit code of a command. Those above 64 follow sysexits(3), those above 120 the custom of shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command did what it should.
    Success,
    /// The agent failed, or a check did not pass.
    Failure,
    /// Wrong usage or configuration.
    Usage,
    /// A backend or resource that a run needs is unavailable.
    Unavailable,
    /// Sluicegate or Docker failed.
    Internal,
    /// The command may succeed later: the queue is full, a session is busy, or another process uses the store.
    TryAgain,
    /// The run exceeded its time limit.
    Timeout,
    /// A person stopped it.
    Cancelled,
    /// The run exceeded its memory limit.
    OutOfMemory,
    /// The reader of the output closed the pipe. Programs that SIGPIPE kills have this code in a shell, `git` among
    /// them. It is not 0: a check must not count as passed if its verdict was not read.
    ClosedPipe,
}

impl Exit {
    /// Returns the code as a number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::TryAgain => 75,
            Self::Timeout => 124,
            Self::Cancelled => 130,
            Self::OutOfMemory => 137,
            Self::ClosedPipe => 141,
        }
    }
}

impl From<RunErrorCode> for Exit {
    fn from(code: RunErrorCode) -> Self {
        match code {
            RunErrorCode::Timeout => Self::Timeout,
            RunErrorCode::OomKilled => Self::OutOfMemory,
            RunErrorCode::ContainerFailed
            | RunErrorCode::NoAnswer
            | RunErrorCode::ModelRefused
            | RunErrorCode::ModelBusy
            | RunErrorCode::ModelUnavailable
            | RunErrorCode::ContextOverflow
            | RunErrorCode::QuotaExhausted
            | RunErrorCode::ModelUnpriced => Self::Failure,
            RunErrorCode::Cancelled => Self::Cancelled,
            RunErrorCode::ImageMissing
            | RunErrorCode::VolumeMissing
            | RunErrorCode::InsufficientDisk
            | RunErrorCode::WorkspaceFailed
            | RunErrorCode::RepositoryFailed
            | RunErrorCode::ContainerLost
            | RunErrorCode::DockerUnavailable
            | RunErrorCode::DockerFailed
            | RunErrorCode::DataPlaneUnavailable
            | RunErrorCode::DataPlaneFailed
            | RunErrorCode::StoreFailed
            | RunErrorCode::GatewayUnavailable
            | RunErrorCode::GatewayFailed
            | RunErrorCode::SessionLost
            | RunErrorCode::Internal => Self::Internal,
        }
    }
}

/// Answer of the HTTP API to a request that an error ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status of the answer.
    pub status: u16,
    /// Word in it, on which programs act.
    pub word: &'static str,
}

/// Error with a code. An error that only passes another one on has the code and the word of the other one.
pub trait Coded: Error {
    /// Returns the code.
    fn code(&self) -> Code;

    /// Returns the word that a command prints, which another program may have chosen.
    fn word(&self) -> &str {
        self.code().word()
    }
}

/// Declares the codes: variant, exit code, word of commands; then the status of the API, and its word if another one.
macro_rules! codes {
    ($($code:ident: $exit:ident $word:literal $($status:literal $($problem:literal)?)?;)+) => {
        /// Code of an error. Cases that one program has to tell apart are several codes, even if another sees one word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $(
                #[doc = concat!("Error `", $word, "` of a command.")]
                $code,
            )+
        }

        impl Code {
            /// All codes, in the order in which they are declared.
            pub const ALL: [Self; [$(Self::$code),+].len()] = [$(Self::$code),+];

            /// Returns the exit code of a command that the error ended.
            #[must_use]
            pub const fn exit(self) -> Exit {
                match self { $(Self::$code => Exit::$exit,)+ }
            }

            /// Returns the word that commands print.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$code => $word,)+ }
            }

            /// Returns the answer of the API; `None` for errors of which its clients learn only that it failed.
            #[must_use]
            pub const fn http(self) -> Option<HttpAnswer> {
                match self { $(Self::$code => answer!($word $($status $($problem)?)?),)+ }
            }
        }
    };
}

macro_rules! answer {
    ($word:literal) => {
        None
    };
    ($word:literal $status:literal) => {
        Some(HttpAnswer { status: $status, word: $word })
    };
    ($_word:literal $status:literal $problem:literal) => {
        Some(HttpAnswer { status: $status, word: $problem })
    };
}

codes! {
    // Of every command, and of every request.
    Usage: Usage "usage";
    ConfigurationInvalid: Usage "configuration_invalid" 500;
    NotFound: Failure "not_found" 404;
    Internal: Internal "internal" 500;
    ClosedPipe: ClosedPipe "internal";
    InvalidRequest: Usage "invalid_request" 400;
    MethodNotAllowed: Usage "method_not_allowed" 405;
    WrongHost: Usage "wrong_host" 421;
    WrongSite: Usage "wrong_site" 403;
    WrongOrigin: Usage "wrong_origin" 403;
    Unauthenticated: Usage "unauthenticated" 401;
    LinkInvalid: Usage "link_invalid" 401;
    Forbidden: Usage "forbidden" 403;
    BodyTimeout: TryAgain "body_timeout" 408;
    UnsupportedMediaType: Usage "unsupported_media_type" 415;
    TooManyStreams: TryAgain "too_many_streams" 429;
    TooManyAttempts: TryAgain "too_many_attempts" 429;
    Starting: TryAgain "starting" 503;
    TimedOut: TryAgain "timed_out" 503;

    // Of the store.
    StoreUnavailable: Unavailable "store_failed" 503 "store_unavailable";
    StoreFailed: Unavailable "store_failed";
    StoreBusy: TryAgain "store_busy";
    StoreServesAnotherHost: Usage "store_serves_another_host";
    StoreNotEmpty: Usage "store_not_empty";
    BackupUnusable: Usage "backup_unusable";
    TooLarge: Usage "too_large" 413;
    PrincipalIdTaken: Usage "principal_id_taken";
    IdempotencyKeyTaken: Usage "idempotency_key_taken" 409;

    // Of orders.
    UnknownAgent: Usage "usage" 404 "unknown_agent";
    ModelNotGranted: Usage "usage" 400 "model_not_granted";
    NoModel: Usage "usage" 400 "no_model";
    ModelInvalid: Usage "usage" 500 "configuration_invalid";
    ModelUnpriced: Usage "model_unpriced" 400;
    ToolNotGranted: Usage "tool_not_granted" 403;
    RepositoryForbidden: Usage "repository_forbidden" 403;
    RepositoryNotAllowed: Usage "repository_not_allowed" 403;
    InvalidRepository: Usage "invalid_repository" 400;
    NoRepositoryCredential: Usage "configuration_invalid" 400 "invalid_repository";
    PriorityTooHigh: Usage "priority_too_high" 403;
    AgentForbidden: Usage "agent_forbidden" 403;
    AccountForbidden: Usage "account_forbidden" 403;
    LimitsExceeded: Usage "limits_exceeded" 403;
    BalanceExhausted: Failure "balance_exhausted" 402;
    QueueFull: TryAgain "queue_full" 429;
    RunIdTaken: Usage "run_id_taken" 409;

    // Of runs, threads and calls of host tools.
    SessionBusy: TryAgain "session_busy";
    ThreadBusy: TryAgain "thread_busy" 409;
    ThreadUnknown: Failure "thread_unknown" 404 "not_found";
    RunActive: TryAgain "run_active" 409;
    RunNotEnded: TryAgain "run_not_ended" 409;
    RunFailed: Failure "run_failed" 502;
    OtherAttempt: Usage "usage" 409 "other_attempt";
    NotRepeatable: Failure "not_repeatable" 409;
    NeverRepeatable: Usage "usage" 409 "not_repeatable";
    CallUnknown: Failure "not_found" 409 "call_not_waiting";
    CallNotWaiting: Failure "call_not_waiting" 409;
    CallRunEnded: Failure "run_ended" 409 "call_not_waiting";
    ToolFailed: Failure "tool_failed";
    ToolNotAccepted: Failure "tool_not_accepted";

    // Of files.
    NoFilesYet: Failure "not_found" 409 "no_files_yet";
    FilesGone: Failure "not_found" 404 "no_files";
    NoFiles: Failure "files_refused" 404 "no_files";
    TooManyFiles: Failure "files_refused" 422 "result_too_large";
    DifferenceTooLarge: Failure "result_too_large" 422;
    FileRefused: Failure "file_refused" 409;
    FilesRefused: Failure "files_refused";
    FilesUnusable: Usage "files_refused";
    FilesBusy: TryAgain "files_refused";
    FilesFailed: Internal "files_refused";
    ApplyRefused: Failure "apply_refused";
    ApplyFailed: Internal "apply_refused";
    WorkspaceFailed: Unavailable "workspace_failed";
    InsufficientDisk: Unavailable "insufficient_disk";

    // Of repositories and their commits.
    RepositoryExists: Usage "repository_failed";
    RepositoryUnreachable: Unavailable "repository_failed" 502 "repository_unreachable";
    RepositoryFailed: Internal "repository_failed";
    BranchTaken: Usage "branch_taken";
    RelayBusy: TryAgain "relay_busy";
    RelayMissing: Failure "relay_failed";
    RelayInUse: TryAgain "relay_failed";
    RelayFailed: Internal "relay_failed";

    // Of connections.
    ConnectionsOff: Usage "connection_not_configured" 409;
    ConnectionKeysUnusable: Usage "connection_unopened" 409 "connection_not_configured";
    ConnectionMissing: Failure "connection_missing" 404 "not_found";
    ConnectionUnknown: Failure "not_found" 404;
    ConnectionExists: Usage "connection_exists" 409;
    ConnectionsExhausted: Usage "connections_exhausted" 409;
    ConnectionUnusable: Failure "connection_unusable" 409;
    ConnectionSecretInvalid: Usage "connection_refused" 400 "invalid_request";
    ConnectionKindUnknown: Usage "connection_refused" 409 "connection_unusable";
    ConnectionUnsealed: Usage "connection_refused";
    ProviderUnknown: Usage "provider_unknown" 409 "connection_unusable";
    ProviderUnavailable: TryAgain "provider_unavailable" 502;

    // Of data plane, Docker and gateways.
    DataPlaneUnavailable: Unavailable "data_plane_unavailable" 503;
    DataPlaneFailed: Unavailable "data_plane_failed" 503 "data_plane_unavailable";
    DataPlaneRefused: Unavailable "data_plane_failed";
    NotStored: Unavailable "not_stored" 507;
    DockerUnavailable: Unavailable "docker_unavailable" 503;
    DockerBusy: TryAgain "docker_unavailable" 503;
    GatewayUnknown: Usage "not_found";
    GatewayAgentUnknown: Usage "gateway_agent_unknown" 404;
    GatewayAgentNotReady: TryAgain "gateway_agent_not_ready" 409;
    GatewayAgentExists: Usage "gateway_agent_exists" 409;
    GatewayAgentChanged: TryAgain "gateway_agent_changed" 409;
    GatewayAgentFixed: Usage "gateway_agent_fixed" 409;
    GatewayAgentsExhausted: Usage "gateway_agents_exhausted" 409;
    AgentsRepositoryMissing: Usage "agents_repository_missing" 409;
    ProposalsExhausted: Usage "proposals_exhausted" 409;
    GatewayMisused: Usage "gateway_failed" 409 "gateway_refused";
    GatewayRefused: Failure "gateway_failed" 409 "gateway_refused";
    GatewayUnavailable: Unavailable "gateway_failed" 503 "gateway_unavailable";
    GatewayFailed: Internal "gateway_failed" 502;

    // Of operators' commands.
    TokenSecretsUnusable: Usage "token_secrets_unusable";
    LedgerInUse: TryAgain "ledger_in_use";
    UpstreamUnusable: Unavailable "upstream_unusable";
    ApiUnavailable: Unavailable "api_unavailable";
    ApiOff: Usage "api_off";
    AddressInUse: Unavailable "address_in_use";
    CertificateUnusable: Usage "certificate_unusable";
    SetupRefused: Usage "setup_refused";
    SetupStopped: Cancelled "setup_refused";
    SetupUnavailable: Unavailable "setup_refused";
    SetupFailed: Internal "setup_refused";
    DemoRefused: Usage "demo_failed";
    DemoUnavailable: Unavailable "demo_failed";
    DemoFailed: Failure "demo_failed";
    DemoUnwritable: Internal "demo_failed";
    AgentRefused: Usage "agent_not_added";
    AgentUnavailable: Unavailable "agent_not_added";
    AgentStopped: Cancelled "agent_not_added";
    AgentFailed: Internal "agent_not_added";
}

impl Coded for io::Error {
    fn code(&self) -> Code {
        if self.kind() == io::ErrorKind::BrokenPipe { Code::ClosedPipe } else { Code::Internal }
    }
}

impl Coded for serde_json::Error {
    fn code(&self) -> Code {
        Code::Internal
    }
}

impl Coded for SystemTimeError {
    fn code(&self) -> Code {
        Code::Internal
    }
}

impl Coded for InvalidId {
    fn code(&self) -> Code {
        Code::Internal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_api_has_one_status() {
        let answers: Vec<_> = Code::ALL.into_iter().filter_map(Code::http).collect();
        for answer in &answers {
            assert!((400..600).contains(&answer.status), "{answer:?}");
            let same = answers.iter().filter(|other| other.word == answer.word);
            assert!(same.into_iter().all(|other| other == answer), "{answer:?}");
        }
    }

    #[test]
    fn no_code_of_an_error_exits_with_success() {
        assert!(Code::ALL.into_iter().all(|code| code.exit() != Exit::Success));
    }

    #[test]
    fn a_closed_pipe_is_told_from_a_failed_disk() {
        assert_eq!(io::Error::from(io::ErrorKind::BrokenPipe).code().exit(), Exit::ClosedPipe);
        assert_eq!(io::Error::other("disk").code().exit(), Exit::Internal);
    }
}
