//! Defines the errors of `sluice init`.

use std::{io, path::PathBuf};

use platform_core::code::{Code, Coded};

use crate::doctor::UpstreamProblem;

/// Reason why no configuration was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The answers cannot be used. Each text says what to do.
    #[error("nothing was written:\n  {}", .0.join("\n  "))]
    Unusable(Vec<String>),
    /// The user stopped the dialogue.
    #[error("stopped; nothing was written")]
    Stopped,
    /// The terminal failed.
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
    /// `sluice-proxy`, which asks the upstream, could not be started.
    #[error("cannot start {}, which checks the upstream", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// `sluice-proxy` refuses the configuration, or its answer is not health.
    #[error("nothing was written, because the check by sluice-proxy failed:\n{said}")]
    Check {
        /// Words of the program.
        said: String,
    },
    /// The upstream does not work with this key.
    #[error("nothing was written (--force writes it nevertheless)")]
    Upstream(#[from] UpstreamProblem),
    /// A file or directory cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unusable(_) | Self::Check { .. } => Code::SetupRefused,
            Self::Stopped => Code::SetupStopped,
            Self::Program { .. } | Self::Upstream(_) => Code::SetupUnavailable,
            Self::Terminal(_) | Self::Write { .. } => Code::SetupFailed,
        }
    }
}
