//! server_tool calls a tool of a third-party server, if the server still describes it as it was accepted.

use futures_util::future::BoxFuture;
use platform_runtime::report;
use runner_mcp::{ServerError, ToolServers};

use super::ConfiguredTool;
use crate::tool::{Effect, Invocation, Tool, ToolCode, ToolError, ToolResult, ToolSpec};

/// Tool of a server.
pub(super) struct ServerTool {
    spec: ToolSpec,
    servers: ToolServers,
    tool: ConfiguredTool,
    /// Digest of the definition that was accepted.
    digest: String,
}

impl ServerTool {
    pub(super) const fn new(
        spec: ToolSpec,
        servers: ToolServers,
        tool: ConfiguredTool,
        digest: String,
    ) -> Self {
        Self { spec, servers, tool, digest }
    }

    async fn call(&self, call: &Invocation) -> ToolResult {
        let ConfiguredTool { server, tool, .. } = &self.tool;
        let session =
            self.servers.session(server, &call.account).await.map_err(|error| self.unavailable(&error))?;
        let listing = session.listing().await.map_err(|error| self.unavailable(&error))?;
        match listing.tools.get(tool) {
            None => return Err(self.missing("the server does not list it any more")),
            Some(Err(invalid)) => return Err(self.missing(&invalid.to_string())),
            Some(Ok(listed)) if listed.digest != self.digest => {
                let message = format!(
                    "the server describes {} otherwise than when it was accepted, and nothing ran: `sluice tools accept {server} {tool}` shows the difference",
                    self.spec.name
                );
                tracing::warn!(%server, tool, "tool of a server refused: its description has changed");
                return Err(ToolError::new(ToolCode::ToolChanged, message));
            }
            Some(Ok(_)) => {}
        }
        let answered = session.call(tool, &call.args).await;
        if let Some(connection) = session.connection() {
            call.note_connection(connection);
        }
        match answered {
            Ok(result) if result.is_error => {
                let words = result.texts();
                let message =
                    format!("the third-party server `{server}` reports an error, in its own words: {words}");
                Err(ToolError::new(ToolCode::ToolFailed, message))
            }
            Ok(result) => Ok(result.marked(server)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn missing(&self, problem: &str) -> ToolError {
        ToolError::new(ToolCode::ToolUnavailable, format!("{}: {problem}", self.spec.name))
    }

    /// Returns the refusal of a call that was not sent.
    fn unavailable(&self, error: &ServerError) -> ToolError {
        let server = &self.tool.server;
        tracing::warn!(%server, error = report::chain(error), "tool server unavailable");
        match error {
            ServerError::Credential { code, message } => ToolError::new(*code, message.clone()),
            error => self.missing(&format!("server {server}: {}", error.for_agent())),
        }
    }

    /// Returns the error of a call that was sent.
    fn failed(&self, error: &ServerError) -> ToolError {
        let server = &self.tool.server;
        tracing::warn!(%server, tool = self.tool.tool, error = report::chain(error), "call of a tool server failed");
        let message = format!("server {server}: {}", error.for_agent());
        match error {
            error if error.may_have_run() && self.spec.effect == Effect::Writes => {
                ToolError::unknown(format!("{message}; the call may have had its effect"))
            }
            ServerError::TimedOut { .. } => ToolError::new(ToolCode::TimedOut, message),
            ServerError::TooLarge { .. } => ToolError::new(ToolCode::ResultTooLarge, message),
            ServerError::Credential { code, message } => ToolError::new(*code, message.clone()),
            ServerError::NotSent | ServerError::Busy { .. } => {
                ToolError::new(ToolCode::ToolUnavailable, message)
            }
            _ => ToolError::new(ToolCode::ToolFailed, message),
        }
    }
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.call(call))
    }
}
