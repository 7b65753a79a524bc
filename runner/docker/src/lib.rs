//! Creates, attaches to, inspects and removes containers: sandboxes of runs, warm containers, extractions from
//! workspaces, managed gateways, mirrors of repositories, servers of tools.
//!
//! A sandbox's permissions are data, [`SandboxSpec`]. Default deny: a permission that is not listed is denied.
//!
//! Does not know runs, the store or the data plane. Does not pull images. Creates volumes for mirrors alone.
//!
//! Start reading at [`Docker`]; `docker::isolation` checks the isolation settings, `docker::output` reads what agents
//! print.
//!
//! Invariants: this is the only crate with a Docker client. A sandbox has no capability, no network and a read-only
//! root.

mod capture;
mod docker;
mod utf8_stream;

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{event::OutputStream, limit::ByteSize};
use platform_runtime::settings::{Agent, Volume};
use serde::Serialize;

pub use self::{
    capture::{Capture, Captured, mark},
    docker::{
        Container, Docker, EXTRACTION_SUFFIX, Error, ExtractEnd, ExtractSpec, Extracted, FoundContainer,
        GatewayContainer, GatewaySpec, Listed, MirrorContainer, MirrorOutput, MirrorSpec, Removal,
        ServerOutput, ServerStreams, ToolServerImage, ToolServerSpec, Version, Waits, labels, warm_labels,
    },
};

/// Memory of an extraction.
const EXTRACTION_MEMORY: ByteSize = ByteSize::mib(512);
/// Processes and threads of an extraction.
const EXTRACTION_PIDS: u32 = 64;
/// Processor time of an extraction, in thousandths of a core.
const EXTRACTION_MILLI_CPU: u32 = 1000;

/// A container to be run once.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// Name of the container.
    pub name: String,
    /// Id of its image, which must be on the host: nothing is pulled.
    pub image: String,
    /// Task of its first process.
    pub first: First,
    /// Settings that its agent's entry has.
    pub settings: ContainerSettings,
    /// Labels that find the container again, and distinguish it from a foreign one of the same name.
    pub labels: BTreeMap<&'static str, String>,
    /// Host directory that is mounted as `/workspace`.
    pub workspace: PathBuf,
    /// Host directory of the run's socket.
    pub socket_dir: PathBuf,
}

/// Settings of an agent's entry that Docker fixes when it creates a container.
#[derive(Debug, Clone, Serialize)]
pub struct ContainerSettings {
    /// Volumes, which must exist: none is created.
    pub volumes: Vec<Volume>,
    /// Limits of its memory, processes, processor time and captured output.
    pub limits: Limits,
    /// Size of `/tmp`, and of `/var/tmp`. Programs can be executed there. What is in them counts as its memory.
    pub tmp_size: ByteSize,
    /// Size of `/dev/shm`, which counts as its memory as well.
    pub shm_size: ByteSize,
    /// Port of `localhost` at which it finds the run's socket. The first process knows it before the run.
    pub bridge_port: u16,
}

impl ContainerSettings {
    /// Returns the settings of an agent.
    pub fn of(agent: &Agent) -> Self {
        Self {
            volumes: agent.volumes.clone(),
            limits: Limits::of(agent),
            tmp_size: agent.tmp_size,
            shm_size: agent.shm_size,
            bridge_port: agent.bridge_port,
        }
    }
}

/// Task of a container's first process.
#[derive(Debug, Clone)]
pub enum First {
    /// Run an agent.
    Run(Program),
    /// Wait for a start file in this directory of the host.
    Wait(PathBuf),
}

/// An agent's program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Program and arguments. No shell is involved.
    pub argv: Vec<String>,
    /// All environment variables besides the image's.
    pub environment: BTreeMap<String, String>,
    /// Directory in which it starts; an absolute path.
    pub working_directory: String,
}

/// Limits of a sandbox.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Limits {
    /// Memory in bytes, swap included.
    pub memory: ByteSize,
    /// Number of processes and threads.
    pub pids: u32,
    /// Processor time, in thousandths of a core.
    pub milli_cpu: u32,
    /// Bytes captured of each of stdout and stderr.
    pub output: ByteSize,
}

impl Limits {
    const fn of(agent: &Agent) -> Self {
        let Agent { memory, pids, milli_cpu, output_capture_limit: output, .. } = *agent;
        Self { memory, pids, milli_cpu, output }
    }

    /// Returns the limits of an extraction that prints at most `output`.
    pub const fn of_extraction(output: ByteSize) -> Self {
        Self { memory: EXTRACTION_MEMORY, pids: EXTRACTION_PIDS, milli_cpu: EXTRACTION_MILLI_CPU, output }
    }
}

/// Exit of a sandbox.
#[derive(Debug, Clone)]
pub struct ContainerExit {
    /// Exit code of the agent's process; absent if it never ran.
    pub exit_code: Option<i64>,
    /// Cause of the kill, if it did not end by itself.
    pub killed_by: Option<KilledBy>,
    /// Set if one of its processes was killed for lack of memory. The agent may have survived that and exited with 0.
    pub oom_seen: bool,
    /// Completeness of the captured output.
    pub output: OutputState,
    /// Captured stdout.
    pub stdout: Captured,
    /// Captured stderr.
    pub stderr: Captured,
}

/// Completeness of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputState {
    /// All that was printed came.
    Whole,
    /// Docker was away, and may have lost a part.
    MayBeShort,
}

/// Cause of killing a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KilledBy {
    /// Its timeout passed.
    Timeout,
    /// A cancellation was requested.
    Cancel,
    /// Its workspace grew too large.
    Disk,
}

/// A piece of output as it comes.
#[derive(Debug)]
pub struct Piece {
    /// Output that the agent printed it on.
    pub stream: OutputStream,
    /// Text of the piece. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Position in the stream after the piece, in bytes.
    pub to: u64,
    /// Position in the stream after the piece's last line feed, in bytes; absent if it has none.
    pub line_end: Option<u64>,
}

/// Callback for output as it comes. It must not block.
pub type OnOutput<'h> = &'h dyn Fn(Piece);
