//! Makes an order the next turn of a thread: finds the turn that it continues, and gives the agent the turns before.
//!
//! An agent in a container gets the answered turns as messages, and a thread takes its turns one at a time. A gateway
//! keeps the conversation itself, so runs of its agents may also wait behind each other.

use platform_core::id::{AccountId, ExternalId, RunId};
use runner_model::conversation::{Message, Role};
use runner_store::{Error, NewTurn, Store, ThreadTurn, TurnPlace};

/// Most bytes of earlier turns that an agent is given. The oldest turns are left out first.
const MAX_HISTORY: usize = 1 << 20;
/// Most earlier turns that an agent is given.
const MAX_TURNS: u32 = 500;

/// Most characters of a key that a client chooses.
const MAX_KEY: usize = 128;

/// Error for a text that is not a key of a thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {MAX_KEY} letters, digits, `.`, `_`, `:` or `-`, found `{0}`")]
pub struct InvalidThreadKey(String);

/// Reads the key of a thread that a client chooses. It fits into a path, so that the thread can be asked for.
///
/// # Errors
/// If it is empty, too long, or has other characters.
pub fn read_thread_key(text: &str) -> Result<ExternalId, InvalidThreadKey> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let key = ExternalId::parse(text).ok().filter(|_| text.len() <= MAX_KEY && text.bytes().all(is_plain));
    key.ok_or_else(|| InvalidThreadKey(text.chars().take(MAX_KEY).collect()))
}

/// Thread that an order continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadOrder {
    /// Key of the thread, in its account.
    pub key: ExternalId,
    /// Id by which the client knows the question.
    pub question_id: Option<ExternalId>,
    /// Ids of messages: the first one that the thread knows, as a run or a question, is asked anew. The turn comes behind
    /// the last one if the thread knows none.
    pub anew: Vec<String>,
    /// Treatment of an order while the last turn is not answered.
    pub busy: WhenBusy,
}

/// Treatment of an order for a thread while its last turn is not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// The run waits, if its agent keeps the conversation itself. Otherwise it is refused.
    Wait,
    /// The run is refused.
    Refuse,
}

/// Place of a run in its thread, with the messages before it.
pub(crate) struct Continued {
    pub(crate) turn: NewTurn,
    pub(crate) history: Vec<Message>,
}

/// Keeper of the conversation between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// Agents get earlier turns with each run.
    Given,
    /// A gateway has them.
    AtGateway,
}

impl ThreadOrder {
    /// Returns an order for the turn behind the last one of thread `key`.
    #[must_use]
    pub fn behind(key: ExternalId) -> Self {
        Self { key, question_id: None, anew: Vec::new(), busy: WhenBusy::Wait }
    }

    /// Finds the place of the run `run_id` in the thread. A run that is stored already keeps its place.
    pub(crate) async fn continued(
        self,
        store: &Store,
        account: &AccountId,
        run_id: &RunId,
        kept: History,
    ) -> Result<Continued, Error> {
        let last = store.last_turn(account, &self.key).await?.map(|turn| turn.run.run_id);
        let parent = match store.find_turn(account, &self.key, run_id.as_str()).await? {
            Some(stored) if stored.run.run_id == *run_id => stored.parent,
            _ => self.parent(store, account, last.as_ref()).await?,
        };
        let waits = kept == History::AtGateway && self.busy == WhenBusy::Wait;
        let history = match &parent {
            Some(parent) if kept == History::Given => {
                history(&store.turns(account, &self.key, parent, MAX_TURNS).await?)
            }
            _ => Vec::new(),
        };
        let place = if waits { TurnPlace::Last } else { TurnPlace::Behind { parent, last } };
        let turn =
            NewTurn { thread: self.key, question: String::new(), question_id: self.question_id, place };
        Ok(Continued { turn, history })
    }

    /// Returns the turn that a new run continues.
    async fn parent(
        &self,
        store: &Store,
        account: &AccountId,
        last: Option<&RunId>,
    ) -> Result<Option<RunId>, Error> {
        for id in &self.anew {
            if let Some(turn) = store.find_turn(account, &self.key, id).await? {
                return Ok(turn.parent);
            }
        }
        Ok(last.cloned())
    }
}

/// Returns the last answered turns as messages. A turn without an answer is left out: its question was asked again, or
/// was given up.
fn history(turns: &[ThreadTurn]) -> Vec<Message> {
    let mut size = 0;
    let answered = turns.iter().rev().filter_map(|turn| Some((&turn.question, turn.answer.as_ref()?)));
    let mut messages: Vec<_> = answered
        .take_while(|(question, answer)| {
            size += question.len() + answer.len();
            size <= MAX_HISTORY
        })
        .flat_map(|(question, answer)| {
            [
                Message { role: Role::Assistant, content: answer.clone() },
                Message { role: Role::User, content: question.clone() },
            ]
        })
        .collect();
    messages.reverse();
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_fits_into_a_path() {
        for key in ["t1", "user:1_a.b-c", &"k".repeat(MAX_KEY)] {
            assert_eq!(read_thread_key(key).unwrap().as_str(), key);
        }
        for text in ["", "a/b", "a b", "a?b", "ä", &"k".repeat(MAX_KEY + 1)] {
            let error = read_thread_key(text).unwrap_err().to_string();
            assert!(error.contains("letters, digits"), "{error}");
        }
    }
}
