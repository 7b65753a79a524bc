//! mcp_double is a scripted third-party server over HTTP.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::Response,
};
use http::{HeaderMap, Method};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use platform_runtime::task;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Behaviour of a server when a tool is called.
#[derive(Debug, Clone, Default)]
pub(crate) enum CallBehaviour {
    /// Answer with this result.
    Result(Value),
    /// Answer as an event stream, in which the server first asks for something.
    Events(Value),
    /// Answer as an event stream, in which the server first asks for something, and takes no answer to that. It ends with
    /// the result, if there is one.
    DeafEvents(Option<Value>),
    /// Answer with these bytes.
    Raw(&'static str, Vec<u8>),
    /// Answer with a status and a place to go to.
    Redirect(u16, String),
    /// Answer with a status.
    Status(u16),
    /// Refusal by the protocol.
    Refusal,
    /// No answer.
    #[default]
    Hang,
}

/// Script of a server, and what it was sent.
#[derive(Debug, Default)]
pub(crate) struct DoubleScript {
    pub(crate) tools: Vec<Value>,
    pub(crate) behaviour: CallBehaviour,
    /// Messages, by their method.
    pub(crate) received: Vec<(String, Value)>,
    /// Value of `authorization` of each message.
    pub(crate) credentials: Vec<String>,
    /// Sessions begun.
    pub(crate) sessions: u32,
    /// Sessions ended.
    pub(crate) ended: u32,
    /// Sessions before a restart, which are unknown now, and the status of an answer to them.
    pub(crate) forgotten: Option<(u32, u16)>,
}

/// A scripted server.
#[derive(Debug, Clone)]
pub(crate) struct McpDouble {
    pub(crate) script: Arc<Mutex<DoubleScript>>,
    pub(crate) url: String,
}

impl McpDouble {
    /// Starts a server with the tool `add`.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let script = DoubleScript { tools: vec![tool("add", "Adds.")], ..DoubleScript::default() };
        let double = Self { script: Arc::new(Mutex::new(script)), url };
        let router = Router::new().fallback(serve).with_state(double.clone());
        drop(task::spawn("mcp double", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                drop(task::spawn("mcp connection", connection));
            }
        }));
        double
    }

    /// Returns the settings of the server `notes`; its tool `add` may be used.
    pub(crate) fn settings(&self, more: &str) -> String {
        format!("[tools.servers.notes]\nurl = '{}'\ntools = ['add', 'get']\n{more}\n", self.url)
    }

    pub(crate) fn behave(&self, behaviour: CallBehaviour) {
        self.script.lock().unwrap().behaviour = behaviour;
    }

    /// Forgets all sessions, as a server that is started again. Answers their messages with `status`.
    pub(crate) fn restart(&self, status: u16) {
        let mut script = self.script.lock().unwrap();
        script.forgotten = Some((script.sessions, status));
    }

    pub(crate) fn list(&self, tools: Vec<Value>) {
        self.script.lock().unwrap().tools = tools;
    }

    /// Returns the numbers of sessions begun and ended.
    pub(crate) fn sessions(&self) -> (u32, u32) {
        let script = self.script.lock().unwrap();
        (script.sessions, script.ended)
    }

    /// Returns how often a method was received.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.script.lock().unwrap().received.iter().filter(|(received, _)| received == method).count()
    }
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

async fn serve(State(double): State<McpDouble>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    if method == Method::DELETE {
        double.script.lock().unwrap().ended += 1;
        return reply(200, "application/json", vec![]);
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let called = message["method"].as_str().unwrap_or_default().to_owned();
    let credential = headers.get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
    {
        let mut script = double.script.lock().unwrap();
        script.received.push((called.clone(), message.clone()));
        script.credentials.push(credential);
    }
    let session: Option<u32> =
        headers.get("mcp-session-id").and_then(|value| value.to_str().ok()?.strip_prefix("s-")?.parse().ok());
    let forgotten = double.script.lock().unwrap().forgotten;
    if let (Some(session), Some((last, status))) = (session, forgotten)
        && session <= last
    {
        return reply(status, "text/plain", vec![]);
    }
    let answer = |result: Value| {
        let text = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        reply(200, "application/json", text.into_bytes())
    };
    match called.as_str() {
        "initialize" => {
            let mut script = double.script.lock().unwrap();
            script.sessions += 1;
            let mut response = answer(json!({ "protocolVersion": "2025-06-18", "capabilities": {} }));
            let session = format!("s-{}", script.sessions).parse().unwrap();
            response.headers_mut().insert("mcp-session-id", session);
            response
        }
        "tools/list" => answer(json!({ "tools": double.script.lock().unwrap().tools.clone() })),
        "ping" => answer(json!({})),
        "tools/call" => {
            let behaviour = double.script.lock().unwrap().behaviour.clone();
            called_tool(behaviour, &message["id"]).await
        }
        "" if matches!(double.script.lock().unwrap().behaviour, CallBehaviour::DeafEvents(_)) => {
            reply(400, "text/plain", vec![])
        }
        _ => reply(202, "application/json", vec![]),
    }
}

async fn called_tool(behaviour: CallBehaviour, id: &Value) -> Response {
    let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    match behaviour {
        CallBehaviour::Result(result) => reply(200, "application/json", answer(result).into_bytes()),
        CallBehaviour::Events(result) | CallBehaviour::DeafEvents(Some(result)) => {
            let events = format!("data: {}\n\nevent: message\ndata: {}\n\n", question(), answer(result));
            reply(200, "text/event-stream", events.into_bytes())
        }
        CallBehaviour::DeafEvents(None) => {
            reply(200, "text/event-stream", format!("data: {}\n\n", question()).into_bytes())
        }
        CallBehaviour::Raw(media_type, bytes) => reply(200, media_type, bytes),
        CallBehaviour::Redirect(status, to) => {
            let mut response = reply(status, "text/plain", vec![]);
            response.headers_mut().insert("location", to.parse().unwrap());
            response
        }
        CallBehaviour::Status(status) => reply(status, "text/plain", vec![]),
        CallBehaviour::Refusal => {
            let error = json!({ "code": -32602, "message": "no such\u{1b}[2J note" });
            let text = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
            reply(200, "application/json", text.into_bytes())
        }
        CallBehaviour::Hang => std::future::pending().await,
    }
}

/// Returns a request that a server sends to its client.
fn question() -> Value {
    json!({ "jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": {} })
}

fn reply(status: u16, media_type: &str, body: Vec<u8>) -> Response {
    Response::builder().status(status).header("content-type", media_type).body(Body::from(body)).unwrap()
}
