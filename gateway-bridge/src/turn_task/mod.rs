//! Runs one turn in a task: sets up its session, sends it, and finds its end.
//!
//! There is exactly one ending, and it comes in time. The deadline and cancellation are watched beside everything else,
//! and the abort that follows has its own timeout.

mod end_guard;
mod prepare;
mod resume;
mod session_setup;
mod settle;
mod stop;

use std::sync::Arc;

use tokio::{
    sync::mpsc,
    time::{sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::end_guard::EndGuard;
use crate::{
    connection_phase::OpenConnection,
    error::Error,
    handle::{ConnectionHandle, Outgoing, ReplySender},
    outcome::{Code, Ending, TurnEvent, TurnFailure, TurnPhase},
    turn::{Begun, Delivery, Turn},
    turn_state::TurnState,
    verdict,
    wire::{
        answer::{self, TurnReply, TurnStatus},
        frame::ResponseFrame,
        gateway_error::GatewayError,
        request::{CHAT, StartCall},
        run::ConversationEnd,
    },
};

pub(crate) use self::prepare::prepare;

/// Most refusals after which a turn is sent again.
const MAX_REFUSALS: u32 = 5;

/// Number for a start of the gateway before the first one that this client saw.
const EARLIER_BOOT: u64 = 0;

/// Task of one turn.
pub(crate) struct TurnTask {
    handle: ConnectionHandle,
    turn: Turn,
    state: Arc<TurnState>,
    start_call: StartCall,
    /// The latest connection that the turn used.
    up: Arc<OpenConnection>,
    /// Number of the gateway's start that the turn was sent to.
    sent_to: Option<u64>,
    accepted: bool,
    /// True if the gateway may have accepted the turn: then it must be asked to stop.
    may_run: bool,
    /// Number of refusals after which the turn was sent again.
    refusals: u32,
    /// Answers to the call that started the turn.
    answers: Option<mpsc::Receiver<Result<ResponseFrame, Error>>>,
    /// Id of the session inside the gateway, if headers were given to it.
    headers_session: Option<String>,
}

/// Result of comparing the gateway's start with the one the turn was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restarted {
    Yes,
    No,
}

/// Result of sending a turn.
enum Sent {
    Yes,
    /// Another start of the gateway may have the turn, and the gateway has restarted since.
    No,
}

/// Event that the turn's task waits for.
enum TurnUpdate {
    /// The gateway answered the call that started the turn.
    Response(ResponseFrame),
    /// The conversation reported an end.
    Conversation(ConversationEnd),
    /// The call that starts the turn was not sent: the gateway now accepts only smaller frames, or too many calls wait.
    Unsent(TurnFailure),
    /// The connection broke.
    Broken,
}

impl TurnTask {
    pub(crate) const fn new(
        handle: ConnectionHandle,
        turn: Turn,
        state: Arc<TurnState>,
        start_call: StartCall,
        up: Arc<OpenConnection>,
    ) -> Self {
        Self {
            handle,
            turn,
            state,
            start_call,
            up,
            sent_to: None,
            accepted: false,
            may_run: false,
            refusals: 0,
            answers: None,
            headers_session: None,
        }
    }

    /// Continues a turn that another process has begun.
    pub(crate) fn continuing(mut self, begun: &Begun) -> Self {
        self.accepted = begun.delivery == Delivery::Confirmed;
        self.may_run = true;
        let is_gone = begun.at.is_other_than(&self.up.hello.boot);
        self.sent_to = Some(if is_gone { EARLIER_BOOT } else { self.up.boot_number });
        self
    }

    /// Runs the turn to its end and reports it.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let guard = EndGuard { state: self.state.clone(), handle: self.handle.clone() };
        let deadline = self.turn.deadline;
        let stopped = async {
            tokio::select! {
                () = cancel.cancelled() => TurnFailure::Aborted,
                () = sleep_until(deadline) => TurnFailure::Deadline,
            }
        };
        let ended = tokio::select! {
            biased;
            ending = self.run_turn() => Ok(ending),
            why = stopped => Err(why),
        };
        let ending = match ended {
            Ok(ending) => ending,
            Err(why) => self.stop(why).await,
        };
        self.clear_session_headers().await;
        guard.end_with(ending);
    }

    async fn run_turn(&mut self) -> Ending {
        if self.sent_to.is_some()
            && let Some(ending) = self.resume().await
        {
            return ending;
        }
        if self.sent_to.is_none()
            && let Err(failure) = self.set_up_session().await
        {
            return Ending::Failed(failure);
        }
        loop {
            if self.sent_to.is_none() {
                match self.send().await {
                    Ok(Sent::Yes) => {}
                    Ok(Sent::No) => match self.find_end(Restarted::Yes).await {
                        Some(ending) => return ending,
                        None => continue,
                    },
                    Err(_closed) => return Ending::Failed(TurnFailure::Lost),
                }
            }
            let ending = match self.next_update().await {
                TurnUpdate::Response(answer) => self.handle_reply(&answer).await,
                TurnUpdate::Conversation(end) => self.handle_conversation_end(end).await,
                TurnUpdate::Unsent(failure) => Some(Ending::Failed(failure)),
                TurnUpdate::Broken => self.reconnect().await,
            };
            if let Some(ending) = ending {
                return ending;
            }
        }
    }

    /// Handles the end that the conversation reports: on protocol 3 that may be one attempt of several.
    async fn handle_conversation_end(&mut self, end: ConversationEnd) -> Option<Ending> {
        if self.is_chat() {
            return self.settle(Some(end)).await;
        }
        Some(verdict::of_conversation(&end, &self.state.evidence()))
    }

    /// Returns whether the turn was begun the way of protocol 3, whatever the gateway speaks by now.
    fn is_chat(&self) -> bool {
        self.start_call.method == CHAT
    }

    /// Sends the call that starts the turn. The turn counts as sent before it is, so that it can be aborted.
    async fn send(&mut self) -> Result<Sent, Error> {
        let up = self.handle.connected().await?;
        if self.may_run && up.boot_number != self.up.boot_number {
            return Ok(Sent::No);
        }
        self.up = up;
        let (reply, answers) = mpsc::channel(2);
        self.answers = Some(answers);
        self.sent_to = Some(self.up.boot_number);
        self.may_run = true;
        let StartCall { id, method, text } = self.start_call.clone();
        let outgoing = Outgoing {
            id,
            method: method.to_owned(),
            text: text.into(),
            reply: ReplySender::Twice(reply),
            connection: Some(self.up.number),
        };
        self.handle.send(outgoing).await?;
        Ok(Sent::Yes)
    }

    /// Waits for the next event of the turn. On protocol 4 the end that the conversation reports does not count while
    /// the answer may still come.
    async fn next_update(&mut self) -> TurnUpdate {
        let by_conversation = self.is_chat() || self.answers.is_none();
        let state = self.state.clone();
        let handle = self.handle.clone();
        let connection = self.up.number;
        let answers = &mut self.answers;
        let answer = async {
            match answers {
                Some(answers) => answers.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            end = state.wait_for_conversation_end(), if by_conversation => TurnUpdate::Conversation(end),
            answer = answer => match answer {
                Some(Ok(answer)) => TurnUpdate::Response(answer),
                Some(Err(Error::Disconnected { .. })) | None => self.handle_lost_reply(),
                Some(Err(error)) => TurnUpdate::Unsent(setup_failure(error)),
            },
            () = handle.wait_until_closed(connection) => TurnUpdate::Broken,
        }
    }

    /// Handles the loss of the pending answer; the connection may be up all the same.
    fn handle_lost_reply(&mut self) -> TurnUpdate {
        self.answers = None;
        TurnUpdate::Broken
    }

    /// Interprets an answer to the turn's call; `None` if the turn continues.
    async fn handle_reply(&mut self, answer: &ResponseFrame) -> Option<Ending> {
        let report = match answer::read(answer) {
            Ok(TurnReply::Ended(report)) => report,
            Ok(reply) => {
                if !self.accepted {
                    self.accepted = true;
                    self.state.report(TurnEvent::Status(TurnPhase::Accepted));
                }
                // The last answer goes to the call that began the turn, and its connection is closed.
                return if reply == TurnReply::InFlight { self.find_end(Restarted::No).await } else { None };
            }
            Err(_malformed) => {
                self.handle.shared.cells.malformed.add_one();
                return None;
            }
        };
        match &report.error {
            Some(error) if !self.accepted => self.handle_refusal(error).await,
            None if self.is_chat() && report.status == TurnStatus::Ok => self.settle(None).await,
            _ => Some(verdict::of_report(*report, &self.state.evidence())),
        }
    }

    /// Handles a refusal of the turn; `None` if the gateway allows a later attempt.
    async fn handle_refusal(&mut self, error: &GatewayError) -> Option<Ending> {
        self.may_run = false;
        match error.retry_after {
            Some(pause) if self.refusals < MAX_REFUSALS => {
                self.refusals += 1;
                sleep(pause.min(self.handle.shared.limits.longest_pause)).await;
                self.answers = None;
                self.sent_to = None;
                None
            }
            _ => Some(Ending::Failed(TurnFailure::Refused { code: error.exact() })),
        }
    }
}

/// Maps an error before the turn to the turn's failure.
fn setup_failure(error: Error) -> TurnFailure {
    match error {
        Error::Refused { code, .. } => TurnFailure::Refused { code },
        Error::TooLarge { size, limit, .. } => TurnFailure::TooLarge { size, limit },
        Error::TooMany { .. } => TurnFailure::Refused { code: Code::new("too_many_calls") },
        _ => TurnFailure::Lost,
    }
}
