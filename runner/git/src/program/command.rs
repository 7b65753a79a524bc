//! command builds one command of git: its settings, its environment, and the directories that it may touch.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    path::Path,
};

use platform_core::limit::ByteSize;
use rustix::process::Signal;
use tokio::{process::Command, time::timeout};

use super::{
    Git, PROGRAM_DIRS,
    confine::{Network, Reach},
    process::{Ended, Ending, Input, Process},
};
use crate::{askpass::AskPass, error::Error, transport::Transport};

/// Environment of every command, besides its home and its programs.
const ENVIRONMENT: [(&str, &str); 11] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_SSH_COMMAND", "/bin/false"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];
/// Settings of every command. They win over those of a repository.
const SETTINGS: [&str; 23] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.logAllRefUpdates=false",
    "core.maxTreeDepth=1024",
    "core.packedGitLimit=256m",
    "core.bigFileThreshold=16m",
    "credential.helper=",
    "protocol.allow=never",
    "transfer.fsckObjects=true",
    "transfer.bundleURI=false",
    "transfer.credentialsInUrl=die",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "push.recurseSubmodules=no",
    "push.followTags=false",
    "push.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.bareRepository=explicit",
    "http.followRedirects=false",
    "pack.threads=2",
];
/// Settings that end a connection which moves less than a byte in a while.
const SLOW_CONNECTION: [&str; 2] = ["http.lowSpeedLimit=1", "http.lowSpeedTime=30"];

/// Words by which git says that it, or a part of it, met a limit of this program on memory, time or files.
const EXHAUSTED: [&str; 6] = [
    "out of memory",
    "Out of memory",
    "Cannot allocate memory",
    "File too large",
    "died of signal 24",
    "died of signal 25",
];
/// Signals by which the kernel says that a program met its limit on processor time or on the size of a file.
const LIMIT_SIGNALS: [i32; 2] = [Signal::XCPU.as_raw(), Signal::XFSZ.as_raw()];
/// Exit status of a program that ends as a part of it did, less the number of the part's signal.
const SIGNALLED: i32 = 128;
/// Seconds of processor time between the signal that says that the limit is met, and the end.
const LAST_SECONDS: u64 = 5;

/// Command of git that is being built. It reaches nothing yet but its repository.
#[derive(Debug)]
pub(crate) struct GitCommand<'g> {
    git: &'g Git,
    name: &'static str,
    settings: Vec<String>,
    place: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    input: Input,
    reach: Reach,
    memory: ByteSize,
}

impl<'g> GitCommand<'g> {
    pub(super) fn new(git: &'g Git, name: &'static str) -> Self {
        let reach = Reach { read: vec![git.home.clone()], ..Reach::default() };
        Self {
            git,
            name,
            settings: Vec::new(),
            place: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            input: Input::Nothing,
            reach,
            memory: git.bounds().memory,
        }
    }

    pub(super) fn git_dir(mut self, dir: &Path) -> Self {
        self.place.extend([OsString::from("--git-dir"), dir.into()]);
        self.reads(dir)
    }

    /// Names the directory with the files of the repository.
    pub(crate) fn work_tree(mut self, dir: &Path) -> Self {
        self.place.extend([OsString::from("--work-tree"), dir.into()]);
        self.writes(dir)
    }

    /// Adds one argument.
    pub(crate) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub(crate) fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Adds a setting `name=value`.
    pub(crate) fn setting(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Lets git read a file or directory.
    pub(crate) fn reads(mut self, path: &Path) -> Self {
        self.reach.read.push(path.to_owned());
        self
    }

    /// Lets git change a directory.
    pub(crate) fn writes(mut self, dir: &Path) -> Self {
        self.reach.write.push(dir.to_owned());
        self
    }

    /// Gives git a text to read.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(input.into());
        self
    }

    /// Gives git the rest of an open file to read.
    pub(crate) fn input_file(mut self, file: File) -> Self {
        self.input = Input::File(file);
        self
    }

    /// Lowers the limit on memory.
    pub(crate) fn memory(mut self, most: ByteSize) -> Self {
        self.memory = self.memory.min(most);
        self
    }

    /// Opens one way to repositories.
    pub(crate) fn transport(mut self, transport: Transport) -> Self {
        self.settings.push(format!("protocol.{}.allow=always", transport.name()));
        if transport != Transport::File {
            self.settings.extend(SLOW_CONNECTION.map(str::to_owned));
            self.reach.network = Network::Open;
        }
        self
    }

    /// Lets git ask for a credential, for one remote.
    pub(crate) fn credential(mut self, askpass: &AskPass, origin: &str) -> Self {
        self.environment.extend(askpass.environment(origin));
        self.reach.run.push(askpass.script());
        self.reach.read.push(askpass.token_file());
        self
    }

