//! What a sandbox is allowed, as data, and what became of it. Default deny: what is not said here is not there.

mod capture;
pub(crate) mod docker;
mod letters;

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{event::OutputStream, limit::ByteSize};
use platform_runtime::settings::{Agent, Volume};

pub(crate) use self::capture::{Capture, Captured, mark};

/// A container to be run once.
#[derive(Debug, Clone)]
pub(crate) struct SandboxSpec {
    /// Name of the container.
    pub(crate) name: String,
    /// Id of its image, which must be there already: nothing is pulled.
    pub(crate) image: String,
    /// What it does when it is started.
    pub(crate) first: First,
    /// Volumes, which must be there already: none is made.
    pub(crate) volumes: Vec<Volume>,
    /// How to find the container again, and to tell it from one that somebody else made under the same name.
    pub(crate) labels: BTreeMap<&'static str, String>,
    /// Host directory that becomes `/workspace`.
    pub(crate) workspace: PathBuf,
    /// Host directory of the run's socket.
    pub(crate) socket_dir: PathBuf,
    pub(crate) limits: Limits,
}

/// What a container does when it is started.
#[derive(Debug, Clone)]
pub(crate) enum First {
    /// It runs an agent.
    Run(Program),
    /// It waits to be told which one, in this directory of the host.
    Wait(PathBuf),
}

/// An agent's program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Itself and its arguments. No shell is involved.
    pub(crate) argv: Vec<String>,
    /// The whole environment besides the image's.
    pub(crate) environment: BTreeMap<String, String>,
}

/// What a sandbox may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Memory, swap included.
    pub(crate) memory: ByteSize,
    /// Processes and threads.
    pub(crate) pids: u32,
    /// Processor time, in thousandths of a core.
    pub(crate) milli_cpu: u32,
    /// What is kept of each of stdout and stderr.
    pub(crate) output: ByteSize,
}

impl Limits {
    /// Those of an agent.
    pub(crate) const fn of(agent: &Agent) -> Self {
        let Agent { memory, pids, milli_cpu, output, .. } = *agent;
        Self { memory, pids, milli_cpu, output }
    }
}

/// How a sandbox ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// Exit code of the agent's process; absent if it never ran.
    pub(crate) exit_code: Option<i64>,
    /// Who ended it, if it did not end by itself.
    pub(crate) killed_by: Option<KilledBy>,
    /// A process of it was killed for want of memory. The agent may have survived that and exited with 0.
    pub(crate) oom_seen: bool,
    /// What it printed.
    pub(crate) stdout: Captured,
    /// What it complained about.
    pub(crate) stderr: Captured,
}

/// Who ended a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KilledBy {
    /// Its time was up.
    Timeout,
    /// Somebody asked for it.
    Cancel,
    /// Its workspace grew too large.
    Disk,
}

/// A piece of output as it comes.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) stream: OutputStream,
    pub(crate) text: String,
    /// How many bytes of the stream were told with it.
    pub(crate) to: u64,
}

/// Who is told of output as it comes, and does not wait.
pub(crate) type Hear<'h> = &'h dyn Fn(Piece);
