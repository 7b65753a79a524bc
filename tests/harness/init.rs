//! Runs `sandbox-init` on the host, as a child of the test instead of in a container.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    agent::Agent,
    bridge::free_port,
    eventually::eventually,
    process::{binary, descendants_of, status_of},
    sluice::Outcome,
};

/// A running `sandbox-init` with an agent that is idle until this is dropped.
#[derive(Debug)]
pub struct Init {
    /// A client of its bridge.
    pub agent: Agent,
    /// The process. Its agent is `cat`, which ends when this handle closes its input.
    child: Child,
}

/// Returns the command that starts `sandbox-init` with an otherwise empty environment.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn sandbox_init(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("sandbox-init"));
    command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // No other process listens on this port.
    command.env("LLM_PROXY_PORT", free_port().port().to_string()).env("LLM_PROXY_SOCKET", "/nowhere");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs `sandbox-init` to its end.
///
/// # Panics
/// If it cannot be started.
pub async fn run_init(arguments: &[&str]) -> Outcome {
    outcome(sandbox_init(arguments).spawn().unwrap()).await
}

/// Waits for the end of `child` and returns its exit and output.
///
/// # Panics
/// If its output cannot be read.
pub async fn outcome(child: Child) -> Outcome {
    let output: Output = child.wait_with_output().await.unwrap();
    output.into()
}

/// Sends a signal to a started process.
///
/// # Panics
/// If it has ended.
pub fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap())).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Reads the next line of the child's output.
///
/// # Panics
/// If it cannot be read.
pub async fn line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut output = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
    output.read_line(&mut line).await.unwrap();
    line
}

impl Init {
    /// Starts it with a bridge to `socket`, where a server has to answer `/health`.
    ///
    /// # Panics
    /// If its agent does not begin.
    pub async fn to(socket: &Path) -> Self {
        Self::started(&mut sandbox_init(&["sh", "-c", "echo up; exec cat"]), socket).await
    }

    /// Starts it without a bridge to the outside; connections to `socket` lead to `port`.
    ///
    /// # Panics
    /// If its agent does not begin.
    pub async fn entered(socket: &Path, port: u16) -> Self {
        let mut command = sandbox_init(&["sh", "-c", "echo up; exec cat"]);
        command.env("SANDBOX_ENTRY_SOCKET", socket).env("SANDBOX_ENTRY_PORT", port.to_string());
        Self::started(&mut command, Path::new("/nowhere")).await
    }

    /// Starts it as [`Init::to`] does, with at most `most` descriptors.
    ///
    /// # Panics
    /// If its agent does not begin.
    pub async fn with_descriptors(most: u32, socket: &Path) -> Self {
        let init = sandbox_init(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!(r#"ulimit -n {most}; exec "$0" sh -c 'echo up; exec cat'"#)]);
        command.arg(init.as_std().get_program()).stdout(Stdio::piped()).kill_on_drop(true);
        Self::started(&mut command, socket).await
    }

    async fn started(command: &mut Command, socket: &Path) -> Self {
        let address = free_port();
        command.env("LLM_PROXY_PORT", address.port().to_string()).env("LLM_PROXY_SOCKET", socket);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        assert_eq!(line(&mut child).await, "up\n", "the agent did not begin");
        Self { agent: Agent::over_tcp(address).searched(), child }
    }

    /// Returns the number of its descendant processes: its agent is one.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn processes(&self) -> usize {
        descendants_of(self.child.id().unwrap())
    }

    /// Returns the number of its open descriptors.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id().unwrap())).unwrap().count()
    }

    /// Returns its resident memory in KiB.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        status_of(self.child.id().unwrap(), "VmRSS:").unwrap()
    }
}

/// Waits until a process watches files.
pub async fn watches(pid: u32) {
    let watches = || async {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target == Path::new("anon_inode:inotify"))
    };
    eventually("it watches", watches, |watches| *watches).await;
}
