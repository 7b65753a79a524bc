//! Defines all exit codes. Those above 64 follow sysexits(3), those above 120 the custom of shells.

use std::process::ExitCode;

use platform_core::event::RunErrorCode;

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
    /// The command may succeed later: the queue is full, a session is busy, or another process uses the store.
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
            RunErrorCode::ImageMissing
            | RunErrorCode::VolumeMissing
            | RunErrorCode::InsufficientDisk
            | RunErrorCode::WorkspaceFailed
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
