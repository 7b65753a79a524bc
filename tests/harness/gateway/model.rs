//! Makes a gateway's model calls with the addresses and headers that OpenClaw uses.

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use crate::agent::Agent;

/// Address of a provider in a gateway's configuration.
#[derive(Debug, Clone)]
pub enum Provider {
    /// `http://HOST:PORT[/PATH]`, to which `/v1/chat/completions` is added.
    Url(String),
    /// A provider on a unix socket, with the path before `/v1`.
    Unix(PathBuf, String),
}

/// Provider and headers of a call.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) provider: Provider,
    /// Trace of the request frame, if it has one.
    pub(super) traceparent: Option<String>,
    /// Headers of the session or of the turn.
    pub(super) headers: Vec<(String, String)>,
}

/// A model call of a gateway, and its result.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// Session of the turn that made the call.
    pub session: String,
    /// Status of the answer; `None` without an answer.
    pub status: Option<u16>,
    /// Text of the model, or the body of a refusal.
    pub said: String,
}

/// Returns the header of a call: the run's trace with a span of the call's own. Without a run's trace, OpenClaw
/// generates one.
fn traceparent(of_run: Option<&str>, count: usize) -> String {
    let generated = format!("{:032x}", 0xfeed_u64 + u64::try_from(count).unwrap());
    let trace = of_run.and_then(|parent| parent.split('-').nth(1)).unwrap_or(&generated);
    format!("00-{trace}-{:016x}-01", count + 1)
}

/// Makes the `count`th call of a gateway.
pub(super) async fn call(identity: &Identity, model: &str, message: &str, count: usize) -> ModelCall {
    let (agent, prefix) = match &identity.provider {
        Provider::Unix(socket, prefix) => (Agent::on(socket), prefix.clone()),
        Provider::Url(url) => {
            let rest = url.strip_prefix("http://").unwrap();
            let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Agent::over_tcp(address.parse().unwrap()).searched(), path.to_owned())
        }
    };
    let agent = agent
        .with_header("authorization", "Bearer proxy-handles-auth")
        .with_header("traceparent", &traceparent(identity.traceparent.as_deref(), count));
    let agent = identity.headers.iter().fold(agent, |agent, (name, value)| agent.with_header(name, value));
    let body = json!({
        "model": model,
        "messages": [{ "role": "user", "content": message }],
        "tools": [{ "type": "function", "function": { "name": "exec" } }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    let answer =
        agent.request(Method::POST, &format!("{prefix}/v1/chat/completions"), body.to_string().into()).await;
    let (status, said) = match answer {
        Err(_) => (None, String::new()),
        Ok(answer) if answer.status != 200 => (Some(answer.status.as_u16()), answer.text()),
        Ok(answer) => (Some(200), streamed_text(&answer.text())),
    };
    ModelCall { session: String::new(), status, said }
}

/// Returns the text of a streamed answer.
fn streamed_text(stream: &str) -> String {
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    events
        .filter_map(|event| serde_json::from_str::<Value>(event).ok())
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}
