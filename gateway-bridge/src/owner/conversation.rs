//! Runs one connection: sends and receives in the order of its states.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{End, Owner, Pending};
use crate::{
    duplex::Duplex,
    error::{Broken, Error},
    link::{Command, Outgoing, Phase},
    machine::{Input, Next, State},
    subscription::{NOTICE_MAX, Notice, is_told},
    wire::{
        connect::{self, Challenge},
        frame::{self, Frame},
        hello, request,
    },
};

/// Id of `connect`: no call has it.
const CONNECT_ID: u64 = 0;

/// Timeout of closing a connection.
const GOODBYE: Duration = Duration::from_millis(500);

/// Longest time between two ticks that is believed; `TICK_MIN` is the shortest.
const TICK_MAX: Duration = Duration::from_secs(600);
const TICK_MIN: Duration = Duration::from_millis(20);

pub(super) struct Conversation<'a> {
    owner: &'a mut Owner,
    duplex: Duplex,
    state: State,
    pending: Pending,
    /// Time by which the gateway must have sent its hello, or, after that, any frame.
    deadline: Instant,
    /// Longest silence of the gateway, once it has sent its hello.
    silence: Option<Duration>,
    max_payload: usize,
}

enum Came {
    Text(Result<Utf8Bytes, Broken>),
    Command(Option<Command>),
    Deadline,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(owner: &'a mut Owner, duplex: Duplex, deadline: Instant) -> Self {
        Self {
            owner,
            duplex,
            state: State::AwaitingChallenge,
            pending: Pending::default(),
            deadline,
            silence: None,
            max_payload: 0,
        }
    }

    pub(super) async fn run(mut self) -> End {
        let end = self.speak().await;
        let (why, phase) = match &end {
            End::Again { why, .. } => (why, Phase::Down(Some(why.clone()))),
            End::Fail(why) => (why, Phase::Failed(why.clone())),
        };
        if self.silence.is_none() {
            self.owner.shared.cells.failed_attempts.add_one();
        }
        // The state changes before callers learn that there is no answer, so that none of them takes this connection
        // for a live one.
        self.owner.phase.send_replace(phase);
        self.pending.refuse(why);
        let is_broken = matches!(why, Error::Disconnected { why: Broken::Closed(_) });
        if !is_broken && timeout(GOODBYE, self.duplex.close()).await.is_err() {
            tracing::debug!("the gateway does not read the end of the connection");
        }
        end
    }

