//! Writes a run's events as a chat completion, whole or in chunks.

use platform_core::{
    event::{AgentEvent, RunErrorCode},
    record::Tokens,
};
use serde_json::{Value, json};

use super::view::{
    AssistantMessageView, ChoiceView, CompletionChunkView, CompletionUsageView, CompletionView,
};

/// Writer of one completion, the answer of a run.
#[derive(Debug)]
pub(super) struct Completion {
    id: String,
    /// Name of the agent, as the client wrote it.
    model: String,
    /// Time of the order, in seconds since 1970.
    created: i64,
    wants_usage: UsageChunk,
    /// Text that was written.
    text: String,
    /// Answer of the run, once it is known.
    answer: String,
    tokens: Tokens,
}

/// Answer to the client's wish for usage at the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageChunk {
    Sent,
    LeftOut,
}

/// Piece of a completion.
#[derive(Debug, PartialEq)]
pub(super) enum CompletionPiece {
    /// Text that follows what was written before.
    Text(String),
    /// The run succeeded.
    Done,
    /// The run failed.
    Failed { code: RunErrorCode, message: String },
}

impl Completion {
    pub(super) fn new(run_id: &str, model: &str, created: i64, wants_usage: UsageChunk) -> Self {
        let id = format!("chatcmpl-{run_id}");
        let tokens = Tokens::default();
        Self {
            id,
            model: model.to_owned(),
            created,
            wants_usage,
            text: String::new(),
            answer: String::new(),
            tokens,
        }
    }

    /// Returns the piece of the completion that an event adds, if it adds any.
    pub(super) fn piece(&mut self, event: AgentEvent) -> Option<CompletionPiece> {
        match event {
            AgentEvent::TextDelta { delta } => self.text(delta),
            AgentEvent::AssistantFinal { content, .. } => {
                let rest = self.rest(&content);
                self.answer = content;
                self.text(rest)
            }
            AgentEvent::UsageReport { tokens, .. } => {
                self.tokens = tokens;
                None
            }
            AgentEvent::Done => Some(CompletionPiece::Done),
            AgentEvent::Error { code, message } => Some(CompletionPiece::Failed { code, message }),
            _ => None,
        }
    }

    /// Returns the part of the answer that is not written yet. Text before the answer was not part of it: an empty line
    /// comes between them.
    fn rest(&self, answer: &str) -> String {
        match answer.strip_prefix(self.text.as_str()) {
            Some(rest) => rest.to_owned(),
            None if self.text.ends_with(answer) => String::new(),
            None => format!("\n\n{answer}"),
        }
    }

    fn text(&mut self, text: String) -> Option<CompletionPiece> {
        self.text.push_str(&text);
        (!text.is_empty()).then_some(CompletionPiece::Text(text))
    }

    /// Returns the first chunk of a stream.
    pub(super) fn first_chunk(&self) -> Value {
        self.chunk(&json!({ "role": "assistant", "content": "" }), None)
    }

    pub(super) fn text_chunk(&self, text: &str) -> Value {
        self.chunk(&json!({ "content": text }), None)
    }

    /// Returns the last chunks of a stream that ends well.
    pub(super) fn last_chunks(&self) -> Vec<Value> {
        let mut chunks = vec![self.chunk(&json!({}), Some("stop"))];
        if self.wants_usage == UsageChunk::Sent {
            chunks.push(self.chunk_of(json!([]), Some(Some(self.usage()))));
        }
        chunks
    }

    /// Returns the whole completion of a run that has succeeded.
    pub(super) fn whole(&self) -> Value {
        let message = AssistantMessageView { role: "assistant", content: &self.answer };
        json!(CompletionView {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: &self.model,
            choices: [ChoiceView { index: 0, message, finish_reason: "stop" }],
            usage: self.usage(),
        })
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let usage = (self.wants_usage == UsageChunk::Sent).then_some(None);
        self.chunk_of(json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]), usage)
    }

    fn chunk_of(&self, choices: Value, usage: Option<Option<CompletionUsageView>>) -> Value {
        json!(CompletionChunkView {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.model,
            choices,
            usage,
        })
    }

    fn usage(&self) -> CompletionUsageView {
        let Tokens { input, output, .. } = self.tokens;
        CompletionUsageView {
            prompt_tokens: input,
            completion_tokens: output,
            total_tokens: input.saturating_add(output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text that a client reads after these deltas and this answer.
    fn read(deltas: &[&str], answer: &str) -> String {
        let mut completion = Completion::new("r1", "sandbox:agent", 0, UsageChunk::LeftOut);
        let events = deltas.iter().map(|delta| AgentEvent::TextDelta { delta: (*delta).to_owned() });
        let answer = AgentEvent::AssistantFinal { content: answer.to_owned(), cut_bytes: 0 };
        let pieces = events.chain([answer]).filter_map(|event| completion.piece(event));
        let text = |piece| match piece {
            CompletionPiece::Text(text) => text,
            other => panic!("{other:?}"),
        };
        pieces.map(text).collect()
    }

    #[test]
    fn the_text_ends_with_the_answer() {
        assert_eq!(read(&[], "ab"), "ab");
        assert_eq!(read(&["a", "b"], "ab"), "ab");
        assert_eq!(read(&["a"], "ab"), "ab", "the rest is written");
        assert_eq!(read(&["Let me look. ", "ab"], "ab"), "Let me look. ab");
        assert_eq!(read(&["Let me look."], "ab"), "Let me look.\n\nab");
    }

    #[test]
    fn usage_is_sent_to_those_who_ask() {
        let mut asked = Completion::new("r1", "m", 0, UsageChunk::Sent);
        let tokens = Tokens { input: 3, output: 4, ..Tokens::default() };
        assert_eq!(asked.piece(AgentEvent::UsageReport { calls: 1, tokens }), None);
        let last = asked.last_chunks().pop().unwrap();
        assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(7)));
        assert!(asked.first_chunk()["usage"].is_null() && asked.first_chunk().get("usage").is_some());
        let silent = Completion::new("r1", "m", 0, UsageChunk::LeftOut);
        assert!(silent.last_chunks().iter().all(|chunk| chunk.get("usage").is_none()));
    }
}
