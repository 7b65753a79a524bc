//! Lists the reasons why no agent runs, and the exit code that reports each.

use std::{ffi::OsString, io, path::PathBuf, time::Duration};

use platform_core::{json, name::env, start};

/// Reason why no agent runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no command: pass the program to run and its arguments")]
    NoCommand,
    #[error("{variable} is `{text}`, which is not a port")]
    Port { variable: &'static str, text: String },
    #[error(
        "{} is set but {} is not: which port does it lead to?",
        env::SANDBOX_ENTRY_SOCKET,
        env::SANDBOX_ENTRY_PORT
    )]
    NoEntryPort,
    #[error("cannot listen at {} for connections into the sandbox", socket.display())]
    Entry { socket: PathBuf, source: io::Error },
    #[error(
        "{} is set but there is no socket at {}: is the run's socket directory mounted?",
        env::OPENAI_API_BASE,
        socket.display()
    )]
    NoSocket { socket: PathBuf },
    #[error("the bridge could not listen on 127.0.0.1:{port} (is the port taken?)")]
    Listen { port: u16, source: io::Error },
    #[error(
        "no healthy proxy behind {} after {} s: /health said '{answer}'",
        socket.display(),
        after.as_secs()
    )]
    Unhealthy { socket: PathBuf, after: Duration, answer: String },
    #[error("cannot watch {} for the start file (its directory has to be readable)", directory.display())]
    Watch { directory: PathBuf, source: io::Error },
    #[error("cannot read the start file {}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("the start file {} has more than {} bytes", file.display(), start::MAX_SIZE)]
    TooLarge { file: PathBuf },
    #[error("the start file {} is invalid", file.display())]
    Content { file: PathBuf, source: json::Error },
    #[error("cannot work in {}", directory.display())]
    Directory { directory: PathBuf, source: io::Error },
    #[error("cannot execute {}", program.display())]
    Execute { program: OsString, source: io::Error },
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    #[error("cannot wait for the agent")]
    Wait(#[source] io::Error),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
}

impl Error {
    /// Returns the exit code: a shell's where shells agree (126, 127), that of sysexits.h where it has one, else 1.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoCommand => 64,
            Self::TooLarge { .. } | Self::Content { .. } => 65,
            Self::Execute { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Execute { .. } | Self::Directory { .. } => 126,
            Self::Port { .. }
            | Self::NoEntryPort
            | Self::Entry { .. }
            | Self::NoSocket { .. }
            | Self::Listen { .. }
            | Self::Unhealthy { .. }
            | Self::Watch { .. }
            | Self::Read { .. }
            | Self::Signals(_)
            | Self::Wait(_)
            | Self::Runtime(_) => 1,
        }
    }
}
