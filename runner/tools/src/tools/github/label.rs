//! label adds labels to an issue or pull request.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use super::access::{GitHubAccess, failed, labels, number, spec};
use crate::{
    parts::Parts,
    tool::{Effect, Invocation, Tool, ToolResult, ToolSpec},
};

/// `github__label`
pub(in crate::tools) struct Label {
    spec: ToolSpec,
    access: GitHubAccess,
}

#[derive(Deserialize)]
struct Arguments {
    number: u64,
    labels: Vec<String>,
}

impl Label {
    pub(in crate::tools) fn new(parts: &Parts) -> Self {
        let description = "Adds labels to an issue or pull request of the repository that you work on. Returns all that it has.";
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["number", "labels"],
            "properties": { "number": number(), "labels": labels(1) },
        });
        let mut spec = spec(parts, "github__label", description, schema);
        spec.effect = Effect::Writes;
        Self { spec, access: GitHubAccess::of(parts) }
    }

    async fn label(&self, call: &Invocation) -> ToolResult {
        let Arguments { number, labels } = call.arguments()?;
        let all = self.access.issues(call).await?.label(number, &labels).await;
        let all = all.map_err(|error| failed(&error, self.spec.effect))?;
        Ok(json!({ "number": number, "labels": all }))
    }
}

impl Tool for Label {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.label(call))
    }
}
