//! Reads what a server of the Model Context Protocol needs of a message besides [`McpMessage`](super::mcp::McpMessage):
//! what it asks for, in which version.
//!
//! A request without what its method demands is one for something that the server does not have.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};

use super::{
    BOUNDS,
    mcp::{CALL, Envelope},
};
use crate::json::{self, Raw};

/// Member of `_meta` with the version of the protocol that the request speaks.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Member of `_meta` with the capabilities of the client.
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Least whole number that shares its float with another.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A message to the server, with what it asks for.
#[derive(Debug, PartialEq)]
pub struct McpRequest {
    /// The id: a whole number or a text. A notification has none.
    pub id: Option<Value>,
    /// Subject of the message.
    pub asks: Asks,
    /// Version of the protocol that the message speaks, if it says so.
    pub version: Option<String>,
    /// Presence of the capabilities of the sender.
    pub has_capabilities: bool,
    /// Presence of the name of a prompt, a resource or a task.
    pub has_name: bool,
}

/// Subject of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Asks {
    /// The handshake, in a version of the protocol.
    Handshake(String),
    /// The description of the server, without a handshake.
    Discovery,
    /// A sign of life.
    Ping,
    /// The tools.
    Tools,
    /// The execution of a tool.
    Call,
    /// Something else, or one of these without what it demands.
    Other,
}

/// Reason why a server does not know what a message is.
#[derive(Debug, thiserror::Error)]
#[error("unrecognized JSON-RPC message")]
pub struct Unrecognized;

/// Members of an object, as they are written.
#[derive(Default, Deserialize)]
struct Members<'b>(#[serde(borrow)] BTreeMap<String, Option<Raw<'b>>>);

impl McpRequest {
    /// Reads `body`, which is a message that may pass.
    ///
    /// # Errors
    /// If the id is not a whole number and no text, or `params` or its `_meta` is not an object.
    pub fn read(body: &[u8]) -> Result<Self, Unrecognized> {
        let Envelope { id, method, params, .. } =
            json::from_slice(body, BOUNDS).map_err(|_form| Unrecognized)?;
        let id = id.map(|id| read_id(id).ok_or(Unrecognized)).transpose()?;
        let asks_nothing = method == "server/discover" && params.is_none();
        let params = Members::of(params)?;
        let meta = Members::of(params.get("_meta"))?;
        Ok(Self {
            id,
            asks: if asks_nothing { Asks::Other } else { params.ask(&method) },
            version: meta.text(VERSION_KEY),
            has_capabilities: meta.get(CAPABILITIES_KEY).is_some_and(is_object),
            has_name: name_member(&method).is_some_and(|name| params.text(name).is_some()),
        })
    }
}

impl<'b> Members<'b> {
    fn of(value: Option<Raw<'b>>) -> Result<Self, Unrecognized> {
        value.map_or_else(|| Ok(Self::default()), |value| value.read().map_err(|_form| Unrecognized))
    }

    /// Returns the member `name`, unless it is `null`.
    fn get(&self, name: &str) -> Option<Raw<'b>> {
        self.0.get(name).copied().flatten()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.read().ok()
    }

    /// Returns what a message with these parameters asks for.
    fn ask(&self, method: &str) -> Asks {
        match method {
            "initialize" => self.handshake().map_or(Asks::Other, Asks::Handshake),
            "server/discover" => Asks::Discovery,
            "ping" => Asks::Ping,
            "tools/list" => Asks::Tools,
            CALL if self.is_call() => Asks::Call,
            _ => Asks::Other,
        }
    }

    /// Returns the version that a handshake asks for, if everything is there that belongs to one.
    fn handshake(&self) -> Option<String> {
        let client = Members::of(self.get("clientInfo")).ok()?;
        let is_whole = self.get("capabilities").is_some_and(is_object)
            && ["name", "version"].iter().all(|name| client.text(name).is_some());
        self.text("protocolVersion").filter(|_version| is_whole)
    }

    fn is_call(&self) -> bool {
        ["arguments", "inputResponses"].iter().all(|name| self.get(name).is_none_or(is_object))
            && (self.get("requestState").is_none() || self.text("requestState").is_some())
    }
}

fn is_object(value: Raw<'_>) -> bool {
    value.get().starts_with('{')
}

/// Reads an id that is there.
fn read_id(id: Raw<'_>) -> Option<Value> {
    let whole = |float: f64| {
        let is_exact = float.fract() == 0.0 && float.abs() < MAX_EXACT;
        is_exact.then(|| format!("{float:.0}").parse::<i64>().ok()).flatten()
    };
    if let Ok(number) = id.read::<Number>() {
        let float = || number.as_f64().filter(|_float| !number.is_u64());
        return number.as_i64().or_else(|| float().and_then(whole)).map(Value::from);
    }
    id.read().ok().map(Value::String)
}

/// Returns the parameter that newer versions repeat in a header, beside that of [`CALL`].
fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(members: &str) -> Result<McpRequest, Unrecognized> {
        McpRequest::read(format!(r#"{{"jsonrpc":"2.0",{members}}}"#).as_bytes())
    }

    #[test]
    fn an_id_is_a_whole_number_or_a_text() {
        for (text, id) in
            [("7", json!(7)), ("1.0", json!(1)), ("1e2", json!(100)), ("\"\\u0061\"", json!("a"))]
        {
            assert_eq!(read(&format!(r#""id":{text},"method":"ping""#)).unwrap().id, Some(id), "{text}");
        }
        for bad in ["1.5", "null", "18446744073709551615", "9007199254740992.0", r#""\ud800""#] {
            assert!(read(&format!(r#""id":{bad},"method":"ping""#)).is_err(), "{bad}");
        }
        assert_eq!(read(r#""method":"x""#).unwrap().id, None);
    }

    #[test]
    fn a_request_says_what_it_asks_for() {
        let whole = r#"{"protocolVersion":"v","capabilities":{},"clientInfo":{"name":"x","version":"1"}}"#;
        for (method, params, asks) in [
            ("initialize", whole, Asks::Handshake("v".to_owned())),
            ("initialize", r#"{"protocolVersion":"v"}"#, Asks::Other),
            ("server/discover", "{}", Asks::Discovery),
            ("server/discover", "null", Asks::Other),
            ("ping", "null", Asks::Ping),
            ("tools/list", "{}", Asks::Tools),
            (CALL, r#"{"name":"a"}"#, Asks::Call),
            (CALL, r#"{"name":"a","arguments":[]}"#, Asks::Other),
            ("x", "{}", Asks::Other),
        ] {
            let request = read(&format!(r#""id":1,"method":"{method}","params":{params}"#)).unwrap();
            assert_eq!(request.asks, asks, "{method} {params}");
        }
    }

    #[test]
    fn meta_of_two_meanings_is_unreadable() {
        let meta = format!(r#""_meta":{{"{VERSION_KEY}":"v","{CAPABILITIES_KEY}":{{}}}}"#);
        let request = read(&format!(r#""id":1,"method":"x","params":{{{meta}}}"#)).unwrap();
        assert_eq!((request.version.as_deref(), request.has_capabilities), (Some("v"), true));
        for bad in [format!("{{{meta},{meta}}}"), r#"{"_meta":1}"#.to_owned(), "[]".to_owned()] {
            assert!(read(&format!(r#""id":1,"method":"x","params":{bad}"#)).is_err(), "{bad}");
        }
    }
}
