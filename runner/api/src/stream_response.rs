//! Writes a stream as server-sent events or as lines of JSON.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::{
        IntoResponse, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

/// Interval of comments that show that a silent stream is alive.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
pub(crate) const JSON_LINES: &str = "application/x-ndjson";

/// Item of a stream.
#[derive(Debug)]
pub(crate) struct StreamItem {
    /// Number from which a client resumes the stream, if it can.
    pub(crate) seq: Option<u64>,
    pub(crate) json: Value,
}

/// Returns an answer with `items`, in the format that a client with `headers` accepts.
pub(crate) fn stream_response(
    headers: &HeaderMap,
    items: impl Stream<Item = StreamItem> + Send + 'static,
) -> Response {
    if accepts(headers, EVENT_STREAM) { server_sent(items) } else { json_lines(items) }
}

/// Returns whether a client with `headers` asks for `media_type` by its name.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    headers.get_all(ACCEPT).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(media_type)))
}

fn server_sent(items: impl Stream<Item = StreamItem> + Send + 'static) -> Response {
    let events = items.map(|StreamItem { seq, json }| {
        let event = sse::Event::default().data(json.to_string());
        Ok::<_, Infallible>(match seq {
            Some(seq) => event.id(seq.to_string()),
            None => event,
        })
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL)).into_response()
}

fn json_lines(items: impl Stream<Item = StreamItem> + Send + 'static) -> Response {
    let lines = items.map(|item| Ok::<_, Infallible>(format!("{}\n", item.json)));
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(JSON_LINES))];
    (headers, Body::from_stream(lines)).into_response()
}
