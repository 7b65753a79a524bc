//! tool defines a host tool: its description, its effect and its limits, and how it is called.

use std::{sync::OnceLock, time::Duration};

use futures_util::future::BoxFuture;
pub(crate) use platform_core::host_tools::ToolCode;
use platform_core::{
    connection::ConnectionId,
    host_tools::ToolOutcome,
    id::{AccountId, RunId, ToolName, ToolServerName},
    limit::ByteSize,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Effect of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The tool changes nothing. A call that is repeated runs again.
    Reads,
    /// The tool changes something outside. A call runs at most once.
    Writes,
}

impl Effect {
    /// Returns the effect as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }
}

/// Description of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolSpec {
    pub(crate) name: ToolName,
    /// Description for a model.
    pub(crate) description: String,
    /// JSON Schema of the arguments.
    pub(crate) schema: Value,
    pub(crate) effect: Effect,
    pub(crate) timeout: Duration,
    /// Largest result, as JSON.
    pub(crate) max_result: ByteSize,
    /// Provider of the connection with the tool's credential, if the account has one.
    pub(crate) connection: Option<String>,
    /// Third-party server of the tool.
    pub(crate) server: Option<ToolServerName>,
    /// Reason why the tool cannot be used with these settings.
    pub(crate) unavailable: Option<String>,
}

/// Longest time of a tool.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest result of a tool.
const MAX_RESULT: ByteSize = ByteSize::kib(256);

impl ToolSpec {
    /// Returns the description of a tool that reads, with the usual limits.
    pub(crate) fn reading(name: ToolName, description: &str, schema: Value) -> Self {
        Self {
            name,
            description: description.to_owned(),
            schema,
            effect: Effect::Reads,
            timeout: TIMEOUT,
            max_result: MAX_RESULT,
            connection: None,
            server: None,
            unavailable: None,
        }
    }
}

/// Call of a tool, with arguments that follow its schema.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// Account for which the tool acts.
    pub(crate) account: AccountId,
    /// Run for which the tool acts; none if an operator tries the tool.
    pub(crate) run_id: Option<RunId>,
    pub(crate) args: Value,
    connection: OnceLock<ConnectionId>,
}

impl Invocation {
    pub(crate) const fn new(account: AccountId, run_id: Option<RunId>, args: Value) -> Self {
        Self { account, run_id, args, connection: OnceLock::new() }
    }

    /// Notes the connection with the credential that the tool uses. A call uses one at most.
    pub(crate) fn note_connection(&self, connection: ConnectionId) {
        self.connection.get_or_init(|| connection);
    }

    /// Returns the connection with the credential that the tool has used, if it has used one.
    pub(crate) fn connection(&self) -> Option<&ConnectionId> {
        self.connection.get()
    }

    /// Reads the arguments.
    ///
    /// # Errors
    /// If the schema of the tool takes what `T` does not.
    pub(crate) fn arguments<'de, T: Deserialize<'de>>(&'de self) -> Result<T, ToolError> {
        T::deserialize(&self.args)
            .map_err(|error| ToolError::new(ToolCode::InvalidArguments, format!("`args`: {error}")))
    }
}

/// Reason why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct ToolError {
    pub(crate) outcome: ToolOutcome,
    /// Stable code.
    pub(crate) code: String,
    /// Description for a person or a model.
    pub(crate) message: String,
}

impl ToolError {
    /// Returns the error with a code, which also says the outcome.
    pub(crate) fn new(code: ToolCode, message: impl Into<String>) -> Self {
        Self { outcome: code.meaning().outcome(), code: code.word().to_owned(), message: message.into() }
    }

    /// Returns the error of a call that may have had its effect.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(ToolCode::OutcomeUnknown, message)
    }
}

/// Result of a call.
pub(crate) type ToolResult = Result<Value, ToolError>;

/// Host tool.
pub(crate) trait Tool: Send + Sync {
    /// Returns the description.
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool. A tool that reads is cancel safe; one that writes is not cancelled.
    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult>;
}

/// Returns the name of a built-in tool.
///
/// # Panics
/// If `name` is not the name of a tool.
pub(crate) fn tool_name(name: &'static str) -> ToolName {
    match ToolName::parse(name) {
        Ok(name) => name,
        Err(error) => unreachable!("{error}"),
    }
}
