//! Defines the errors that end a command, and the exit code of each.
//!
//! The matches are exhaustive: the compiler demands an exit code for each new error.

#[cfg(test)]
mod tests;

use std::{io, time::SystemTimeError};

use gateway_bridge::DeviceError;
use platform_core::id::{InvalidId, RunId};
use platform_runtime::{
    config::ConfigErrors,
    settings::{NoGateway, token_secrets},
};
use runner_api as api;
use runner_billing::ReconcileError;
use runner_connections::{AddError, CredentialError, KeyFileError};
use runner_control_client as data_plane;
use runner_docker as docker;
use runner_engine::{order::OrderError, relay::RelayError, run::LeaseError, run_files::RunFilesError};
use runner_files as files;
use runner_gateways::{self as gateways, managed};
use runner_model::lifecycle::State;
use runner_repos as repos;
use runner_store as store;
use runner_telemetry::traces;
use runner_workspace as workspace;

use super::{
    agents, connections,
    dashboard::DashboardError,
    demo::DemoError,
    exit::Exit,
    init,
    tools::{NotAccepted, ToolFailed},
};
use crate::{agent_images, doctor::UpstreamProblem, setup, supervise};

/// Error that ends a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The configuration has mistakes.
    #[error(transparent)]
    Configuration(#[from] ConfigErrors),
    /// The arguments contradict each other, or are incomplete.
    #[error(transparent)]
    Misused(#[from] Misused),
    /// The configuration does not allow such a run.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The commits of a run cannot be brought to their branch.
    #[error(transparent)]
    Relay(RelayError),
    /// A coding agent cannot be added.
    #[error(transparent)]
    AgentImage(#[from] agent_images::Error),
    /// The configuration has no gateway of this name.
    #[error(transparent)]
    NoGateway(#[from] NoGateway),
    /// The secrets of run tokens cannot be used.
    #[error(transparent)]
    TokenSecrets(#[from] token_secrets::Error),
    /// The settings of traces cannot be used.
    #[error(transparent)]
    Traces(#[from] traces::Unusable),
    /// The run, account or record does not exist.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The store of runs failed or refused.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The run could not be created, or this process does not hold its lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A gateway that runs here is not in the requested state.
    #[error(transparent)]
    ManagedGateway(#[from] managed::Error),
    /// A mirrored repository is not in the requested state.
    #[error(transparent)]
    Repository(#[from] repos::Error),
    /// The keys that seal connections cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// A connection gives no credential.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A connection cannot be added.
    #[error(transparent)]
    Connection(AddError),
    /// A host tool gave no result.
    #[error(transparent)]
    Tool(#[from] ToolFailed),
    /// A tool of a third-party server cannot be accepted.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// A call of a host tool does not wait for a decision.
    #[error("{0}; `sluice tools pending` lists calls that wait")]
    NotDecided(store::DecideError),
    /// The data plane failed or refused.
    #[error(transparent)]
    DataPlane(#[from] data_plane::Error),
    /// Docker failed or refused.
    #[error(transparent)]
    Docker(#[from] docker::Error),
    /// A workspace, or their directory, cannot be used.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// Files cannot be taken into a run, or out of it.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The changes of a run cannot be written into a directory.
    #[error(transparent)]
    Apply(#[from] files::ApplyError),
    /// The run has not ended.
    #[error(transparent)]
    NotEnded(#[from] NotEnded),
    /// The upstream's ledger cannot be read now.
    #[error(transparent)]
    LedgerInUse(ReconcileError),
    /// The disk is too full for another workspace.
    #[error(transparent)]
    InsufficientDisk(#[from] workspace::InsufficientDisk),
    /// `sluice up` has no running proxy.
    #[error(transparent)]
    Proxy(#[from] supervise::Error),
    /// The upstream does not answer, or refuses the key.
    #[error(transparent)]
    Upstream(#[from] UpstreamProblem),
    /// `sluice init` could not set Sluicegate up.
    #[error(transparent)]
    Setup(#[from] setup::Error),
    /// The dashboard cannot be reached.
    #[error(transparent)]
    Dashboard(#[from] DashboardError),
    /// The demonstration ended early.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The API cannot listen on its address, or has no certificate for it.
    #[error(transparent)]
    Api(#[from] api::StartError),
    /// The settings of a connection to a gateway cannot be used.
    #[error(transparent)]
    Gateway(#[from] gateways::Error),
    /// The connection to a gateway failed permanently.
    #[error(transparent)]
    GatewayConnection(#[from] gateway_bridge::Error),
    /// The key that identifies this client at a gateway cannot be used.
    #[error(transparent)]
    DeviceKey(#[from] DeviceError),
    /// An id that this program generated is invalid.
    #[error(transparent)]
    Id(#[from] InvalidId),
    /// A value cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The clock of the host shows a time before 1970.
    #[error(transparent)]
    Clock(#[from] SystemTimeError),
    /// The failpoint that the environment names cannot be armed.
    #[error("{0}")]
    Failpoint(String),
    /// The thread that shows a run panicked.
    #[error("showing the run failed")]
    DisplayPanicked,
    /// Standard input or output, the terminal, a signal handler or a file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Error for arguments that contradict each other, are incomplete or cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misused(pub(super) String);

/// Error for a run, account or record that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unknown(pub(super) String);

/// Error for a run that may still change its files.
#[derive(Debug, thiserror::Error)]
#[error("{run_id} is {state}: do this when it has ended (`sluice runs wait {run_id}`)")]
pub(super) struct NotEnded {
    pub(super) run_id: RunId,
    pub(super) state: State,
}

impl From<ReconcileError> for Error {
    fn from(error: ReconcileError) -> Self {
        match error {
            ReconcileError::Proxy(error) => error.into(),
            ReconcileError::Store(error) => error.into(),
            busy @ ReconcileError::Busy => Self::LedgerInUse(busy),
        }
    }
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Store(error) => error.into(),
            AddError::Keys(error) => error.into(),
            error => Self::Connection(error),
        }
    }
}

impl From<store::DecideError> for Error {
    fn from(error: store::DecideError) -> Self {
        match error {
            store::DecideError::Store(error) => error.into(),
            error => Self::NotDecided(error),
        }
    }
}

impl From<RunFilesError> for Error {
    fn from(error: RunFilesError) -> Self {
        match error {
            RunFilesError::Store(error) => error.into(),
            RunFilesError::Files(error) => error.into(),
            RunFilesError::Workspace(error) => error.into(),
            RunFilesError::Id(error) => error.into(),
            gone @ (RunFilesError::NoLongerKept { .. } | RunFilesError::NotYet { .. }) => {
                Unknown(gone.to_string()).into()
            }
            RunFilesError::Thread => workspace::Error::Thread.into(),
        }
    }
}

impl Error {
    /// Returns the error of a line of the journal that is not a record.
    pub(super) fn invalid_record(error: platform_core::json::Error) -> Self {
        data_plane::Error::Unexpected(format!("a line that is not a record ({error})")).into()
    }

    /// Returns the exit code of a command that this error ended.
    pub(super) fn exit_code(&self) -> Exit {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::ClosedPipe,
            Self::Order(OrderError::Store(error)) => store_exit(error),
            Self::Configuration(_)
            | Self::Misused(_)
            | Self::Order(_)
            | Self::NoGateway(_)
            | Self::TokenSecrets(_)
            | Self::KeyFile(_)
            | Self::Connection(_)
            | Self::Api(api::StartError::Tls(_))
            | Self::Dashboard(DashboardError::Off | DashboardError::UnknownPort)
            | Self::Demo(DemoError::NotRoot | DemoError::HalfUpstream)
            | Self::Traces(_) => Exit::Usage,
            Self::Unknown(_)
            | Self::Tool(_)
            | Self::NotAccepted(_)
            | Self::NotDecided(_)
            | Self::Relay(RelayError::NoRelay { .. }) => Exit::Failure,
            Self::NotEnded(_) | Self::LedgerInUse(_) | Self::Relay(RelayError::Busy { .. }) => Exit::TryAgain,
            Self::Files(error) => files_exit(error),
            Self::Apply(error) => apply_exit(error),
            Self::AgentImage(error) => agents::exit_code(error),
            Self::Store(error) => store_exit(error),
            Self::Credential(error) => connections::exit_code(error),
            Self::Lease(error) => lease_exit(error),
            Self::ManagedGateway(error) => managed_gateway_exit(error),
            Self::Repository(error) => repository_exit(error),
            Self::DataPlane(_)
            | Self::Docker(_)
            | Self::Workspace(_)
            | Self::InsufficientDisk(_)
            | Self::Proxy(_)
            | Self::Upstream(_)
            | Self::Dashboard(DashboardError::NotRunning { .. })
            | Self::Demo(DemoError::NotReady { .. } | DemoError::NoModel)
            | Self::Api(api::StartError::Unbound { .. }) => Exit::Unavailable,
            Self::Setup(error) => init::exit_code(error),
            Self::Demo(DemoError::Failed { .. }) => Exit::Failure,
            Self::Gateway(_)
            | Self::Demo(DemoError::Write { .. })
            | Self::Relay(_)
            | Self::GatewayConnection(_)
            | Self::DeviceKey(_)
            | Self::Id(_)
            | Self::Json(_)
            | Self::Clock(_)
            | Self::Failpoint(_)
            | Self::DisplayPanicked
            | Self::Io(_) => Exit::Internal,
        }
    }
}

const fn lease_exit(error: &LeaseError) -> Exit {
    match error {
        LeaseError::NotStored(error) => store_exit(error),
        LeaseError::NotAdmitted(_) => Exit::Usage,
        LeaseError::Exists(_) | LeaseError::Unwritable(_) | LeaseError::Unreadable(_) => Exit::Internal,
    }
}

const fn managed_gateway_exit(error: &managed::Error) -> Exit {
    use managed::Error;
    match error {
        Error::Unknown(_) | Error::Elsewhere { .. } => Exit::Usage,
        Error::Unsafe { .. } | Error::Full { .. } => Exit::Failure,
        Error::Disk(_) | Error::Docker(_) | Error::DataPlane(_) | Error::NoModel(_) => Exit::Unavailable,
        Error::File { .. }
        | Error::Dir(_)
        | Error::Secret(_)
        | Error::Silent { .. }
        | Error::Ended { .. } => Exit::Internal,
    }
}

const fn repository_exit(error: &repos::Error) -> Exit {
    use repos::Error;
    match error {
        Error::Exists { .. } | Error::TokenFile { .. } => Exit::Usage,
        Error::Unknown { .. } => Exit::Failure,
        Error::Docker(docker::Error::VolumeInUse { .. }) => Exit::TryAgain,
        Error::Docker(_) | Error::SyncFailed { .. } => Exit::Unavailable,
        Error::File { .. } => Exit::Internal,
    }
}

const fn files_exit(error: &files::Error) -> Exit {
    use files::Error;
    match error {
        Error::Uncopyable { .. }
        | Error::UnusedPattern { .. }
        | Error::LargeRepository { .. }
        | Error::NotARepository { .. }
        | Error::NotEmpty { .. }
        | Error::InGitDir { .. } => Exit::Usage,
        Error::NoFiles { .. }
        | Error::NoResult { .. }
        | Error::ResultRemoved { .. }
        | Error::ResultTooLarge { .. }
        | Error::NoRoom { .. }
        | Error::NoSuchFile { .. }
        | Error::OtherFiles { .. }
        | Error::TooManyResults { .. } => Exit::Failure,
        Error::SourceFile { .. } | Error::SlowClone { .. } => Exit::TryAgain,
        Error::Io { .. } | Error::Damaged { .. } => Exit::Internal,
    }
}

const fn apply_exit(error: &files::ApplyError) -> Exit {
    use files::ApplyError;
    match error {
        ApplyError::Refused { .. } => Exit::Failure,
        ApplyError::Io { .. } => Exit::Internal,
        ApplyError::Files(error) => files_exit(error),
    }
}

pub(super) const fn store_exit(error: &store::Error) -> Exit {
    use store::Error;
    match error {
        Error::Unknown { .. }
        | Error::NoPrincipal { .. }
        | Error::NoConnection { .. }
        | Error::NoThread { .. }
        | Error::Forgotten { .. } => Exit::Failure,
        Error::Full(_)
        | Error::SessionBusy { .. }
        | Error::ThreadBusy { .. }
        | Error::StillActive { .. }
        | Error::RelayChanged { .. }
        | Error::HostAtWork { .. }
        | Error::OthersAtWork { .. } => Exit::TryAgain,
        Error::Conflict { .. }
        | Error::ServesAnother { .. }
        | Error::PrincipalExists { .. }
        | Error::ConnectionExists { .. }
        | Error::ConnectionLimit(_)
        | Error::PrincipalRevoked { .. }
        | Error::TopUpExists { .. }
        | Error::BranchTaken { .. }
        | Error::NotEmpty { .. }
        | Error::Backup { .. }
        | Error::BackupFile { .. }
        | Error::TooLarge { .. } => Exit::Usage,
        Error::Address { .. }
        | Error::File { .. }
        | Error::Exposed(_)
        | Error::Unreachable { .. }
        | Error::HostId { .. }
        | Error::OnlyReads
        | Error::Newer { .. }
        | Error::Altered { .. }
        | Error::Failed { .. }
        | Error::Fenced { .. }
        | Error::Illegal { .. }
        | Error::NotMaking { .. }
        | Error::NotWarm { .. }
        | Error::ThreadWorkspaceTaken { .. }
        | Error::NotWanted { .. }
        | Error::NotOver { .. }
        | Error::Backwards { .. }
        | Error::Corrupt { .. } => Exit::Unavailable,
    }
}
