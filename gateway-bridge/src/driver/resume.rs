//! Resumes a turn whose connection broke: the gateway went on without this client, and the end must be found out.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{Driver, Restarted};
use crate::{
    error::Error,
    history::Waited,
    outcome::{Ending, Event, Failure, Phase},
    verdict,
    wire::{
        request::{History, Wait},
        run::Over,
        transcript,
    },
};

/// Time that a gateway is asked to wait for the end of a turn it has; `PATIENCE_AFTER_RESTART` is for one it may not
/// have.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_AFTER_RESTART: Duration = Duration::from_secs(1);

/// Extra time for a gateway to answer that nothing happened.
const SLACK: Duration = Duration::from_secs(5);

/// Delay before a refused question is asked again.
const AGAIN: Duration = Duration::from_millis(500);

impl Driver {
    /// Finds out what became of the turn; `None` if the driver must listen to it, or send it, again.
    pub(super) async fn resume(&mut self) -> Option<Ending> {
        self.live.tell(Event::Status(Phase::Reconnecting));
        self.answers = None;
        if !self.is_chat()
            && let Some(over) = self.live.is_over()
        {
            return Some(verdict::of_conversation(&over, &self.live.evidence()));
        }
        match self.link.up().await {
            Ok(up) => self.up = up,
            Err(_final) => return Some(Ending::Failed(Failure::Lost)),
        }
        let restarted = if self.sent_to == Some(self.up.start) { Restarted::No } else { Restarted::Yes };
        if !self.accepted && restarted == Restarted::No {
            // The same gateway knows whether it has taken the turn, and does not take it twice.
            self.sent_to = None;
            return None;
        }
        // The turn may have begun already; this client must not begin it again.
        self.found(restarted).await
    }

    /// Asks the gateway for the end, and listens to the conversation meanwhile; `None` if the connection broke again.
    pub(super) async fn found(&mut self, restarted: Restarted) -> Option<Ending> {
        let live = self.live.clone();
        let found = tokio::select! {
            biased;
            over = live.conversation_over() => Found::Said(over),
            found = self.asked(restarted) => found,
        };
        match (found, self.is_chat(), restarted) {
            (Found::Broken, ..) => None,
            (Found::Lost, ..) => Some(Ending::Failed(Failure::Lost)),
            (Found::Said(over), ..) => self.conversed(over).await,
            // One attempt is over; `settle` finds out whether it was the last.
            (Found::Waited(_), true, Restarted::No) => self.settle(None).await,
            (Found::Waited(Waited::Failed(failure)), ..) => Some(Ending::Failed(failure)),
            (Found::Waited(Waited::Completed { text: Some(text) }), ..) if !text.is_empty() => {
                Some(Ending::Completed { text, usage: None, model: None })
            }
            (Found::Waited(Waited::Completed { .. }), ..) => {
                Some(self.told().await.unwrap_or(Ending::Failed(Failure::NoAnswer)))
            }
            // The turn may have ended before the restart.
            (Found::Waited(Waited::Unknown), ..) => {
                Some(self.told_by_name().await.unwrap_or(Ending::Failed(Failure::Lost)))
            }
        }
    }

    async fn asked(&self, restarted: Restarted) -> Found {
        let patience = match restarted {
            Restarted::Yes => PATIENCE_AFTER_RESTART,
            Restarted::No => PATIENCE,
        };
        loop {
            let wait = Wait::new(&self.turn.id, patience);
            let waited = self.link.call("agent.wait", &wait, patience + SLACK).await;
            match (waited.as_deref().map(transcript::waited), restarted) {
                // Some gateways answer at once: do not ask those again without a delay.
                (Ok(Ok(Waited::Unknown)), Restarted::No) => sleep(AGAIN).await,
                (Ok(Ok(waited)), _) => return Found::Waited(waited),
                // The connection broke: resume from the beginning.
                (Err(Error::Disconnected { .. }), _) => return Found::Broken,
                (Err(_) | Ok(Err(_)), Restarted::Yes) => return Found::Lost,
                (Err(_) | Ok(Err(_)), Restarted::No) => sleep(AGAIN).await,
            }
        }
    }

    /// Reads the answer of a turn that is over and went well.
    async fn told(&self) -> Option<Ending> {
        let entries = self.entries().await?;
        transcript::answer_of(&entries, &self.turn.id).or_else(|| transcript::last_answer(entries.iter()))
    }

    /// Reads the answer where the turn may not be over: only from messages that name it.
    async fn told_by_name(&self) -> Option<Ending> {
        transcript::answer_of(&self.entries().await?, &self.turn.id)
    }

    async fn entries(&self) -> Option<Vec<transcript::Entry>> {
        let history = History::new(&self.turn.session);
        let payload: Box<RawValue> =
            self.link.call("chat.history", &history, self.link.shared.limits.call).await.ok()?;
        transcript::read(&payload).ok()
    }
}

/// Result of asking about a turn.
enum Found {
    Said(Over),
    Waited(Waited),
    Lost,
    Broken,
}
