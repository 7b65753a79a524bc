//! Names the fields in the answers of all model APIs and in the events of their streams.
//!
//! The names cover OpenAI's chat, completions, responses and embeddings and Anthropic's messages: they do not collide.
//! Only structure counts: an upstream repeats parts of a request (tools, instructions, formats, metadata) in fields
//! that are skipped, whatever their words. Shapes: platform.openai.com/docs/api-reference and
//! docs.anthropic.com/en/api/messages-streaming.

use super::{
    scan::{Bracket, ContainerMode},
    token_counts::Figure,
};

/// Field of an answer or an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerField {
    /// Nothing of interest.
    Skipped,
    /// The outermost object of an event, or of a whole answer.
    Event,
    Answer,
    /// The type of an event.
    Kind,
    Model,
    Error,
    /// The object in events of OpenAI's responses, with its status and why it is incomplete.
    Response,
    Status,
    Incomplete,
    Reason,
    /// The object in Anthropic's `message_start`, and the usage that it reports at the beginning.
    Message,
    FirstUsage,
    Usage,
    InputDetails,
    OutputDetails,
    CacheCreation,
    Figure(Figure),
    Cost,
    /// OpenAI's chat and completions.
    Choices,
    Choice,
    ChoiceFinish,
    ChoiceDelta,
    ChoiceMessage,
    /// Text, or an array of parts with text.
    Content,
    ContentPart,
    ToolCalls,
    ToolCall,
    Function,
    ToolName,
    /// The parts of a whole answer of OpenAI's responses, or Anthropic's messages.
    Parts,
    Part,
    /// A part that begins in a stream of these.
    Item,
    Block,
    PartKind,
    PartName,
    /// Anthropic: an object. OpenAI responses: a string.
    Delta,
    Finish,
    /// Text for watchers.
    Text,
    /// Any other text of the model: reasoning, a tool's arguments.
    OtherText,
}

/// Returns whether a member of an answer's parts is not text of the model.
pub(super) fn is_no_text(name: &[u8]) -> bool {
    matches!(
        name,
        b"type"
            | b"role"
            | b"id"
            | b"call_id"
            | b"status"
            | b"finish_reason"
            | b"object"
            | b"model"
            | b"phase"
            | b"token"
            | b"signature"
            | b"encrypted_content"
    )
}

impl AnswerField {
    /// Returns the field of the member called `name`.
    pub(super) fn member(self, name: &[u8]) -> Self {
        match self {
            Self::Event => event(name),
            Self::Answer => answer(name),
            Self::Response => response(name),
            Self::Message => match name {
                b"model" => Self::Model,
                b"usage" => Self::FirstUsage,
                _ => Self::Skipped,
            },
            Self::Incomplete if name == b"reason" => Self::Reason,
            Self::Usage | Self::FirstUsage => usage(name),
            Self::InputDetails => match name {
                b"cached_tokens" => Self::Figure(Figure::Cached),
                b"cache_creation_tokens" | b"cache_write_tokens" => Self::Figure(Figure::CacheWritten),
                b"cache_creation_token_details" => Self::CacheCreation,
                _ => Self::Skipped,
            },
            Self::OutputDetails if name == b"reasoning_tokens" => Self::Figure(Figure::Reasoning),
            Self::CacheCreation if name == b"ephemeral_1h_input_tokens" => Self::Figure(Figure::Hour),
            _ => self.model_text(name),
        }
    }

