//! Describes the routes of the part of OpenAI's API.

use axum::http::StatusCode;
use platform_core::name;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{
    body::CompletionBody,
    view::{CompletionChunkView, CompletionView},
};
use crate::{
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    runs::{IDEMPOTENCY_KEY, MAX_KEY},
    stream_response::EVENT_STREAM,
};

/// Agents, as models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelList)]
pub(super) struct ModelListView<'m> {
    /// Always `list`.
    pub(super) object: &'static str,
    pub(super) data: Vec<ModelView<'m>>,
}

/// Agent, as a model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub(super) struct ModelView<'m> {
    /// Id of the agent.
    #[schema(value_type = schemas::AgentId)]
    pub(super) id: &'m str,
    /// Always `model`.
    pub(super) object: &'static str,
    /// Always 0: an agent has no time.
    pub(super) created: u64,
    /// Always `sluicegate`.
    pub(super) owned_by: &'static str,
    /// Name for people.
    pub(super) name: &'m str,
}

pub(crate) fn list_models() -> Operation {
    let models = AnswerSpec::json::<ModelListView<'_>>(StatusCode::OK, "The agents.");
    Operation::new("listModels", "Lists the agents that can run here and that the caller may run.", models)
}

pub(crate) fn show_model() -> Operation {
    let model = AnswerSpec::json::<ModelView<'_>>(StatusCode::OK, "The agent.");
    Operation::new("getModel", "Answers with one agent, as a model.", model)
}

pub(crate) fn complete() -> Operation {
    let key = "Key under which the same request is one run, however often it is sent.";
    let completion = AnswerSpec::json::<CompletionView<'_>>(StatusCode::OK, "The completion, or its chunks.")
        .or_stream::<CompletionChunkView<'_>>(&[EVENT_STREAM])
        .with_header(name::header::COGNI_RUN_ID, "Id of the run.");
    Operation::new(
        "completeChat",
        "Orders a run for a conversation, and answers with its completion.",
        completion,
    )
    .described("With `\"stream\": true` the answer comes in chunks. A client that leaves ends the run.")
    .body::<CompletionBody>(&json!({
        "model": "sandbox:agent",
        "messages": [{ "role": "user", "content": "Why is the sky blue?" }],
    }))
    .header(IDEMPOTENCY_KEY, key, schemas::short_text(MAX_KEY))
    .refuses(Problem::OF_ORDERS)
    .refuses([Problem::RUN_FAILED, Problem::TOO_MANY_STREAMS, Problem::NOT_FOUND])
}
