//! Lists the members by which an answer, or an event of a stream, is recognised, and those that report an error.
//!
//! Shapes: platform.openai.com/docs/api-reference and docs.anthropic.com/en/api/messages-streaming.

use platform_core::route::Route;

/// Documents that are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// An event of this route's stream; nothing else.
    Event(Route),
    /// Any JSON object that reports no error.
    Document,
}

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Scalar,
    Text,
    Object,
    Array,
}

/// A member's name, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Other,
    Error,
    Detail,
    Choices,
    Data,
    Delta,
    Index,
    Message,
    Object,
    Output,
    Response,
    Status,
    Type,
    Usage,
    Text,
    Content,
    Arguments,
    Input,
    PartialJson,
    Reasoning,
    Refusal,
}

impl Name {
    pub(super) fn of(word: &[u8]) -> Self {
        match word {
            b"choices" => Self::Choices,
            b"data" => Self::Data,
            b"delta" => Self::Delta,
            b"index" | b"output_index" | b"content_index" | b"summary_index" => Self::Index,
            b"message" => Self::Message,
            b"object" => Self::Object,
            b"output" => Self::Output,
            b"response" => Self::Response,
            b"status" => Self::Status,
            b"type" => Self::Type,
            b"usage" => Self::Usage,
            b"text" => Self::Text,
            b"content" => Self::Content,
            b"arguments" => Self::Arguments,
            b"input" => Self::Input,
            b"partial_json" => Self::PartialJson,
            b"reasoning" | b"reasoning_content" | b"thinking" => Self::Reasoning,
            b"refusal" => Self::Refusal,
            _ => Self::of_error(word),
        }
    }

    fn of_error(word: &[u8]) -> Self {
        const ERRORS: [&[u8]; 5] = [b"error", b"errors", b"error_message", b"exception", b"traceback"];
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        // The length spares most names the comparison.
        match word.len() {
            5..=13 if ERRORS.into_iter().any(is) => Self::Error,
            6 | 7 if is(b"detail") || is(b"details") => Self::Detail,
            7 if is(b"message") => Self::Message,
            _ => Self::Other,
        }
    }

    /// Returns whether clients join texts of this name from one event to the next.
    pub(super) const fn is_joined(self) -> bool {
        use Name::{Arguments, Content, Delta, Input, PartialJson, Reasoning, Refusal, Text};
        matches!(self, Delta | Text | Content | Arguments | Input | PartialJson | Reasoning | Refusal)
    }

    /// Returns whether the text of this member may decide what a document is.
    pub(super) const fn decides(self) -> bool {
        matches!(self, Self::Type | Self::Object | Self::Status)
    }
}

/// A container in which names matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Root,
    Choices,
    Choice,
    /// OpenAI responses: the object in `response.completed`.
    Response,
    /// Anthropic: the object in `message_start`.
    Message,
    /// OpenAI responses: the answer's parts.
    Output,
    Other,
}

impl Container {
    /// Returns the container that opens in `outer`, which is `None` for the document itself.
    pub(super) const fn within(outer: Option<Self>, name: Name, kind: Kind) -> Self {
        match (outer, name, kind) {
            (None, _, Kind::Object) => Self::Root,
            (Some(Self::Root), Name::Choices, Kind::Array) => Self::Choices,
            (Some(Self::Choices), _, Kind::Object) => Self::Choice,
            (Some(Self::Root), Name::Response, Kind::Object) => Self::Response,
            (Some(Self::Root), Name::Message, Kind::Object) => Self::Message,
            (Some(Self::Root | Self::Response), Name::Output, Kind::Array) => Self::Output,
            _ => Self::Other,
        }
    }

    /// Returns whether no answer has a value like this there.
    pub(super) fn forbids(container: Option<Self>, name: Name, kind: Kind) -> bool {
        let Some(container) = container else { return kind != Kind::Object };
        match (container, name) {
            _ if kind == Kind::Null => false,
            (Self::Choices | Self::Output, _) => kind != Kind::Object,
            (Self::Root | Self::Choice | Self::Response | Self::Message, Name::Error) => true,
            (Self::Root | Self::Choice, Name::Detail) => true,
            (Self::Root, Name::Message | Name::Response) | (Self::Choice, Name::Message | Name::Delta) => {
                kind != Kind::Object
            }
            (Self::Choice, Name::Text) => kind != Kind::Text,
            (Self::Root, Name::Choices) => kind != Kind::Array,
            (Self::Root | Self::Response, Name::Output) => kind != Kind::Array,
            _ => false,
        }
    }

    /// Returns whether the text `word` of a member makes the document an answer, or makes it none; nothing if neither.
    pub(super) fn judge(self, expected: Expected, name: Name, word: &[u8]) -> Option<bool> {
        match (self, name, expected) {
            (Self::Root | Self::Response, Name::Status, _) => (word == b"failed").then_some(false),
            (Self::Root, Name::Object | Name::Type, _) if word.eq_ignore_ascii_case(b"error") => Some(false),
            (Self::Root, Name::Type, Expected::Event(route)) => of_type(route, word),
            (Self::Root, Name::Object, Expected::Event(Route::ChatCompletions | Route::Completions)) => {
                let is_chunk = word.starts_with(b"chat.completion") || word == b"text_completion";
                is_chunk.then_some(true)
            }
            _ => None,
        }
    }
}

/// Returns whether a stream of `route` has events of this type; nothing if its events have none.
fn of_type(route: Route, word: &[u8]) -> Option<bool> {
    const FAILURES: [&[u8]; 2] = [b"response.failed", b"response.error"];
    let is_alive = matches!(word, b"ping" | b"keepalive");
    match route {
        Route::Responses => Some(is_alive || word.starts_with(b"response.") && !FAILURES.contains(&word)),
        Route::Messages => {
            Some(is_alive || word.starts_with(b"message_") || word.starts_with(b"content_block_"))
        }
        _ => is_alive.then_some(true),
    }
}

/// Returns whether a member of the outermost level shows an event of `route`'s stream.
pub(super) fn recognises(route: Route, name: Name, kind: Kind) -> bool {
    match route {
        Route::ChatCompletions | Route::Completions => {
            matches!((name, kind), (Name::Choices, Kind::Array) | (Name::Usage, Kind::Object))
        }
        Route::Responses | Route::Messages => false,
        Route::InputTokens
        | Route::Compact
        | Route::CountTokens
        | Route::Embeddings
        | Route::Models
        | Route::ToolExec
        | Route::Mcp
        | Route::Unknown => (name, kind) == (Name::Data, Kind::Array),
    }
}
