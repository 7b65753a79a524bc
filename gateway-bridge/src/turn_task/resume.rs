//! Resumes a turn after its connection broke: the gateway went on without this client, and this module finds the end.

use std::time::Duration;

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

/// Delay before a gateway is asked again. Some gateways answer at once instead of waiting.
const QUERY_RETRY_DELAY: Duration = Duration::from_millis(500);

impl TurnTask {
    /// Resumes the turn after its connection broke, and reports both.
    pub(super) async fn reconnect(&mut self) -> Option<Ending> {
        self.state.report(TurnEvent::Status(TurnPhase::Reconnecting));
        self.resume().await
    }

    /// Finds the turn's end on a new connection; `None` if the task must wait for it, or send the turn, again.
    pub(super) async fn resume(&mut self) -> Option<Ending> {
        self.answers = None;
        if !self.is_chat()
            && let Some(end) = self.state.conversation_end()
        {
            return Some(verdict::of_conversation(&end, &self.state.evidence()));
        }
        match self.handle.connected().await {
            Ok(up) => {
                self.up = up;
                self.state.report(TurnEvent::Status(TurnPhase::Reconnected));
            }
            Err(_final) => return Some(Ending::Failed(TurnFailure::Lost)),
        }
        let restarted =
            if self.sent_to == Some(self.up.boot_number) { Restarted::No } else { Restarted::Yes };
        if !self.accepted && restarted == Restarted::No {
            // The same start of the gateway knows whether it has accepted the turn, and does not accept it twice.
            self.sent_to = None;
            return None;
        }
        // The turn may have begun already; this client must not begin it again.
        self.find_end(restarted).await
    }

    /// Asks the gateway for the end, and watches the conversation meanwhile; `None` if the connection broke again.
    pub(super) async fn find_end(&mut self, restarted: Restarted) -> Option<Ending> {
        let state = self.state.clone();
        let found = tokio::select! {
            biased;
            end = state.wait_for_conversation_end() => QueryResult::Conversation(end),
            found = self.query_status(restarted) => found,
        };
        match (found, self.is_chat(), restarted) {
            (QueryResult::Broken, ..) => None,
            (QueryResult::Lost, ..) => Some(Ending::Failed(TurnFailure::Lost)),
            (QueryResult::Conversation(end), ..) => self.handle_conversation_end(end).await,
            // One attempt has ended; `settle` finds out whether it was the last.
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
            match (waited.as_ref().map(transcript::waited), restarted) {
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

    /// Reads the answer of a turn that has ended well.
    async fn read_answer(&self) -> Option<Ending> {
        let entries = self.read_history().await?;
        transcript::answer_of(&entries, &self.turn.run_id).or_else(|| transcript::last_answer(entries.iter()))
    }

    /// Reads the answer of a turn that may not have ended: only from messages that name the turn.
    async fn read_named_answer(&self) -> Option<Ending> {
        transcript::answer_of(&self.read_history().await?, &self.turn.run_id)
    }

    async fn read_history(&self) -> Option<Vec<transcript::TranscriptEntry>> {
        let history = History::new(&self.turn.session);
        let payload =
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
