//! Streams the output of an agent: its standard output and standard error, out of the events of its run.

use std::future::ready;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream::once};
use platform_core::event::{AgentEvent, OutputStream};
use runner_engine::follow::FollowEvent;
use serde::Deserialize;
use utoipa::IntoParams;

use super::event_source::{EventSource, last_event};
use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    operation::{schemas, schemas::event_number},
    stream_response::{StreamItem, stream_response},
};

/// Query of the output of an agent.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsQuery {
    /// Number of the last event that the client has.
    #[param(schema_with = event_number, required = false)]
    after: Option<u64>,
    /// Only this output; both if absent.
    #[param(value_type = Option<schemas::ProcessOutput>, nullable = false)]
    stream: Option<OutputStream>,
}

/// Streams the output of a run's agent until the run has ended.
pub(crate) async fn logs(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let LogsQuery { after, stream } = read_query(request.uri())?;
    let after = last_event(request.headers())?.or(after).unwrap_or_default();
    let no_more = || StatusCode::NO_CONTENT.into_response();
    let Some(source) = EventSource::open(&context, caller, &run_id, after).await? else {
        return Ok(no_more());
    };
    let has_ended = source.has_ended();
    let pieces = source.events().filter_map(move |event| ready(piece(event, stream)));
    let mut pieces = Box::pin(pieces);
    if !has_ended {
        return Ok(stream_response(request.headers(), pieces));
    }
    // The last events of a run are not output, so their numbers do not show that a client has all of it.
    Ok(match pieces.next().await {
        Some(first) => stream_response(request.headers(), once(ready(first)).chain(pieces)),
        None => no_more(),
    })
}

/// Returns the piece of output in `event`, if it has one of the stream `only`, or of any stream if `only` is `None`. An
/// event that cannot be read may have been one.
fn piece(event: FollowEvent, only: Option<OutputStream>) -> Option<StreamItem> {
    let is_wanted = match &event {
        FollowEvent::Pruned { .. } => true,
        FollowEvent::Live(_) => false,
        FollowEvent::Stored(stored) => match stored.event() {
            Err(_corrupt) => true,
            Ok(AgentEvent::Log { stream, .. } | AgentEvent::LogCut { stream, .. }) => {
                only.is_none_or(|only| only == stream)
            }
            Ok(_) => false,
        },
    };
    is_wanted.then(|| StreamItem::of(event))
}
