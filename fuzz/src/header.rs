//! Checks request headers. An input is a line with the ids of the grant, and a header per further line, `name: value`.
//!
//! The ids are account, user, session, trace and the trace's user, divided by bars; an empty one is left out.
//!
//! The request that is sent has each of Sluicegate's own headers exactly once and with its value. It has only those of
//! the client's headers that are on the list, each once. All are visible ASCII, and the metadata is JSON whatever the
//! ids contain.

use http::{HeaderMap, HeaderName, HeaderValue};
use platform_core::id::CallId;
use proxy::fuzzing;
use serde_json::{Map, Value, json};

use crate::SPOILED;

const PASSED: [&str; 5] = ["accept", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta"];
const METADATA: &str = "x-litellm-spend-logs-metadata";

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let mut lines = input.split(|byte| *byte == b'\n');
    let ids = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let ids: Vec<&str> = ids.split('|').collect();
    let id = |index: usize| ids.get(index).copied().filter(|id| !id.is_empty());
    let names = ["user", "session", "existing_trace", "trace_user"];
    let correlation: Map<String, Value> =
        (1..).zip(names).filter_map(|(at, name)| Some((name.to_owned(), json!(id(at)?)))).collect();
    let account = id(0).unwrap_or("acct-1");
    // Invalid ids are refused where a run is registered.
    let Some(grant) = crate::grant(json!({ "account": account, "correlation": correlation })) else { return };

    let from: HeaderMap = lines.filter_map(header).collect();
    let (call, key) = (CallId::new(1, 2), HeaderValue::from_static("Bearer sk-upstream"));
    let sent = fuzzing::headers(&grant, key, &from, call).expect("checked ids can be headers");
    let call = call.to_string();
    let ours = [
        ("authorization", "Bearer sk-upstream"),
        ("x-litellm-end-user-id", account),
        ("x-litellm-customer-id", account),
        ("x-litellm-session-id", "r1"),
        ("x-cogni-run-id", "r1"),
        ("x-litellm-timeout", "3600"),
        ("x-litellm-call-id", &call),
        ("accept-encoding", "identity"),
        ("content-type", "application/json"),
    ];
    for (name, value) in ours {
        assert_eq!(sent.get_all(name).iter().collect::<Vec<_>>(), [value], "{name}");
    }
    for name in sent.keys() {
        let values: Vec<&HeaderValue> = sent.get_all(name).iter().collect();
        assert_eq!(values.len(), 1, "{name} goes out more than once");
        let visible = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
        assert!(values[0].as_bytes().iter().all(visible), "{name} is not visible ASCII: {values:?}");
        let name = name.as_str();
        if name != METADATA && !ours.iter().any(|(own, _)| *own == name) {
            assert!(PASSED.contains(&name) || name.starts_with("x-stainless-"), "{name} goes out");
            assert!(from.get_all(name).iter().any(|value| value == values[0]), "{name} has another value");
            assert!(!SPOILED || name != "openai-beta", "the control: {name} may not pass");
        }
    }
    let metadata: Value = serde_json::from_slice(sent[METADATA].as_bytes()).expect("metadata are JSON");
    let mut expected = json!({ "run_id": "r1", "attempt": 0, "graph_id": "sandbox:agent", "call_id": call });
    for (name, key) in names.iter().zip(["user_id", "session_id", "existing_trace_id", "trace_user_id"]) {
        if let Some(id) = correlation.get(*name) {
            expected[key] = id.clone();
        }
    }
    assert_eq!(metadata, expected, "metadata have exactly what was granted");
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let value = line[colon + 1..].trim_ascii();
    Some((HeaderName::from_bytes(&line[..colon]).ok()?, HeaderValue::from_bytes(value).ok()?))
}
