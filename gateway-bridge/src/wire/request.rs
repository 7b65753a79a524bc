//! Builds requests to a gateway.

use std::{borrow::Cow, time::Duration};

use platform_core::{
    id::{GatewayProvider, RunId},
    traceparent::Traceparent,
};
use serde::Serialize;

use crate::{
    headers::OutboundHeaders,
    hello::Generation,
    session::SessionKey,
    turn::{Attribution, Turn},
};

/// Method of a turn of protocol 3.
pub(crate) const CHAT: &str = "chat.send";
/// Method of a turn of protocol 4.
pub(crate) const AGENT: &str = "agent";
/// Method of Sluicegate's plugin that gives a session its headers.
pub(crate) const HEADERS_SET: &str = "sluicegate.headers.set";
/// Method of Sluicegate's plugin that removes them.
pub(crate) const HEADERS_CLEAR: &str = "sluicegate.headers.clear";

/// Request frame.
#[derive(Serialize)]
struct RequestFrame<'a, P> {
    r#type: &'static str,
    id: &'a str,
    method: &'a str,
    params: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

/// Encodes the frame that calls `method`.
pub(crate) fn encode(
    id: u64,
    method: &str,
    params: &impl Serialize,
    trace: Option<Traceparent>,
) -> Result<String, serde_json::Error> {
    let traceparent = trace.map(|trace| trace.to_string());
    serde_json::to_string(&RequestFrame { r#type: "req", id: &id.to_string(), method, params, traceparent })
}

/// Call that starts a turn: its method and its frame.
#[derive(Debug, Clone)]
pub(crate) struct StartCall {
    pub(crate) id: u64,
    pub(crate) method: &'static str,
    pub(crate) text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentParams<'a> {
    message: &'a str,
    agent_id: &'a str,
    session_key: &'a str,
    idempotency_key: &'a str,
    deliver: bool,
    timeout: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outbound_headers: Option<&'a OutboundHeaders>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatParams<'a> {
    session_key: &'a str,
    message: Cow<'a, str>,
    deliver: bool,
    timeout_ms: u64,
    idempotency_key: &'a str,
}

impl Turn {
    /// Returns the call that starts this turn in the dialect of `generation`, `left` before its deadline.
    pub(crate) fn start(
        &self,
        id: u64,
        generation: Generation,
        default_provider: Option<&GatewayProvider>,
        left: Duration,
    ) -> Result<StartCall, serde_json::Error> {
        let (method, text) = match generation {
            Generation::Three => (CHAT, encode(id, CHAT, &self.chat_params(left), None)?),
            Generation::Four => {
                let trace = match &self.attribution {
                    Attribution::Trace(trace) => Some(*trace),
                    Attribution::Slot { .. }
                    | Attribution::Headers(_)
                    | Attribution::Plugin(_)
                    | Attribution::AsBegun => None,
                };
                (AGENT, encode(id, AGENT, &self.agent_params(default_provider, left), trace)?)
            }
        };
        Ok(StartCall { id, method, text })
    }

    /// Returns the provider that the turn's model belongs to, as far as it is known.
    fn provider<'a>(&'a self, default: Option<&'a GatewayProvider>) -> Option<&'a GatewayProvider> {
        match &self.attribution {
            Attribution::Slot { provider } => Some(provider),
            Attribution::Trace(_)
            | Attribution::Headers(_)
            | Attribution::Plugin(_)
            | Attribution::AsBegun => default,
        }
    }

    fn agent_params<'a>(
        &'a self,
        default_provider: Option<&'a GatewayProvider>,
        left: Duration,
    ) -> AgentParams<'a> {
        let headers = match &self.attribution {
            Attribution::Headers(headers) => Some(headers),
            Attribution::Trace(_)
            | Attribution::Slot { .. }
            | Attribution::Plugin(_)
            | Attribution::AsBegun => None,
        };
        let model = self.model.as_ref().map(platform_core::id::ModelName::as_str);
        AgentParams {
            message: &self.message,
            agent_id: self.session.agent(),
            session_key: self.session.as_str(),
            idempotency_key: self.run_id.as_str(),
            deliver: false,
            // This backs up the turn's own deadline, which is what counts.
            timeout: left.as_secs() + 1,
            provider: model.and_then(|_| self.provider(default_provider)).map(GatewayProvider::as_str),
            model,
            outbound_headers: headers,
        }
    }

    fn chat_params(&self, left: Duration) -> ChatParams<'_> {
        ChatParams {
            session_key: self.session.as_str(),
            message: guard_command(&self.message),
            deliver: false,
            timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX).saturating_add(1000),
            idempotency_key: self.run_id.as_str(),
        }
    }

    /// Returns the parameters of `chat.send` for this turn once more: only its answer shows whether the turn has ended.
    /// The gateway compares the id alone.
    pub(crate) fn repeated_chat(&self) -> ChatParams<'_> {
        ChatParams { message: Cow::Borrowed("again"), ..self.chat_params(Duration::from_secs(1)) }
    }

    /// Returns the session with its directory, if it has one.
    pub(crate) fn session_with_directory(&self) -> Option<CreateSession<'_>> {
        let cwd = self.directory.as_deref()?;
        Some(CreateSession { key: self.session.as_str(), agent_id: self.session.agent(), cwd })
    }

    /// Returns the changes that the session needs before the turn; `None` if there are none.
    pub(crate) fn patch(
        &self,
        generation: Generation,
        default_provider: Option<&GatewayProvider>,
    ) -> Option<Patch<'_>> {
        let model = match generation {
            Generation::Three => self.model.as_ref().map(|model| match self.provider(default_provider) {
                Some(provider) => format!("{provider}/{model}"),
                None => model.as_str().to_owned(),
            }),
            Generation::Four => None,
        };
        let (headers, needs_session_id) = match &self.attribution {
            Attribution::Headers(headers) => (Some(headers), false),
            Attribution::Plugin(_) => (None, true),
            Attribution::Trace(_) | Attribution::Slot { .. } | Attribution::AsBegun => (None, false),
        };
        let needed = model.is_some() || headers.is_some() || needs_session_id;
        needed.then(|| Patch { key: self.session.as_str(), model, outbound_headers: headers })
    }
}

