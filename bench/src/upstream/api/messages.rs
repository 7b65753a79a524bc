//! Shapes the answers of Anthropic's `/v1/messages`.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Event, Written};
use crate::upstream::answer::{Answer, Says};

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Value,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

pub(super) fn whole(answer: &Answer) -> Written {
    let block = match &answer.says {
        Says::Text(_) => json!({ "type": "text", "text": answer.says.whole() }),
        Says::ToolCall(_) => {
            let input: Value = serde_json::from_str(&answer.says.whole())?;
            json!({ "type": "tool_use", "id": answer.id("toolu_"), "name": answer.tool, "input": input })
        }
    };
    let usage = answer.usage.map(|usage| usage.of_messages());
    super::json(&Message { stop_reason: Some(stop_reason(answer)), usage, ..message(answer, json!([block])) })
}

pub(super) fn events(answer: &Answer) -> serde_json::Result<Vec<Event>> {
    let (block, delta_type, delta_field) = match &answer.says {
        Says::Text(_) => (json!({ "type": "text", "text": "" }), "text_delta", "text"),
        Says::ToolCall(_) => (
            json!({ "type": "tool_use", "id": answer.id("toolu_"), "name": answer.tool, "input": {} }),
            "input_json_delta",
            "partial_json",
        ),
    };
    let usage = answer.usage.map(|usage| usage.of_messages());
    let opening = Message { usage: usage.map(before_output), ..message(answer, json!([])) };
    let mut events = vec![
        Event::typed("message_start", Opening { message: opening })?,
        Event::typed("content_block_start", json!({ "index": 0, "content_block": block }))?,
    ];
    for part in answer.says.parts() {
        let delta = json!({ "type": delta_type, delta_field: part });
        events.push(Event::typed("content_block_delta", json!({ "index": 0, "delta": delta }))?.content());
    }
    let mut end = json!({ "delta": { "stop_reason": stop_reason(answer), "stop_sequence": null } });
    if let Some(usage) = answer.usage {
        end["usage"] = usage.of_last_message_event();
    }
    events.push(Event::typed("content_block_stop", json!({ "index": 0 }))?);
    events.push(Event::typed("message_delta", end)?);
    events.push(Event::typed("message_stop", json!({}))?);
    Ok(events)
}

#[derive(Serialize)]
struct Opening<'a> {
    message: Message<'a>,
}

/// Returns the usage at the start of a stream: it counts one output token already and has no price yet.
fn before_output(mut usage: Value) -> Value {
    usage["output_tokens"] = 1.into();
    if let Some(fields) = usage.as_object_mut() {
        fields.remove("cost");
    }
    usage
}

fn message(answer: &Answer, content: Value) -> Message<'_> {
    Message {
        id: answer.id("msg_"),
        r#type: "message",
        role: "assistant",
        model: &answer.model,
        content,
        stop_reason: None,
        stop_sequence: None,
        usage: None,
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    match &answer.says {
        Says::Text(_) => "end_turn",
        Says::ToolCall(_) => "tool_use",
    }
}
