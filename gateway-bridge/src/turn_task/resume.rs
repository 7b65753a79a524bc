//! Resumes a turn whose connection broke: the gateway went on without this client, and the end must be found out.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{Restarted, TurnTask};
use crate::{
    error::Error,
    history::Waited,
    outcome::{Ending, TurnEvent, TurnFailure, TurnPhase},
    verdict,
    wire::{
        request::{History, Wait},
        run::ConversationEnd,
        transcript,
    },
};

/// Time that a gateway is asked to wait for the end of a turn it has.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a restarted gateway is asked to wait for the end of a turn, which it may not have.
const RESTARTED_WAIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Extra time for a gateway to answer that nothing happened.
const RESPONSE_GRACE: Duration = Duration::from_secs(5);

/// Delay before a gateway is asked again. Some answer at once instead of waiting.
const QUERY_RETRY_DELAY: Duration = Duration::from_millis(500);

impl TurnTask {
    /// Finds out what became of the turn; `None` if its task must listen to it, or send it, again.
    pub(super) async fn resume(&mut self) -> Option<Ending> {
        self.state.report(TurnEvent::Status(TurnPhase::Reconnecting));
        self.answers = None;
        if !self.is_chat()
            && let Some(over) = self.state.conversation_end()
        {
            return Some(verdict::of_conversation(&over, &self.state.evidence()));
        }
        match self.handle.up().await {
            Ok(up) => self.up = up,
            Err(_final) => return Some(Ending::Failed(TurnFailure::Lost)),
        }
        let restarted = if self.sent_to == Some(self.up.start) { Restarted::No } else { Restarted::Yes };
        if !self.accepted && restarted == Restarted::No {
            // The same gateway knows whether it has taken the turn, and does not take it twice.
            self.sent_to = None;
            return None;
        }
        // The turn may have begun already; this client must not begin it again.
        self.find_end(restarted).await
    }

    /// Asks the gateway for the end, and listens to the conversation meanwhile; `None` if the connection broke again.
    pub(super) async fn find_end(&mut self, restarted: Restarted) -> Option<Ending> {
        let state = self.state.clone();
        let found = tokio::select! {
            biased;
            over = state.wait_for_conversation_end() => QueryResult::Conversation(over),
            found = self.query_status(restarted) => found,
        };
        match (found, self.is_chat(), restarted) {
            (QueryResult::Broken, ..) => None,
            (QueryResult::Lost, ..) => Some(Ending::Failed(TurnFailure::Lost)),
            (QueryResult::Conversation(over), ..) => self.handle_conversation_end(over).await,
            // One attempt is over; `settle` finds out whether it was the last.
            (QueryResult::Waited(_), true, Restarted::No) => self.settle(None).await,
            (QueryResult::Waited(Waited::Failed(failure)), ..) => Some(Ending::Failed(failure)),
            (QueryResult::Waited(Waited::Completed { text: Some(text) }), ..) if !text.is_empty() => {
                Some(Ending::Completed { text, usage: None, model: None })
            }
            (QueryResult::Waited(Waited::Completed { .. }), ..) => {
                Some(self.read_answer().await.unwrap_or(Ending::Failed(TurnFailure::NoAnswer)))
            }
            // The turn may have ended before the restart.
            (QueryResult::Waited(Waited::Unknown), ..) => {
                Some(self.read_named_answer().await.unwrap_or(Ending::Failed(TurnFailure::Lost)))
            }
        }
    }

    async fn query_status(&self, restarted: Restarted) -> QueryResult {
        let time = match restarted {
            Restarted::Yes => RESTARTED_WAIT_TIMEOUT,
            Restarted::No => WAIT_TIMEOUT,
        };
        loop {
            let wait = Wait::new(&self.turn.run_id, time);
            let waited = self.handle.call("agent.wait", &wait, time + RESPONSE_GRACE).await;
            match (waited.as_deref().map(transcript::waited), restarted) {
                (Ok(Ok(Waited::Unknown)), Restarted::No) => {}
                (Ok(Ok(waited)), _) => return QueryResult::Waited(waited),
                // The connection broke: resume from the beginning.
                (Err(Error::Disconnected { .. }), _) => return QueryResult::Broken,
                (Err(_) | Ok(Err(_)), Restarted::Yes) => return QueryResult::Lost,
                (Err(_) | Ok(Err(_)), Restarted::No) => {}
            }
            sleep(QUERY_RETRY_DELAY).await;
        }
    }

    /// Reads the answer of a turn that is over and went well.
    async fn read_answer(&self) -> Option<Ending> {
        let entries = self.read_history().await?;
        transcript::answer_of(&entries, &self.turn.run_id).or_else(|| transcript::last_answer(entries.iter()))
    }

    /// Reads the answer where the turn may not be over: only from messages that name it.
    async fn read_named_answer(&self) -> Option<Ending> {
        transcript::answer_of(&self.read_history().await?, &self.turn.run_id)
    }

    async fn read_history(&self) -> Option<Vec<transcript::TranscriptEntry>> {
        let history = History::new(&self.turn.session);
        let payload: Box<RawValue> =
            self.handle.call("chat.history", &history, self.handle.shared.limits.call).await.ok()?;
        transcript::read(&payload).ok()
    }
}

/// Result of asking about a turn.
enum QueryResult {
    /// The conversation reported the end.
    Conversation(ConversationEnd),
    /// The gateway answered.
    Waited(Waited),
    /// The gateway does not know the turn.
    Lost,
    /// The connection broke again.
    Broken,
}