    async fn speak(&mut self) -> End {
        loop {
            let came = tokio::select! {
                text = self.duplex.next() => Came::Text(text),
                command = self.owner.commands.recv(), if self.duplex.has_room() => Came::Command(command),
                () = sleep_until(self.deadline) => Came::Deadline,
            };
            let end = match came {
                Came::Text(Ok(text)) => {
                    self.heard();
                    self.text(&text)
                }
                Came::Text(Err(broken)) => self.broken(broken),
                Came::Command(None | Some(Command::Close)) => Some(End::Fail(Error::Closed)),
                Came::Command(Some(Command::Send(outgoing))) => {
                    self.send(outgoing);
                    None
                }
                Came::Deadline if self.silence.is_some() => self.broken(Broken::Silent),
                Came::Deadline => self.step(Input::Late(self.owner.settings.limits.handshake)),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Records a sign of life of the gateway.
    fn heard(&mut self) {
        if let Some(silence) = self.silence {
            self.deadline = Instant::now() + silence;
        }
    }

    fn broken(&mut self, broken: Broken) -> Option<End> {
        match broken {
            Broken::Oversize => self.owner.shared.cells.oversize.add_one(),
            Broken::Silent => self.owner.shared.cells.silent.add_one(),
            Broken::Closed(_) | Broken::Protocol => {}
        }
        self.step(Input::Broken(broken))
    }

    /// Makes the transition for `input`. Events of turns and answers to callers are not handled here.
    fn step(&mut self, input: Input) -> Option<End> {
        let (state, next) = self.state.step(input);
        self.state = state;
        match next {
            Next::Stay | Next::Handle | Next::Connect => None,
            Next::Serve(hello) => {
                let tick = hello.tick.clamp(TICK_MIN, TICK_MAX);
                // Two ticks, and half of one for the delay of the network.
                self.silence = Some(tick * 5 / 2);
                self.max_payload = hello.max_payload;
                self.heard();
                self.owner.announce(*hello);
                None
            }
            Next::Again { why, pause } => {
                // Gateways close like this when they stop or start anew, and not otherwise.
                self.owner.starts.stopped |= matches!(why, Error::Disconnected { why: Broken::Closed(1012) });
                Some(End::Again { why, pause })
            }
            Next::Fail(error) => Some(End::Fail(error)),
        }
    }

    fn text(&mut self, text: &str) -> Option<End> {
        if text.is_empty() {
            return None;
        }
        let Ok(frame) = frame::read(text) else {
            self.owner.shared.cells.malformed.add_one();
            return None;
        };
        match frame {
            Frame::Event { name, payload } if name == "connect.challenge" => self.challenge(payload),
            Frame::Event { name, payload } if name == "shutdown" => {
                self.owner.starts.stopped = true;
                self.notice(&name, payload);
                self.step(Input::Shutdown { back_in: back_in(payload) })
            }
            Frame::Answer { id, answer } if id == "0" => match answer.fault {
                Some(fault) => self.step(Input::Refusal(fault)),
                None => {
                    let (payload, scopes) = (answer.payload.as_deref(), &self.owner.settings.scopes);
                    match hello::read(payload, scopes, SystemTime::now()) {
                        Ok(hello) => self.step(Input::Hello(hello)),
                        Err(_malformed) => self.malformed(),
                    }
                }
            },
            frame => {
                let (state, next) = self.state.step(Input::Frame);
                self.state = state;
                if matches!(next, Next::Handle) {
                    self.handle(frame);
                }
                None
            }
        }
    }

    fn malformed(&mut self) -> Option<End> {
        self.owner.shared.cells.malformed.add_one();
        self.broken(Broken::Protocol)
    }

    fn challenge(&mut self, payload: Option<&RawValue>) -> Option<End> {
        let Ok(challenge) = Challenge::read(payload) else { return self.malformed() };
        let (state, next) = self.state.step(Input::Challenge);
        self.state = state;
        match next {
            Next::Connect => {
                let params = connect::params(&self.owner.settings, &challenge);
                match request::encode(CONNECT_ID, "connect", &params, None) {
                    Ok(text) => {
                        self.duplex.push(text.into());
                        None
                    }
                    Err(_error) => self.malformed(),
                }
            }
            Next::Again { why, pause } => Some(End::Again { why, pause }),
            Next::Stay | Next::Handle | Next::Serve(_) | Next::Fail(_) => None,
        }
    }

    fn handle(&mut self, frame: Frame<'_>) {
        let cells = &self.owner.shared.cells;
        match frame {
            Frame::Answer { id, answer } => {
                if !self.pending.settle(&id, answer) {
                    cells.for_nobody.add_one();
                }
            }
            Frame::Event { name, payload } if name == "agent" || name == "chat" => {
                self.owner.shared.routes.deliver(&name, payload, cells);
            }
            Frame::Event { name, payload } => self.notice(&name, payload),
            Frame::Other => {}
        }
    }

    fn notice(&self, name: &str, payload: Option<&RawValue>) {
        let text = payload.map_or("null", RawValue::get);
        if !is_told(name) || text.len() > NOTICE_MAX || self.owner.notices.receiver_count() == 0 {
            return;
        }
        if let Ok(payload) = serde_json::from_str(text) {
            // The subscriber may have gone.
            drop(
                self.owner.notices.send(Notice { name: name.into(), payload: std::sync::Arc::new(payload) }),
            );
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        let Outgoing { id, method, text, reply, connection } = outgoing;
        let is_ours = connection.is_none_or(|connection| connection == self.owner.connections);
        if self.silence.is_none() || !is_ours {
            return reply.refuse(Error::Disconnected { why: Broken::Closed(1006) });
        }
        if reply.is_closed() {
            return;
        }
        if text.len() > self.max_payload {
            let (size, limit) = (text.len(), self.max_payload);
            return reply.refuse(Error::TooLarge { method, size, limit });
        }
        if self.pending.wait(id, reply) {
            self.duplex.push(text);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shutdown {
    restart_expected_ms: Option<u64>,
}

/// Reads the time at which a stopping gateway says it will be back.
fn back_in(payload: Option<&RawValue>) -> Option<Duration> {
    let shutdown: Option<Shutdown> = payload.and_then(|raw| serde_json::from_str(raw.get()).ok());
    shutdown.and_then(|shutdown| shutdown.restart_expected_ms).map(Duration::from_millis)
}
