//! Describes a sandbox's permissions as data, and its end. Default deny: what is not listed here is denied.

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
    /// Id of its image, which must be on the host: nothing is pulled.
    pub(crate) image: String,
    /// Task of its first process.
    pub(crate) first: First,
    /// Volumes, which must exist: none is made.
    pub(crate) volumes: Vec<Volume>,
    /// Labels that find the container again, and distinguish it from a foreign one of the same name.
    pub(crate) labels: BTreeMap<&'static str, String>,
    /// Host directory that is mounted as `/workspace`.
    pub(crate) workspace: PathBuf,
    /// Host directory of the run's socket.
    pub(crate) socket_dir: PathBuf,
    pub(crate) limits: Limits,
}

/// Task of a container's first process.
#[derive(Debug, Clone)]
pub(crate) enum First {
    /// Run an agent.
    Run(Program),
    /// Wait for a start file in this directory of the host.
    Wait(PathBuf),
}

/// An agent's program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Program and arguments. No shell is involved.
    pub(crate) argv: Vec<String>,
    /// All environment variables besides the image's.
    pub(crate) environment: BTreeMap<String, String>,
}

/// Limits of a sandbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Memory in bytes, swap included.
    pub(crate) memory: ByteSize,
    /// Number of processes and threads.
    pub(crate) pids: u32,
    /// Processor time, in thousandths of a core.
    pub(crate) milli_cpu: u32,
    /// Bytes captured of each of stdout and stderr.
    pub(crate) output: ByteSize,
}

impl Limits {
    /// Returns the limits of an agent.
    pub(crate) const fn of(agent: &Agent) -> Self {
        let Agent { memory, pids, milli_cpu, output, .. } = *agent;
        Self { memory, pids, milli_cpu, output }
    }
}

/// End of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// Exit code of the agent's process; absent if it never ran.
    pub(crate) exit_code: Option<i64>,
    /// Cause of the kill, if it did not end by itself.
    pub(crate) killed_by: Option<KilledBy>,
    /// Set if one of its processes was killed for lack of memory. The agent may have survived that and exited with 0.
    pub(crate) oom_seen: bool,
    /// Captured stdout.
    pub(crate) stdout: Captured,
    /// Captured stderr.
    pub(crate) stderr: Captured,
}

/// Cause of killing a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KilledBy {
    /// Its time was up.
    Timeout,
    /// A cancellation was requested.
    Cancel,
    /// Its workspace grew too large.
    Disk,
}

/// A piece of output as it comes.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) stream: OutputStream,
    pub(crate) text: String,
    /// Position in the stream after the piece, in bytes.
    pub(crate) to: u64,
}

/// Callback for output as it comes. It must not block.
pub(crate) type Hear<'h> = &'h dyn Fn(Piece);
