//! Defines all exit codes. Those above 64 follow sysexits(3), those above 120 the custom of shells.

use std::process::ExitCode;

use platform_core::event::RunErrorCode;
use platform_runtime::{
    config::Mistakes,
    settings::{NoGateway, token_secrets},
};
use runner_api as api;
use runner_control_client as data_plane;
use runner_docker as docker;
use runner_engine::run::BookingError;
use runner_gateways::sealed;
use runner_store as store;
use runner_telemetry::traces;
use runner_workspace as workspace;

use crate::supervise;

/// Exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Success,
    /// The agent failed, or a check did not pass.
    Failure,
    /// Wrong usage or configuration.
    Usage,
    /// A backend or resource that a run needs is unavailable.
    Unavailable,
    /// Sluicegate or Docker failed.
    Internal,
    /// The command may be tried again: the queue is full, or a session busy.
    TryAgain,
    Timeout,
    Cancelled,
    OutOfMemory,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Unavailable => 69,
            Exit::Internal => 70,
            Exit::TryAgain => 75,
            Exit::Timeout => 124,
            Exit::Cancelled => 130,
            Exit::OutOfMemory => 137,
        })
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
            | RunErrorCode::QuotaExhausted => Self::Failure,
            RunErrorCode::Cancelled => Self::Cancelled,
            _ => Self::Internal,
        }
    }
}

/// Returns the exit code for an error that ended a command.
pub(super) fn of_error(error: &(dyn std::error::Error + 'static)) -> Exit {
    if error.is::<Mistakes>()
        || error.is::<Misused>()
        || error.is::<NoGateway>()
        || error.is::<token_secrets::Error>()
        || error.is::<traces::Unusable>()
    {
        Exit::Usage
    } else if error.is::<Unknown>() {
        Exit::Failure
    } else if let Some(error) = error.downcast_ref::<sealed::Error>() {
        of_gateway(error)
    } else if let Some(error) = error.downcast_ref::<store::Error>() {
        of_store(error)
    } else if let Some(error) = error.downcast_ref::<BookingError>() {
        match error {
            BookingError::NotStored(error) => of_store(error),
            BookingError::Refused(_) => Exit::Usage,
            BookingError::Before(_) | BookingError::Unwritable(_) | BookingError::Unreadable(_) => {
                Exit::Internal
            }
        }
    } else if error.is::<data_plane::Error>()
        || error.is::<docker::Error>()
        || error.is::<workspace::Error>()
        || error.is::<supervise::Error>()
        || error.is::<api::Unbound>()
    {
        Exit::Unavailable
    } else {
        Exit::Internal
    }
}

const fn of_gateway(error: &sealed::Error) -> Exit {
    use sealed::Error;
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

const fn of_store(error: &store::Error) -> Exit {
    match error {
        store::Error::Unknown { .. } => Exit::Failure,
        store::Error::Full(_)
        | store::Error::SessionBusy { .. }
        | store::Error::HostAtWork { .. }
        | store::Error::OthersAtWork { .. } => Exit::TryAgain,
        store::Error::Conflict { .. }
        | store::Error::ServesAnother { .. }
        | store::Error::NotEmpty { .. }
        | store::Error::Backup { .. }
        | store::Error::TooLarge { .. } => Exit::Usage,
        _ => Exit::Unavailable,
    }
}

/// Error for arguments that cannot be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misused(pub(super) String);

/// Error for a run, account or record that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unknown(pub(super) String);
