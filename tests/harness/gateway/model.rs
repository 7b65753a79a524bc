//! A gateway's calls of models, as OpenClaw makes them: which address, which headers.

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use crate::agent::Agent;

/// Address of a provider in a gateway's configuration.
#[derive(Debug, Clone)]
pub enum Provider {
    /// `http://HOST:PORT[/PATH]`, to which `/v1/chat/completions` is added.
    Url(String),
    /// The same by a unix socket, with the path before `/v1`.
    Unix(PathBuf, String),
}

/// Provider and headers of a call.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) provider: Provider,
    /// The trace of the request frame, if it had one.
    pub(super) traceparent: Option<String>,
    /// Headers of the session or of the turn.
    pub(super) headers: Vec<(String, String)>,
}

/// A call that a gateway made, and what came of it.
#[derive(Debug, Clone)]
pub struct Made {
    /// The session whose turn it belonged to.
    pub session: String,
    /// Status of the answer; none if there was none.
    pub status: Option<u16>,
    /// Text of the model, or the body of a refusal.
    pub said: String,
}

/// A call belongs to its run's trace; the span is its own. Without a run's trace, OpenClaw makes one up.
fn traceparent(of_run: Option<&str>, count: usize) -> String {
    let made_up = format!("{:032x}", 0xfeed_u64 + u64::try_from(count).unwrap());
    let trace = of_run.and_then(|parent| parent.split('-').nth(1)).unwrap_or(&made_up);
    format!("00-{trace}-{:016x}-01", count + 1)
}

/// Makes the `count`th call of a gateway.
pub(super) async fn ask(identity: &Identity, model: &str, message: &str, count: usize) -> Made {
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
        Ok(answer) => (Some(200), words(&answer.text())),
    };
    Made { session: String::new(), status, said }
}

/// The text of a streamed answer.
fn words(stream: &str) -> String {
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    events
        .filter_map(|event| serde_json::from_str::<Value>(event).ok())
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}
