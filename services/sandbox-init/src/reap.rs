//! Reaps children that have ended, and ends the processes that the agent left. The kernel makes these children of ours.

use std::{fs, io, time::Duration};

use rustix::{
    io::Errno,
    process::{self, Pid, Signal, WaitOptions, WaitStatus},
};
use tokio::{
    signal::unix::{self, SignalKind, signal},
    time::timeout,
};

/// Time for the remaining processes to end after they were asked to, and again after they were killed.
const TERMINATION_GRACE: Duration = Duration::from_millis(200);

/// Reaper of all children. Only one may exist.
#[derive(Debug)]
pub(crate) struct Reaper {
    ended: unix::Signal,
}

impl Reaper {
    /// Makes this process the parent of orphans below it, which the first process is anyway.
    pub(crate) fn install() -> io::Result<Self> {
        process::set_child_subreaper(Some(process::getpid()))?;
        Ok(Self { ended: signal(SignalKind::child())? })
    }

    /// Waits for the next child that ends, and reaps it. Cancel safe: dropping the future loses none.
    pub(crate) async fn next(&mut self) -> io::Result<(Pid, WaitStatus)> {
        loop {
            match process::wait(WaitOptions::NOHANG) {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) | Err(Errno::CHILD) => {}
                Err(error) => return Err(error.into()),
            }
            // One signal may stand for several children, so all are checked again each time.
            self.ended.recv().await;
        }
    }

    /// Ends all processes below this one, and asks them first. A process that starts later, or that cannot be killed in
    /// time, is left to the kernel, which ends a container with its first process.
    pub(crate) async fn end_all(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            for pid in descendants() {
                process::kill_process(pid, signal).ok(); // it may have ended just now
            }
            timeout(TERMINATION_GRACE, self.all_are_gone()).await.ok();
        }
    }

    async fn all_are_gone(&mut self) {
        while !descendants().is_empty() && self.next().await.is_ok() {}
    }
}

/// Returns all processes below this one, parents before their children. Not `kill(-1)`: outside a container that would
/// reach every process.
fn descendants() -> Vec<Pid> {
    let mut found = children(process::getpid());
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        found.extend(children(*parent));
        next += 1;
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
