//! read_pull_request reads a pull request, with its branches and the size of its change.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use super::access::{GitHubAccess, failed, number, spec};
use crate::{
    parts::Parts,
    tool::{Effect, Invocation, Tool, ToolResult, ToolSpec},
};

/// `github__read_pull_request`
pub(in crate::tools) struct ReadPullRequest {
    spec: ToolSpec,
    access: GitHubAccess,
}

#[derive(Deserialize)]
struct Arguments {
    number: u64,
}

impl ReadPullRequest {
    pub(in crate::tools) fn new(parts: &Parts) -> Self {
        let description = "Reads a pull request of the repository that you work on: its text, its branches, its state and the size of its change.";
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["number"], "properties": { "number": number() },
        });
        let spec = spec(parts, "github__read_pull_request", description, schema);
        Self { spec, access: GitHubAccess::of(parts) }
    }

    async fn read(&self, call: &Invocation) -> ToolResult {
        let Arguments { number } = call.arguments()?;
        let pull_request = self.access.issues(call).await?.read_pull_request(number).await;
        Ok(json!(pull_request.map_err(|error| failed(&error, Effect::Reads))?))
    }
}

impl Tool for ReadPullRequest {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.read(call))
    }
}
