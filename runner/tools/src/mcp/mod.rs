//! mcp serves the Model Context Protocol: streamable HTTP without sessions, with JSON in answers.
//!
//! 1. `negotiation` checks which version of the protocol the message speaks.
//! 2. `tools` describes tools, and what became of a call.
//! 3. `answer` is the form of answers.

mod answer;
mod negotiation;
mod tools;

use axum::http::{HeaderMap, StatusCode};
use platform_core::host_tools::{
    mcp::{InvalidMessage, McpMessage},
    mcp_request::{Asks, McpRequest},
};
use serde_json::json;

use self::{answer::McpResponse, negotiation::Lifecycle};
use crate::{
    caller::CallingRun,
    execute::{Call, Executed, Executor},
    tool::{ToolCode, ToolError},
};

/// Server of the protocol. Clones share it.
#[derive(Clone)]
pub(crate) struct McpServer {
    executor: Executor,
}

/// Answer to a message, and the call that it executed.
pub(crate) type McpAnswer = (McpResponse, Option<Executed>);

impl McpServer {
    pub(crate) fn new(executor: Executor) -> Self {
        Self { executor }
    }

    /// Answers a message. A client that leaves drops the future, and with it a call that reads.
    ///
    /// # Errors
    /// If the body is not a message that may pass.
    pub(crate) async fn respond(
        &self,
        caller: CallingRun,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<McpAnswer, InvalidMessage> {
        let message = McpMessage::read(body)?;
        let refused = message.tool.as_ref().map(|_tool| refused());
        let request = match McpRequest::read(body) {
            Ok(request) => request,
            Err(error) => {
                let text = format!("fail to deserialize request body {error}");
                return Ok((answer::words(StatusCode::UNSUPPORTED_MEDIA_TYPE, text), refused));
            }
        };
        let lifecycle = match negotiation::lifecycle(headers, &message.method, &request) {
            Ok(lifecycle) => lifecycle,
            Err(refusal) => return Ok((refusal.answer(request.id), refused)),
        };
        let Some(id) = request.id else { return Ok((answer::accepted(), None)) };
        if let (Asks::Call, Some(tool)) = (&request.asks, message.tool) {
            let args = message.arguments.unwrap_or_default();
            let call = Call { id: caller.call.clone(), caller, tool, args };
            let executed = self.executor.execute(call).await;
            return Ok((answer::result(id, tools::result(&executed, lifecycle)), Some(executed)));
        }
        let result = match request.asks {
            Asks::Handshake(version) => negotiation::handshake(&version),
            Asks::Discovery => negotiation::discovery(),
            Asks::Ping if lifecycle != Lifecycle::New => json!({}),
            Asks::Tools => tools::list(self.executor.catalog(), &caller, lifecycle).await,
            Asks::Ping | Asks::Call | Asks::Other => {
                let status = lifecycle.status_of_unknown_method();
                let error = answer::RpcError::new(answer::METHOD_NOT_FOUND, message.method);
                return Ok((answer::error(status, Some(id), error), refused));
            }
        };
        Ok((answer::result(id, result), None))
    }
}

/// Returns the end of a call that did not run.
fn refused() -> Executed {
    ToolError::new(ToolCode::InvalidRequest, "the message is not a call").into()
}
