//! Reads as much of a message of the Model Context Protocol as a decision needs: id, method and the tool's name.
//!
//! JSON-RPC 2.0 (jsonrpc.org/specification), without batches, as the protocol has it since version 2025-06-18.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{is_object, is_shallow};
use crate::id::ToolName;

/// Method that executes a tool.
pub const CALL: &str = "tools/call";

/// A message to the server.
#[derive(Debug, PartialEq, Eq)]
pub struct McpMessage {
    /// The id, as the client wrote it: a number or a text. A notification has none.
    pub id: Option<String>,
    /// The method.
    pub method: String,
    /// Tool that the message executes, if it executes one.
    pub tool: Option<ToolName>,
    /// The tool's arguments, as the client wrote them.
    pub arguments: Option<String>,
}

/// Reason why a body is no message that may pass.
#[derive(Debug, thiserror::Error)]
pub enum InvalidMessage {
    /// The body is not one JSON object in the form of JSON-RPC, or a member occurs twice.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// The id is neither a number nor a text.
    #[error("`id` is neither a number nor a text")]
    Id,
    /// The message executes a tool, and is a notification: its sender would not learn how it ended.
    #[error("`tools/call` without an `id`")]
    NoId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'b> {
    #[serde(borrow)]
    jsonrpc: &'b RawValue,
    #[serde(borrow)]
    id: Option<&'b RawValue>,
    method: String,
    #[serde(borrow)]
    params: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'b> {
    name: ToolName,
    #[serde(borrow)]
    arguments: Option<&'b RawValue>,
}

impl McpMessage {
    /// Reads `body`.
    ///
    /// # Errors
    /// If it is no message that may pass.
    pub fn read(body: &[u8]) -> Result<Self, InvalidMessage> {
        if !is_object(body) {
            return Err(InvalidMessage::Form(serde::de::Error::custom("the body is not a JSON object")));
        }
        let envelope: Envelope<'_> = serde_json::from_slice(body)?;
        if envelope.jsonrpc.get() != r#""2.0""# {
            return Err(InvalidMessage::Form(serde::de::Error::custom("`jsonrpc` is not \"2.0\"")));
        }
        let id = envelope.id.map(|id| Some(id.get()).filter(|id| is_id(id)).ok_or(InvalidMessage::Id));
        let id = id.transpose()?.map(str::to_owned);
        let params = envelope.params.map_or("null", RawValue::get);
        if !is_shallow(params) {
            return Err(InvalidMessage::Form(serde::de::Error::custom("`params` is nested too deeply")));
        }
        if envelope.method != CALL {
            return Ok(Self { id, method: envelope.method, tool: None, arguments: None });
        }
        if !is_object(params.as_bytes()) {
            return Err(InvalidMessage::Form(serde::de::Error::custom("`params` is not a JSON object")));
        }
        let CallParams { name, arguments } = serde_json::from_str(params)?;
        if id.is_none() {
            return Err(InvalidMessage::NoId);
        }
        Ok(Self {
            id,
            method: envelope.method,
            tool: Some(name),
            arguments: arguments.map(|raw| raw.get().to_owned()),
        })
    }
}

fn is_id(text: &str) -> bool {
    text.starts_with('"') || text.starts_with('-') || text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_its_tool() {
        let call =
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","arguments":{"x":1}}}"#;
        let read = McpMessage::read(call).unwrap();
        assert_eq!((read.id.as_deref(), read.method.as_str()), (Some("7"), "tools/call"));
        assert_eq!(read.tool.unwrap().as_str(), "a__b");
        assert_eq!(read.arguments.as_deref(), Some(r#"{"x":1}"#));
        let list = McpMessage::read(br#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#).unwrap();
        assert_eq!((list.id.as_deref(), list.tool), (Some("\"x\""), None));
        let note = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(McpMessage::read(note).unwrap().id, None);
    }

    #[test]
    fn a_text_of_two_meanings_is_no_message() {
        for bad in [
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#,
            r#"["2.0",1,"tools/call",{"name":"a"}]"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a",{}]}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","extra":1}"#,
        ] {
            assert!(McpMessage::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
