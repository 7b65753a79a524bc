//! Serves the part of OpenAI's API that chat programs use, in which a model is an agent.
//!
//! These clients can stop an answer in one way: they disconnect. So a disconnect cancels the run.

mod answer;
mod body;
mod errors;
pub(crate) mod operations;
mod view;

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderName, HeaderValue},
    response::{IntoResponse, Response},
};
use platform_core::{event::RunErrorCode, name};
use runner_engine::{agents::AgentStatus, follow::FollowEvent};
use runner_store::Created;
use tokio::time::timeout;

pub(crate) use self::errors::{OpenAiError, in_openai_form};
use self::{
    answer::{Completion, CompletionPiece},
    body::{CompletionBody, Form},
    operations::{ModelListView, ModelView},
};
use crate::{
    answer_timeout::ANSWER_TIMEOUT,
    body::{ObjectId, parse, read_json_bytes},
    caller::Caller,
    chunk_stream::{ChunkSource, Chunks, chunk_stream},
    context::ApiContext,
    error::Error,
    json_response,
    runs::{self, IDEMPOTENCY_KEY, MAX_ORDER, event_source::EventSource, hash},
    stream_guard::StreamGuard,
    trace_parent::trace_parent,
    waiters::{Repeat, Waiter},
};

const SHOULD_RETRY: HeaderName = HeaderName::from_static(name::header::SHOULD_RETRY);
const RUN_ID: HeaderName = HeaderName::from_static(name::header::COGNI_RUN_ID);

/// Completion that a client waits for. Cancels the run if the client leaves before its end.
struct PendingCompletion {
    source: EventSource,
    completion: Completion,
    form: Form,
    run: Waiter,
}

/// Lists the agents that can run here and that the caller may run, as models.
pub(crate) async fn list_models(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let statuses = context.catalog.statuses().await;
    json_response(&ModelListView { object: "list", data: models(&statuses, &caller).collect() })
}

/// Answers with one agent, as a model.
pub(crate) async fn show_model(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(model): ObjectId,
) -> Result<Response, Error> {
    let statuses = context.catalog.statuses().await;
    let found = models(&statuses, &caller).find(|listed| listed.id == model);
    found.map(|model| json_response(&model)).ok_or(Error::Route)
}

fn models<'m>(statuses: &'m [AgentStatus], caller: &Caller) -> impl Iterator<Item = ModelView<'m>> {
    let listed = statuses.iter().filter(|agent| agent.can_run() && caller.may_run(&agent.id).is_ok());
    listed.map(|AgentStatus { id, agent, .. }| ModelView {
        id: id.as_str(),
        object: "model",
        created: 0,
        owned_by: "sluicegate",
        name: &agent.name,
    })
}

/// Orders a run for a conversation, and answers with its completion.
pub(crate) async fn complete(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let ordered = timeout(ANSWER_TIMEOUT, PendingCompletion::order(&context, &caller, request)).await;
    let answer = ordered.map_err(|_elapsed| Error::TimedOut)??;
    let run_id = HeaderValue::from_str(answer.run.run_id.as_str()).map_err(|_never| Error::Internal)?;
    let mut response = match answer.form {
        Form::Streamed => answer.stream(),
        Form::Whole => answer.whole().await?,
    };
    response.headers_mut().insert(RUN_ID, run_id);
    Ok(response)
}

/// Returns the order of a body.
#[cfg(test)]
pub(crate) fn order_of(
    body: &[u8],
    headers: &axum::http::HeaderMap,
    caller: &Caller,
) -> Result<runner_engine::run_order::RunOrder, Error> {
    parse::<CompletionBody>(body, MAX_ORDER)?.order(hash(body, MAX_ORDER)?, headers, caller)
}

impl PendingCompletion {
    /// Orders the run of a request.
    async fn order(context: &ApiContext, caller: &Caller, request: Request) -> Result<Self, Error> {
        let trace = trace_parent(request.headers());
        let headers = request.headers().clone();
        let permit = context.orders.acquire(caller.account()).await?;
        let bytes = read_json_bytes(request, MAX_ORDER).await?;
        let body: CompletionBody = parse(&bytes, MAX_ORDER)?;
        let form = body.form();
        let usage = body.usage();
        let model = body.model().to_owned();
        let order = body.order(hash(&bytes, MAX_ORDER)?, &headers, caller)?;
        drop((bytes, permit));
        let opened = context.opened().await?;
        // No run is ordered for a client that may not read its answer.
        let guard = StreamGuard::acquire(context, &opened, caller.clone())?;
        let repeat = if headers.contains_key(IDEMPOTENCY_KEY) { Repeat::SameRun } else { Repeat::OtherRun };
        // The client may leave while the run is stored.
        let waiter = context.waiters.wait(&opened.store, &order.run_id, repeat);
        let (Created::New(run) | Created::Existing(run)) =
            runs::submit(context, &opened, caller, order, trace).await?;
        let source = EventSource::of_ordered(&opened, guard, &run).await?;
        let completion = Completion::new(run.run_id.as_str(), &model, run.created.0 / 1000, usage);
        Ok(Self { source, completion, form, run: waiter })
    }

    /// Waits for the next piece of the completion. An end without an outcome is a failure.
    async fn piece(&mut self) -> CompletionPiece {
        loop {
            let event = match self.source.next().await {
                Some(FollowEvent::Stored(stored)) => stored.event().ok(),
                Some(FollowEvent::Live(event)) => Some(event),
                Some(FollowEvent::Pruned { .. }) => None,
                None => {
                    let message = "the answer broke off before its end".to_owned();
                    return CompletionPiece::Failed { code: RunErrorCode::Internal, message };
                }
            };
            let piece = event.and_then(|event| self.completion.piece(event));
            if let Some(piece) = piece {
                self.run.has_ended = !matches!(piece, CompletionPiece::Text(_));
                return piece;
            }
        }
    }

    /// Waits for the end of the run, and returns the whole completion.
    async fn whole(mut self) -> Result<Response, Error> {
        loop {
            match self.piece().await {
                CompletionPiece::Text(_) => {}
                CompletionPiece::Done => return Ok(json_response(&self.completion.whole())),
                CompletionPiece::Failed { code, message } => return Err(Error::RunFailed { code, message }),
            }
        }
    }

    /// Returns the completion in chunks, as they come.
    fn stream(self) -> Response {
        chunk_stream(vec![self.completion.first_chunk()], self).into_response()
    }
}

impl ChunkSource for PendingCompletion {
    async fn next(&mut self) -> Chunks {
        match self.piece().await {
            CompletionPiece::Text(text) => Chunks::More(vec![self.completion.text_chunk(&text)]),
            CompletionPiece::Done => Chunks::Last(self.completion.last_chunks()),
            CompletionPiece::Failed { code, message } => Chunks::Last(vec![errors::of_run(code, &message)]),
        }
    }
}