/// Prefix for a message that protocol 3 could take for a command. There `chat.send` obeys any message with `/config` or
/// `stop`, with the rights of this client. After the prefix the rest is a message, whatever its text.
const COMMAND_GUARD: &str = "Request follows.\n\n";

/// Marker behind which protocol 3 looks for a command, anywhere in a message.
pub(crate) const COMMAND_MARKER: &str = "[Current message";

fn guard_command(message: &str) -> Cow<'_, str> {
    let is_one_word = !message.trim().contains(char::is_whitespace);
    if is_one_word || message.contains(['/', '!']) {
        return Cow::Owned(format!("{COMMAND_GUARD}{message}"));
    }
    Cow::Borrowed(message)
}

/// Parameters of `sessions.create`, which adopts a session that exists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateSession<'a> {
    pub(crate) key: &'a str,
    pub(crate) agent_id: &'a str,
    pub(crate) cwd: &'a str,
}

/// Parameters of `sessions.patch`, which answers with the session's id.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Patch<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outbound_headers: Option<&'a OutboundHeaders>,
}

/// Parameters of [`HEADERS_SET`].
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetHeaders<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) headers: &'a OutboundHeaders,
}

/// Parameters of [`HEADERS_CLEAR`].
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClearHeaders<'a> {
    pub(crate) session_id: &'a str,
}

/// Parameters of `chat.abort`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Abort<'a> {
    session_key: &'a str,
    run_id: &'a str,
}

impl<'a> Abort<'a> {
    pub(crate) fn new(session: &'a SessionKey, run_id: &'a RunId) -> Self {
        Self { session_key: session.as_str(), run_id: run_id.as_str() }
    }
}

/// Parameters of `agent.wait`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait<'a> {
    run_id: &'a str,
    timeout_ms: u64,
}

impl<'a> Wait<'a> {
    pub(crate) fn new(run_id: &'a RunId, timeout: Duration) -> Self {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Self { run_id: run_id.as_str(), timeout_ms }
    }
}

/// Parameters of `chat.history`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct History<'a> {
    session_key: &'a str,
    limit: u32,
}

impl<'a> History<'a> {
    /// Returns parameters for the last 200 messages, the most that both generations allow.
    pub(crate) fn new(session: &'a SessionKey) -> Self {
        Self { session_key: session.as_str(), limit: 200 }
    }
}

/// Parameters of `exec.approval.resolve`.
#[derive(Debug, Serialize)]
pub(crate) struct Resolve<'a> {
    pub(crate) id: &'a str,
    pub(crate) decision: &'static str,
}
