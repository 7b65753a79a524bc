//! frame reads messages of JSON-RPC, one at a time. Pure.
//!
//! A text is a message only if it has one meaning. What is inside a result is read elsewhere, within narrower bounds.

use platform_core::json::{self, Bounds, Raw, RawBuf};
use serde::Deserialize;

use crate::{error::ServerError, text::quote};

/// Bounds of a message; a link bounds its bytes. They are wide, because a message beyond them ends the session, and a bad
/// result or definition ends a call alone.
const BOUNDS: Bounds = Bounds::of(usize::MAX).with_depth(10_000).with_values(1_000_000);
/// Longest id of a request that a server makes.
const MAX_ID: usize = 200;

/// Message of a server.
#[derive(Debug)]
pub(crate) enum RpcFrame {
    /// Answer to the request `id` of this program.
    Answer { id: u64, result: Result<RawBuf, ServerError> },
    /// Request of the server.
    Request { id: RawBuf, method: String },
    /// Message that wants no answer.
    Notification { method: String },
}

#[derive(Deserialize)]
struct RawFrame<'t> {
    jsonrpc: String,
    #[serde(borrow)]
    id: Option<Raw<'t>>,
    method: Option<String>,
    #[serde(borrow)]
    result: Option<Raw<'t>>,
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
        let envelope: RawFrame<'_> = json::from_str(text, BOUNDS).map_err(|error| {
            // The error quotes nothing of the text but names of members.
            wrong(&format!("a line is not a message ({})", quote(&error.to_string())))
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
                Ok(Self::Request { id: id.to_buf(), method: quote(&method) })
            }
            RawFrame { method: None, id: Some(id), result, error, .. } => {
                let number =
                    id.get().parse().map_err(|_other| wrong("an answer has an id that no request has"))?;
                let result = match (result, error) {
                    (Some(result), None) => Ok(result.to_buf()),
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
    use crate::tests::{nested, raw_nest};

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
            &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, raw_nest(15)),
            &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, nested(100_000)),
        ] {
            assert!(matches!(RpcFrame::read(bad.as_bytes()), Err(ServerError::Protocol { .. })), "{bad}");
        }
        assert!(RpcFrame::read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err(), "it is not UTF-8");
        for result in [nested(1000), raw_nest(15)] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let read = RpcFrame::read(message.as_bytes()).unwrap();
            assert!(
                matches!(read, RpcFrame::Answer { id: 1, result: Ok(_) }),
                "the result's reader refuses it"
            );
        }
    }
}
