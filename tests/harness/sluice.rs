//! Runs the real command line.

use std::{
    ffi::OsStr,
    fs::File,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::Command;

use crate::{canary, process::binary};

/// Longest duration of a command before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// `sluice` with a configuration and an otherwise empty environment.
#[derive(Debug)]
pub struct Sluice {
    pub(crate) command: Command,
    patience: Duration,
}

/// Exit and output of a command.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code; absent if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Sluice {
    pub(crate) fn with_config(config: &Path) -> Self {
        let mut command = Command::new(binary("sluice"));
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg("--config").arg(config);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Self { command, patience: PATIENCE }
    }

    /// Adds a variable to its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it through another program: `wrapper` is that program and its first arguments.
    #[must_use]
    pub fn under(self, wrapper: &[&str]) -> Self {
        let (inner, mut command) = (self.command.as_std(), Command::new(wrapper[0]));
        command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Self { command, patience: PATIENCE }
    }

    /// Sets its longest duration before the test fails.
    #[must_use]
    pub const fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Adds an argument before those of [`Self::run`]. It may be no UTF-8.
    #[must_use]
    pub fn argument(mut self, argument: &OsStr) -> Self {
        self.command.arg(argument);
        self
    }

    /// Lets it read `file` as its standard input.
    #[must_use]
    pub fn stdin(mut self, file: File) -> Self {
        self.command.stdin(file);
        self
    }

    /// Appends its standard error to `file`, so that it never waits for a reader.
    ///
    /// # Panics
    /// If the file cannot be opened.
    #[must_use]
    pub fn log_to(mut self, file: &Path) -> Self {
        self.command.stderr(File::options().create(true).append(true).open(file).unwrap());
        self
    }

    /// Gives it a pipe as standard output that its reader has left. Use with [`Self::spawn`], because [`Self::run`]
    /// reads the output.
    ///
    /// # Panics
    /// If there can be no pipe.
    #[must_use]
    pub fn unread(mut self) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        self.command.stdout(writer);
        self
    }

    /// Discards its standard output.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.command.stdout(Stdio::null());
        self
    }

    /// Runs it with `arguments` to its end.
    pub async fn run(mut self, arguments: &[&str]) -> Outcome {
        self.command.args(arguments);
        let output = tokio::time::timeout(self.patience, self.command.output()).await;
        let output = output
            .unwrap_or_else(|_| panic!("sluice {arguments:?} did not end within {:?}", self.patience))
            .unwrap();
        for (name, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            // The output of `sluice token` is a token by design.
            if arguments.first() != Some(&"token") || name == "stderr" {
                canary::search(&format!("{name} of sluice {arguments:?}"), text);
            }
        }
        output.into()
    }

    /// Returns the number of warm containers that wait for a run, as the store has them.
    pub async fn waiting(self) -> usize {
        let shown = self.run(&["doctor", "--reap", "--dry-run", "--json"]).await;
        shown.stdout.matches("it waits for a run").count()
    }

    /// Starts it with `arguments`. It is killed when the handle is dropped.
    #[must_use]
    pub fn spawn(mut self, arguments: &[&str]) -> tokio::process::Child {
        self.command.args(arguments).spawn().unwrap()
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Outcome {
    /// Returns the last line of `--json` output: the result.
    #[must_use]
    pub fn result(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_else(|| panic!("no output: {self:?}"));
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns all lines of `--json` output.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }
}

/// Sends `INT`, the signal of Ctrl-C.
pub fn interrupt(child: &tokio::process::Child) {
    signal(child, Signal::INT);
}

/// Sends `TERM`, the signal of a service manager.
pub fn terminate(child: &tokio::process::Child) {
    signal(child, Signal::TERM);
}

/// Sends `CONT`: a process that stands still continues.
pub fn resume(child: &tokio::process::Child) {
    signal(child, Signal::CONT);
}

fn signal(child: &tokio::process::Child, signal: Signal) {
    let pid = child.id().expect("it runs").cast_signed();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}
