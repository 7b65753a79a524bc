//! read_issue reads an issue or pull request, with its text and its first comments.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use super::access::{GitHubAccess, failed, number, spec};
use crate::{
    parts::Parts,
    tool::{Effect, Invocation, Tool, ToolResult, ToolSpec},
};

/// `github__read_issue`
pub(in crate::tools) struct ReadIssue {
    spec: ToolSpec,
    access: GitHubAccess,
}

#[derive(Deserialize)]
struct Arguments {
    number: u64,
}

impl ReadIssue {
    pub(in crate::tools) fn new(parts: &Parts) -> Self {
        let description = "Reads an issue or pull request of the repository that you work on, with its first 30 comments. Anyone may have written them.";
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["number"], "properties": { "number": number() },
        });
        Self { spec: spec(parts, "github__read_issue", description, schema), access: GitHubAccess::of(parts) }
    }

    async fn read(&self, call: &Invocation) -> ToolResult {
        let Arguments { number } = call.arguments()?;
        let issue = self.access.issues(call).await?.read(number).await;
        Ok(json!(issue.map_err(|error| failed(&error, Effect::Reads))?))
    }
}

impl Tool for ReadIssue {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.read(call))
    }
}
