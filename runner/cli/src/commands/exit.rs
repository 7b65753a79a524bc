//! Defines all exit codes. Those above 64 follow sysexits(3), those above 120 the custom of shells.

use std::process::ExitCode;

use clap::Command;
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
    /// The reader of the output closed the pipe. Programs that SIGPIPE kills have this code in a shell, `git` among
    /// them. It is not 0: a check must not count as passed if its verdict was not read.
    ClosedPipe,
}

/// Exit codes of every command, for its help.
const ALL_COMMANDS: &str = "\
Exit codes:
  0 success
  1 the agent or a check failed, or what was named does not exist
  2 wrong usage or configuration
  69 proxy, Docker or store unavailable
  70 Sluicegate, Docker or an image failed
  75 try again later: the queue is full, or something is in use
  130 cancelled, 141 the reader of the output closed the pipe";

/// Exit codes of commands that end as a run ended.
const AS_A_RUN_ENDED: &str = "\n  124 time limit of the run, 137 memory limit of the run";

/// Returns `command` with exit codes at the end of its help, and of those of its subcommands. A help with its own
/// codes refers to the others. In `after_long_help` they would change the layout of every help without a long form.
pub(super) fn with_exit_codes(command: Command) -> Command {
    let command = command.mut_subcommands(with_exit_codes);
    let own = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    let codes = match command.get_name() {
        _ if own.contains("xit code") => "`sluice --help` lists all exit codes.".to_owned(),
        "sluice" | "run" | "wait" => format!("{ALL_COMMANDS}{AS_A_RUN_ENDED}"),
        _ => ALL_COMMANDS.to_owned(),
    };
    command.after_help(own + &codes)
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
            Exit::ClosedPipe => 141,
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
