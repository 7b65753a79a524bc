//! Records streams of the real LiteLLM for the meter's tests, and detects when LiteLLM's streams have changed.
//!
//! An existing file is compared with a new stream, except ids and times. Delete the file to record it again.

use std::{fs, path::PathBuf};

use bench::upstream::ScriptedUpstream;
use harness::{CANARY_KEY, LiteLlm, Models, agent::Answering};
use serde_json::Value;

/// Prompt of nine tokens by the scripted upstream's rule, two of them cached.
pub(crate) const PROMPT: &str = "Please tell me about the weather.";

const STREAMS: [(&str, Models, &str, &str); 18] = [
    ("chat", Models::Unknown, "/v1/chat/completions", "fake-words10"),
    ("chat-tools", Models::Unknown, "/v1/chat/completions", "fake-tools"),
    ("chat-broken", Models::Unknown, "/v1/chat/completions", "fake-errmid3"),
    ("completions", Models::Unknown, "/v1/completions", "fake-words10"),
    ("responses", Models::Unknown, "/v1/responses", "fake-words10"),
    ("responses-tools", Models::Unknown, "/v1/responses", "fake-tools"),
    ("messages", Models::Unknown, "/v1/messages", "fake-words10"),
    ("messages-tools", Models::Unknown, "/v1/messages", "fake-tools"),
    ("messages-broken", Models::Unknown, "/v1/messages", "fake-errmid3"),
    ("gpt-chat", Models::OpenAi, "/v1/chat/completions", "fake-words10"),
    ("gpt-completions", Models::OpenAi, "/v1/completions", "fake-words10"),
    ("gpt-responses", Models::OpenAi, "/v1/responses", "fake-words10"),
    ("gpt-responses-tools", Models::OpenAi, "/v1/responses", "fake-tools"),
    ("gpt-messages", Models::OpenAi, "/v1/messages", "fake-words10"),
    ("claude-chat", Models::Anthropic, "/v1/chat/completions", "fake-words10"),
    ("claude-responses", Models::Anthropic, "/v1/responses", "fake-words10"),
    ("claude-messages", Models::Anthropic, "/v1/messages", "fake-words10"),
    ("claude-messages-tools", Models::Anthropic, "/v1/messages", "fake-tools"),
];

/// Fields with a different value in every stream.
const VOLATILE: [&str; 9] = [
    "id",
    "created",
    "created_at",
    "completed_at",
    "item_id",
    "call_id",
    "response_id",
    "system_fingerprint",
    "request_id",
];

#[tokio::test]
async fn litellms_streams_are_as_they_were_recorded() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let litellm = LiteLlm::in_front_of(&upstream, CANARY_KEY).await;
    let agent = litellm.agent.clone().with_header("authorization", &format!("Bearer {CANARY_KEY}"));
    let mut recorded_now = Vec::new();
    for (name, models, path, script) in STREAMS {
        let body = models.saying(path, script, Answering::Streamed, PROMPT).unwrap();
        let answer = agent.post(path, &body).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let golden = golden(name);
        match fs::read_to_string(&golden) {
            Ok(recorded) => {
                assert_eq!(stable_lines(&answer.text()), stable_lines(&recorded), "{name}");
            }
            Err(_absent) => {
                fs::write(&golden, &answer.body).unwrap();
                recorded_now.push(golden);
            }
        }
    }
    assert!(recorded_now.is_empty(), "written anew: read them, then run this again: {recorded_now:?}");
}

fn golden(name: &str) -> PathBuf {
    let dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../proxy/tests/golden/streams"));
    dir.join(format!("litellm-{name}.sse"))
}

/// Returns the lines of a stream, without the values that differ in every stream.
fn stable_lines(stream: &str) -> Vec<String> {
    let stable = |line: &str| match line.strip_prefix("data: ").map(serde_json::from_str::<Value>) {
        Some(Ok(mut data)) => {
            clear_volatile(&mut data);
            format!("data: {data}")
        }
        _ => line.to_owned(),
    };
    stream.lines().map(stable).collect()
}

fn clear_volatile(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(clear_volatile),
        Value::Object(members) => {
            for (name, value) in members {
                if VOLATILE.contains(&name.as_str()) {
                    *value = Value::Null;
                } else {
                    clear_volatile(value);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