    /// Returns the same for fields that may contain text of the model.
    fn model_text(self, name: &[u8]) -> Self {
        match (self, name) {
            (Self::Choice, b"delta") => Self::ChoiceDelta,
            (Self::Choice, b"message") => Self::ChoiceMessage,
            (Self::Choice, b"finish_reason") => Self::ChoiceFinish,
            (Self::Choice | Self::ContentPart | Self::Part | Self::Block | Self::Delta, b"text") => {
                Self::Text
            }
            (Self::ChoiceDelta | Self::ChoiceMessage | Self::Part, b"content") => Self::Content,
            (Self::ChoiceDelta | Self::ChoiceMessage, b"tool_calls") => Self::ToolCalls,
            (Self::ChoiceDelta | Self::ChoiceMessage, b"function_call") => Self::Function,
            (Self::ToolCall, b"function" | b"custom") => Self::Function,
            (Self::Function, b"name") => Self::ToolName,
            (Self::Part | Self::Item | Self::Block, b"type") => Self::PartKind,
            (Self::Part | Self::Item | Self::Block, b"name") => Self::PartName,
            (Self::Delta, b"stop_reason") => Self::Finish,
            // Streams repeat some of this under other names, which must not count twice.
            (
                Self::ChoiceDelta | Self::Delta,
                b"text" | b"partial_json" | b"reasoning_content" | b"reasoning" | b"thinking" | b"refusal"
                | b"citation",
            )
            | (Self::Block, b"thinking" | b"input") => Self::OtherText,
            (
                Self::ChoiceMessage | Self::ContentPart | Self::ToolCall | Self::Function | Self::Part,
                other,
            ) if !is_no_text(other) => Self::OtherText,
            _ => Self::Skipped,
        }
    }

    /// Returns the field of the elements of an array.
    pub(super) const fn element(self) -> Self {
        match self {
            Self::Choices => Self::Choice,
            Self::Content => Self::ContentPart,
            Self::ToolCalls => Self::ToolCall,
            Self::Parts => Self::Part,
            _ => Self::Skipped,
        }
    }

    /// Returns how a container in this field is read.
    pub(super) const fn container_mode(self, bracket: Bracket) -> ContainerMode {
        match (self, bracket) {
            (Self::Choices | Self::Content | Self::ToolCalls | Self::Parts, Bracket::Array) => {
                ContainerMode::Entered
            }
            (
                Self::Event
                | Self::Answer
                | Self::Response
                | Self::Incomplete
                | Self::Message
                | Self::FirstUsage
                | Self::Usage
                | Self::InputDetails
                | Self::OutputDetails
                | Self::CacheCreation
                | Self::Choice
                | Self::ChoiceDelta
                | Self::ChoiceMessage
                | Self::ContentPart
                | Self::ToolCall
                | Self::Function
                | Self::Part
                | Self::Item
                | Self::Block
                | Self::Delta,
                Bracket::Object,
            ) => ContainerMode::Entered,
            (Self::OtherText | Self::Text | Self::Content | Self::ContentPart | Self::ToolCalls, _) => {
                ContainerMode::Measured
            }
            _ => ContainerMode::Skipped,
        }
    }
}

fn event(name: &[u8]) -> AnswerField {
    match name {
        b"type" => AnswerField::Kind,
        b"response" => AnswerField::Response,
        b"message" => AnswerField::Message,
        b"item" => AnswerField::Item,
        b"content_block" => AnswerField::Block,
        b"delta" => AnswerField::Delta,
        _ => shared(name),
    }
}

fn answer(name: &[u8]) -> AnswerField {
    match name {
        b"output" | b"content" => AnswerField::Parts,
        b"stop_reason" => AnswerField::Finish,
        _ => response(name),
    }
}

fn response(name: &[u8]) -> AnswerField {
    match name {
        b"status" => AnswerField::Status,
        b"incomplete_details" => AnswerField::Incomplete,
        _ => shared(name),
    }
}

fn shared(name: &[u8]) -> AnswerField {
    match name {
        b"model" => AnswerField::Model,
        b"usage" => AnswerField::Usage,
        b"error" => AnswerField::Error,
        b"choices" => AnswerField::Choices,
        _ => AnswerField::Skipped,
    }
}

fn usage(name: &[u8]) -> AnswerField {
    match name {
        b"prompt_tokens_details" | b"input_tokens_details" => AnswerField::InputDetails,
        b"completion_tokens_details" | b"output_tokens_details" => AnswerField::OutputDetails,
        b"cache_creation" => AnswerField::CacheCreation,
        b"cost" => AnswerField::Cost,
        _ => Figure::of(name).map_or(AnswerField::Skipped, AnswerField::Figure),
    }
}
