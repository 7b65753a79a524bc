//! Owns a connection in one task: opens it, serves it, and opens it again after a break.
//!
//! The task waits for nothing but the socket and commands. Callers get their answers through a channel that always has
//! room. An event is queued for a turn without waiting for its reader.

mod active_connection;
mod pending_calls;

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use platform_runtime::report;
use tokio::{
    sync::{broadcast, mpsc, watch},
    time::{Instant, sleep, timeout_at},
};

use self::{active_connection::ActiveConnection, pending_calls::PendingCalls};
use crate::{
    backoff::JitteredBackoff,
    boot_id::{BootId, MAX_CLOCK_SKEW},
    connection_phase::{ConnectionPhase, OpenConnection},
    error::{DisconnectReason, Error},
    handle::{Command, Shared},
    hello::Hello,
    settings::Settings,
    subscription::Notice,
    transport,
};

/// Task of one connection.
pub(crate) struct ConnectionTask {
    settings: Settings,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    phase: watch::Sender<ConnectionPhase>,
    notices: broadcast::Sender<Notice>,
    backoff: JitteredBackoff,
    boots: BootTracker,
    connections: u64,
}

/// Reason why a connection ended.
enum ConnectionEnd {
    /// Another connection is opened, after `min_delay` at least.
    Reconnect { why: Error, min_delay: Option<Duration> },
    /// No other connection is opened.
    Fail(Error),
}

impl ConnectionTask {
    pub(crate) fn new(
        settings: Settings,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
        phase: watch::Sender<ConnectionPhase>,
        notices: broadcast::Sender<Notice>,
    ) -> Self {
        let limits = settings.limits;
        let backoff = JitteredBackoff::new(limits.first_pause, limits.longest_pause, settings.seed);
        Self {
            settings,
            shared,
            commands,
            phase,
            notices,
            backoff,
            boots: BootTracker::default(),
            connections: 0,
        }
    }

    /// Runs until the last handle is gone, a handle closes the connection, or no further attempt makes sense.
    pub(crate) async fn run(mut self) {
        let failure = loop {
            match self.run_connection().await {
                ConnectionEnd::Fail(error) => break error,
                ConnectionEnd::Reconnect { why, min_delay } => {
                    tracing::debug!(
                        gateway = %self.settings.endpoint,
                        error = report::chain(&why),
                        "no connection to the gateway"
                    );
                    self.phase.send_replace(ConnectionPhase::Down(Some(why)));
                    let delay = self.backoff.next_delay(min_delay);
                    if refuse_during(sleep(delay), &mut self.commands).await.is_none() {
                        break Error::Closed;
                    }
                }
            }
        };
        self.phase.send_replace(ConnectionPhase::Failed(failure.clone()));
        // Commands that are still on their way get their answers before the channel closes.
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            refuse(command, &failure);
        }
    }

    /// Runs one connection, from the first byte to the last.
    async fn run_connection(&mut self) -> ConnectionEnd {
        let limit = self.settings.limits.handshake;
        let deadline = Instant::now() + limit;
        let connecting = connect(&self.settings, deadline);
        match refuse_during(connecting, &mut self.commands).await {
            None => ConnectionEnd::Fail(Error::Closed),
            Some(Err(why)) => {
                self.shared.cells.failed_attempts.add_one();
                if why.is_final() {
                    ConnectionEnd::Fail(why)
                } else {
                    ConnectionEnd::Reconnect { why, min_delay: None }
                }
            }
            Some(Ok(duplex)) => ActiveConnection::new(self, duplex, deadline).run().await,
        }
    }

    /// Publishes that there is a connection.
    fn announce(&mut self, hello: Hello) {
        self.backoff.reset();
        self.connections += 1;
        self.shared.cells.connections.add_one();
        let began = hello.uptime.and_then(|uptime| Instant::now().checked_sub(uptime));
        let boot_number = self.boots.number(&hello.boot, began);
        let up = OpenConnection { hello, number: self.connections, boot_number };
        self.phase.send_replace(ConnectionPhase::Up(Arc::new(up)));
    }
}

async fn connect(settings: &Settings, deadline: Instant) -> Result<crate::duplex::Duplex, Error> {
    let limit = settings.limits.handshake;
    match timeout_at(deadline, transport::connect(settings)).await {
        Ok(connected) => connected.map(crate::duplex::Duplex::new),
        Err(_elapsed) => Err(Error::HandshakeTimeout { limit }),
    }
}

/// Waits for `future` without a connection, and refuses calls meanwhile; `None` once a handle closes the connection, or
/// none is left.
async fn refuse_during<F: Future>(future: F, commands: &mut mpsc::Receiver<Command>) -> Option<F::Output> {
    let mut future = pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return Some(output),
            command = commands.recv() => match command {
                None | Some(Command::Close) => return None,
                Some(command) => refuse(command, &Error::Disconnected { why: DisconnectReason::Closed(1006) }),
            },
        }
    }
}

fn refuse(command: Command, error: &Error) {
    match command {
        Command::Send(outgoing) => outgoing.reply.refuse(error.clone()),
        Command::Close => {}
    }
}

/// Numbers the starts of a gateway. Starts are compared by name, else by the uptime that the gateway reports, which
/// does not change when a clock is set. A gateway that announced its stop counts as restarted, although its process may
/// go on.
#[derive(Debug, Default)]
struct BootTracker {
    number: u64,
    last: BootId,
    /// Latest time at which the last start began.
    began: Option<Instant>,
    /// True if the gateway has announced that it stops.
    stopped: bool,
}

impl BootTracker {
    fn number(&mut self, boot: &BootId, began: Option<Instant>) -> u64 {
        let is_later =
            || matches!((self.began, began), (Some(known), Some(new)) if new > known + MAX_CLOCK_SKEW);
        let is_other = boot.has_another_name(&self.last).unwrap_or_else(is_later);
        if self.number == 0 || self.stopped || is_other {
            self.number += 1;
        }
        self.last.clone_from(boot);
        self.began = began;
        self.stopped = false;
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_seen_by_name_or_announcement() {
        let [one, another]: [BootId; 2] = ["a@5", "b@5"].map(|text| text.parse().unwrap());
        let mut boots = BootTracker::default();
        assert_eq!([&one, &one, &another, &another].map(|boot| boots.number(boot, None)), [1, 1, 2, 2]);
        boots.stopped = true;
        assert_eq!([&another, &another].map(|boot| boots.number(boot, None)), [3, 3]);
    }

    /// An uptime that falls is a restart; setting the clock is not.
    #[test]
    fn an_unnamed_restart_is_seen_by_its_uptime() {
        let mut boots = BootTracker::default();
        let now = Instant::now();
        let mut number = |boot: &str, began| boots.number(&boot.parse().unwrap(), Some(began));
        assert_eq!(number("@1000", now), 1);
        assert_eq!(number("@9000", now + MAX_CLOCK_SKEW), 1, "the clock was set");
        assert_eq!(number("@1000", now + MAX_CLOCK_SKEW * 3), 2);
    }
}
