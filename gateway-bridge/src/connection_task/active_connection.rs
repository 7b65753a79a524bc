//! Runs one connection: sends and receives in the order of its states.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use platform_core::json::{self, Raw, RawBuf};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{ConnectionEnd, ConnectionTask, PendingCalls};
use crate::{
    connection_phase::ConnectionPhase,
    duplex::Duplex,
    error::{DisconnectReason, Error},
    handle::{Command, Outgoing},
    machine::{Input, Next, State},
    subscription::{NOTICE_BOUNDS, Notice, is_published},
    wire::{
        connect::{self, Challenge},
        frame::{self, Frame},
        hello, request,
    },
};

/// Id of `connect`: no call has it.
const CONNECT_ID: u64 = 0;

/// Timeout of closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest and shortest tick interval that is accepted from a gateway.
const MAX_TICK_INTERVAL: Duration = Duration::from_secs(600);
const MIN_TICK_INTERVAL: Duration = Duration::from_millis(20);

/// Connection to a gateway, from its first frame to its last.
pub(super) struct ActiveConnection<'a> {
    task: &'a mut ConnectionTask,
    duplex: Duplex,
    state: State,
    pending: PendingCalls,
    /// Time by which the gateway must have sent its hello, or, after that, any frame.
    deadline: Instant,
    /// Longest silence of the gateway, once it has sent its hello.
    silence: Option<Duration>,
    max_payload: usize,
}

/// Event that a connection waits for.
enum Received {
    Text(Result<Utf8Bytes, DisconnectReason>),
    Command(Option<Command>),
    Deadline,
}

impl<'a> ActiveConnection<'a> {
    pub(super) fn new(task: &'a mut ConnectionTask, duplex: Duplex, deadline: Instant) -> Self {
        Self {
            task,
            duplex,
            state: State::AwaitingChallenge,
            pending: PendingCalls::default(),
            deadline,
            silence: None,
            max_payload: 0,
        }
    }

    pub(super) async fn run(mut self) -> ConnectionEnd {
        let end = self.serve().await;
        let (why, phase) = match &end {
            ConnectionEnd::Reconnect { why, .. } => (why, ConnectionPhase::Down(Some(why.clone()))),
            ConnectionEnd::Fail(why) => (why, ConnectionPhase::Failed(why.clone())),
        };
        if self.silence.is_none() {
            self.task.shared.cells.failed_attempts.add_one();
        }
        // The state changes before callers learn that no answer comes, so that none of them uses this connection.
        self.task.phase.send_replace(phase);
        self.pending.refuse(why);
        let is_broken = matches!(why, Error::Disconnected { why: DisconnectReason::Closed(_) });
        if !is_broken && timeout(CLOSE_TIMEOUT, self.duplex.close()).await.is_err() {
            tracing::debug!("the gateway does not read the end of the connection");
        }
        end
    }

