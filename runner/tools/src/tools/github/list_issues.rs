//! list_issues lists the issues and pull requests that were changed last.

use futures_util::future::BoxFuture;
use runner_github::IssueFilter;
use serde::Deserialize;
use serde_json::json;

use super::access::{GitHubAccess, failed, labels, spec};
use crate::{
    parts::Parts,
    tool::{Effect, Invocation, Tool, ToolResult, ToolSpec},
};

/// `github__list_issues`
pub(in crate::tools) struct ListIssues {
    spec: ToolSpec,
    access: GitHubAccess,
}

#[derive(Deserialize)]
struct Arguments {
    state: Option<IssueFilter>,
    #[serde(default)]
    labels: Vec<String>,
}

impl ListIssues {
    pub(in crate::tools) fn new(parts: &Parts) -> Self {
        let description = "Lists the 30 issues and pull requests of the repository that you work on that were changed last.";
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "state": { "type": "string", "enum": ["open", "closed", "all"], "description": "`open` if absent." },
                "labels": labels(0),
            },
        });
        Self {
            spec: spec(parts, "github__list_issues", description, schema),
            access: GitHubAccess::of(parts),
        }
    }

    async fn list(&self, call: &Invocation) -> ToolResult {
        let Arguments { state, labels } = call.arguments()?;
        let filter = state.unwrap_or(IssueFilter::Open);
        let issues = self.access.issues(call).await?.list(filter, &labels).await;
        Ok(json!({ "issues": issues.map_err(|error| failed(&error, Effect::Reads))? }))
    }
}

impl Tool for ListIssues {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.list(call))
    }
}
