//! Decides when a turn of protocol 3 is over.
//!
//! The conversation reports an end after the first attempt. After a failed attempt the gateway goes on, and sends no
//! event about it. Only the call itself, made again, is answered `in_flight` as long as the gateway does.

use std::time::Duration;

use platform_runtime::retry::Backoff;

use super::TurnTask;
use crate::{
    error::Error,
    outcome::{Code, Ending, TurnFailure},
    verdict,
    wire::{
        answer::{self, TurnReply},
        request::{CHAT, History},
        run::ConversationEnd,
        transcript,
    },
};

/// First and longest delay between two checks whether the turn is over.
const CHECK_DELAY: Duration = Duration::from_millis(25);
const MAX_CHECK_DELAY: Duration = Duration::from_secs(1);

impl TurnTask {
    /// Waits until the gateway has finished the turn, then returns how it ended; `None` if the connection broke. `over`
    /// is the end that the conversation reported, if one was heard.
    pub(super) async fn settle(&mut self, over: Option<ConversationEnd>) -> Option<Ending> {
        if over == Some(ConversationEnd::Aborted) {
            return Some(Ending::Failed(TurnFailure::Aborted));
        }
        let mut backoff = Backoff::new(CHECK_DELAY, MAX_CHECK_DELAY);
        loop {
            let again = self.turn.chat_again();
            let answer = self.handle.exchange(CHAT, &again, Some(self.up.connection)).await;
            match answer.as_ref().map(answer::read) {
                Ok(Ok(TurnReply::InFlight)) => {}
                Ok(Ok(TurnReply::Over(report)))
                    if report.error.is_some() && !self.state.evidence().answered =>
                {
                    return Some(verdict::of_report(*report, &self.state.evidence()));
                }
                Err(Error::Disconnected { .. }) => return None,
                Err(Error::Closed) => return Some(Ending::Failed(TurnFailure::Lost)),
                Ok(_) | Err(_) => break,
            }
            backoff.wait().await;
        }
        Some(self.judge_end(over).await)
    }

    /// Judges the end. The conversation's word is taken if there was one attempt, and it had an answer or was refused
    /// at once. Otherwise the transcript says what came of the last.
    async fn judge_end(&self, over: Option<ConversationEnd>) -> Ending {
        let evidence = self.state.evidence();
        let by_word = over.as_ref().map(|over| verdict::of_conversation(over, &evidence));
        if let Some(ending) = &by_word
            && !evidence.again
        {
            return ending.clone();
        }
        let history = History::new(&self.turn.session);
        let limit = self.handle.shared.limits.call;
        let read = self.handle.call("chat.history", &history, limit).await;
        let entries = read.ok().and_then(|payload| transcript::read(&payload).ok()).unwrap_or_default();
        match (transcript::last_answer(entries.iter()), by_word) {
            (Some(ending), _) => ending,
            (None, Some(failed @ Ending::Failed(_))) => failed,
            // The turn had a piece of an answer, one more attempt, and no answer at its end.
            (None, Some(Ending::Completed { .. })) => {
                Ending::Failed(TurnFailure::Upstream { code: Code::new("retried") })
            }
            (None, None) => Ending::Failed(TurnFailure::NoAnswer),
        }
    }
}
