//! frame reads messages of JSON-RPC, one at a time. Pure.
//!
//! A message has one meaning or is none: its own members occur once. What is inside a result is not looked at here.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{error::ServerError, text::quote};

/// Longest id of a request that a server makes.
const MAX_ID: usize = 200;

/// Message of a server.
#[derive(Debug)]
pub(crate) enum RpcFrame {
    /// Answer to the request `id` of this program.
    Answer { id: u64, result: Result<Box<RawValue>, ServerError> },
    /// Request of the server.
    Request { id: Box<RawValue>, method: String },
    /// Message that wants no answer.
    Notification { method: String },
}

#[derive(Deserialize)]
struct RawFrame {
    jsonrpc: String,
    #[serde(default)]
    id: Option<Box<RawValue>>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RpcFailure>,
}

#[derive(Deserialize)]
struct RpcFailure {
    code: i64,
    message: String,
}

impl RpcFrame {
    /// Reads a message.
    ///
    /// # Errors
    /// [`ServerError::Protocol`], which says what is wrong.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ServerError> {
        let text =
            std::str::from_utf8(bytes).map_err(|_invalid| ServerError::protocol("a message is not UTF-8"))?;
        let wrong = |problem: &str| {
            ServerError::protocol(format!("{problem}: `{}`", quote(&text[..text.floor_char_boundary(80)])))
        };
        let envelope: RawFrame = serde_json::from_str(text).map_err(|error| {
            // The error quotes nothing of the text but names of members.
            wrong(&format!("a line is no message ({})", quote(&error.to_string())))
        })?;
        if envelope.jsonrpc != "2.0" {
            return Err(wrong("a message is not of JSON-RPC 2.0"));
        }
        match envelope {
            RawFrame { method: Some(method), id: None, result: None, error: None, .. } => {
                Ok(Self::Notification { method: quote(&method) })
            }
            RawFrame { method: Some(method), id: Some(id), result: None, error: None, .. } => {
                let is_id = id.get().starts_with('"') || id.get().parse::<i64>().is_ok();
                if !is_id || id.get().len() > MAX_ID {
                    return Err(wrong("a request has an id that is none"));
                }
                Ok(Self::Request { id, method: quote(&method) })
            }
            RawFrame { method: None, id: Some(id), result, error, .. } => {
                let number =
                    id.get().parse().map_err(|_other| wrong("an answer has an id that no request has"))?;
                let result = match (result, error) {
                    (Some(result), None) => Ok(result),
                    (None, Some(RpcFailure { code, message })) => {
                        Err(ServerError::Refused { code, message: quote(&message) })
                    }
                    _ => return Err(wrong("an answer has not one of `result` and `error`")),
                };
                Ok(Self::Answer { id: number, result })
            }
            _ => Err(wrong("a message is neither request, answer nor notification")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_meaning() {
        let answer = RpcFrame::read(br#"{"jsonrpc":"2.0","id":7,"result":{"a":"{\"id\":8}"}}"#).unwrap();
        assert!(matches!(answer, RpcFrame::Answer { id: 7, result: Ok(_) }), "{answer:?}");
        let request =
            RpcFrame::read(br#"{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage"}"#).unwrap();
        assert!(matches!(request, RpcFrame::Request { .. }));
        for bad in [
            "Server started",
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
            r#"{"jsonrpc":"2.0"}"#,
        ] {
            assert!(matches!(RpcFrame::read(bad.as_bytes()), Err(ServerError::Protocol { .. })), "{bad}");
        }
        assert!(RpcFrame::read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err(), "it is not UTF-8");
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let RpcFrame::Answer { result: Ok(deep), .. } = RpcFrame::read(deep.as_bytes()).unwrap() else {
            panic!("the frame of a deep result is an answer")
        };
        assert!(
            serde_json::from_str::<serde_json::Value>(deep.get()).is_err(),
            "its reader finds it too deep"
        );
    }
}
