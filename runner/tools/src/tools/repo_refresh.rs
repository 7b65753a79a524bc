//! repo_refresh fetches a mirrored repository at once, and returns the commit that agents see.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use platform_core::id::RepoName;
use platform_runtime::{report, settings::Settings};
use runner_repos::{Error as RepoError, RefreshOutcome, Refresher, RepoRegistry};
use serde::Deserialize;
use serde_json::json;

use crate::{
    parts::Parts,
    tool::{Invocation, Tool, ToolCode, ToolError, ToolResult, ToolSpec, tool_name},
};

/// Longest time of a refresh: one that takes longer goes on, and is reported as pending before.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(35);

/// `repo_refresh`
pub(super) struct RepoRefresh {
    spec: ToolSpec,
    settings: Arc<Settings>,
    refresher: Refresher,
}

#[derive(Deserialize)]
struct Arguments {
    repository: RepoName,
}

impl RepoRefresh {
    pub(super) fn new(parts: &Parts) -> Self {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["repository"],
            "properties": { "repository": {
                "type": "string", "minLength": 1, "maxLength": 64,
                "description": "Name of a mirrored repository, as its volume has it.",
            } },
        });
        let description = "Fetches a mirrored repository at once. Returns the commit that its directory shows from now on; `pending` if the fetch goes on.";
        let mut spec = ToolSpec::reading(tool_name("repo_refresh"), description, schema);
        spec.timeout = REFRESH_TIMEOUT;
        let gateway = &parts.gateway;
        Self { spec, settings: Arc::clone(&gateway.settings), refresher: gateway.refresher.clone() }
    }

    async fn refresh(&self, call: &Invocation) -> ToolResult {
        let Arguments { repository } = call.arguments()?;
        let unknown = || ToolError::new(ToolCode::NotFound, format!("there is no repository {repository}"));
        match RepoRegistry::of(&self.settings.sandbox).get(&repository) {
            Ok(_entry) => {}
            Err(RepoError::Unknown { .. }) => return Err(unknown()),
            Err(error) => return Err(failed(&error)),
        }
        match self.refresher.refresh(&self.settings, &repository).await {
            Ok(RefreshOutcome::Shown { commit, .. }) => Ok(json!({ "commit": commit })),
            Ok(RefreshOutcome::Pending) => Ok(json!({ "pending": true })),
            Err(error) => match &*error {
                RepoError::Unknown { .. } => Err(unknown()),
                other => Err(failed(other)),
            },
        }
    }
}

/// Returns the error for an agent, who is not shown what failed on the host.
fn failed(error: &RepoError) -> ToolError {
    tracing::warn!(error = report::chain(error), "repository not refreshed for an agent");
    ToolError::new(ToolCode::ToolFailed, "the repository could not be refreshed: the operator's log says why")
}

impl Tool for RepoRefresh {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.refresh(call))
    }
}
