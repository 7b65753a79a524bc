//! search finds issues and pull requests by words.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use super::access::{GitHubAccess, failed, spec};
use crate::{
    parts::Parts,
    tool::{Effect, Invocation, Tool, ToolResult, ToolSpec},
};

/// `github__search`
pub(in crate::tools) struct Search {
    spec: ToolSpec,
    access: GitHubAccess,
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
}

impl Search {
    pub(in crate::tools) fn new(parts: &Parts) -> Self {
        let description = "Finds issues and pull requests of the repository that you work on that have all words of a text. Qualifiers and operators are taken as words.";
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["text"],
            "properties": { "text": { "type": "string", "minLength": 1, "maxLength": 200 } },
        });
        Self { spec: spec(parts, "github__search", description, schema), access: GitHubAccess::of(parts) }
    }

    async fn search(&self, call: &Invocation) -> ToolResult {
        let Arguments { text } = call.arguments()?;
        let issues = self.access.issues(call).await?.search(&text).await;
        Ok(json!({ "issues": issues.map_err(|error| failed(&error, Effect::Reads))? }))
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.search(call))
    }
}