    async fn serve(&mut self) -> ConnectionEnd {
        loop {
            let received = tokio::select! {
                text = self.duplex.next() => Received::Text(text),
                command = self.task.commands.recv(), if self.duplex.has_capacity() => Received::Command(command),
                () = sleep_until(self.deadline) => Received::Deadline,
            };
            let end = match received {
                Received::Text(Ok(text)) => {
                    self.record_activity();
                    self.handle_text(&text)
                }
                Received::Text(Err(broken)) => self.handle_break(broken),
                Received::Command(None | Some(Command::Close)) => Some(ConnectionEnd::Fail(Error::Closed)),
                Received::Command(Some(Command::Send(outgoing))) => {
                    self.send(outgoing);
                    None
                }
                Received::Deadline if self.silence.is_some() => self.handle_break(DisconnectReason::Silent),
                Received::Deadline => self.step(Input::Late(self.task.settings.limits.handshake)),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Records a sign of life of the gateway.
    fn record_activity(&mut self) {
        if let Some(silence) = self.silence {
            self.deadline = Instant::now() + silence;
        }
    }

    fn handle_break(&mut self, broken: DisconnectReason) -> Option<ConnectionEnd> {
        match broken {
            DisconnectReason::Oversize => self.task.shared.cells.oversize.add_one(),
            DisconnectReason::Silent => self.task.shared.cells.silent.add_one(),
            DisconnectReason::Closed(_) | DisconnectReason::Protocol => {}
        }
        self.step(Input::Broken(broken))
    }

    /// Makes the transition for `input`, and executes its action. [`Self::dispatch`] handles other frames.
    fn step(&mut self, input: Input) -> Option<ConnectionEnd> {
        let (state, next) = self.state.step(input);
        self.state = state;
        match next {
            Next::Stay | Next::Handle | Next::Connect => None,
            Next::Serve(hello) => {
                let tick = hello.tick.clamp(MIN_TICK_INTERVAL, MAX_TICK_INTERVAL);
                // Two ticks, and half of one for the delay of the network.
                self.silence = Some(tick * 5 / 2);
                self.max_payload = hello.max_payload;
                self.record_activity();
                self.task.announce(*hello);
                None
            }
            Next::Reconnect { why, min_delay } => {
                // Gateways close with this code when they stop or restart, and not otherwise.
                self.task.boots.stopped |=
                    matches!(why, Error::Disconnected { why: DisconnectReason::Closed(1012) });
                Some(ConnectionEnd::Reconnect { why, min_delay })
            }
            Next::Fail(error) => Some(ConnectionEnd::Fail(error)),
        }
    }

    fn handle_text(&mut self, text: &str) -> Option<ConnectionEnd> {
        if text.is_empty() {
            return None;
        }
        let Ok(frame) = frame::read(text) else {
            self.task.shared.cells.malformed.add_one();
            return None;
        };
        match frame {
            Frame::Event { name, payload } if name == "connect.challenge" => self.handle_challenge(payload),
            Frame::Event { name, payload } if name == "shutdown" => {
                self.task.boots.stopped = true;
                self.publish(&name, payload);
                self.step(Input::Shutdown { back_in: read_restart_delay(payload) })
            }
            Frame::Response { id, answer } if id == "0" => match answer.error {
                Some(error) => self.step(Input::Refusal(error)),
                None => {
                    let payload = answer.payload.as_ref().map(RawBuf::as_raw);
                    match hello::read(payload, &self.task.settings.scopes, SystemTime::now()) {
                        Ok(hello) => self.step(Input::Hello(hello)),
                        Err(_malformed) => self.handle_malformed(),
                    }
                }
            },
            frame => {
                let (state, next) = self.state.step(Input::Frame);
                self.state = state;
                if matches!(next, Next::Handle) {
                    self.dispatch(frame);
                }
                None
            }
        }
    }

    fn handle_malformed(&mut self) -> Option<ConnectionEnd> {
        self.task.shared.cells.malformed.add_one();
        self.handle_break(DisconnectReason::Protocol)
    }

    fn handle_challenge(&mut self, payload: Option<Raw<'_>>) -> Option<ConnectionEnd> {
        let Ok(challenge) = Challenge::read(payload) else { return self.handle_malformed() };
        let (state, next) = self.state.step(Input::Challenge);
        self.state = state;
        match next {
            Next::Connect => {
                let params = connect::params(&self.task.settings, &challenge);
                match request::encode(CONNECT_ID, "connect", &params, None) {
                    Ok(text) => {
                        self.duplex.push(text.into());
                        None
                    }
                    Err(_error) => self.handle_malformed(),
                }
            }
            Next::Reconnect { why, min_delay } => Some(ConnectionEnd::Reconnect { why, min_delay }),
            Next::Stay | Next::Handle | Next::Serve(_) | Next::Fail(_) => None,
        }
    }

    fn dispatch(&mut self, frame: Frame<'_>) {
        let cells = &self.task.shared.cells;
        match frame {
            Frame::Response { id, answer } => {
                if !self.pending.settle(&id, answer) {
                    cells.unattributed.add_one();
                }
            }
            Frame::Event { name, payload } if name == "agent" || name == "chat" => {
                self.task.shared.routes.deliver(&name, payload, cells);
            }
            Frame::Event { name, payload } => self.publish(&name, payload),
            Frame::Other => {}
        }
    }

    fn publish(&self, name: &str, payload: Option<Raw<'_>>) {
        if !is_published(name) || self.task.notices.receiver_count() == 0 {
            return;
        }
        if let Ok(payload) = json::from_str(payload.unwrap_or(Raw::NULL).get(), NOTICE_BOUNDS) {
            // The subscriber may have gone.
            drop(self.task.notices.send(Notice { name: name.into(), payload: Arc::new(payload) }));
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        let Outgoing { id, method, text, reply, connection } = outgoing;
        let is_ours = connection.is_none_or(|connection| connection == self.task.connections);
        if self.silence.is_none() || !is_ours {
            return reply.refuse(Error::Disconnected { why: DisconnectReason::Closed(1006) });
        }
        if reply.is_closed() {
            return;
        }
        if text.len() > self.max_payload {
            return reply.refuse(Error::TooLarge { method, size: text.len(), limit: self.max_payload });
        }
        if self.pending.insert(id, reply) {
            self.duplex.push(text);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shutdown {
    restart_expected_ms: Option<u64>,
}

/// Reads after how long a stopping gateway expects to be back.
fn read_restart_delay(payload: Option<Raw<'_>>) -> Option<Duration> {
    let shutdown: Option<Shutdown> = payload.and_then(|raw| raw.read().ok());
    shutdown.and_then(|shutdown| shutdown.restart_expected_ms).map(Duration::from_millis)
}
