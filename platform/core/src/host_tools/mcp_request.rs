//! Reads what a server of the Model Context Protocol needs of a message besides [`McpMessage`](super::mcp::McpMessage):
//! what it asks for, in which version.
//!
//! A request without what its method demands is one for something that the server does not have.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Error, Map, Value, value::RawValue};

use super::{is_object, mcp::CALL};

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

#[derive(Deserialize)]
struct RequestEnvelope<'b> {
    #[serde(default, deserialize_with = "read_id")]
    id: Option<Value>,
    method: String,
    #[serde(borrow)]
    params: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HandshakeParams {
    protocol_version: String,
    #[serde(rename = "capabilities")]
    _capabilities: Map<String, Value>,
    client_info: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallParams {
    #[serde(rename = "arguments")]
    _arguments: Option<Map<String, Value>>,
    #[serde(rename = "inputResponses")]
    _input_responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState")]
    _request_state: Option<String>,
}

impl McpRequest {
    /// Reads `body`, which is a message that may pass.
    ///
    /// # Errors
    /// If the id is no whole number, `params` or its `_meta` is no object, or a number or a text cannot be represented.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let whole: Value = serde_json::from_slice(body)?;
        let unrecognized = |_form| Error::custom("unrecognized JSON-RPC message");
        let RequestEnvelope { id, method, params } = serde_json::from_slice(body).map_err(unrecognized)?;
        let params = params.map(RawValue::get);
        if params.is_some_and(|params| !is_object(params.as_bytes())) {
            return Err(Error::custom("unrecognized JSON-RPC message"));
        }
        let Params { meta } =
            params.map_or_else(|| Ok(Params::default()), serde_json::from_str).map_err(unrecognized)?;
        let meta = meta.unwrap_or_default();
        Ok(Self {
            id,
            asks: what(&method, params),
            version: meta.get(VERSION_KEY).and_then(Value::as_str).map(str::to_owned),
            has_capabilities: meta.get(CAPABILITIES_KEY).is_some_and(Value::is_object),
            has_name: name_member(&method).is_some_and(|name| whole["params"][name].is_string()),
        })
    }
}

/// Reads an id that is there.
fn read_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let id = Value::deserialize(deserializer)?;
    let whole = |float: f64| {
        let is_exact = float.fract() == 0.0 && float.abs() < MAX_EXACT;
        is_exact.then(|| format!("{float:.0}").parse::<i64>().ok()).flatten()
    };
    let number = id.as_i64().or_else(|| id.as_f64().filter(|_float| !id.is_u64()).and_then(whole));
    let id = number.map(Value::from).or_else(|| Some(id).filter(Value::is_string));
    id.map(Some).ok_or_else(|| D::Error::custom("the id is neither a whole number nor a text"))
}

fn what(method: &str, params: Option<&str>) -> Asks {
    let params = || params.unwrap_or("null");
    match method {
        "initialize" => handshake(params()).map_or(Asks::Other, Asks::Handshake),
        "server/discover" if params() != "null" => Asks::Discovery,
        "ping" => Asks::Ping,
        "tools/list" => Asks::Tools,
        CALL if serde_json::from_str::<CallParams>(params()).is_ok() => Asks::Call,
        _ => Asks::Other,
    }
}

/// Returns the version that a handshake asks for, if everything is there that belongs to one.
fn handshake(params: &str) -> Option<String> {
    let params: HandshakeParams = serde_json::from_str(params).ok()?;
    let is_text = |name| params.client_info.get(name).is_some_and(Value::is_string);
    (is_text("name") && is_text("version")).then_some(params.protocol_version)
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

    fn read(members: &str) -> Result<McpRequest, Error> {
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
