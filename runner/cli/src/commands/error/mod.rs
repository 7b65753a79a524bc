//! Defines the error that ends a command. Its exit code, and its code for programs, are those of its cause.

#[cfg(test)]
mod tests;

use std::fmt;

use platform_core::{
    code::{Code, Coded},
    id::RunId,
};
use runner_control_client as data_plane;
use runner_model::lifecycle::State;

use super::exit::Exit;

/// Error that ends a command. It reads as its cause does.
#[derive(Debug)]
pub(super) struct Error(Box<dyn Coded + Send + Sync>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl<E: Coded + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl Error {
    /// Returns the error of a line of the journal that is not a record.
    pub(super) fn invalid_record(error: platform_core::json::Error) -> Self {
        data_plane::Error::Unexpected(format!("a line that is not a record ({error})")).into()
    }

    /// Returns the exit code of a command that this error ended.
    pub(super) fn exit_code(&self) -> Exit {
        self.0.code().exit()
    }

    /// Returns the code under which programs know this error.
    pub(super) fn word(&self) -> &str {
        self.0.word()
    }

    /// Returns the cause.
    pub(super) fn cause(&self) -> &(dyn std::error::Error + 'static) {
        self.0.as_ref()
    }
}

/// Error for arguments that contradict each other, are incomplete or cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misused(pub(super) String);

impl Coded for Misused {
    fn code(&self) -> Code {
        Code::Usage
    }
}

/// Error for a run, account or record that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unknown(pub(super) String);

impl Coded for Unknown {
    fn code(&self) -> Code {
        Code::NotFound
    }
}

/// Error for a run that may still change its files.
#[derive(Debug, thiserror::Error)]
#[error("{run_id} is {state}: do this when it has ended (`sluice runs wait {run_id}`)")]
pub(super) struct NotEnded {
    pub(super) run_id: RunId,
    pub(super) state: State,
}

impl Coded for NotEnded {
    fn code(&self) -> Code {
        Code::RunNotEnded
    }
}
