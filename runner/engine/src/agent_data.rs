//! Collects what an agent's entry gives to each of its runs: instructions, behaviour files, the limits of its model.
//!
//! The request stores all of it, so a worker that executes the run reads no file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use platform_core::limit::ByteSize;
use platform_runtime::settings::{Agent, ModelLimits, Settings};
use runner_model::{
    behaviour::{BehaviourFile, BehaviourFiles},
    conversation::{Message, Role},
};
use rustix::fs::OFlags;

/// Most bytes of a behaviour file. Agents put the files into each prompt.
pub const MAX_BEHAVIOUR_FILE: ByteSize = ByteSize::kib(64);

/// Data of an agent for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentData {
    /// Message that comes before the conversation.
    pub instructions: Option<Message>,
    /// Behaviour files for the workspace.
    pub behaviour: BehaviourFiles,
    /// Tokens that the run's model takes and gives.
    pub model_limits: ModelLimits,
}

/// Error for behaviour files that cannot be given to an agent.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourError {
    /// A file or the directory cannot be read.
    #[error("{path} cannot be read: correct `behaviour_dir` in the agent's entry, or the file's permissions", path = path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The directory has none of the files.
    #[error("{dir} has no behaviour file: expected one of AGENTS.md, SOUL.md, USER.md, TOOLS.md, IDENTITY.md, MEMORY.md", dir = dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// A file is not a regular file.
    #[error("{path} is a link, a directory or a device: only regular files are copied", path = path.display())]
    NotRegular {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file is too large.
    #[error("{path} is larger than {MAX_BEHAVIOUR_FILE}: shorten it, agents put it into each prompt", path = path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file is not text.
    #[error("{path} is not UTF-8: convert it", path = path.display())]
    NotText {
        /// Path of the file.
        path: PathBuf,
    },
}

impl AgentData {
    /// Collects the data of `agent` for a run with `model`.
    ///
    /// # Errors
    /// If one of its behaviour files cannot be read.
    pub fn of(agent: &Agent, model: &str, settings: &Settings) -> Result<Self, BehaviourError> {
        let instructions = agent.prompt.clone().map(|content| Message { role: Role::System, content });
        let behaviour = agent.behaviour_dir.as_deref().map_or(Ok(BehaviourFiles::new()), read_behaviour)?;
        let mut model_limits = settings.models.get(model).copied().unwrap_or_default();
        // The proxy cuts longer answers off.
        let most = agent.output_tokens_per_call;
        model_limits.max_output_tokens =
            Some(model_limits.max_output_tokens.map_or(most, |tokens| tokens.min(most)));
        Ok(Self { instructions, behaviour, model_limits })
    }
}

/// Reads the behaviour files in `dir`.
fn read_behaviour(dir: &Path) -> Result<BehaviourFiles, BehaviourError> {
    let mut files = BehaviourFiles::new();
    for file in BehaviourFile::ALL {
        if let Some(text) = read_behaviour_file(dir, file)? {
            files.insert(file, text);
        }
    }
    if files.is_empty() { Err(BehaviourError::Missing { dir: dir.to_owned() }) } else { Ok(files) }
}

/// Reads one behaviour file in `dir`; `None` if it does not exist.
///
/// # Errors
/// If it cannot be given to an agent.
pub fn read_behaviour_file(dir: &Path, file: BehaviourFile) -> Result<Option<String>, BehaviourError> {
    read_file(dir.join(file.name()))
}

/// Reads a file; `None` if it does not exist.
fn read_file(path: PathBuf) -> Result<Option<String>, BehaviourError> {
    // Non-blocking, because it may be a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path);
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Err(BehaviourError::NotRegular { path })
        }
        Err(source) => Err(BehaviourError::Unreadable { path, source }),
        Ok(file) => read_open(&file, path).map(Some),
    }
}

fn read_open(file: &File, path: PathBuf) -> Result<String, BehaviourError> {
    let mut content = Vec::new();
    let read = file.metadata().and_then(|found| match found.is_file() {
        true => file.take(MAX_BEHAVIOUR_FILE.0 + 1).read_to_end(&mut content).map(|_bytes| true),
        false => Ok(false),
    });
    match read {
        Err(source) => Err(BehaviourError::Unreadable { path, source }),
        Ok(false) => Err(BehaviourError::NotRegular { path }),
        Ok(true) if content.len() > MAX_BEHAVIOUR_FILE.as_usize() => Err(BehaviourError::TooLarge { path }),
        Ok(true) => String::from_utf8(content).map_err(|_invalid| BehaviourError::NotText { path }),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use platform_core::id::AgentId;
    use platform_runtime::config::Sources;

    use super::*;

    #[test]
    fn an_answer_is_never_longer_than_a_call_may_get() {
        let text = "[agents.'a:b']\nimage = 'i'\nargv = ['a']\noutput_tokens_per_call = 4000\n\
            [models.long]\nmax_output_tokens = 9000\n[models.short]\nmax_output_tokens = 1000\n";
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let agent = &settings.agents[&AgentId::parse("a:b").unwrap()];
        let limits = |model| AgentData::of(agent, model, &settings).unwrap().model_limits.max_output_tokens;
        assert_eq!([limits("long"), limits("short"), limits("other")], [Some(4000), Some(1000), Some(4000)]);
    }

    #[test]
    fn only_regular_text_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        assert!(matches!(read_behaviour(dir.path()), Err(BehaviourError::Missing { .. })));
        fs::write(path("AGENTS.md"), "Be kind.").unwrap();
        fs::write(path("notes.md"), "not for agents").unwrap();
        let read = read_behaviour(dir.path()).unwrap();
        assert_eq!(read, [(BehaviourFile::Agents, "Be kind.".to_owned())].into(), "control");
        symlink("/etc/hostname", path("SOUL.md")).unwrap();
        assert!(matches!(read_behaviour(dir.path()), Err(BehaviourError::NotRegular { .. })));
        fs::remove_file(path("SOUL.md")).unwrap();
        fs::create_dir(path("SOUL.md")).unwrap();
        assert!(matches!(read_behaviour(dir.path()), Err(BehaviourError::NotRegular { .. })));
        fs::remove_dir(path("SOUL.md")).unwrap();
        fs::write(path("SOUL.md"), vec![b'x'; (64 << 10) + 1]).unwrap();
        assert!(matches!(read_behaviour(dir.path()), Err(BehaviourError::TooLarge { .. })));
        fs::write(path("SOUL.md"), b"\xff").unwrap();
        assert!(matches!(read_behaviour(dir.path()), Err(BehaviourError::NotText { .. })));
    }
}
