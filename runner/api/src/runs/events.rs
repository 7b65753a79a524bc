//! Streams the events of a run, as server-sent events or as lines of JSON.
//!
//! The id of a server-sent event is the number of the stored event. A client that reconnects sends the last one as
//! `Last-Event-ID`, as browsers do by themselves, and gets each later event once. Live text has no id.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{
        IntoResponse, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt, stream::unfold};
use platform_core::event::AgentEvent;
use platform_runtime::report;
use runner_engine::follow::{FollowEvent, Subscription};
use runner_store::Error as StoreError;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::{event_view::EventView, find};
use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
    operation::schemas::event_number,
    stream_permits::StreamPermit,
};

/// Header with the id of the last event that a client has received (WHATWG HTML, server-sent events).
pub(super) const LAST_EVENT_ID: &str = "last-event-id";
/// Interval of comments that show that a silent stream is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Interval between two checks of the token of an open stream.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
pub(super) const EVENT_STREAM: &str = "text/event-stream";
pub(super) const JSON_LINES: &str = "application/x-ndjson";

/// Query of the events of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Number of the last event that the client has.
    #[param(schema_with = event_number, required = false)]
    after: Option<u64>,
}

/// Source of a stream's events.
struct EventSource {
    subscription: Subscription,
    caller: Caller,
    opened: Arc<OpenedStore>,
    stop: CancellationToken,
    /// Times at which the caller's token is checked again.
    check: Interval,
    _permit: StreamPermit,
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
    let opened = context.opened().await?;
    let run = find(&opened.store, &caller, &run_id).await?;
    let last = opened.store.last_event(&run.run_id).await?;
    if after > last {
        return Err(Error::Invalid(format!("the run has {last} events, and none after {after}")));
    }
    if run.state.is_final() && after == last {
        // Browsers reconnect after the end of a stream, until they get this answer.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let permit = context.stream_permits.acquire(caller.name()).ok_or(Error::TooManyStreams)?;
    let subscription = opened.feeds.subscribe(&run.run_id, after);
    let stop = context.stop.clone();
    let check = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    let source = EventSource { subscription, caller, opened, stop, check, _permit: permit };
    let wants_lines = !accepts_event_stream(request.headers());
    Ok(if wants_lines { json_lines(source.events()) } else { server_sent(source.events()) })
}

/// Returns the number of the last event that the client has received, if it names one.
fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Error::Invalid("`Last-Event-ID` is not the number of an event".to_owned()))
}

fn accepts_event_stream(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(EVENT_STREAM)))
}

fn server_sent(events: impl Stream<Item = EventView> + Send + 'static) -> Response {
    let events = events.map(|view| {
        let event = sse::Event::default().data(json!(view).to_string());
        Ok::<_, Infallible>(match view.seq() {
            Some(seq) => event.id(seq.to_string()),
            None => event,
        })
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL)).into_response()
}

fn json_lines(events: impl Stream<Item = EventView> + Send + 'static) -> Response {
    let lines = events.map(|event| Ok::<_, Infallible>(format!("{}\n", json!(event))));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(JSON_LINES)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(lines)).into_response()
}

impl EventSource {
    fn events(self) -> impl Stream<Item = EventView> + Send {
        unfold(self, async |mut source| {
            let event = source.next().await?;
            Some((event, source))
        })
    }

    /// Returns the next event; `None` at the end of the run, at a stop, once the token is revoked, and if the store fails.
    /// After a stop or a failure, the client asks again for the events after the last one it has.
    async fn next(&mut self) -> Option<EventView> {
        let next = loop {
            tokio::select! {
                next = self.subscription.next() => break next,
                () = self.stop.cancelled() => return None,
                _ = self.check.tick() => match self.caller.is_still_valid(&self.opened.store).await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => break Err(error),
                },
            }
        };
        match next.and_then(|item| item.map(view).transpose()) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "a stream of events breaks off");
                None
            }
        }
    }
}

/// Returns an item of the feed as clients see it.
fn view(item: FollowEvent) -> Result<EventView, StoreError> {
    Ok(match item {
        FollowEvent::Stored(stored) => EventView::stored(stored.seq, Some(stored.at), stored.event()?),
        FollowEvent::Pruned { count, upto } => EventView::stored(upto, None, AgentEvent::Pruned { count }),
        FollowEvent::Live(event) => EventView::live(event),
    })
}
