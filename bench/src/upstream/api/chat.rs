//! Shapes the answers of `/v1/chat/completions`.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Event, Written};
use crate::upstream::{
    answer::{Answer, Says},
    ask::Ask,
};

/// Envelope of the choices in both completions APIs.
#[derive(Serialize)]
pub(super) struct Envelope<'a> {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Value>,
}

pub(super) fn whole(answer: &Answer) -> Written {
    let (message, finish_reason) = match &answer.says {
        Says::Text(_) => {
            (json!({ "role": "assistant", "content": answer.says.whole(), "refusal": null }), "stop")
        }
        Says::ToolCall(_) => {
            let tool_call = tool_call(answer, &answer.says.whole());
            (
                json!({ "role": "assistant", "content": null, "tool_calls": [tool_call], "refusal": null }),
                "tool_calls",
            )
        }
    };
    super::json(&Envelope {
        choices: json!([{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason }]),
        usage: answer.usage.map(|usage| usage.of_completions()),
        ..envelope(answer, "chat.completion")
    })
}

pub(super) fn events(ask: &Ask, answer: &Answer) -> serde_json::Result<Vec<Event>> {
    let usage = answer.usage.filter(|_| ask.wants_usage_chunk());
    // Once the last chunk carries usage, the others have a null in its place.
    let no_usage = usage.map(|_| Value::Null);
    let chunk = |delta: Value, finish_reason: Option<&str>| {
        Event::data(&Envelope {
            choices: json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }]),
            usage: no_usage.clone(),
            ..envelope(answer, "chat.completion.chunk")
        })
    };
    let mut events = match &answer.says {
        Says::Text(_) => vec![chunk(json!({ "role": "assistant", "content": "", "refusal": null }), None)?],
        Says::ToolCall(_) => {
            let mut opening = tool_call(answer, "");
            opening["index"] = 0.into();
            vec![chunk(json!({ "role": "assistant", "content": null, "tool_calls": [opening] }), None)?]
        }
    };
    for part in answer.says.parts() {
        let delta = match &answer.says {
            Says::Text(_) => json!({ "content": part }),
            Says::ToolCall(_) => json!({ "tool_calls": [{ "index": 0, "function": { "arguments": part } }] }),
        };
        events.push(chunk(delta, None)?.content());
    }
    let finish_reason = match &answer.says {
        Says::Text(_) => "stop",
        Says::ToolCall(_) => "tool_calls",
    };
    events.push(chunk(json!({}), Some(finish_reason))?);
    if let Some(usage) = usage {
        events.push(Event::data(&Envelope {
            usage: Some(usage.of_completions()),
            ..envelope(answer, "chat.completion.chunk")
        })?);
    }
    events.push(Event::done());
    Ok(events)
}

fn envelope<'a>(answer: &'a Answer, object: &'static str) -> Envelope<'a> {
    let id = answer.id("chatcmpl-");
    Envelope { id, object, created: answer.created, model: &answer.model, choices: json!([]), usage: None }
}

fn tool_call(answer: &Answer, arguments: &str) -> Value {
    json!({ "id": answer.id("call_"), "type": "function", "function": { "name": answer.tool, "arguments": arguments } })
}
