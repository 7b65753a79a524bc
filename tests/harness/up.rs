//! Starts and stops `sluice up`.

use std::{
    os::unix::process::ExitStatusExt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use platform_runtime::task;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout},
    time::timeout,
};

use crate::{
    eventually::eventually,
    failure::{self, end_of},
    process::has_ended,
    sluice::Sluice,
};

/// Longest wait for the end of the command.
const PATIENCE: Duration = Duration::from_secs(100);

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
    /// Its log, unless the log goes to a file.
    log: Arc<Mutex<String>>,
}

impl Up {
    /// Starts it and waits until it is ready.
    ///
    /// # Panics
    /// If it ends before that.
    pub async fn start(sluice: Sluice) -> Self {
        let mut child = sluice.spawn(&["up"]);
        let log = Arc::<Mutex<String>>::default();
        let logging = child.stderr.take().map(|stderr| task::spawn("log", collect(stderr, Arc::clone(&log))));
        let mut rest = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while let Some(line) = rest.next_line().await.unwrap() {
            said += &format!("{line}\n");
            if line.starts_with("ready") {
                let pid = said.split_once(", pid ").and_then(|(_, rest)| rest.lines().next()?.parse().ok());
                return Self { child, proxy_pid: pid.expect(&said), said, rest, log };
            }
        }
        if let Some(logging) = logging {
            logging.await.unwrap();
        }
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        panic!("`sluice up` ended before it was ready: {said}{log}");
    }

    /// Sends `signal`, waits for the end, and returns exit code and last line.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        kill(self.child.id().unwrap(), signal);
        let ended = timeout(PATIENCE, async {
            let mut last = String::new();
            while let Some(line) = self.rest.next_line().await.unwrap() {
                last = line;
            }
            (self.child.wait().await.unwrap().code(), last)
        });
        ended.await.expect("`sluice up` has stopped")
    }

    /// Waits until the command has been killed, and returns the signal.
    ///
    /// # Panics
    /// If it goes on.
    pub async fn death(&mut self) -> Option<i32> {
        timeout(PATIENCE, self.child.wait()).await.expect("`sluice up` has ended").unwrap().signal()
    }

    /// Kills the proxy that the command has supervised, and waits for its end: one that is about to die can still be
    /// adopted.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn kill_proxy(&self) {
        kill(self.proxy_pid, Signal::KILL);
        let ended = || async { has_ended(self.proxy_pid) };
        eventually("the proxy has ended", ended, |ended| *ended).await;
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            kill(self.proxy_pid, Signal::KILL);
        }
        failure::show(|| {
            let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            format!("The log of `sluice up` ends:\n{}", end_of(&log))
        });
    }
}

/// Reads a log to its end: otherwise its process would wait for a reader.
async fn collect(mut stderr: ChildStderr, log: Arc<Mutex<String>>) {
    let mut piece = vec![0; 8192];
    while let Ok(bytes @ 1..) = stderr.read(&mut piece).await {
        let text = String::from_utf8_lossy(&piece[..bytes]);
        log.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }
}

fn kill(pid: u32, signal: Signal) {
    // A process that has already ended needs no signal.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).ok();
}
