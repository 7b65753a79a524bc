//! command builds one command of git: its settings, its environment, and the directories that it may touch.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    path::Path,
};

use platform_core::limit::ByteSize;
use tokio::{process::Command, time::timeout};

use super::{
    Git, PROGRAM_DIRS,
    confine::{Network, Reach},
    output::GitOutput,
    process::{Ended, Input, Process},
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
        // A command on no repository begins in the home, and must not find one in the directories above it.
        command.env("GIT_CEILING_DIRECTORIES", self.git.home.parent().unwrap_or(&self.git.home));
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
