//! server_tool calls a tool of a third-party server, if the server still describes it as it was accepted.

use futures_util::future::BoxFuture;
use platform_runtime::report;
use runner_mcp::{Listing, ServerError, ServerResult, ToolServers};

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

/// Reason why a call has no result.
enum CallFailure {
    /// The tool may not be called.
    Refused(ToolError),
    /// The server is unavailable, and was not sent the call.
    Unavailable(ServerError),
    /// The call was sent, and failed.
    Failed(ServerError),
}

impl CallFailure {
    /// Returns whether another session may have the result: the server has run nothing for this one.
    const fn is_session_over(&self) -> bool {
        matches!(self, Self::Unavailable(ServerError::NotSent) | Self::Failed(ServerError::NotSent))
    }
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
        let server = &self.tool.server;
        let answered = match self.attempt(call).await {
            Err(failure) if failure.is_session_over() => self.attempt(call).await,
            answered => answered,
        };
        match answered {
            Ok(result) if result.is_error => {
                let words = result.texts();
                let message =
                    format!("the third-party server `{server}` reports an error, in its own words: {words}");
                Err(ToolError::new(ToolCode::ToolFailed, message))
            }
            Ok(result) => Ok(result.marked(server)),
            Err(CallFailure::Refused(error)) => Err(error),
            Err(CallFailure::Unavailable(error)) => Err(self.unavailable(&error)),
            Err(CallFailure::Failed(error)) => Err(self.failed(&error)),
        }
    }

    /// Sends the call in the session that there is, or in a new one.
    async fn attempt(&self, call: &Invocation) -> Result<ServerResult, CallFailure> {
        let session = self.servers.session(&self.tool.server, &call.account).await;
        let session = session.map_err(CallFailure::Unavailable)?;
        self.check(&session.listing().await.map_err(CallFailure::Unavailable)?)
            .map_err(CallFailure::Refused)?;
        let answered = session.call(&self.tool.tool, &call.args).await;
        if let Some(connection) = session.connection() {
            call.note_connection(connection);
        }
        answered.map_err(CallFailure::Failed)
    }

    /// Checks that the server still describes the tool as it was accepted.
    fn check(&self, listing: &Listing) -> Result<(), ToolError> {
        let ConfiguredTool { server, tool, .. } = &self.tool;
        match listing.tools.get(tool) {
            None => Err(self.missing("the server does not list it any more")),
            Some(Err(invalid)) => Err(self.missing(&invalid.to_string())),
            Some(Ok(listed)) if listed.digest != self.digest => {
                let message = format!(
                    "the server describes {} otherwise than when it was accepted, and nothing ran: `sluice tools accept {server} {tool}` shows the difference",
                    self.spec.name
                );
                tracing::warn!(%server, tool, "tool of a server refused: its description has changed");
                Err(ToolError::new(ToolCode::ToolChanged, message))
            }
            Some(Ok(_)) => Ok(()),
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
            ServerError::Credential { code, message, .. } => ToolError::new(*code, message.clone()),
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
            ServerError::Credential { code, message, .. } => ToolError::new(*code, message.clone()),
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
