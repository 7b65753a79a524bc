//! Defines completions and their chunks, as clients see them.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Completion of a chat.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletion)]
pub(super) struct CompletionView<'c> {
    pub(super) id: &'c str,
    /// Always `chat.completion`.
    pub(super) object: &'static str,
    /// Time of the order, in seconds since 1970.
    pub(super) created: i64,
    pub(super) model: &'c str,
    #[schema(value_type = Vec<ChoiceView<'c>>)]
    pub(super) choices: [ChoiceView<'c>; 1],
    pub(super) usage: CompletionUsageView,
}

/// The one choice of a completion.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletionChoice)]
pub(super) struct ChoiceView<'c> {
    /// Always 0.
    pub(super) index: u32,
    pub(super) message: AssistantMessageView<'c>,
    /// Always `stop`.
    pub(super) finish_reason: &'static str,
}

/// Answer of the agent.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletionAnswer)]
pub(super) struct AssistantMessageView<'c> {
    /// Always `assistant`.
    pub(super) role: &'static str,
    pub(super) content: &'c str,
}

/// Tokens of a completion.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletionUsage)]
pub(super) struct CompletionUsageView {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) total_tokens: u64,
}

/// Chunk of a completion. The last event of a stream has the text `[DONE]` in place of one.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletionChunk)]
pub(super) struct CompletionChunkView<'c> {
    pub(super) id: &'c str,
    /// Always `chat.completion.chunk`.
    pub(super) object: &'static str,
    /// Time of the order, in seconds since 1970.
    pub(super) created: i64,
    pub(super) model: &'c str,
    /// The one choice, with the text that follows in its `delta`.
    #[schema(value_type = Vec<Object>)]
    pub(super) choices: Value,
    /// Tokens, in the last chunk, if the request asks for them.
    // Then the chunks before have null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CompletionUsageView>)]
    pub(super) usage: Option<Option<CompletionUsageView>>,
}
