//! Reaps children that have ended, and ends the processes that the agent left, which the kernel makes children of this
//! process.

use std::{fs, io, time::Duration};

use rustix::{
    io::Errno,
    process::{self, Pid, Signal, WaitOptions, WaitStatus},
};
use tokio::{
    signal::unix::{self, SignalKind, signal},
    time::timeout,
};

/// Time for the remaining processes to end after SIGTERM, and again after SIGKILL.
const TERMINATION_GRACE: Duration = Duration::from_millis(200);

/// Reaper of all children. Only one may exist.
#[derive(Debug)]
pub(crate) struct Reaper {
    child_ended: unix::Signal,
}

impl Reaper {
    /// Makes this process the parent of orphans below it, which the first process is anyway.
    pub(crate) fn install() -> io::Result<Self> {
        process::set_child_subreaper(Some(process::getpid()))?;
        Ok(Self { child_ended: signal(SignalKind::child())? })
    }

    /// Waits for the next child that ends, and reaps it. Cancel safe: dropping the future loses none.
    pub(crate) async fn next(&mut self) -> io::Result<(Pid, WaitStatus)> {
        loop {
            match process::wait(WaitOptions::NOHANG) {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) | Err(Errno::CHILD) => {}
                Err(error) => return Err(error.into()),
            }
            // The kernel merges the signals of several children into one, so every child is checked again each time.
            self.child_ended.recv().await;
        }
    }

    /// Ends all processes below this one, with SIGTERM and then with SIGKILL. A process that starts later, or that
    /// cannot be killed in time, is left to the kernel, which ends a container with its first process.
    pub(crate) async fn end_all(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            for pid in descendants() {
                process::kill_process(pid, signal).ok(); // it may have ended just now
            }
            timeout(TERMINATION_GRACE, self.wait_for_all()).await.ok();
        }
    }

    /// Waits until no process is left below this one.
    async fn wait_for_all(&mut self) {
        while !descendants().is_empty() && self.next().await.is_ok() {}
    }
}

/// Returns all processes below this one, parents before their children. Does not use `kill(-1)`, which would reach
/// every process if this one runs outside a container.
fn descendants() -> Vec<Pid> {
    let mut found = children(process::getpid());
    let mut index = 0;
    while let Some(parent) = found.get(index) {
        found.extend(children(*parent));
        index += 1;
    }
    found
}

/// Returns the children of a process, zombies included; none if the process is gone.
fn children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| -> Vec<Pid> {
        list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    };
    lists.flat_map(pids).collect()
}
