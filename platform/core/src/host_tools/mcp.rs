//! Reads as much of a message of the Model Context Protocol as a decision needs: id, method and the tool's name.
//!
//! JSON-RPC 2.0 (jsonrpc.org/specification), without batches, as the protocol has it since version 2025-06-18.

use serde::{Deserialize, Deserializer};

use super::BOUNDS;
use crate::{
    id::ToolName,
    json::{self, Raw},
};

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

/// Reason why a body is not a message that may pass.
#[derive(Debug, thiserror::Error)]
pub enum InvalidMessage {
    /// The body is not a single JSON object in the form of JSON-RPC.
    #[error(transparent)]
    Form(#[from] json::Error),
    /// The message is one of another JSON-RPC.
    #[error("`jsonrpc` is not \"2.0\"")]
    Version,
    /// The id is neither a number nor a text.
    #[error("`id` is neither a number nor a text")]
    Id,
    /// The message executes a tool, and is a notification: its sender would not learn how it ended.
    #[error("`tools/call` without an `id`")]
    NoId,
}

/// Form of every message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Envelope<'b> {
    #[serde(borrow)]
    jsonrpc: Raw<'b>,
    /// The id, also if it is `null`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<Raw<'b>>,
    pub(super) method: String,
    #[serde(borrow)]
    pub(super) params: Option<Raw<'b>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct CallParams<'b> {
    name: ToolName,
    #[serde(borrow)]
    arguments: Option<Raw<'b>>,
}

impl McpMessage {
    /// Reads `body`.
    ///
    /// # Errors
    /// If it is not a message that may pass.
    pub fn read(body: &[u8]) -> Result<Self, InvalidMessage> {
        let Envelope { jsonrpc, id, method, params } = json::from_slice(body, BOUNDS)?;
        if jsonrpc.get() != r#""2.0""# {
            return Err(InvalidMessage::Version);
        }
        let id = id.map(Raw::get).filter(|id| *id != "null");
        if id.is_some_and(|id| !is_id(id)) {
            return Err(InvalidMessage::Id);
        }
        let id = id.map(str::to_owned);
        if method != CALL {
            return Ok(Self { id, method, tool: None, arguments: None });
        }
        let CallParams { name, arguments } = params.unwrap_or(Raw::NULL).read()?;
        if id.is_none() {
            return Err(InvalidMessage::NoId);
        }
        Ok(Self { id, method, tool: Some(name), arguments: arguments.map(|args| args.get().to_owned()) })
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
