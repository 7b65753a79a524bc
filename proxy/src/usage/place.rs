//! Names the places in the answers of all model APIs and in the events of their streams.
//!
//! One set of names covers OpenAI's chat, completions, responses and embeddings and Anthropic's messages: they do not
//! collide. Only structure counts: what an upstream repeats of a request (tools, instructions, formats, metadata) stands at
//! places that are skipped, whatever words are in it. Shapes: platform.openai.com/docs/api-reference and
//! docs.anthropic.com/en/api/messages-streaming.

use super::{
    counts::Figure,
    scan::{Bracket, Inside},
};

/// A place in an answer or an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing of interest.
    Skipped,
    /// The outermost object of an event, or of a whole answer.
    Event,
    Answer,
    /// The type of an event.
    Kind,
    Model,
    Error,
    /// The object in events of OpenAI's responses: how it stands, and why it is incomplete.
    Response,
    Status,
    Incomplete,
    Reason,
    /// The object in Anthropic's `message_start`, and the usage that it tells at the beginning.
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
    /// Text for those who watch.
    Text,
    /// Anything else that the model has said: reasoning, a tool's arguments.
    Said,
}

/// Returns whether a member of an answer's parts is no text of the model.
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

impl Place {
    /// Returns the place of the member called `name`.
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
            _ => self.spoken(name),
        }
    }

    /// The same where the model speaks.
    fn spoken(self, name: &[u8]) -> Self {
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
            | (Self::Block, b"thinking" | b"input") => Self::Said,
            (
                Self::ChoiceMessage | Self::ContentPart | Self::ToolCall | Self::Function | Self::Part,
                other,
            ) if !is_no_text(other) => Self::Said,
            _ => Self::Skipped,
        }
    }

    /// Returns the place of the elements of an array.
    pub(super) const fn element(self) -> Self {
        match self {
            Self::Choices => Self::Choice,
            Self::Content => Self::ContentPart,
            Self::ToolCalls => Self::ToolCall,
            Self::Parts => Self::Part,
            _ => Self::Skipped,
        }
    }

    /// Returns how a container at this place is read.
    pub(super) const fn inside(self, bracket: Bracket) -> Inside {
        match (self, bracket) {
            (Self::Choices | Self::Content | Self::ToolCalls | Self::Parts, Bracket::Array) => {
                Inside::Entered
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
            ) => Inside::Entered,
            (Self::Said | Self::Text | Self::Content | Self::ContentPart | Self::ToolCalls, _) => {
                Inside::Measured
            }
            _ => Inside::Skipped,
        }
    }
}

fn event(name: &[u8]) -> Place {
    match name {
        b"type" => Place::Kind,
        b"response" => Place::Response,
        b"message" => Place::Message,
        b"item" => Place::Item,
        b"content_block" => Place::Block,
        b"delta" => Place::Delta,
        _ => of_both(name),
    }
}

fn answer(name: &[u8]) -> Place {
    match name {
        b"output" | b"content" => Place::Parts,
        b"stop_reason" => Place::Finish,
        _ => response(name),
    }
}

fn response(name: &[u8]) -> Place {
    match name {
        b"status" => Place::Status,
        b"incomplete_details" => Place::Incomplete,
        _ => of_both(name),
    }
}

fn of_both(name: &[u8]) -> Place {
    match name {
        b"model" => Place::Model,
        b"usage" => Place::Usage,
        b"error" => Place::Error,
        b"choices" => Place::Choices,
        _ => Place::Skipped,
    }
}

fn usage(name: &[u8]) -> Place {
    match name {
        b"prompt_tokens_details" | b"input_tokens_details" => Place::InputDetails,
        b"completion_tokens_details" | b"output_tokens_details" => Place::OutputDetails,
        b"cache_creation" => Place::CacheCreation,
        b"cost" => Place::Cost,
        _ => Figure::of(name).map_or(Place::Skipped, Place::Figure),
    }
}
