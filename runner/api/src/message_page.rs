//! Reads the messages of a thread in pages that are bounded in turns and in bytes.
//!
//! Messages have the AI SDK's form. The parts of an answer are made from the same events as its stream.

use platform_core::{
    id::{AccountId, ExternalId, RunId},
    limit::ByteSize,
};
use runner_model::lifecycle::State as RunState;
use runner_store::{Store, ThreadTurn};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{chat, error::Error, rfc3339::rfc3339};

/// Most turns of a page.
const MAX_TURNS: usize = 100;
/// Most bytes of a page's messages, as JSON. A page has one turn in any case.
const MAX_BYTES: ByteSize = ByteSize::mib(1);
/// Turns that are read at a time.
const READ_TURNS: u32 = 8;

/// Message of a thread, in the AI SDK's form.
#[derive(Serialize, ToSchema)]
#[schema(as = UiMessage)]
pub(crate) struct UiMessageView {
    id: String,
    /// `user` or `assistant`.
    role: &'static str,
    /// Parts of the message: texts, and calls of tools.
    #[schema(value_type = Vec<Object>)]
    parts: Vec<Value>,
    /// Time of the message; for an answer also its run, its agent and its state.
    #[schema(value_type = Object)]
    metadata: Value,
}

/// Page of the messages of a thread.
#[derive(Debug, Default)]
pub(crate) struct MessagePage {
    /// Messages, the oldest first.
    pub(crate) messages: Vec<Value>,
    /// Last turn before these; `None` if no turn precedes them.
    pub(crate) before: Option<RunId>,
}

impl MessagePage {
    /// Reads the page that ends with the turn `upto`.
    pub(crate) async fn read(
        store: &Store,
        account: &AccountId,
        thread: &ExternalId,
        upto: RunId,
    ) -> Result<Self, Error> {
        let mut page = PageInReverse::default();
        let mut next = Some(upto);
        while let Some(upto) = next.take() {
            let turns = store.turns(account, thread, &upto, READ_TURNS).await?;
            next = turns.first().and_then(|turn| turn.parent.clone());
            for turn in turns.iter().rev() {
                let messages = [question(turn), answer(store, turn).await?];
                if page.add(messages) == Added::Full {
                    return Ok(page.before(Some(turn.run.run_id.clone())));
                }
            }
        }
        Ok(page.before(None))
    }
}

/// Messages of a page, the newest first.
#[derive(Debug, Default)]
struct PageInReverse {
    messages: Vec<Value>,
    bytes: usize,
}

/// Result of the attempt to add a turn to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    Turn,
    /// The turn is for another page.
    Full,
}

impl PageInReverse {
    /// Adds a turn: a question and its answer.
    fn add(&mut self, [question, answer]: [Value; 2]) -> Added {
        let turns = self.messages.len() / 2;
        let bytes = self.bytes + question.to_string().len() + answer.to_string().len();
        if turns >= MAX_TURNS || (turns > 0 && bytes > MAX_BYTES.as_usize()) {
            return Added::Full;
        }
        self.bytes = bytes;
        self.messages.extend([answer, question]);
        Added::Turn
    }

    fn before(mut self, before: Option<RunId>) -> MessagePage {
        self.messages.reverse();
        MessagePage { messages: self.messages, before }
    }
}

/// Returns the message of the user. Without an id of the client's, it has one that is made from the run's.
fn question(turn: &ThreadTurn) -> Value {
    let own = || format!("{}-question", turn.run.run_id);
    json!(UiMessageView {
        id: turn.question_id.as_ref().map_or_else(own, ToString::to_string),
        role: "user",
        parts: vec![json!({ "type": "text", "text": turn.question })],
        metadata: json!({ "createdAt": rfc3339(turn.run.created) }),
    })
}

/// Returns the message of the agent.
async fn answer(store: &Store, turn: &ThreadTurn) -> Result<Value, Error> {
    let run = &turn.run;
    let mut metadata = json!({
        "runId": run.run_id, "agentId": run.agent, "state": run.state.name(), "createdAt": rfc3339(run.created),
    });
    if let Some(failure) = &run.error {
        metadata["error"] = json!({ "code": failure.code, "message": failure.message });
    }
    let parts = if run.state == RunState::Queued { Vec::new() } else { chat::parts(store, run).await? };
    Ok(json!(UiMessageView { id: run.run_id.to_string(), role: "assistant", parts, metadata }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(bytes: usize) -> [Value; 2] {
        [json!("q"), json!("a".repeat(bytes))]
    }

    #[test]
    fn a_page_is_bounded_in_bytes() {
        let mut page = PageInReverse::default();
        assert_eq!(page.add(turn(2 << 20)), Added::Turn, "one turn fits in any case");
        assert_eq!(page.add(turn(1)), Added::Full);
        let mut page = PageInReverse::default();
        for _ in 0..3 {
            assert_eq!(page.add(turn(300 << 10)), Added::Turn);
        }
        assert_eq!(page.add(turn(300 << 10)), Added::Full);
        assert_eq!(page.add(turn(100)), Added::Turn, "control: a small one fits");
        let page = page.before(None);
        assert_eq!((page.messages.len(), &page.messages[0]), (8, &json!("q")), "the oldest comes first");
    }

    #[test]
    fn a_page_is_bounded_in_turns() {
        let mut page = PageInReverse::default();
        for _ in 0..MAX_TURNS {
            assert_eq!(page.add(turn(1)), Added::Turn);
        }
        assert_eq!(page.add(turn(1)), Added::Full);
    }
}