    /// Runs the command. Dropping the future kills git and its children.
    ///
    /// # Errors
    /// If git cannot be started, takes too long or prints too much. A failure of git itself is in the output.
    pub(crate) async fn run(self) -> Result<GitOutput, Error> {
        let command = self.name;
        let bounds = self.git.bounds();
        let failed = |source| Error::Start { command, source };
        let program = self.program();
        let work = async {
            let process = Process::start(program, self.input, self.reach).await?;
            process.finish(bounds.output.as_usize()).await
        };
        let slow = |_elapsed| Error::Slow { command, max: bounds.time };
        let Ended { ending, stdout, stderr } =
            timeout(bounds.time, work).await.map_err(slow)?.map_err(failed)?;
        if stdout.len() as u64 > bounds.output.0 {
            return Err(Error::LargeOutput { command, max: bounds.output });
        }
        Ok(GitOutput { command, ending, stdout, stderr })
    }

    /// Runs the command and returns its output.
    ///
    /// # Errors
    /// As [`Self::run`], and if git fails.
    pub(crate) async fn output(self) -> Result<Vec<u8>, Error> {
        self.run().await?.checked()
    }

    fn program(&self) -> Command {
        let bounds = self.git.bounds();
        let mut command = Command::new(&self.git.setpriv);
        command.env_clear().env("PATH", PROGRAM_DIRS).env("HOME", &self.git.home).envs(ENVIRONMENT);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // A runner that is killed takes git with it.
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.git.prlimit);
        let seconds = bounds.processor.as_secs().max(1);
        command.arg(format!("--cpu={seconds}:{}", seconds + LAST_SECONDS));
        command.arg(format!("--as={}", self.memory.0)).arg(format!("--fsize={}", bounds.file.0));
        command.arg("--core=0").arg(&self.git.program);
        let settings = SETTINGS.iter().copied().chain(self.settings.iter().map(String::as_str));
        command.args(settings.flat_map(|setting| ["-c", setting]));
        command.args(&self.place).arg(self.name).args(&self.arguments).current_dir(&self.git.home);
        command
    }
}

/// Bytes that git printed, and how it ended.
#[derive(Debug)]
pub struct GitOutput {
    command: &'static str,
    ending: Ending,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl GitOutput {
    /// Returns the exit status; `None` if a signal ended git.
    #[must_use]
    pub const fn status(&self) -> Option<i32> {
        match self.ending {
            Ending::Status(status) => Some(status),
            Ending::Signal(_) | Ending::Abandoned => None,
        }
    }

    /// Returns the standard output.
    #[must_use]
    pub fn stdout(&self) -> &[u8] {
        &self.stdout
    }

    /// Returns the end of the messages.
    #[must_use]
    pub fn messages(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// Returns the last line of the messages that says why git failed, made safe to print.
    #[must_use]
    pub fn words(&self) -> String {
        let messages = self.messages();
        let is_reason = |line: &&str| ["fatal: ", "error: "].iter().any(|mark| line.starts_with(mark));
        let reason =
            messages.lines().find(is_reason).or_else(|| messages.lines().rfind(|line| !line.is_empty()));
        platform_runtime::terminal::safe(reason.unwrap_or("it wrote no reason")).into_owned()
    }

    /// Returns whether git met a limit of this program. Any other signal, and a full disk, is a fault of the host.
    pub(crate) fn is_exhausted(&self) -> bool {
        let messages = self.messages();
        let met = match self.ending {
            Ending::Status(status) => status - SIGNALLED,
            Ending::Signal(signal) => signal,
            Ending::Abandoned => 0,
        };
        LIMIT_SIGNALS.contains(&met) || EXHAUSTED.iter().any(|words| messages.contains(words))
    }

    /// Returns the standard output, if git succeeded.
    ///
    /// # Errors
    /// With git's own words.
    pub fn checked(self) -> Result<Vec<u8>, Error> {
        if self.status() == Some(0) {
            return Ok(self.stdout);
        }
        Err(self.failure())
    }

    /// Returns the error for a git that failed.
    pub(crate) fn failure(&self) -> Error {
        let command = self.command;
        match self.ending {
            _ if self.is_exhausted() => Error::Exhausted { command },
            Ending::Signal(signal) => Error::Killed { command, signal },
            Ending::Status(_) | Ending::Abandoned => Error::Failed { command, words: self.words() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ending: Ending, messages: &str) -> GitOutput {
        GitOutput { command: "index-pack", ending, stdout: Vec::new(), stderr: messages.into() }
    }

    #[test]
    fn only_limits_of_this_program_exhaust_git() {
        for output in [
            ended(Ending::Signal(24), ""),
            ended(Ending::Signal(25), ""),
            ended(Ending::Status(152), ""),
            ended(Ending::Status(128), "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)"),
            ended(Ending::Status(128), "error: pack-objects died of signal 24"),
        ] {
            assert!(matches!(output.failure(), Error::Exhausted { .. }), "{output:?}");
        }
        for output in [
            ended(Ending::Signal(15), ""),
            ended(Ending::Signal(9), ""),
            ended(Ending::Status(129), "usage: git index-pack"),
            ended(Ending::Status(137), ""),
            ended(Ending::Status(128), "fatal: write error: No space left on device"),
            ended(Ending::Status(128), "fatal: mmap failed: Permission denied"),
        ] {
            assert!(!matches!(output.failure(), Error::Exhausted { .. }), "{output:?}");
        }
    }
}
