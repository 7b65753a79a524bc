//! run_status returns the state of a run of the same account.

use futures_util::future::BoxFuture;
use platform_core::id::RunId;
use runner_store::{Error as StoreError, Store};
use serde::Deserialize;
use serde_json::json;

use crate::{
    caller::store_unavailable,
    parts::Parts,
    tool::{Invocation, Tool, ToolCode, ToolError, ToolResult, ToolSpec, tool_name},
};

/// `runs__status`
pub(super) struct RunStatus {
    spec: ToolSpec,
    store: Store,
}

#[derive(Deserialize)]
struct Arguments {
    run_id: Option<RunId>,
}

impl RunStatus {
    pub(super) fn new(parts: &Parts) -> Self {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": { "run_id": {
                "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$",
                "description": "A run of the same account; your own run if absent.",
            } },
        });
        let description = "Returns the state of your run, or of another run of the same account: its agent, times, outcome and usage.";
        let spec = ToolSpec::reading(tool_name("runs__status"), description, schema);
        Self { spec, store: parts.store.clone() }
    }

    async fn status(&self, call: &Invocation) -> ToolResult {
        let Arguments { run_id } = call.arguments()?;
        let run_id = run_id.or_else(|| call.run_id.clone());
        let run_id =
            run_id.ok_or_else(|| ToolError::new(ToolCode::InvalidArguments, "`run_id` is missing"))?;
        // A run of another account looks like one that does not exist.
        let unknown = || ToolError::new(ToolCode::NotFound, format!("the account has no run {run_id}"));
        let run = match self.store.run(&run_id).await {
            Ok(run) if run.account == call.account => run,
            Ok(_) | Err(StoreError::Unknown { .. }) => return Err(unknown()),
            Err(error) => return Err(store_unavailable(&error)),
        };
        Ok(json!({
            "run_id": run.run_id,
            "agent": run.agent,
            "state": run.state.name(),
            "attempt": run.attempt,
            "created_ms": run.created,
            "started_ms": run.started,
            "ended_ms": run.ended,
            "error": run.error.as_ref().map(|error| json!({ "code": error.code, "message": error.message })),
            "usage": run.usage,
        }))
    }
}

impl Tool for RunStatus {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.status(call))
    }
}
