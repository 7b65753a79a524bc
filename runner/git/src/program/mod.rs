//! program runs the host's git: one environment, few directories, and limits on time, memory and output.
//!
//! A command names the directories that it may read and write, and the one way to a remote that it may use. A separate
//! thread takes all other rights from itself before it starts git, which inherits that.

mod command;
mod confine;
mod output;
mod process;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use platform_core::limit::ByteSize;

pub(crate) use self::command::GitCommand;
pub use self::{confine::Confinement, output::GitOutput};
use crate::error::Error;

/// Directories of programs, for git and for those that it starts.
const PROGRAM_DIRS: &str = "/usr/local/bin:/usr/bin:/bin";
/// Longest time for a command.
const DEFAULT_COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

/// Limits of one command. The kernel holds those on processor time, memory and files for each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessBounds {
    /// Longest time. Git and its children are killed then.
    pub time: Duration,
    /// Most processor time.
    pub processor: Duration,
    /// Most address space.
    pub memory: ByteSize,
    /// Largest file that is written.
    pub file: ByteSize,
    /// Most bytes that are read from its output.
    pub output: ByteSize,
}

impl Default for ProcessBounds {
    fn default() -> Self {
        Self {
            time: DEFAULT_COMMAND_TIMEOUT,
            processor: DEFAULT_COMMAND_TIMEOUT,
            memory: ByteSize::mib(4096),
            file: ByteSize::mib(4096),
            output: ByteSize::mib(64),
        }
    }
}

/// Host's git, as every command of this crate runs it.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    setpriv: PathBuf,
    prlimit: PathBuf,
    home: PathBuf,
    confinement: Confinement,
    bounds: ProcessBounds,
}

impl Git {
    /// Finds git, `prlimit` and `setpriv`. Makes `home`, an empty directory that git takes for its user's, where it is missing.
    ///
    /// # Errors
    /// If a program is missing, `home` is not empty, or the system refuses.
    pub fn locate(home: &Path) -> Result<Self, Error> {
        fs::create_dir_all(home).map_err(Error::io("create", home))?;
        let home = fs::canonicalize(home).map_err(Error::io("resolve", home))?;
        let mut entries = fs::read_dir(&home).map_err(Error::io("list", &home))?;
        if entries.next().is_some() {
            return Err(Error::HomeNotEmpty { path: home });
        }
        let confinement = Confinement::measure();
        let bounds = ProcessBounds::default();
        let [program, setpriv, prlimit] = [find("git")?, find("setpriv")?, find("prlimit")?];
        Ok(Self { program, setpriv, prlimit, home, confinement, bounds })
    }

    /// Returns this git with other limits.
    #[must_use]
    pub fn with_bounds(mut self, bounds: ProcessBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Returns the limits of a command.
    #[must_use]
    pub const fn bounds(&self) -> ProcessBounds {
        self.bounds
    }

    /// Returns how far the kernel confines git to the directories that a command names.
    #[must_use]
    pub const fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// Begins a command on the repository in `git_dir`, which it may read.
    pub(crate) fn command(&self, name: &'static str, git_dir: &Path) -> GitCommand<'_> {
        GitCommand::new(self, name).git_dir(git_dir)
    }

    /// Begins a command on no repository.
    pub(crate) fn command_outside(&self, name: &'static str) -> GitCommand<'_> {
        GitCommand::new(self, name)
    }
}

/// Returns the path of a program.
fn find(name: &'static str) -> Result<PathBuf, Error> {
    let paths = PROGRAM_DIRS.split(':').map(|dir| Path::new(dir).join(name));
    let found = paths.into_iter().find(|path| path.is_file());
    found.ok_or(Error::MissingProgram { name, directories: PROGRAM_DIRS })
}
