//! Shapes the answers of OpenAI's `/v1/responses`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Event, Written};
use crate::upstream::answer::{Answer, Says};

#[derive(Serialize)]
struct Response<'a> {
    id: String,
    object: &'static str,
    created_at: u64,
    status: Status,
    error: Option<Value>,
    incomplete_details: Option<Value>,
    model: &'a str,
    output: Vec<Value>,
    store: bool,
    #[serde(flatten)]
    echoes: &'a Map<String, Value>,
    usage: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    InProgress,
    Completed,
}

/// Builder of numbered events.
struct Numbered {
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Rest<T> {
    sequence_number: usize,
    #[serde(flatten)]
    rest: T,
}

#[derive(Serialize)]
struct Whole<'a> {
    response: Response<'a>,
}

pub(super) fn whole(answer: &Answer) -> Written {
    super::json(&response(answer, Status::Completed))
}

/// Returns the answer of `/v1/responses/compact`.
pub(super) fn compaction(answer: &Answer) -> Written {
    super::json(&json!({
        "id": answer.id("resp_"),
        "object": "response.compaction",
        "created_at": answer.created,
        "output": [{ "id": answer.id("cmp_"), "type": "compaction", "encrypted_content": answer.says.whole() }],
        "usage": answer.usage.map(|usage| usage.of_responses()),
    }))
}

pub(super) fn events(answer: &Answer) -> serde_json::Result<Vec<Event>> {
    let mut stream = Numbered { events: Vec::new() };
    stream.push("response.created", Whole { response: response(answer, Status::InProgress) })?;
    stream.push("response.in_progress", Whole { response: response(answer, Status::InProgress) })?;
    let added = item(answer, Status::InProgress);
    stream.push("response.output_item.added", json!({ "output_index": 0, "item": added }))?;
    match &answer.says {
        Says::Text(parts) => {
            stream.push("response.content_part.added", at(answer, "part", text_part("")))?;
            for part in parts {
                stream.push_content("response.output_text.delta", at(answer, "delta", json!(part)))?;
            }
            stream.push("response.output_text.done", at(answer, "text", json!(answer.says.whole())))?;
            stream.push("response.content_part.done", at(answer, "part", text_part(&answer.says.whole())))?;
        }
        Says::ToolCall(parts) => {
            for part in parts {
                stream.push_content(
                    "response.function_call_arguments.delta",
                    at(answer, "delta", json!(part)),
                )?;
            }
            let arguments = at(answer, "arguments", json!(answer.says.whole()));
            stream.push("response.function_call_arguments.done", arguments)?;
        }
    }
    let done = item(answer, Status::Completed);
    stream.push("response.output_item.done", json!({ "output_index": 0, "item": done }))?;
    stream.push("response.completed", Whole { response: response(answer, Status::Completed) })?;
    Ok(stream.events)
}

impl Numbered {
    fn push(&mut self, name: &'static str, rest: impl Serialize) -> serde_json::Result<()> {
        let event = self.next(name, rest)?;
        self.events.push(event);
        Ok(())
    }

    fn push_content(&mut self, name: &'static str, rest: Value) -> serde_json::Result<()> {
        let event = self.next(name, rest)?;
        self.events.push(event.content());
        Ok(())
    }

    fn next(&self, name: &'static str, rest: impl Serialize) -> serde_json::Result<Event> {
        let sequence_number = self.events.len();
        Event::typed(name, Rest { sequence_number, rest })
    }
}

/// Returns an event's fields with their position in the output.
fn at(answer: &Answer, field: &str, value: Value) -> Value {
    match &answer.says {
        Says::Text(_) => {
            json!({ "item_id": answer.id("msg_"), "output_index": 0, "content_index": 0, field: value })
        }
        Says::ToolCall(_) => json!({ "item_id": answer.id("fc_"), "output_index": 0, field: value }),
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [] })
}

fn item(answer: &Answer, status: Status) -> Value {
    let complete = status == Status::Completed;
    match &answer.says {
        Says::Text(_) => {
            let content = if complete { vec![text_part(&answer.says.whole())] } else { Vec::new() };
            let id = answer.id("msg_");
            json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content })
        }
        Says::ToolCall(_) => {
            let arguments = if complete { answer.says.whole() } else { String::new() };
            let mut item = json!({ "id": answer.id("fc_"), "type": "function_call", "status": status,
                "call_id": answer.id("call_"), "name": answer.tool, "arguments": arguments });
            if let Some((namespace, name)) = answer.tool.split_once('/') {
                item["namespace"] = json!(namespace);
                item["name"] = json!(name);
            }
            item
        }
    }
}

fn response(answer: &Answer, status: Status) -> Response<'_> {
    let (output, usage) = match status {
        Status::InProgress => (Vec::new(), None),
        Status::Completed => (vec![item(answer, status)], answer.usage.map(|usage| usage.of_responses())),
    };
    Response {
        id: answer.id("resp_"),
        object: "response",
        created_at: answer.created,
        status,
        error: None,
        incomplete_details: None,
        model: &answer.model,
        output,
        store: false,
        echoes: &answer.echoes,
        usage,
    }
}
