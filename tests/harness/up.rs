//! Starts and stops `sluice up`.

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
};

use crate::sluice::Sluice;

/// A `sluice up` that is ready. If a test fails before the stop, drop kills it and the proxy it supervises.
#[derive(Debug)]
pub struct Up {
    /// The command itself.
    pub child: Child,
    /// Its output up to `ready`.
    pub said: String,
    /// Process id of the supervised proxy. A test that replaces the proxy updates this.
    pub proxy_pid: u32,
    rest: Lines<BufReader<ChildStdout>>,
}

impl Up {
    /// Starts it and waits until it is ready.
    ///
    /// # Panics
    /// If it ends before that.
    pub async fn start(sluice: Sluice) -> Self {
        let mut child = sluice.spawn(&["up"]);
        let mut rest = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while let Some(line) = rest.next_line().await.unwrap() {
            said += &format!("{line}\n");
            if line.starts_with("ready") {
                let pid = said.split_once(", pid ").and_then(|(_, rest)| rest.lines().next()?.parse().ok());
                return Self { child, proxy_pid: pid.expect(&said), said, rest };
            }
        }
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
        panic!("`sluice up` ended before it was ready: {said}{stderr}");
    }

    /// Sends `signal`, waits for the end, and returns exit code and last line.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        kill(self.child.id().unwrap(), signal);
        let mut last = String::new();
        while let Some(line) = self.rest.next_line().await.unwrap() {
            last = line;
        }
        (self.child.wait().await.unwrap().code(), last)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            kill(self.proxy_pid, Signal::KILL);
        }
    }
}

fn kill(pid: u32, signal: Signal) {
    // A process that has already ended needs no signal.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).ok();
}
