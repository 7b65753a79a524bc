//! Stops a process: one trigger, any number of watchers, and a deadline.

use std::{future::Future, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Trigger of a stop. It is not `Clone`, and [`Shutdown::begin`] consumes it: a process stops once.
#[derive(Debug, Default)]
pub struct Shutdown(CancellationToken);

/// Observer of a stop, which it cannot request.
#[derive(Debug, Clone)]
pub struct Watch(CancellationToken);

/// Outcome of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// All work ended by itself.
    Complete,
    /// The deadline passed first.
    DeadlinePassed,
}

impl Shutdown {
    /// Creates a trigger that has not been used.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a watcher of this trigger.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(self.0.clone())
    }

    /// Requests all watchers to stop.
    pub fn begin(self) {
        self.0.cancel();
    }
}

impl Watch {
    /// Waits until a stop is requested. Cancel safe.
    pub fn requested(&self) -> WaitForCancellationFuture<'_> {
        self.0.cancelled()
    }

    /// Returns whether a stop is requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Waits for `work` to end, for at most `grace`.
pub async fn drain(work: impl Future<Output = ()>, grace: Duration) -> Drain {
    match timeout(grace, work).await {
        Ok(()) => Drain::Complete,
        Err(_elapsed) => Drain::DeadlinePassed,
    }
}

/// Runner of a program, which decides what its signals mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBy {
    /// A service manager: SIGTERM stops the program, and so does SIGINT in a trial by hand. SIGHUP reloads the
    /// configuration.
    Service,
    /// A person: SIGHUP stops the program as well, because it follows when their terminal is closed.
    Person,
}

/// Request that a signal makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// Stop the program.
    Stop,
    /// Read the configuration again.
    Reload,
}

/// Signals that this process handles. While this value lives, none of them ends the process.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    run_by: RunBy,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn install(run_by: RunBy) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            run_by,
        })
    }

    /// Waits for the next signal and returns its request. Cancel safe.
    pub async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.interrupt.recv() => Signalled::Stop,
            _ = self.terminate.recv() => Signalled::Stop,
            _ = self.hangup.recv() => match self.run_by {
                RunBy::Service => Signalled::Reload,
                RunBy::Person => Signalled::Stop,
            },
        }
    }

    /// Waits for the next signal that means stop. Cancel safe.
    pub async fn stop(&mut self) {
        while self.next().await != Signalled::Stop {}
    }
}

/// Returns a future that is ready at the first signal that means stop. Later signals have no effect while it lives.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn signalled(run_by: RunBy) -> std::io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::install(run_by)?;
    Ok(async move { signals.stop().await })
}
