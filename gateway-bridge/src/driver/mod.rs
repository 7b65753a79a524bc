//! Drives one turn in a task: sets up its session, sends it, and finds its end.
//!
//! There is exactly one ending, and it comes in time. The deadline and cancellation are watched beside everything else,
//! and the abort that follows has its own timeout.

mod prepare;
mod resume;
mod settle;
mod stop;

use std::sync::Arc;

use tokio::{
    sync::mpsc,
    time::{sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Error,
    link::{Link, Outgoing, Reply, Up},
    live::Live,
    outcome::{Code, Ending, Event, Failure, Phase},
    turn::{Attribution, Begun, Taken, Turn},
    verdict,
    wire::{
        answer::{self, Reply as Said, Status},
        fault::Fault,
        frame::Answer,
        request::{CHAT, ClearHeaders, HEADERS_CLEAR, HEADERS_SET, SetHeaders, Start},
        run::Over,
        transcript,
    },
};

pub(crate) use self::prepare::prepare;

/// Most times that a gateway may ask the turn to be sent later.
const REFUSALS_MAX: u32 = 5;

/// Number for a start that was before the first one this connection saw.
const BEFORE: u64 = 0;

pub(crate) struct Driver {
    link: Link,
    turn: Turn,
    live: Arc<Live>,
    start: Start,
    /// The connection that the turn was last heard on.
    up: Arc<Up>,
    /// The gateway's start that the turn was sent to.
    sent_to: Option<u64>,
    accepted: bool,
    /// True if the gateway may have taken the turn: then it must be asked to stop.
    may_run: bool,
    /// Number of times that the gateway asked the turn to be sent later.
    refusals: u32,
    /// Answers to the call that started the turn.
    answers: Option<mpsc::Receiver<Result<Answer, Error>>>,
    /// Id of the session inside the gateway, if headers were given to it.
    dressed: Option<String>,
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
    /// Another start of the gateway may have the turn, and by now this one runs.
    No,
}

/// Event that the driver waits for.
enum News {
    Answer(Answer),
    Conversation(Over),
    /// The call that starts the turn was not sent: by now the gateway takes less, or too much is under way.
    Unsent(Failure),
    Broken,
}

impl Driver {
    pub(crate) const fn new(link: Link, turn: Turn, live: Arc<Live>, start: Start, up: Arc<Up>) -> Self {
        Self {
            link,
            turn,
            live,
            start,
            up,
            sent_to: None,
            accepted: false,
            may_run: false,
            refusals: 0,
            answers: None,
            dressed: None,
        }
    }

    /// Continues a turn that another process has begun.
    pub(crate) fn after(mut self, begun: &Begun) -> Self {
        (self.accepted, self.may_run) = (begun.taken == Taken::Yes, true);
        let is_gone = begun.at.is_other_than(&self.up.hello.boot);
        self.sent_to = Some(if is_gone { BEFORE } else { self.up.start });
        self
    }

    /// Drives the turn to its end and reports it.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let closing = Closing { live: self.live.clone(), link: self.link.clone() };
        let deadline = self.turn.deadline;
        let stopped = async {
            tokio::select! {
                () = cancel.cancelled() => Failure::Aborted,
                () = sleep_until(deadline) => Failure::Deadline,
            }
        };
        let ended = tokio::select! {
            biased;
            ending = self.live_through() => Ok(ending),
            why = stopped => Err(why),
        };
        let ending = match ended {
            Ok(ending) => ending,
            Err(why) => self.stop(why).await,
        };
        self.undress().await;
        closing.with(ending);
    }

    async fn live_through(&mut self) -> Ending {
        if self.sent_to.is_some()
            && let Some(ending) = self.resume().await
        {
            return ending;
        }
        if self.sent_to.is_none()
            && let Err(failure) = self.dress().await
        {
            return Ending::Failed(failure);
        }
        loop {
            if self.sent_to.is_none() {
                match self.send().await {
                    Ok(Sent::Yes) => {}
                    Ok(Sent::No) => match self.found(Restarted::Yes).await {
                        Some(ending) => return ending,
                        None => continue,
                    },
                    Err(_closed) => return Ending::Failed(Failure::Lost),
                }
            }
            let ending = match self.news().await {
                News::Answer(answer) => self.answered(&answer).await,
                News::Conversation(over) => self.conversed(over).await,
                News::Unsent(failure) => Some(Ending::Failed(failure)),
                News::Broken => self.resume().await,
            };
            if let Some(ending) = ending {
                return ending;
            }
        }
    }

    /// Handles the end that the conversation reports: on protocol 3 that may be one attempt of several.
    async fn conversed(&mut self, over: Over) -> Option<Ending> {
        if self.is_chat() {
            return self.settle(Some(over)).await;
        }
        Some(verdict::of_conversation(&over, &self.live.evidence()))
    }

    /// Returns whether the turn was begun the way of protocol 3, whatever the gateway speaks by now.
    fn is_chat(&self) -> bool {
        self.start.method == CHAT
    }

    /// Sets up the session before the turn: its model, its headers.
    async fn dress(&mut self) -> Result<(), Failure> {
        let generation = self.up.hello.generation;
        let Some(patch) = self.turn.patch(generation, self.link.shared.provider.as_ref()) else {
            return Ok(());
        };
        let limit = self.link.shared.limits.call;
        let patched = self.link.call("sessions.patch", &patch, limit).await.map_err(before)?;
        if let Attribution::Plugin(headers) = &self.turn.attribution {
            let session_id = transcript::session_id(&patched)
                .map_err(|_malformed| Failure::Refused { code: Code::new("malformed") })?;
            // From here on the headers must be removed again, whether or not the answer comes.
            self.dressed = Some(session_id.clone());
            let params = SetHeaders { session_id: &session_id, headers };
            self.link.call(HEADERS_SET, &params, limit).await.map_err(before)?;
        }
        Ok(())
    }

    /// Removes the session's headers again. A turn that ends without this has already sent the removal, or the gateway
    /// is gone.
    async fn undress(&mut self) {
        if let Some(session_id) = self.dressed.take() {
            let limit = self.link.shared.limits.abort;
            let cleared =
                self.link.call(HEADERS_CLEAR, &ClearHeaders { session_id: &session_id }, limit).await;
            if let Err(error) = cleared {
                tracing::warn!(turn = %self.turn.id, %error, "the headers of a session were not taken away");
            }
        }
    }

    /// Sends the call that starts the turn. It is known to be sent before it is, so that it can be aborted.
    async fn send(&mut self) -> Result<Sent, Error> {
        let up = self.link.up().await?;
        if self.may_run && up.start != self.up.start {
            return Ok(Sent::No);
        }
        self.up = up;
        let (reply, answers) = mpsc::channel(2);
        self.answers = Some(answers);
        self.sent_to = Some(self.up.start);
        self.may_run = true;
        let Start { id, method, text } = self.start.clone();
        let (method, text, reply) = (method.to_owned(), text.into(), Reply::Twice(reply));
        let connection = Some(self.up.connection);
        self.link.send(Outgoing { id, method, text, reply, connection }).await?;
        Ok(Sent::Yes)
    }

    /// Waits for the next event of the turn. On protocol 4 the conversation's end is not it, while the answer may still
    /// come.
    async fn news(&mut self) -> News {
        let by_conversation = self.is_chat() || self.answers.is_none();
        let (live, link, connection) = (self.live.clone(), self.link.clone(), self.up.connection);
        let answers = &mut self.answers;
        let answer = async {
            match answers {
                Some(answers) => answers.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            over = live.conversation_over(), if by_conversation => News::Conversation(over),
            answer = answer => match answer {
                Some(Ok(answer)) => News::Answer(answer),
                Some(Err(Error::Disconnected { .. })) | None => self.unanswered(),
                Some(Err(error)) => News::Unsent(before(error)),
            },
            () = link.gone(connection) => News::Broken,
        }
    }

    /// Handles that no answer will come any more; the connection may be up all the same.
    fn unanswered(&mut self) -> News {
        self.answers = None;
        News::Broken
    }

    /// Interprets an answer to the turn's call; `None` if the turn goes on.
    async fn answered(&mut self, answer: &Answer) -> Option<Ending> {
        let report = match answer::read(answer) {
            Ok(Said::Over(report)) => report,
            Ok(said) => {
                if !self.accepted {
                    self.accepted = true;
                    self.live.tell(Event::Status(Phase::Accepted));
                }
                // The last answer goes to the call that began the turn, and its connection is no more.
                return if said == Said::InFlight { self.found(Restarted::No).await } else { None };
            }
            Err(_malformed) => {
                self.link.shared.cells.malformed.add_one();
                return None;
            }
        };
        match &report.fault {
            Some(fault) if !self.accepted => self.refused(fault).await,
            None if self.is_chat() && report.status == Status::Ok => self.settle(None).await,
            _ => Some(verdict::of_report(*report, &self.live.evidence())),
        }
    }

    /// Handles a refusal of the turn; `None` if the gateway says when it may be sent again.
    async fn refused(&mut self, fault: &Fault) -> Option<Ending> {
        self.may_run = false;
        match fault.retry_after {
            Some(pause) if self.refusals < REFUSALS_MAX => {
                self.refusals += 1;
                sleep(pause.min(self.link.shared.limits.longest_pause)).await;
                (self.answers, self.sent_to) = (None, None);
                None
            }
            _ => Some(Ending::Failed(Failure::Refused { code: fault.exact() })),
        }
    }
}

/// Maps an error before the turn to the turn's failure.
fn before(error: Error) -> Failure {
    match error {
        Error::Refused { code, .. } => Failure::Refused { code },
        Error::TooLarge { size, limit, .. } => Failure::TooLarge { size, limit },
        Error::TooMany { .. } => Failure::Refused { code: Code::new("too_many_calls") },
        _ => Failure::Lost,
    }
}

/// Ends the turn, also when its task is dropped with its runtime.
struct Closing {
    live: Arc<Live>,
    link: Link,
}

impl Closing {
    /// Ends the turn. The session is free again before the reader sees the end.
    fn with(self, ending: Ending) {
        self.link.shared.routes.leave(&self.live);
        self.live.end(ending);
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.link.shared.routes.leave(&self.live);
        self.live.end(Ending::Failed(Failure::Lost));
    }
}
