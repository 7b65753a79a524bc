//! Each API's events in their order, with tools and figures.

use bench::upstream::ScriptedUpstream;
use serde_json::{Value, json};

use crate::client::{CHAT, Mode, ask, joined, read, send, with_body};

const ARGUMENTS: &str = r#"{"city":"Paris","unit":"celsius"}"#;

#[tokio::test]
async fn chat_frames_its_words_and_tells_usage_last() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let reply = ask(&upstream, CHAT, "fake-words3", Mode::Streamed).await;
    let events = reply.events();
    assert_eq!(events.len(), 7, "role, three words, finish, usage, done: {events:?}");
    assert_eq!(events[0].pointer("/choices/0/delta/role"), Some(&json!("assistant")));
    assert_eq!(joined(&events[1..4], "/choices/0/delta/content"), "Hello from the");
    assert_eq!(events[4].pointer("/choices/0/finish_reason"), Some(&json!("stop")));
    assert!(events[..5].iter().all(|event| event.get("usage") == Some(&Value::Null)), "{events:?}");
    assert_eq!(events[5]["choices"], json!([]));
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4,
        "prompt_tokens_details": { "cached_tokens": 0 }, "completion_tokens_details": { "reasoning_tokens": 0 } });
    assert_eq!((&events[5]["usage"], &events[6]), (&usage, &Value::Null));
    assert!(events[..6].iter().all(|event| event["id"] == events[0]["id"]), "{events:?}");
}

#[tokio::test]
async fn chat_keeps_usage_to_itself_unless_asked() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let body = r#"{"model":"fake-words3","stream":true,"messages":[]}"#;
    let events = read(send(&upstream, &with_body(CHAT, body)).await).await.events();
    assert_eq!(events.len(), 6, "{events:?}");
    assert!(events.iter().all(|event| event.get("usage").is_none()), "{events:?}");
}

#[tokio::test]
async fn responses_and_messages_name_their_events() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let reply = ask(&upstream, "/v1/responses", "fake-words2", Mode::Streamed).await;
    let (names, events) = (reply.event_names(), reply.events());
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (at, (name, event)) in names.iter().zip(&events).enumerate() {
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(at)));
    }
    assert_eq!(events[9].pointer("/response/usage/output_tokens"), Some(&json!(2)));

    let reply = ask(&upstream, "/v1/messages", "fake-words2", Mode::Streamed).await;
    let (names, events) = (reply.event_names(), reply.events());
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert!(names.iter().zip(&events).all(|(name, event)| event["type"] == *name), "{events:?}");
    assert_eq!(joined(&events, "/delta/text"), "Hello from");
    assert_eq!(events[5].pointer("/usage/output_tokens"), Some(&json!(2)));
}

#[tokio::test]
async fn tools_are_called_in_every_api_that_has_them() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let table = [
        (
            CHAT,
            "/choices/0/delta/tool_calls/0/function/arguments",
            "/choices/0/message/tool_calls/0/function",
        ),
        ("/v1/responses", "/delta", "/output/0"),
        ("/v1/messages", "/delta/partial_json", "/content/0"),
    ];
    for (path, fragment, call) in table {
        let events = ask(&upstream, path, "fake-tools", Mode::Streamed).await.events();
        assert_eq!(joined(&events, fragment), ARGUMENTS, "{path}");
        let answer = ask(&upstream, path, "fake-tools", Mode::Whole).await.json();
        let call = answer.pointer(call).unwrap();
        assert_eq!(call["name"], "get_weather", "{path}: {answer}");
        let arguments = call.get("arguments").and_then(Value::as_str).map(str::to_owned);
        let arguments = arguments.unwrap_or_else(|| call["input"].to_string());
        assert_eq!(arguments, ARGUMENTS, "{path}: {answer}");
    }
}

#[tokio::test]
async fn embeddings_match_inputs_in_either_encoding() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    for (input, encoding, count, first) in [
        (json!("one"), "float", 1, json!([0.5, -0.25, 0.125])),
        (json!(["one", "two"]), "base64", 2, json!("AAAAPwAAgL4AAAA+")),
        (json!([1, 2, 3]), "float", 1, json!([0.5, -0.25, 0.125])),
    ] {
        let body = json!({ "model": "fake", "input": input, "encoding_format": encoding, "stream": true });
        let answer = read(send(&upstream, &with_body("/embeddings", &body.to_string())).await).await.json();
        let data = answer["data"].as_array().unwrap();
        assert_eq!((data.len(), &data[0]["embedding"]), (count, &first), "{answer}");
    }
}
