//! Stopping as a value: one trigger, any number of watchers, and a deadline.

use std::{future::Future, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
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
    /// A service manager: SIGTERM; SIGINT when it is tried by hand.
    Service,
    /// A person: also SIGHUP, when their terminal is closed.
    Person,
}

/// Ready at the first signal that means stop. Later ones change nothing while this future lives.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn signalled(by: RunBy) -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = match by {
        RunBy::Service => None,
        RunBy::Person => Some(signal(SignalKind::hangup())?),
    };
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = hung_up => {}
        }
    })
}
