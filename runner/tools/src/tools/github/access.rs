//! access finds the repository of a run, and maps errors of GitHub.

use std::sync::Arc;

use platform_core::{
    id::{AgentId, RunId},
    json::{self, Bounds},
};
use platform_runtime::{report, retry::Transient, settings::ServiceUrl};
use runner_connections::{ConnectionBroker, CredentialError};
use runner_git::RepoUrl;
use runner_github::{CredentialSource, Error as GitHubError, Issues, RepositoryName};
use runner_store::{Error as StoreError, Store};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    caller::store_unavailable,
    parts::Parts,
    tool::{Effect, Invocation, ToolCode, ToolError, ToolSpec, tool_name},
};

/// Provider of the connections with the credentials that these tools use.
const CONNECTION: &str = "github";
/// Status from which on a server may have done what it was asked.
const SERVER_FAULTS: u16 = 500;
/// Status of something that is not there, or not shown.
const NOT_FOUND: u16 = 404;

/// Access to the repositories of runs.
#[derive(Debug, Clone)]
pub(super) struct GitHubAccess {
    store: Store,
    /// Address of the configured GitHub.
    url: ServiceUrl,
    connections: ConnectionBroker,
    /// Credentials of this installation.
    credentials: Option<Arc<CredentialSource>>,
}

/// Part of a run's order.
#[derive(Deserialize)]
struct OrderedRun {
    repo: Option<OrderedRepo>,
}

#[derive(Deserialize)]
struct OrderedRepo {
    url: String,
}

impl GitHubAccess {
    pub(super) fn of(parts: &Parts) -> Self {
        let gateway = &parts.gateway;
        Self {
            store: parts.store.clone(),
            url: gateway.settings.github.url.clone(),
            connections: gateway.connections.clone(),
            credentials: gateway.github.clone(),
        }
    }

    /// Returns the issues of the repository of the calling run. Uses the connection of its account, if it has one.
    ///
    /// # Errors
    /// If the run has no repository at the configured GitHub, or no credential exists for it.
    pub(super) async fn issues(&self, call: &Invocation) -> Result<Issues, ToolError> {
        let repository = self.repository(run_id(call)?).await?;
        let own = self.connections.github_source(&call.account, &repository).await;
        let credentials = match own.map_err(|error| no_credential(&error))? {
            Some(own) => {
                call.note_connection(own.connection);
                own.credentials
            }
            None => self
                .credentials
                .clone()
                .ok_or_else(|| ToolError::new(ToolCode::ToolUnavailable, NO_CREDENTIAL))?,
        };
        Ok(Issues::of(credentials, repository))
    }

    async fn repository(&self, run_id: &RunId) -> Result<RepositoryName, ToolError> {
        let order = self.store.order(run_id).await.map_err(|error| not_read(&error, run_id))?;
        let order: OrderedRun =
            json::from_str(&order, Bounds::STORED).map_err(|_other| no_repository(run_id))?;
        let url = order.repo.ok_or_else(|| no_repository(run_id))?.url;
        let url = RepoUrl::parse(&url).map_err(|_invalid| no_repository(run_id))?;
        let repository = RepositoryName::of(&url).ok().filter(|repository| repository.is_at(&self.url));
        repository.ok_or_else(|| no_repository(run_id))
    }

    /// Returns run and agent of a call.
    pub(super) async fn origin<'c>(&self, call: &'c Invocation) -> Result<(&'c RunId, AgentId), ToolError> {
        let run_id = run_id(call)?;
        let run = self.store.run(run_id).await.map_err(|error| not_read(&error, run_id))?;
        Ok((run_id, run.agent))
    }
}

const NO_CREDENTIAL: &str = "there is no credential for GitHub: set github.token_file, GITHUB_TOKEN, a GitHub App, or connections.key_file";

/// Returns the error of a connection that gives no credential. The operator's log says more.
fn no_credential(error: &CredentialError) -> ToolError {
    tracing::warn!(error = report::chain(error), "tool of GitHub without a credential of its account");
    ToolError::new(error.tool_code(), error.message_for_agent())
}

fn run_id(call: &Invocation) -> Result<&RunId, ToolError> {
    let message = "the tool acts in the repository of a run, and there is no run";
    call.run_id.as_ref().ok_or_else(|| ToolError::new(ToolCode::NoRepository, message))
}

fn no_repository(run_id: &RunId) -> ToolError {
    ToolError::new(
        ToolCode::NoRepository,
        format!("run {run_id} works on no repository at the configured GitHub"),
    )
}

fn not_read(error: &StoreError, run_id: &RunId) -> ToolError {
    match error {
        StoreError::Unknown { .. } => {
            ToolError::new(ToolCode::NoRepository, format!("there is no run {run_id}"))
        }
        error => store_unavailable(error),
    }
}

/// Returns the description of a tool of GitHub.
pub(super) fn spec(parts: &Parts, name: &'static str, description: &str, schema: Value) -> ToolSpec {
    let mut spec = ToolSpec::reading(tool_name(name), description, schema);
    spec.connection = Some(CONNECTION.to_owned());
    let has_credentials = parts.gateway.github.is_some() || parts.gateway.connections.is_configured();
    spec.unavailable = (!has_credentials).then(|| NO_CREDENTIAL.to_owned());
    spec
}

/// Returns the schema of the number of an issue.
pub(super) fn number() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000_000, "description": "Number in the repository." })
}

/// Returns the schema of labels.
pub(super) fn labels(min_items: u32) -> Value {
    json!({
        "type": "array", "minItems": min_items, "maxItems": 10, "uniqueItems": true,
        "items": { "type": "string", "pattern": "^[^,\\u0000-\\u001f]{1,50}$" },
    })
}

/// Returns the error of a call. One that writes may have had its effect if GitHub did not say how it ended.
pub(super) fn failed(error: &GitHubError, effect: Effect) -> ToolError {
    tracing::debug!(error = report::chain(error), "tool of GitHub failed");
    let is_uncertain = match error {
        GitHubError::Refused { status, .. } => *status >= SERVER_FAULTS,
        GitHubError::Unexpected { .. } => true,
        error => error.is_transient(),
    };
    match error {
        _ if is_uncertain && effect == Effect::Writes => {
            ToolError::unknown(format!("{error}; it may have had its effect"))
        }
        GitHubError::Refused { status: NOT_FOUND, .. } => {
            ToolError::new(ToolCode::NotFound, "the repository has no such issue or pull request")
        }
        // The operator's log says more.
        GitHubError::SecretFile { .. } | GitHubError::BadSecret { .. } => {
            tracing::warn!(error = report::chain(error), "tool of GitHub without a credential");
            ToolError::new(ToolCode::ToolFailed, "the credential cannot be read")
        }
        error => ToolError::new(ToolCode::ToolFailed, error.to_string()),
    }
}
