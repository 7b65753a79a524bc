//! The agent: a program in a process group of its own.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, IsTerminal},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Command,
};

use platform_core::{name::env::SANDBOX_START_FILE, start::Start};
use rustix::{
    process::{Pid, Signal, WaitStatus, kill_process_group},
    termios::tcsetpgrp,
};

use crate::error::Error;

/// Added to a signal's number in an exit code, as shells have it.
pub(crate) const BY_SIGNAL: i32 = 128;

/// What is to be executed: a list, which nothing interprets.
#[derive(Debug)]
pub(crate) struct Program {
    argv: Vec<OsString>,
    /// Beside what the container has.
    environment: Vec<(String, String)>,
    /// Instead of where the container begins.
    directory: Option<PathBuf>,
}

impl Program {
    /// A command line; none without a word.
    pub(crate) fn from_command(argv: Vec<OsString>) -> Option<Self> {
        (!argv.is_empty()).then(|| Self { argv, environment: Vec::new(), directory: None })
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.environment.iter().any(|(known, _)| known == name)
    }
}

impl From<Start> for Program {
    fn from(start: Start) -> Self {
        let pair = |(name, value): (&String, &String)| (name.clone(), value.clone());
        Self {
            argv: start.argv().iter().map(OsString::from).collect(),
            environment: start.environment().iter().map(pair).collect(),
            directory: Some(start.working_directory().into()),
        }
    }
}

/// An agent that was started. Whether it still runs its [`crate::reap::Reaper`] knows.
#[derive(Debug)]
pub(crate) struct Agent {
    pid: Pid,
}

impl Agent {
    /// Starts `program`. Its output is the container's, as is its input.
    pub(crate) fn start(program: &Program) -> Result<Self, Error> {
        if let Some(directory) = &program.directory {
            // Not by the command itself: its error would look like that of a program that is missing.
            env::set_current_dir(directory)
                .map_err(|source| Error::Directory { directory: directory.clone(), source })?;
        }
        let name = program.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        let failed = |source| Error::Execute { program: name.to_owned(), source };
        let child = Command::new(name)
            .args(program.argv.iter().skip(1))
            // Whether its container had to wait is not the agent's business.
            .env_remove(SANDBOX_START_FILE)
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let pid = Pid::from_child(&child);
        lend_terminal(pid);
        Ok(Self { pid })
    }

    pub(crate) fn is(&self, pid: Pid) -> bool {
        self.pid == pid
    }

    /// Passes `signal` on to the agent and what it started in its own group.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process_group(self.pid, signal).ok(); // nobody may be left
    }
}

/// Gives the terminal that somebody sits at (`docker run -it`) to the group of `agent`, and wakes it should it have read too soon.
fn lend_terminal(agent: Pid) {
    let terminal = io::stdin();
    if terminal.is_terminal() && tcsetpgrp(&terminal, agent).is_ok() {
        kill_process_group(agent, Signal::CONT).ok(); // it may have ended just now
    }
}

/// The exit code that tells how a process ended.
pub(crate) fn exit_code(status: WaitStatus) -> u8 {
    let by_signal = || status.terminating_signal().map_or(BY_SIGNAL, |signal| BY_SIGNAL + signal);
    u8::try_from(status.exit_status().unwrap_or_else(by_signal)).unwrap_or(u8::MAX)
}
