//! Serves mirrored repositories: the commit that agents see of each, and a refresh.
//!
//! They belong to the installation, not to an account. Does not add or remove any, and does not show where they come from.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::id::RepoName;
use runner_repos::{RefreshOutcome, RepoStatus, Repos};
use runner_store::UnixMillis;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::{
    body::{ObjectId, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    rfc3339::rfc3339,
};

/// Longest wait for the states of all repositories.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// Mirrored repositories.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryList)]
struct RepositoryListView {
    repositories: Vec<RepositoryView>,
}

/// Mirrored repository.
#[derive(Serialize, ToSchema)]
#[schema(as = Repository)]
#[serde(rename_all = "camelCase")]
struct RepositoryView {
    #[schema(value_type = schemas::RepoName)]
    name: RepoName,
    /// Branch that is mirrored.
    branch: String,
    /// Volume that agents mount.
    volume: String,
    /// `up` or `down`.
    state: &'static str,
    /// Commit that agents see; null before the first fetch.
    #[schema(required = true)]
    sha: Option<String>,
    /// Time of the last attempt to fetch; null before the first.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    synced_at: Option<String>,
    /// True if the last attempt failed; agents see the commit from before.
    failing: bool,
}

/// Repository that was fetched at once.
#[derive(Serialize, ToSchema)]
#[schema(as = RefreshedRepository)]
#[serde(rename_all = "camelCase")]
struct RefreshedView {
    #[schema(value_type = schemas::RepoName)]
    name: RepoName,
    /// Commit that agents see; null if the fetch goes on.
    #[schema(required = true)]
    sha: Option<String>,
    /// Time since when; null if the fetch goes on.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    refreshed_at: Option<String>,
}

/// Lists mirrored repositories.
pub(crate) async fn list(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let listed = async {
        let repos = Repos::open(&settings).await?;
        let mut repositories = Vec::new();
        for name in repos.registry().list()?.into_keys() {
            let status = repos.status(&name).await?;
            repositories.push(view(name, status));
        }
        Ok::<_, runner_repos::Error>(repositories)
    };
    let repositories = timeout(LIST_TIMEOUT, listed).await.map_err(|_elapsed| Error::TimedOut)?;
    let repositories = repositories.map_err(|error| Error::Repository(error.into()))?;
    Ok(json_response(&RepositoryListView { repositories }))
}

pub(crate) fn list_operation() -> Operation {
    let repositories = AnswerSpec::json::<RepositoryListView>(StatusCode::OK, "The repositories.");
    Operation::new("listRepositories", "Lists mirrored repositories.", repositories)
        .without_query()
        .refuses([Problem::DOCKER_UNAVAILABLE])
}

/// Fetches a repository at once. Waits until agents see what the remote has now.
pub(crate) async fn refresh(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(name): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let name = RepoName::parse(&name).map_err(|_invalid| Error::Route)?;
    let settings = context.settings().get();
    let outcome = context.refresher.refresh(&settings, &name).await.map_err(Error::Repository)?;
    tracing::info!(repository = %name, ?outcome, by = caller.name(), "repository refreshed");
    Ok(match outcome {
        RefreshOutcome::Shown { commit, at_ns } => {
            json_response(&RefreshedView { name, sha: Some(commit), refreshed_at: Some(time(at_ns)) })
        }
        RefreshOutcome::Pending => {
            let answer = json_response(&RefreshedView { name, sha: None, refreshed_at: None });
            (StatusCode::ACCEPTED, answer).into_response()
        }
    })
}

pub(crate) fn refresh_operation() -> Operation {
    let shown = AnswerSpec::json::<RefreshedView>(StatusCode::OK, "Agents see this commit.");
    let pending =
        AnswerSpec::json::<RefreshedView>(StatusCode::ACCEPTED, "The fetch takes longer, and goes on.");
    Operation::new("refreshRepository", "Fetches a repository at once.", shown)
        .or(pending)
        .described(
            "Waits until agents see a commit that the remote had after the request. Requests at the same time share a fetch.",
        )
        .without_query()
        .refuses([Problem::DOCKER_UNAVAILABLE, Problem::REPOSITORY_UNREACHABLE])
}

fn view(name: RepoName, status: RepoStatus) -> RepositoryView {
    let RepoStatus { entry, volume, state, last } = status;
    RepositoryView {
        name,
        branch: entry.branch.to_string(),
        volume,
        state: state.word(),
        sha: last.as_ref().and_then(|last| last.commit.clone()),
        synced_at: last.as_ref().map(|last| time(last.ended_ns)),
        failing: last.is_some_and(|last| last.error.is_some()),
    }
}

/// Returns a time in nanoseconds since 1970 as text.
fn time(at_ns: u64) -> String {
    rfc3339(UnixMillis(i64::try_from(at_ns / MILLISECOND).unwrap_or(i64::MAX)))
}
