//! The task that drives one turn: what must be said before it, the turn itself, its end.
//!
//! Whatever happens, there is one ending, and it comes in time: the deadline and the wish to stop are watched over beside
//! everything else, and the abort that follows has a time limit of its own.

mod resume;
mod stop;

use std::sync::Arc;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Error,
    hello::{Generation, Hello},
    link::{Link, Outgoing, Reply, Up},
    live::Live,
    outcome::{Ending, Event, Failure, Phase},
    turn::{Attribution, Turn},
    verdict,
    wire::{
        answer::{self, Reply as Said},
        frame::Answer,
        request::{ClearHeaders, HEADERS_CLEAR, HEADERS_SET, SetHeaders, Start},
        run::Over,
        transcript,
    },
};

/// Checks a turn against what the gateway can do, and makes the call that starts it.
pub(crate) fn prepare(link: &Link, turn: &Turn, hello: &Hello) -> Result<Start, Error> {
    let unsupported = |what| Err(Error::Unsupported { what, version: hello.version.as_str().to_owned() });
    match &turn.attribution {
        Attribution::Trace(_) if !hello.takes_traces() => {
            return unsupported("pass a trace id on to the model (from 2026.8 on): use a slot or headers");
        }
        Attribution::Slot { .. } if turn.model.is_none() => {
            return Err(Error::InvalidTurn { reason: "a slot needs the model of the turn" });
        }
        Attribution::Plugin(_) if !hello.has(HEADERS_SET) && !hello.methods.is_empty() => {
            return unsupported("give a session headers: the plugin sluicegate-headers is not loaded");
        }
        Attribution::Trace(_)
        | Attribution::Slot { .. }
        | Attribution::Headers(_)
        | Attribution::Plugin(_) => {}
    }
    if turn.message.is_empty() {
        return Err(Error::InvalidTurn { reason: "there is no message" });
    }
    if turn.instructions.is_some() && hello.generation == Generation::Three {
        return unsupported("take instructions beside the message on protocol 3");
    }
    let left = turn.deadline.saturating_duration_since(Instant::now());
    let start = turn.start(link.shared.next_id(), hello.generation, link.shared.provider.as_ref(), left);
    let start = start.map_err(|_error| Error::InvalidTurn { reason: "it cannot be written as JSON" })?;
    link.check_size(start.method, start.text.len(), hello)?;
    Ok(start)
}

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
    /// The answers to the call that started the turn.
    answers: Option<mpsc::Receiver<Result<Answer, Error>>>,
    /// The session's id inside the gateway, if headers were given to it.
    dressed: Option<String>,
}

/// What is heard of a turn.
enum News {
    Answer(Answer),
    Conversation(Over),
    /// The gateway takes less than it did when the turn was checked: it is another one now.
    TooLarge {
        size: usize,
        limit: usize,
    },
    Broken,
}

impl Driver {
    pub(crate) const fn new(link: Link, turn: Turn, live: Arc<Live>, start: Start, up: Arc<Up>) -> Self {
        Self { link, turn, live, start, up, sent_to: None, accepted: false, answers: None, dressed: None }
    }

    /// Drives the turn to its end and tells it.
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
        if let Err(failure) = self.dress().await {
            return Ending::Failed(failure);
        }
        loop {
            if self.answers.is_none() && self.sent_to.is_none() && self.send().await.is_err() {
                return Ending::Failed(Failure::Lost);
            }
            let ending = match self.news().await {
                News::Answer(answer) => self.answered(&answer),
                News::Conversation(over) => Some(verdict::of_conversation(&over, &self.live.evidence())),
                News::TooLarge { size, limit } => Some(Ending::Failed(Failure::TooLarge { size, limit })),
                News::Broken => self.resume().await,
            };
            if let Some(ending) = ending {
                return ending;
            }
        }
    }

    /// Says what must be said of the session before the turn: its model, its headers.
    async fn dress(&mut self) -> Result<(), Failure> {
        let generation = self.up.hello.generation;
        let Some(patch) = self.turn.patch(generation, self.link.shared.provider.as_ref()) else {
            return Ok(());
        };
        let limit = self.link.shared.limits.call;
        let patched = self.link.call("sessions.patch", &patch, limit).await.map_err(before)?;
        if let Attribution::Plugin(headers) = &self.turn.attribution {
            let session_id = transcript::session_id(&patched)
                .map_err(|_malformed| Failure::Refused { code: crate::outcome::Code::new("malformed") })?;
            // From here on they must be taken away again, whether or not the answer comes.
            self.dressed = Some(session_id.clone());
            let params = SetHeaders { session_id: &session_id, headers };
            self.link.call(HEADERS_SET, &params, limit).await.map_err(before)?;
        }
        Ok(())
    }

    /// Takes the session's headers away again. Who ends here without it has told the gateway, or it is gone.
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
    async fn send(&mut self) -> Result<(), Error> {
        self.up = self.link.up().await?;
        let (reply, answers) = mpsc::channel(2);
        self.answers = Some(answers);
        self.sent_to = Some(self.up.start);
        let Start { id, method, text } = self.start.clone();
        let reply = Reply::Twice(reply);
        self.link.send(Outgoing { id, method: method.to_owned(), text: text.into(), reply }).await
    }

    /// What is heard next of the turn. On protocol 4 the conversation's end is not it, while the answer may still come.
    async fn news(&mut self) -> News {
        let by_conversation = self.up.hello.generation == Generation::Three || self.answers.is_none();
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
                Some(Err(Error::TooLarge { size, limit, .. })) => News::TooLarge { size, limit },
                Some(Err(_)) | None => self.unanswered(),
            },
            () = link.gone(connection) => News::Broken,
        }
    }

    /// No answer will come any more; the connection may be there all the same.
    fn unanswered(&mut self) -> News {
        self.answers = None;
        News::Broken
    }

    /// What an answer to the turn's call means; none if the turn goes on.
    fn answered(&mut self, answer: &Answer) -> Option<Ending> {
        match answer::read(answer) {
            Ok(Said::Accepted | Said::InFlight) => {
                if !self.accepted {
                    self.accepted = true;
                    self.live.tell(Event::Status(Phase::Accepted));
                }
                None
            }
            Ok(Said::Over(report)) => Some(match &report.fault {
                Some(fault) if !self.accepted => Ending::Failed(Failure::Refused { code: fault.exact() }),
                _ => verdict::of_report(*report, &self.live.evidence()),
            }),
            Err(_malformed) => {
                self.link.shared.cells.malformed.add_one();
                None
            }
        }
    }
}

/// What an error before the turn is to the turn.
fn before(error: Error) -> Failure {
    match error {
        Error::Refused { code, .. } => Failure::Refused { code },
        Error::TooLarge { size, limit, .. } => Failure::TooLarge { size, limit },
        _ => Failure::Lost,
    }
}

/// Ends the turn, also when its task is dropped with its runtime.
struct Closing {
    live: Arc<Live>,
    link: Link,
}

impl Closing {
    /// The session is free again before anybody knows that the turn is over.
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
