//! Streams the events of a run, as server-sent events or as lines of JSON.
//!
//! The id of a server-sent event is the number of the stored event. A client that reconnects sends the last one as
//! `Last-Event-ID`, as browsers do by themselves, and gets each later event once. Live text has no id.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use platform_core::event::AgentEvent;
use runner_engine::follow::FollowEvent;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::{
    event_source::{EventSource, last_event},
    event_view::EventView,
};
use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    operation::schemas::event_number,
    stream_response::{StreamItem, stream_response},
};

/// Query of the events of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Number of the last event that the client has.
    #[param(schema_with = event_number, required = false)]
    after: Option<u64>,
}

/// Streams the events of a run until it has ended.
pub(crate) async fn follow(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: EventsQuery = read_query(request.uri())?;
    let after = last_event(request.headers())?.or(query.after).unwrap_or_default();
    let Some(source) = EventSource::open(&context, caller, &run_id, after).await? else {
        // Browsers reconnect after the end of a stream, until they get this answer.
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    Ok(stream_response(request.headers(), source.events().map(StreamItem::of)))
}

impl StreamItem {
    /// Returns an event of a run as an item of a stream.
    pub(super) fn of(item: FollowEvent) -> Self {
        let view = match item {
            FollowEvent::Stored(stored) => EventView::stored(stored.seq, Some(stored.at), stored.shown()),
            FollowEvent::Pruned { count, upto } => {
                EventView::stored(upto, None, AgentEvent::Pruned { count })
            }
            FollowEvent::Live(event) => EventView::live(event),
        };
        Self { seq: view.seq(), json: json!(view) }
    }
}
