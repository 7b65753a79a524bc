//! Streams the events of a run, as server-sent events or as lines of JSON.
//!
//! The id of a server-sent event is the number of the stored event. A client that reconnects sends the last one as
//! `Last-Event-ID`, as browsers do by themselves, and gets each later event once. Live text has no id.

use std::future::ready;

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use platform_core::event::AgentEvent;
use runner_engine::follow::FollowEvent;
use runner_store::{Error as StoreError, UnixMillis};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    event_source::{EventSource, last_event},
    view::rfc3339,
};
use crate::{
    body::read_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    stream_guard::or_end,
    stream_response::{StreamItem, stream_response},
};

/// Query of the events of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Number of the last event that the client has.
    after: Option<u64>,
}

/// Streams the events of a run until it has ended.
pub(crate) async fn follow(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path(run_id): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let query: EventsQuery = read_query(request.uri())?;
    let after = last_event(request.headers())?.or(query.after).unwrap_or_default();
    let Some(source) = EventSource::open(&context, caller, &run_id, after).await? else {
        // Browsers reconnect after the end of a stream, until they get this answer.
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let items = source.events().scan((), |(), event| ready(or_end(StreamItem::of(event).map(Some))));
    Ok(stream_response(request.headers(), items))
}

impl StreamItem {
    /// Returns an event of a run as an item of a stream.
    ///
    /// # Errors
    /// If the stored event cannot be read.
    pub(super) fn of(item: FollowEvent) -> Result<Self, StoreError> {
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
        let json = StreamItem::numbered(7, Some(UnixMillis(1_500)), &report).json;
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
        let json = StreamItem::of(FollowEvent::Live(call)).unwrap().json;
        let expected = json!({
            "type": "tool_call", "id": "c_1", "name": "read_file", "arguments": r#"{"file_path":"a_b"}"#,
            "cutBytes": 3, "live": true,
        });
        assert_eq!(json, expected);
    }
}
