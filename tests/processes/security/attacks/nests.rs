//! Attacks by JSON in strings of JSON. Beside a name that serde_json reserves, each string is a text that a careless reader
//! parses anew: a few kilobytes nest deeper than any stack. Upstreams send them, or repeat what an agent sent.

use harness::agent::Answering;
use serde_json::Value;

use super::errors::{APIS, Doors, told};

/// Name that serde_json reserves, as a reader of JSON sees it.
const RESERVED: &str = "$serde_json::private::RawValue";
/// Layers of strings, and arrays around each.
const LAYERS: usize = 20;
const ARRAYS: usize = 100;

/// Returns a text with strings that nest `layers` times.
fn nest(layers: usize) -> String {
    let arrays = |inner: &str| format!("{}{inner}{}", "[".repeat(ARRAYS), "]".repeat(ARRAYS));
    (0..layers).fold(arrays("0"), |inner, _| {
        let escaped = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
        arrays(&format!("{{\"{RESERVED}\":\"{escaped}\"}}"))
    })
}

/// Returns how deep a reader comes that parses each string beside the reserved name anew.
fn careless_depth(text: &str) -> usize {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let mut depth = 0;
    loop {
        value = match value {
            Value::Array(mut items) => items.remove(0),
            Value::Object(mut members) => match members.remove(RESERVED) {
                Some(Value::String(text)) => serde_json::from_str(&text).unwrap(),
                other => panic!("{other:?}"),
            },
            _ => return depth,
        };
        depth += 1;
    }
}

#[tokio::test]
async fn a_nest_in_an_error_stops_nothing() {
    let doors = Doors::open().await;
    let nest = nest(LAYERS);
    assert!(careless_depth(&nest) > 2000, "the control: {}", careless_depth(&nest));
    for api in APIS {
        for (status, kind, body) in [
            ("400 Bad Request", "application/json", format!("{{\"detail\":{nest}}}")),
            (
                "422 Unprocessable Entity",
                "application/json",
                format!("{{\"error\":{{\"message\":\"no\",\"x\":{nest}}}}}"),
            ),
            ("500 Internal Server Error", "application/json", nest.clone()),
            ("200 OK", "application/json", format!("{{\"error\":{{\"message\":{nest}}}}}")),
            ("200 OK", "text/event-stream", format!("event: error\ndata: {{\"error\":{nest}}}\n\n")),
        ] {
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            doors.scripted.say(&[head.as_bytes(), body.as_bytes()]);
            let answering = if kind == "text/event-stream" { Answering::Streamed } else { Answering::Whole };
            for agent in [&doors.own, &doors.gateway()] {
                let (code, answer) = told(agent, api.path, answering).await;
                assert!(!answer.is_empty(), "{} {status}: {code}", api.path);
            }
        }
    }
    let plain = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"no such model\"}}";
    doors.scripted.say(&[plain.as_bytes()]);
    let (code, answer) = told(&doors.own, APIS[0].path, Answering::Whole).await;
    assert!(code == 400 && answer.contains("no such model"), "the proxy serves on: {code} {answer}");
}
