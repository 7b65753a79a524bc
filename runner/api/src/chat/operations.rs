//! Describes the routes of the chat.

use axum::http::StatusCode;
use platform_core::name;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::ChatBody;
use crate::{
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    stream_response::EVENT_STREAM,
};

/// Answer to a stop.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatStop)]
#[serde(rename_all = "camelCase")]
pub(super) struct StopView<'r> {
    /// Run that is asked to end; null if none was active.
    #[schema(value_type = Option<schemas::RunId>, required = true)]
    pub(super) run_id: Option<&'r str>,
}

/// Chunk of the AI SDK's UI message stream. Further fields depend on the type.
#[derive(ToSchema)]
#[schema(as = UiMessageChunk)]
#[expect(dead_code, reason = "schema of what `UiStream` writes")]
struct UiChunkSchema {
    /// Type of the chunk, such as `text-delta`, `data-status` or `finish`.
    r#type: String,
    /// Id of the part to which the chunk belongs.
    #[schema(nullable = false)]
    id: Option<String>,
    /// Piece of a text.
    #[schema(nullable = false)]
    delta: Option<String>,
    /// Data of a chunk, if its type begins with `data-`.
    #[schema(value_type = Option<Object>, nullable = false)]
    data: Option<Value>,
}

fn stream(description: &'static str) -> AnswerSpec {
    AnswerSpec::stream::<UiChunkSchema>(&[EVENT_STREAM], description)
        .with_header(name::header::STATE_KEY, "Key of the thread.")
        .with_header(name::header::COGNI_RUN_ID, "Id of the run.")
}

pub(crate) fn create() -> Operation {
    Operation::new("sendMessage", "Orders a run for a message, and streams its answer.", stream("The answer."))
        .described(
            "The stream follows the AI SDK's protocol, and its last event has the text `[DONE]`. A client that leaves \
             does not end the run.",
        )
        .body::<ChatBody>(&example())
        .refuses(Problem::OF_ORDERS)
        .refuses([Problem::THREAD_BUSY, Problem::TOO_MANY_STREAMS, Problem::NOT_FOUND])
}

fn example() -> Value {
    json!({
        "id": "chat-1",
        "graphName": "sandbox:agent",
        "messages": [{ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "Why is the sky blue?" }] }],
    })
}

pub(crate) fn resume() -> Operation {
    let none = AnswerSpec::empty(StatusCode::NO_CONTENT, "No answer is being given in the thread.");
    let answer = stream("The answer that is being given, from its beginning.");
    Operation::new("resumeMessage", "Streams the answer that is being given in a thread.", answer)
        .or(none)
        .refuses([Problem::INVALID_REQUEST, Problem::TOO_MANY_STREAMS])
}

pub(crate) fn stop() -> Operation {
    let none = AnswerSpec::json::<StopView<'_>>(StatusCode::OK, "No run is active in the thread.");
    let asked = AnswerSpec::json::<StopView<'_>>(StatusCode::ACCEPTED, "The run, whose end is asked for.");
    Operation::new("stopMessage", "Asks for the end of the run that is active in a thread.", asked)
        .or(none)
        .refuses([Problem::INVALID_REQUEST])
}
