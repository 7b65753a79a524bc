//! Names the reasons why an agent did not run to its end, and turns them into failures that a caller may read.

use gateway_bridge::InvalidSession;
use platform_core::event::RunErrorCode as Code;
use platform_runtime::{report, retry::Transient};
use runner_control_client as data_plane;
use runner_docker as docker;
use runner_gateways::{self as gateway, attribution::Unattributable};
use runner_git as git;
use runner_github as github;
use runner_model::lifecycle::{Detail, Failure};
use runner_store as store;
use runner_workspace::{self as workspace, Exceeded};

use crate::{pricing::Unpriced, relay::RelayError};

/// Reason why the agent did not run to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the step could not be stored")]
    Store(#[from] store::Error),
    #[error("the data plane failed")]
    DataPlane(#[from] data_plane::Error),
    #[error("the workspace failed")]
    Workspace(#[from] workspace::Error),
    #[error("{0} in earlier runs of its thread")]
    ThreadWorkspaceFull(Exceeded),
    #[error("the sandbox failed")]
    Docker(#[from] docker::Error),
    #[error("the gateway failed")]
    Gateway(#[from] gateway::Error),
    #[error("the container was removed while the agent ran")]
    ContainerLost,
    #[error("another run of this id is open at the data plane")]
    RunIdTaken,
    #[error("the repository failed")]
    Relay(#[from] RelayError),
    #[error("the run was refused")]
    Unpriced(#[from] Unpriced),
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns whether the data plane reported that the grant under the run's id belongs to another owner.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::RunIdTaken => true,
            Self::DataPlane(error) => error.is_refusal(),
            _ => false,
        }
    }

    /// Returns whether a backend other than the store did not answer. The store retries its own operations.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::DataPlane(error) => error.is_transient(),
            Self::Docker(error) => error.is_transient(),
            Self::Gateway(error) => error.is_transient(),
            Self::Relay(error) => error.is_transient(),
            Self::Store(_)
            | Self::Workspace(_)
            | Self::ThreadWorkspaceFull(_)
            | Self::ContainerLost
            | Self::RunIdTaken
            | Self::Unpriced(_)
            | Self::Cancelled => false,
        }
    }

    /// Returns the failure for the caller of the run, without paths and without text of other programs.
    fn for_caller(&self) -> Failure {
        match self {
            Self::Cancelled => Failure::new(Code::Cancelled, "cancelled"),
            Self::ContainerLost => {
                Failure::new(Code::ContainerLost, "the container was removed while the agent ran")
            }
            Self::RunIdTaken => {
                Failure::new(Code::DataPlaneFailed, "another run of this id is open at the data plane")
            }
            Self::Unpriced(error) => Failure::new(Code::ModelUnpriced, error.to_string()),
            Self::Gateway(error) => gateway_failure(error),
            Self::Store(error @ store::Error::ThreadWorkspaceTaken { .. }) => {
                Failure::new(Code::WorkspaceFailed, error.to_string())
            }
            Self::Store(_) => Failure::new(Code::StoreFailed, "what the run does could not be stored"),
            Self::DataPlane(error) if error.is_transient() => {
                Failure::new(Code::DataPlaneUnavailable, "the data plane did not answer")
            }
            Self::DataPlane(_) => Failure::new(Code::DataPlaneFailed, "the data plane refused the run"),
            Self::Workspace(workspace::Error::InsufficientDisk(_)) => {
                Failure::new(Code::InsufficientDisk, "there was no room for its workspace")
            }
            Self::Workspace(error) if error.is_out_of_space() => {
                Failure::new(Code::WorkspaceFailed, "its files do not fit into its workspace")
            }
            Self::ThreadWorkspaceFull(_) => Failure::new(
                Code::WorkspaceFailed,
                format!("{self}: remove the thread, or give the agent more `disk`"),
            ),
            Self::Workspace(_) => {
                Failure::new(Code::WorkspaceFailed, "its workspace could not be created or kept")
            }
            Self::Docker(error) => docker_failure(error),
            Self::Relay(error) => Failure::new(Code::RepositoryFailed, repository_failure(error)),
        }
    }
}

/// Returns what the caller of the run learns: what the remote said, and nothing of this host.
fn repository_failure(error: &RelayError) -> String {
    match error {
        RelayError::GitHub(github::Error::Refused { status, message, .. }) => {
            format!("its repository could not be cloned: GitHub answered {status}, {message}")
        }
        RelayError::Git(
            error @ (git::Error::Remote(_) | git::Error::NoBase { .. } | git::Error::OpenCredential { .. }),
        ) => format!("its repository could not be cloned: {error}"),
        RelayError::Store(error @ store::Error::BranchTaken { .. }) => error.to_string(),
        RelayError::Order(error) => error.to_string(),
        _ => "its repository could not be cloned".to_owned(),
    }
}

fn gateway_failure(error: &gateway::Error) -> Failure {
    let code = if error.is_transient() { Code::GatewayUnavailable } else { Code::GatewayFailed };
    if error.is_of_the_request() {
        return Failure::new(code, report::chain(error));
    }
    let is_unavailable = code == Code::GatewayUnavailable;
    Failure::new(
        code,
        if is_unavailable { "its gateway did not answer" } else { "its gateway cannot be used" },
    )
}

fn docker_failure(error: &docker::Error) -> Failure {
    if error.is_transient() {
        return Failure::new(Code::DockerUnavailable, "Docker did not answer");
    }
    let code = match error {
        docker::Error::NotPermitted { .. } => {
            return Failure::new(Code::DockerUnavailable, "Docker is closed to the worker");
        }
        docker::Error::NoImage { .. } | docker::Error::ImageGone { .. } => Code::ImageMissing,
        docker::Error::NoVolume { .. } => Code::VolumeMissing,
        _ => Code::DockerFailed,
    };
    Failure::new(code, error.to_string())
}

impl From<Unattributable> for Error {
    fn from(error: Unattributable) -> Self {
        match error {
            Unattributable::DataPlane(error) => error.into(),
            Unattributable::Gateway(error) => error.into(),
        }
    }
}

impl From<InvalidSession> for Error {
    fn from(error: InvalidSession) -> Self {
        Self::Gateway(error.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { detail: Some(Detail::new(report::chain(&error))), ..error.for_caller() }
    }
}
