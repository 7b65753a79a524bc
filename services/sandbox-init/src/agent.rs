//! Starts the agent, a program in its own process group, and passes signals on to it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, IsTerminal},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use platform_core::{name::env::SANDBOX_START_FILE, start::Start};
use rustix::{
    process::{Pid, Signal, WaitStatus, kill_process_group},
    termios::tcsetpgrp,
};

use crate::error::Error;

/// Number added to a signal's number in an exit code, as shells do.
pub(crate) const BY_SIGNAL: i32 = 128;

/// Program to execute, as a list of words that nothing interprets.
#[derive(Debug)]
pub(crate) struct Program {
    argv: Vec<OsString>,
    /// Variables added to the container's environment.
    environment: Vec<(String, String)>,
    /// Working directory, if not the container's own.
    directory: Option<PathBuf>,
}

impl Program {
    /// Creates a program from a command line; `None` if that has no words.
    pub(crate) fn from_command(argv: Vec<OsString>) -> Option<Self> {
        (!argv.is_empty()).then(|| Self { argv, environment: Vec::new(), directory: None })
    }

    /// Returns whether the start file sets the variable `name`.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Creates the directory of its home, `home` unless it has its own variable: one in `/tmp` is gone with each
    /// container. Where it cannot be created, the program finds that out itself.
    pub(crate) fn create_home(&self, home: Option<&Path>) {
        if let Some(home) = self.variable("HOME").map(Path::new).or(home) {
            fs::create_dir_all(home).ok();
        }
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

/// Agent that was started. The [`crate::reap::Reaper`] reports its end.
#[derive(Debug)]
pub(crate) struct Agent {
    pid: Pid,
}

impl Agent {
    /// Starts `program`. Its output is the container's, as is its input.
    pub(crate) fn start(program: &Program) -> Result<Self, Error> {
        if let Some(directory) = &program.directory {
            // `Command::current_dir` would report a missing directory like a missing program.
            env::set_current_dir(directory)
                .map_err(|source| Error::Directory { directory: directory.clone(), source })?;
        }
        let name = program.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        let failed = |source| Error::Execute { program: name.to_owned(), source };
        let child = Command::new(name)
            .args(program.argv.iter().skip(1))
            // The agent need not know whether its container had to wait.
            .env_remove(SANDBOX_START_FILE)
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let pid = Pid::from_child(&child);
        lend_terminal(pid);
        Ok(Self { pid })
    }

    /// Returns whether `pid` is the agent's.
    pub(crate) fn is(&self, pid: Pid) -> bool {
        self.pid == pid
    }

    /// Passes `signal` on to the agent's process group.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process_group(self.pid, signal).ok(); // the group may be empty
    }
}

/// Gives an interactive terminal (`docker run -it`) to the group of `agent`. Then continues the agent: the kernel stops
/// it if it reads from the terminal too early.
fn lend_terminal(agent: Pid) {
    let terminal = io::stdin();
    if terminal.is_terminal() && tcsetpgrp(&terminal, agent).is_ok() {
        kill_process_group(agent, Signal::CONT).ok(); // it may have ended just now
    }
}

/// Returns the exit code that describes how a process ended.
pub(crate) fn exit_code(status: WaitStatus) -> u8 {
    let by_signal = || status.terminating_signal().map_or(BY_SIGNAL, |signal| BY_SIGNAL + signal);
    u8::try_from(status.exit_status().unwrap_or_else(by_signal)).unwrap_or(u8::MAX)
}
