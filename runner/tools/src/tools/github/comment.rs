//! comment adds a comment to an issue or pull request. The agent's text is a quotation without effects.

use futures_util::future::BoxFuture;
use runner_git::SecretScan;
use runner_github::{CommentText, RunFooter};
use serde::Deserialize;
use serde_json::json;

use super::access::{GitHubAccess, failed, number, spec};
use crate::{
    parts::Parts,
    tool::{Effect, Invocation, Tool, ToolCode, ToolError, ToolResult, ToolSpec},
};

/// `github__comment`
pub(in crate::tools) struct Comment {
    spec: ToolSpec,
    access: GitHubAccess,
}

#[derive(Deserialize)]
struct Arguments {
    number: u64,
    body: String,
}

impl Comment {
    pub(in crate::tools) fn new(parts: &Parts) -> Self {
        let description = "Comments on an issue or pull request of the repository that you work on. The text is shown as a quotation; mentions and references in it have no effect.";
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["number", "body"],
            "properties": {
                "number": number(),
                "body": { "type": "string", "minLength": 1, "maxLength": 20_000, "pattern": "\\S", "description": "Markdown." },
            },
        });
        let mut spec = spec(parts, "github__comment", description, schema);
        spec.effect = Effect::Writes;
        Self { spec, access: GitHubAccess::of(parts) }
    }

    async fn comment(&self, call: &Invocation) -> ToolResult {
        let Arguments { number, body } = call.arguments()?;
        let issues = self.access.issues(call).await?;
        let (run_id, agent) = self.access.origin(call).await?;
        let footer = RunFooter { run: run_id, agent: &agent, account: None };
        let text = CommentText::compose(&body, &footer, &SecretScan::default());
        let text = text.map_err(|held| ToolError::new(ToolCode::InvalidArguments, held.to_string()))?;
        let made = issues.comment(number, &text).await;
        let id = made.map_err(|error| failed(&error, self.spec.effect))?;
        Ok(json!({ "number": number, "comment_id": id }))
    }
}

impl Tool for Comment {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.comment(call))
    }
}
