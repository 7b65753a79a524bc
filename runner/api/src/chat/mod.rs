//! Serves the chat in the AI SDK's protocol: each message orders a run, and the answer is the run's events.
//!
//! A client that disconnects leaves its run alone, because browsers disconnect at each reload. It resumes the stream, or
//! asks for the run's end.

mod body;
mod host_tool;
pub(crate) mod operations;
mod parts;
mod ui_stream;

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use platform_core::{event::AgentEvent, id::ExternalId, name};
use runner_engine::follow::FollowEvent;
use runner_store::{Created, Run, Store, ThreadTurn};
use serde_json::Value;

pub(crate) use self::parts::parts;
use self::{
    body::{ChatBody, ChatOrder, thread_key},
    operations::StopView,
    ui_stream::UiStream,
};
use crate::{
    body::{ObjectId, read_json},
    caller::Caller,
    chunk_stream::{ChunkSource, Chunks, chunk_stream},
    context::{ApiContext, OpenedStore},
    error::Error,
    json_response,
    runs::{self, MAX_ORDER, event_source::EventSource},
    stream_guard::StreamGuard,
    trace_parent::trace_parent,
};

const STATE_KEY: HeaderName = HeaderName::from_static(name::header::STATE_KEY);
const RUN_ID: HeaderName = HeaderName::from_static(name::header::COGNI_RUN_ID);
/// Headers that the AI SDK documents: the version of the protocol, and no buffering by nginx.
const STREAM_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

/// Answer of a run, as it is written.
struct ChatAnswer {
    source: EventSource,
    writer: UiStream,
}

/// Orders a run for a message, and streams its answer.
pub(crate) async fn create(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let trace = trace_parent(request.headers());
    let ChatOrder { thread, order } = {
        let _permit = context.orders.acquire(caller.account()).await?;
        read_json::<ChatBody>(request, MAX_ORDER).await?.order(&caller)?
    };
    let opened = context.opened().await?;
    // No run is ordered for a client that may not read its answer.
    let guard = StreamGuard::acquire(&context, &opened, caller.clone())?;
    let submitted = runs::submit(&context, &opened, &caller, order, trace).await?;
    let (Created::New(run) | Created::Existing(run)) = submitted;
    stream(&opened, guard, &run, &thread).await
}

/// Returns the order of a body.
#[cfg(test)]
pub(crate) fn order_of(body: &[u8], caller: &Caller) -> Result<runner_engine::run_order::RunOrder, Error> {
    Ok(crate::body::parse::<ChatBody>(body, MAX_ORDER)?.order(caller)?.order)
}

/// Streams the answer that is being given in a thread, from its beginning. Answers 204 if no run is active.
pub(crate) async fn resume(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(thread): ObjectId,
) -> Result<Response, Error> {
    let thread = thread_key(&thread)?;
    let opened = context.opened().await?;
    let Some(turn) = active_turn(&opened.store, &caller, &thread).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let guard = StreamGuard::acquire(&context, &opened, caller)?;
    stream(&opened, guard, &turn.run, &thread).await
}

/// Asks for the end of the run that is active in a thread. Does nothing if no run is active.
pub(crate) async fn stop(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(thread): ObjectId,
) -> Result<Response, Error> {
    let thread = thread_key(&thread)?;
    let opened = context.opened().await?;
    let Some(turn) = active_turn(&opened.store, &caller, &thread).await? else {
        return Ok(json_response(&StopView { run_id: None }));
    };
    opened.store.request_cancel(&turn.run.run_id).await?;
    Ok((StatusCode::ACCEPTED, json_response(&StopView { run_id: Some(turn.run.run_id.as_str()) }))
        .into_response())
}

/// Returns the last turn of the caller's thread, if its run has not ended.
async fn active_turn(
    store: &Store,
    caller: &Caller,
    thread: &ExternalId,
) -> Result<Option<ThreadTurn>, Error> {
    let turn = store.last_turn(caller.account(), thread).await?;
    Ok(turn.filter(|turn| turn.run.ended.is_none()))
}

/// Returns the stream of a run's answer, from its beginning.
async fn stream(
    opened: &OpenedStore,
    guard: StreamGuard,
    run: &Run,
    thread: &ExternalId,
) -> Result<Response, Error> {
    let writer = UiStream::of_run(&opened.store, run).await?;
    let mut chunks = writer.start(run.agent.as_str(), thread.as_str());
    if let Some(position) = opened.store.queue_position(run).await? {
        chunks.push(ui_stream::queued(position.ahead, position.waiting));
    }
    let source = EventSource::of_ordered(opened, guard, run).await?;
    let mut response = (STREAM_HEADERS, chunk_stream(chunks, ChatAnswer { source, writer })).into_response();
    let own = [(STATE_KEY, thread.as_str()), (RUN_ID, run.run_id.as_str())];
    for (header, value) in own {
        response
            .headers_mut()
            .insert(header, HeaderValue::from_str(value).map_err(|_never| Error::Internal)?);
    }
    Ok(response)
}

impl ChunkSource for ChatAnswer {
    async fn next(&mut self) -> Chunks {
        let chunks = match self.source.next().await {
            Some(event) => self.write(event),
            None => self.writer.interrupted(),
        };
        if self.writer.has_ended() { Chunks::Last(chunks) } else { Chunks::More(chunks) }
    }
}

impl ChatAnswer {
    fn write(&mut self, event: FollowEvent) -> Vec<Value> {
        let (seq, event) = match event {
            FollowEvent::Stored(stored) => (Some(stored.seq), stored.shown()),
            FollowEvent::Pruned { count, .. } => (None, AgentEvent::Pruned { count }),
            FollowEvent::Live(event) => (None, event),
        };
        self.writer.event(seq, &event)
    }
}
