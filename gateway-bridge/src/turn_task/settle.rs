//! Decides when a turn of protocol 3 has ended.
//!
//! The conversation reports an end after the first attempt. After a failed attempt the gateway makes another one, and
//! sends no event about it. Only the call itself, sent again, is answered `in_flight` as long as the gateway is active.

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

/// First and longest delay between two checks whether the turn has ended.
const CHECK_DELAY: Duration = Duration::from_millis(25);
const MAX_CHECK_DELAY: Duration = Duration::from_secs(1);

impl TurnTask {
    /// Waits until the gateway has finished the turn, then returns how it ended; `None` if the connection broke. `end`
    /// is the end that the conversation reported, if any.
    pub(super) async fn settle(&mut self, end: Option<ConversationEnd>) -> Option<Ending> {
        if end == Some(ConversationEnd::Aborted) {
            return Some(Ending::Failed(TurnFailure::Aborted));
        }
        let mut backoff = Backoff::new(CHECK_DELAY, MAX_CHECK_DELAY);
        loop {
            let repeated = self.turn.repeated_chat();
            let answer = self.handle.send_request(CHAT, &repeated, Some(self.up.number)).await;
            match answer.as_ref().map(answer::read) {
                Ok(Ok(TurnReply::InFlight)) => {}
                Ok(Ok(TurnReply::Ended(report)))
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
        Some(self.judge_end(end).await)
    }

    /// Judges the end. The end that the conversation reported counts if there was one attempt. Otherwise the transcript
    /// shows the result of the last one.
    async fn judge_end(&self, end: Option<ConversationEnd>) -> Ending {
        let evidence = self.state.evidence();
        let reported = end.as_ref().map(|end| verdict::of_conversation(end, &evidence));
        if let Some(ending) = &reported
            && !evidence.retried
        {
            return ending.clone();
        }
        let history = History::new(&self.turn.session);
        let limit = self.handle.shared.limits.call;
        let read = self.handle.call("chat.history", &history, limit).await;
        let entries = read.ok().and_then(|payload| transcript::read(&payload).ok()).unwrap_or_default();
        match (transcript::last_answer(entries.iter()), reported) {
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
