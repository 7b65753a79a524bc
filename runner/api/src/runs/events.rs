//! Streams the events of a run, as server-sent events or as lines of JSON.
//!
//! The id of a server-sent event is the number of the stored event. A client that reconnects sends the last one as
//! `Last-Event-ID`, as browsers do by themselves, and gets each later event once. Live text has no id.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Path, Request, State},
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
use runner_model::principal::BrowserSessionHash;
use runner_store::{Error as StoreError, UnixMillis};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;

use super::{find, view::rfc3339};
use crate::{
    body::read_query,
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
    stream_permits::StreamPermit,
};

/// Header with the id of the last event that a client has received (WHATWG HTML, server-sent events).
const LAST_EVENT_ID: &str = "last-event-id";
/// Interval of comments that show that a silent stream is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Interval between two checks of the token of an open stream.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
const EVENT_STREAM: &str = "text/event-stream";

/// Query of the events of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Number of the last event that the client has.
    after: Option<u64>,
}

/// Source of a stream's events.
struct EventSource {
    subscription: Subscription,
    caller: Caller,
    /// Browser session that identifies the caller, if one does.
    session: Option<BrowserSessionHash>,
    opened: Arc<OpenedStore>,
    stop: CancellationToken,
    /// Times at which the caller's token is checked again.
    check: Interval,
    _permit: StreamPermit,
}

/// Event of a stream.
struct StreamEvent {
    /// Number of the event; live text has none.
    seq: Option<u64>,
    json: Value,
}

/// Streams the events of a run until it has ended.
pub(crate) async fn follow(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    session: Option<Extension<BrowserSessionHash>>,
    Path(run_id): Path<String>,
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
    let session = session.map(|Extension(session)| session);
    let source = EventSource { subscription, caller, session, opened, stop, check, _permit: permit };
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

fn server_sent(events: impl Stream<Item = StreamEvent> + Send + 'static) -> Response {
    let events = events.map(|StreamEvent { seq, json }| {
        let event = sse::Event::default().data(json.to_string());
        Ok::<_, Infallible>(match seq {
            Some(seq) => event.id(seq.to_string()),
            None => event,
        })
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL)).into_response()
}

fn json_lines(events: impl Stream<Item = StreamEvent> + Send + 'static) -> Response {
    let lines = events.map(|event| Ok::<_, Infallible>(format!("{}\n", event.json)));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(lines)).into_response()
}

impl EventSource {
    fn events(self) -> impl Stream<Item = StreamEvent> + Send {
        unfold(self, async |mut source| {
            let event = source.next().await?;
            Some((event, source))
        })
    }

    /// Returns the next event; `None` at the end of the run, at a stop, once the token or the session has ended, and if the store fails.
    /// After a stop or a failure, the client asks again for the events after the last one it has.
    async fn next(&mut self) -> Option<StreamEvent> {
        let next = loop {
            tokio::select! {
                next = self.subscription.next() => break next,
                () = self.stop.cancelled() => return None,
                _ = self.check.tick() => match self.caller.is_still_valid(self.session.as_ref(), &self.opened.store).await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => break Err(error),
                },
            }
        };
        match next.and_then(|item| item.map(StreamEvent::of).transpose()) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "a stream of events breaks off");
                None
            }
        }
    }
}

impl StreamEvent {
    fn of(item: FollowEvent) -> Result<Self, StoreError> {
        Ok(match item {
            FollowEvent::Stored(stored) => Self::numbered(stored.seq, Some(stored.at), &stored.event()?),
            FollowEvent::Pruned { count, upto } => Self::numbered(upto, None, &AgentEvent::Pruned { count }),
            FollowEvent::Live(event) => {
                let mut json = camel_case(json!(event));
                json["live"] = true.into();
                Self { seq: None, json }
            }
        })
    }

    fn numbered(seq: u64, at: Option<UnixMillis>, event: &AgentEvent) -> Self {
        let mut json = camel_case(json!(event));
        json["seq"] = seq.into();
        if let Some(at) = at {
            json["at"] = rfc3339(at).into();
        }
        Self { seq: Some(seq), json }
    }
}

/// Writes the keys of objects in camel case. Texts of agents are values, never keys.
fn camel_case(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let renamed = fields.into_iter().map(|(key, value)| (camel_key(&key), camel_case(value)));
            Value::Object(renamed.collect::<Map<_, _>>())
        }
        value => value,
    }
}

fn camel_key(key: &str) -> String {
    let mut words = key.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}

#[cfg(test)]
mod tests {
    use platform_core::record::Tokens;

    use super::*;

    #[test]
    fn keys_are_camel_case_and_texts_stay() {
        let report =
            AgentEvent::UsageReport { calls: 1, tokens: Tokens { cache_written: 2, ..Tokens::default() } };
        let json = StreamEvent::numbered(7, Some(UnixMillis(1_500)), &report).json;
        assert_eq!((&json["type"], &json["seq"]), (&json!("usage_report"), &json!(7)));
        assert_eq!(
            (&json["at"], &json["tokens"]["cacheWritten"]),
            (&json!("1970-01-01T00:00:01.500Z"), &json!(2))
        );
        let call = AgentEvent::ToolCall {
            id: "c_1".to_owned(),
            name: "read_file".to_owned(),
            arguments: r#"{"file_path":"a_b"}"#.to_owned(),
            cut_bytes: 3,
        };
        let json = StreamEvent::of(FollowEvent::Live(call)).unwrap().json;
        let expected = json!({
            "type": "tool_call", "id": "c_1", "name": "read_file", "arguments": r#"{"file_path":"a_b"}"#,
            "cutBytes": 3, "live": true,
        });
        assert_eq!(json, expected);
    }
}
