//! Owns a connection in one task: makes it, serves it, and makes it again.
//!
//! The task waits for nothing but the socket and commands. Callers get their answers through a channel that always has
//! room. An event goes into a turn without waiting for its reader.

mod conversation;
mod pending;

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::{broadcast, mpsc, watch},
    time::{Instant, sleep, timeout_at},
};

use self::{conversation::Conversation, pending::Pending};
use crate::{
    backoff::Backoff,
    boot::{Boot, SKEW},
    error::{Broken, Error},
    hello::Hello,
    link::{Command, Phase, Shared, Up},
    settings::Settings,
    subscription::Notice,
    transport,
};

pub(crate) struct Owner {
    settings: Settings,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    phase: watch::Sender<Phase>,
    notices: broadcast::Sender<Notice>,
    backoff: Backoff,
    starts: Starts,
    connections: u64,
}

/// Reason why a connection ended.
enum End {
    /// Another connection is made, after this pause at least.
    Again { why: Error, pause: Option<Duration> },
    /// No other connection is made.
    Fail(Error),
}

impl Owner {
    pub(crate) fn new(
        settings: Settings,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
        phase: watch::Sender<Phase>,
        notices: broadcast::Sender<Notice>,
    ) -> Self {
        let limits = settings.limits;
        let backoff = Backoff::new(limits.first_pause, limits.longest_pause, settings.seed);
        Self {
            settings,
            shared,
            commands,
            phase,
            notices,
            backoff,
            starts: Starts::default(),
            connections: 0,
        }
    }

    /// Runs until the last handle is gone, a handle closes the connection, or no further attempt makes sense.
    pub(crate) async fn run(mut self) {
        let failure = loop {
            match self.once().await {
                End::Fail(error) => break error,
                End::Again { why, pause } => {
                    tracing::debug!(gateway = %self.settings.endpoint, error = %why, "no connection");
                    self.phase.send_replace(Phase::Down(Some(why)));
                    let pause = self.backoff.next(pause);
                    if self.refusing(sleep(pause)).await.is_none() {
                        break Error::Closed;
                    }
                }
            }
        };
        self.phase.send_replace(Phase::Failed(failure.clone()));
        // Commands that are still on their way get their answers before the channel closes.
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            refuse(command, &failure);
        }
    }

    /// Runs one connection, from the first byte to the last.
    async fn once(&mut self) -> End {
        let limit = self.settings.limits.handshake;
        let deadline = Instant::now() + limit;
        let connecting = connect(&self.settings, deadline);
        let connected = {
            let mut commands = &mut self.commands;
            refusing(&mut commands, connecting).await
        };
        match connected {
            None => End::Fail(Error::Closed),
            Some(Err(why)) => {
                self.shared.cells.failed_attempts.add_one();
                if why.is_final() { End::Fail(why) } else { End::Again { why, pause: None } }
            }
            Some(Ok(duplex)) => Conversation::new(self, duplex, deadline).run().await,
        }
    }

    /// Waits for `future` while there is no connection; `None` if the connection is not wanted any more.
    async fn refusing<F: Future>(&mut self, future: F) -> Option<F::Output> {
        refusing(&mut &mut self.commands, future).await
    }

    /// Publishes that there is a connection.
    fn announce(&mut self, hello: Hello) {
        self.backoff.reset();
        self.connections += 1;
        self.shared.cells.connections.add_one();
        let began = hello.uptime.and_then(|uptime| Instant::now().checked_sub(uptime));
        let start = self.starts.number(&hello.boot, began);
        let up = Up { hello, connection: self.connections, start };
        self.phase.send_replace(Phase::Up(Arc::new(up)));
    }
}

async fn connect(settings: &Settings, deadline: Instant) -> Result<crate::duplex::Duplex, Error> {
    let limit = settings.limits.handshake;
    match timeout_at(deadline, transport::connect(settings)).await {
        Ok(connected) => connected.map(crate::duplex::Duplex::new),
        Err(_elapsed) => Err(Error::HandshakeTimeout { limit }),
    }
}

async fn refusing<F: Future>(commands: &mut &mut mpsc::Receiver<Command>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return Some(output),
            command = commands.recv() => match command {
                None | Some(Command::Close) => return None,
                Some(command) => refuse(command, &Error::Disconnected { why: Broken::Closed(1006) }),
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
struct Starts {
    number: u64,
    last: Boot,
    /// Latest time at which the last start began.
    began: Option<Instant>,
    /// True if the gateway has announced that it stops.
    stopped: bool,
}

impl Starts {
    fn number(&mut self, boot: &Boot, began: Option<Instant>) -> u64 {
        let is_later = || matches!((self.began, began), (Some(known), Some(said)) if said > known + SKEW);
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
    fn a_restart_is_seen_by_what_a_gateway_tells_and_by_its_saying_that_it_stops() {
        let [one, another]: [Boot; 2] = ["a@5", "b@5"].map(|text| text.parse().unwrap());
        let mut starts = Starts::default();
        assert_eq!([&one, &one, &another, &another].map(|boot| starts.number(boot, None)), [1, 1, 2, 2]);
        starts.stopped = true;
        assert_eq!([&another, &another].map(|boot| starts.number(boot, None)), [3, 3]);
    }

    #[test]
    fn a_start_without_a_name_is_another_when_it_is_up_for_less_long_and_not_when_a_clock_is_set() {
        let mut starts = Starts::default();
        let now = Instant::now();
        let mut number = |boot: &str, began| starts.number(&boot.parse().unwrap(), Some(began));
        assert_eq!(number("@1000", now), 1);
        assert_eq!(number("@9000", now + SKEW), 1, "the clock was set");
        assert_eq!(number("@1000", now + SKEW * 3), 2);
    }
}
