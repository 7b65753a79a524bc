//! Reads events about tools: calls with their arguments, and results.
//!
//! Only the beginning of arguments and results is kept. Gateways send the whole, which may be as long as a frame.

use std::borrow::Cow;

use platform_core::{id::ToolName, json::Raw, limit::events as limit};
use serde::Deserialize;

use super::message::RawMessage;
use crate::outcome::{ToolCall, ToolState};

/// Longest id of a call. A call with a longer one has no details.
const MAX_CALL_ID: usize = 128;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawTool<'a> {
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    is_error: Option<bool>,
    #[serde(borrow)]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    args: Option<Raw<'a>>,
    #[serde(borrow)]
    result: Option<Raw<'a>>,
}

/// A step of a tool's call.
pub(super) struct ToolStep {
    pub(super) name: Option<ToolName>,
    pub(super) state: ToolState,
    pub(super) call: Option<ToolCall>,
}

impl ToolStep {
    /// Reads an event about a tool. `None` if it reports another step.
    pub(super) fn of(event: &RawTool<'_>) -> Option<Self> {
        let state = match event.phase.as_deref()? {
            "start" => ToolState::Started,
            "result" if event.is_error == Some(true) => ToolState::Failed,
            "result" => ToolState::Finished,
            _ => return None,
        };
        let text = match state {
            ToolState::Started => event.args.map_or("{}", Raw::get).to_owned(),
            ToolState::Finished | ToolState::Failed => event.result.map(result_text).unwrap_or_default(),
        };
        let name = event.name.as_deref().and_then(|name| ToolName::parse(name).ok());
        Some(Self { name, state, call: event.tool_call_id.as_deref().and_then(|id| call(id, text)) })
    }
}

/// Returns the call with this id, and the beginning of `text`; `None` if the id is not spelled like one.
fn call(id: &str, mut text: String) -> Option<ToolCall> {
    if !(1..=MAX_CALL_ID).contains(&id.len()) || id.chars().any(char::is_control) {
        return None;
    }
    let length = text.len();
    text.truncate(text.floor_char_boundary(limit::TOOL_TEXT.as_usize()));
    let cut_bytes = length - text.len();
    Some(ToolCall { id: id.to_owned(), text, cut_bytes })
}

/// Returns the text of a result. A result of another shape is returned as JSON.
fn result_text(result: Raw<'_>) -> String {
    if let Ok(text) = result.read() {
        return text;
    }
    let text = result.read::<RawMessage<'_>>().ok().and_then(|message| message.text().ok());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| result.get().to_owned())
}

#[cfg(test)]
mod tests {
    use platform_core::json::{self, Bounds};
    use serde_json::{Value, json};

    use super::*;

    fn told(event: &Value) -> Option<(ToolState, Option<ToolCall>)> {
        let text = event.to_string();
        let step = ToolStep::of(&json::from_str(&text, Bounds::STORED).unwrap())?;
        Some((step.state, step.call))
    }

    fn of_call(text: &str) -> Option<ToolCall> {
        Some(ToolCall { id: "c1".to_owned(), text: text.to_owned(), cut_bytes: 0 })
    }

    #[test]
    fn calls_and_results_have_their_texts() {
        let parts = json!({ "content": [{ "type": "text", "text": "out" }, { "type": "image" }] });
        for (event, expected) in [
            (
                json!({ "phase": "start", "args": { "a": 1 } }),
                Some((ToolState::Started, of_call(r#"{"a":1}"#))),
            ),
            (json!({ "phase": "start" }), Some((ToolState::Started, of_call("{}")))),
            (json!({ "phase": "update" }), None),
            (json!({ "phase": "result", "result": parts }), Some((ToolState::Finished, of_call("out")))),
            (json!({ "phase": "result", "result": "out" }), Some((ToolState::Finished, of_call("out")))),
            (
                json!({ "phase": "result", "result": { "b": 2 }, "isError": true }),
                Some((ToolState::Failed, of_call(r#"{"b":2}"#))),
            ),
        ] {
            let mut event = event;
            event["toolCallId"] = "c1".into();
            assert_eq!(told(&event), expected, "{event}");
        }
    }

    #[test]
    fn a_call_is_cut_and_needs_an_id() {
        let long = json!({ "phase": "result", "toolCallId": "c1", "result": "ä".repeat(10 << 10) });
        let (_, call) = told(&long).unwrap();
        let call = call.unwrap();
        assert_eq!((call.text.len(), call.cut_bytes), (16 << 10, 4 << 10));
        for id in [json!(null), json!(""), json!("a\nb"), json!("x".repeat(200))] {
            let event = json!({ "phase": "start", "toolCallId": id });
            assert_eq!(told(&event), Some((ToolState::Started, None)), "{id}");
        }
    }
}
