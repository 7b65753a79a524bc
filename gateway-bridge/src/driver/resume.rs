//! A turn whose connection broke: it goes on without us, and its end must be found out.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::sleep;

use super::Driver;
use crate::{
    error::Error,
    history::Waited,
    outcome::{Ending, Event, Failure, Phase},
    verdict,
    wire::{
        request::{History, Wait},
        transcript,
    },
};

/// How long a gateway is asked to wait for the end of a turn it has, and of one it may not have.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_AFTER_RESTART: Duration = Duration::from_secs(1);

/// A gateway may take so much longer to say that nothing happened.
const SLACK: Duration = Duration::from_secs(5);

/// Between two questions, if the first was refused.
const AGAIN: Duration = Duration::from_millis(500);

impl Driver {
    /// Finds out what became of the turn; none if it is to be listened to, or sent, again.
    pub(super) async fn resume(&mut self) -> Option<Ending> {
        self.live.tell(Event::Status(Phase::Reconnecting));
        self.answers = None;
        if let Some(over) = self.live.is_over() {
            return Some(verdict::of_conversation(&over, &self.live.evidence()));
        }
        match self.link.up().await {
            Ok(up) => self.up = up,
            Err(_final) => return Some(Ending::Failed(Failure::Lost)),
        }
        let restarted = self.sent_to != Some(self.up.start);
        match (self.accepted, restarted) {
            // The same gateway knows whether it has taken the turn, and does not take it twice.
            (false, false) => {
                self.sent_to = None;
                None
            }
            // Whether the turn had begun is not known, and it is not for us to begin it again.
            (false, true) => Some(Ending::Failed(Failure::Lost)),
            (true, _) => self.found(restarted).await,
        }
    }

    /// Asks the gateway for the end, and listens to the conversation meanwhile.
    async fn found(&mut self, restarted: bool) -> Option<Ending> {
        let live = self.live.clone();
        tokio::select! {
            biased;
            over = live.conversation_over() => Some(verdict::of_conversation(&over, &live.evidence())),
            ending = self.asked(restarted) => ending,
        }
    }

    async fn asked(&self, restarted: bool) -> Option<Ending> {
        let patience = if restarted { PATIENCE_AFTER_RESTART } else { PATIENCE };
        loop {
            let wait = Wait::new(&self.turn.id, patience);
            let waited = self.link.call("agent.wait", &wait, patience + SLACK).await;
            match waited.as_deref().map(transcript::waited) {
                Ok(Ok(Waited::Completed { text: Some(text) })) if !text.is_empty() => {
                    return Some(Ending::Completed { text, usage: None, model: None });
                }
                Ok(Ok(Waited::Completed { .. })) => return Some(self.last_answer().await),
                Ok(Ok(Waited::Failed(failure))) => return Some(Ending::Failed(failure)),
                Ok(Ok(Waited::Unknown)) if restarted => return Some(self.answer_from_before().await),
                Ok(Ok(Waited::Unknown)) => {}
                // The connection broke again: from the beginning.
                Err(Error::Disconnected { .. }) => return None,
                Err(_) | Ok(Err(_)) if restarted => return Some(Ending::Failed(Failure::Lost)),
                Err(_) | Ok(Err(_)) => sleep(AGAIN).await,
            }
        }
    }

    /// The answer of a turn that is over and went well.
    async fn last_answer(&self) -> Ending {
        let text = self.read(|entries| {
            transcript::answer_of(entries, &self.turn.id).or_else(|| transcript::last_answer(entries.iter()))
        });
        text.await.map_or(Ending::Failed(Failure::NoAnswer), |text| Ending::Completed {
            text,
            usage: None,
            model: None,
        })
    }

    /// The answer of a turn that a gateway finished before it was restarted, where messages name their turn.
    async fn answer_from_before(&self) -> Ending {
        let text = self.read(|entries| transcript::answer_of(entries, &self.turn.id));
        text.await.map_or(Ending::Failed(Failure::Lost), |text| Ending::Completed {
            text,
            usage: None,
            model: None,
        })
    }

    async fn read(&self, find: impl FnOnce(&[transcript::Entry]) -> Option<String>) -> Option<String> {
        let history = History::new(&self.turn.session);
        let payload: Box<RawValue> =
            self.link.call("chat.history", &history, self.link.shared.limits.call).await.ok()?;
        transcript::read(&payload).ok().and_then(|entries| find(&entries))
    }
}
