//! Stopping as a value: one trigger, any number of watchers, and a deadline.

use std::{future::Future, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// The trigger. Not `Clone`, and used up by [`Shutdown::begin`]: a process stops once.
#[derive(Debug, Default)]
pub struct Shutdown(CancellationToken);

/// Sees that a stop was asked for; cannot ask for one.
#[derive(Debug, Clone)]
pub struct Watch(CancellationToken);

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Everything ended by itself.
    Complete,
    /// The deadline passed first.
    DeadlinePassed,
}

impl Shutdown {
    /// A trigger nobody has pulled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A watcher of this trigger.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(self.0.clone())
    }

    /// Asks everyone to stop.
    pub fn begin(self) {
        self.0.cancel();
    }
}

impl Watch {
    /// Ready once a stop was asked for. Cancel safe.
    pub fn requested(&self) -> WaitForCancellationFuture<'_> {
        self.0.cancelled()
    }

    /// Whether a stop was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Waits for `work` to end, at most `grace`.
pub async fn drain(work: impl Future<Output = ()>, grace: Duration) -> Drain {
    match timeout(grace, work).await {
        Ok(()) => Drain::Complete,
        Err(_elapsed) => Drain::DeadlinePassed,
    }
}

/// Who runs a program decides which signals mean that it should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBy {
    /// A service manager: SIGTERM; SIGINT when it is tried by hand. SIGHUP has the configuration read again.
    Service,
    /// A person: also SIGHUP, when their terminal is closed.
    Person,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// To stop.
    Stop,
    /// To read the configuration again.
    Reload,
}

/// The signals that ask for something. While this lives, none of them ends the process.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    by: RunBy,
}

impl Signals {
    /// Installs their handlers.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn install(by: RunBy) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            by,
        })
    }

    /// What the next one asks for. Cancel safe.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.hangup.recv() => match self.by {
                RunBy::Service => Asked::Reload,
                RunBy::Person => Asked::Stop,
            },
        }
    }

    /// Ready at the next one that means stop. Cancel safe.
    pub async fn stop(&mut self) {
        while self.next().await != Asked::Stop {}
    }
}

/// Ready at the first signal that means stop. Later ones change nothing while this future lives.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn signalled(by: RunBy) -> std::io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::install(by)?;
    Ok(async move { signals.stop().await })
}
