//! Serves connections: credentials of accounts at providers, which host tools use.
//!
//! A secret goes in, and never comes out. For a caller, connections of other accounts do not exist.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::{
    connection::{ConnectionId, ConnectionKind, ConnectionProvider, ConnectionScope},
    id::AccountId,
    secret::Secret,
};
use runner_connections::{TestedBy, WantedConnection};
use runner_store::{AtSamePlace, ConnectionPlace, StoredConnection};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    body::{ObjectId, read_json, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    rfc3339::rfc3339,
};

pub(crate) const CONNECTIONS: &str = "/api/v1/connections";

/// Largest body of a connection, with the private key of an App.
const MAX_BODY: usize = 64 << 10;

/// Connections of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = ConnectionList)]
struct ConnectionListView {
    connections: Vec<ConnectionView>,
}

/// Connection, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Connection)]
#[serde(rename_all = "camelCase")]
struct ConnectionView {
    #[schema(value_type = schemas::ConnectionId)]
    id: String,
    #[schema(value_type = schemas::AccountId)]
    account: String,
    #[schema(value_type = schemas::ConnectionProvider)]
    provider: String,
    /// Scope for which it is used; with `*` at its end, all that begin so.
    scope: String,
    /// `token`, `github_app` or `oauth`.
    kind: &'static str,
    /// `active`, or `needs_authorisation` once the provider takes its refresh token no longer.
    state: &'static str,
    /// End of the credential that was got last, if it is known.
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    /// Time of its last refresh.
    #[schema(required = true, format = DateTime)]
    refreshed_at: Option<String>,
    /// Time of its last use, to the minute.
    #[schema(required = true, format = DateTime)]
    used_at: Option<String>,
}

/// Result of a test.
#[derive(Serialize, ToSchema)]
#[schema(as = ConnectionTest)]
#[serde(rename_all = "camelCase")]
struct ConnectionTestView {
    /// True if the provider was asked. The token of a provider that only tools know is opened, and not sent. A refresh
    /// token that was refreshed in the last 30 seconds is not refreshed again: the token that it gave was opened.
    asked: bool,
    /// End of the credential, if it is known.
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
}

/// Connection to add.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewConnection)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewConnectionBody {
    /// Account of the connection; the caller's if absent.
    #[schema(value_type = Option<schemas::AccountId>, nullable = false)]
    account: Option<AccountId>,
    #[schema(value_type = schemas::ConnectionProvider)]
    provider: ConnectionProvider,
    /// Scope for which it is used; with `*` at its end, all that begin so. All if absent.
    #[schema(value_type = Option<schemas::ConnectionScope>, nullable = false)]
    scope: Option<ConnectionScope>,
    /// Kind of the secret; a token if absent.
    #[serde(default)]
    #[schema(required = false)]
    kind: KindWord,
    /// Number of the GitHub App, for kind `github_app`.
    #[schema(nullable = false)]
    app_id: Option<u64>,
    /// Number of the App's installation, for kind `github_app`.
    #[schema(nullable = false)]
    installation_id: Option<u64>,
    /// Token, refresh token, or private key of the App in PEM. No answer has it.
    #[schema(write_only, min_length = 1)]
    secret: String,
    /// True to replace the connection of the account for the same provider and scope.
    #[serde(default)]
    #[schema(required = false)]
    replace: bool,
}

/// Kind of a secret.
#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[schema(as = ConnectionKind)]
#[serde(rename_all = "snake_case")]
enum KindWord {
    #[default]
    Token,
    #[serde(rename = "github_app")]
    GitHubApp,
    #[serde(rename = "oauth")]
    OAuth,
}

impl ConnectionView {
    fn of(stored: StoredConnection) -> Self {
        Self {
            id: stored.id.to_string(),
            account: stored.place.account.to_string(),
            provider: stored.place.provider.to_string(),
            scope: stored.place.scope.to_string(),
            kind: stored.kind.word(),
            state: stored.state.word(),
            expires_at: stored.expires.map(rfc3339),
            created_at: rfc3339(stored.created),
            refreshed_at: stored.refreshed.map(rfc3339),
            used_at: stored.used.map(rfc3339),
        }
    }
}

impl NewConnectionBody {
    fn kind(&self) -> Result<ConnectionKind, Error> {
        let invalid = |problem: &str| Err(Error::Invalid(problem.to_owned()));
        match (self.kind, self.app_id, self.installation_id) {
            (KindWord::Token, None, None) => Ok(ConnectionKind::Token),
            (KindWord::OAuth, None, None) => Ok(ConnectionKind::OAuth),
            (KindWord::GitHubApp, Some(app_id), Some(installation_id)) => {
                Ok(ConnectionKind::GitHubApp { app_id, installation_id })
            }
            (KindWord::GitHubApp, _, _) => {
                invalid("`kind`: a GitHub App needs its numbers, `appId` and `installationId`")
            }
            _ => invalid("`appId`, `installationId`: they are for kind `github_app` alone"),
        }
    }
}

/// Lists the connections of the caller's account; of all accounts for an operator.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let stored = context.opened().await?.store.connections(&caller.scope()).await?;
    let connections = stored.into_iter().map(ConnectionView::of).collect();
    Ok(json_response(&ConnectionListView { connections }))
}

pub(crate) fn list_operation() -> Operation {
    let connections = AnswerSpec::json::<ConnectionListView>(StatusCode::OK, "The connections.");
    Operation::new(
        "listConnections",
        "Lists the credentials that host tools use for an account.",
        connections,
    )
    .described("No answer has a secret. An operator is given those of all accounts.")
    .without_query()
}

/// Adds a connection.
pub(crate) async fn add(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let body: NewConnectionBody = read_json(request, MAX_BODY).await?;
    caller.refuse_limited()?;
    let kind = body.kind()?;
    let NewConnectionBody { account, provider, scope, secret, replace, .. } = body;
    let secret = Secret::new(secret);
    let account = caller.account_of_order(account)?;
    let place =
        ConnectionPlace { account, provider, scope: scope.unwrap_or_else(ConnectionScope::everything) };
    let at_same_place = if replace { AtSamePlace::Replace } else { AtSamePlace::Keep };
    let wanted = WantedConnection { place, kind, secret, expires: None };
    let opened = context.opened().await?;
    let added = opened.connections.add(wanted, at_same_place).await?;
    tracing::info!(
        connection = %added.id,
        account = %added.place.account,
        provider = %added.place.provider,
        by = caller.name(),
        "connection added"
    );
    Ok((StatusCode::CREATED, json_response(&ConnectionView::of(added))).into_response())
}

pub(crate) fn add_operation() -> Operation {
    let added =
        AnswerSpec::json::<ConnectionView>(StatusCode::CREATED, "The connection, without its secret.");
    Operation::new("addConnection", "Adds a credential that host tools use for an account.", added)
        .described("An account has one connection for each provider and scope; of several that cover a call, the longest scope is used. A refresh token needs a provider of the operator's, who alone decides where it is sent.")
        .without_query()
        .body::<NewConnectionBody>(&json!({ "provider": "github", "scope": "acme/*", "secret": "github_pat_0" }))
        .refuses([
            Problem::ACCOUNT_FORBIDDEN,
            Problem::CONNECTIONS_OFF,
            Problem::CONNECTION_EXISTS,
            Problem::CONNECTIONS_EXHAUSTED,
            Problem::CONNECTION_UNUSABLE,
        ])
}

/// Removes a connection.
pub(crate) async fn remove(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(connection): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    caller.refuse_limited()?;
    let stored = find(&context, &caller, &connection).await?;
    context.opened().await?.store.remove_connection(&stored.id).await?;
    tracing::info!(connection = %stored.id, account = %stored.place.account, by = caller.name(), "connection removed");
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) fn remove_operation() -> Operation {
    let removed = AnswerSpec::empty(StatusCode::NO_CONTENT, "The connection is removed.");
    Operation::new("removeConnection", "Removes a credential: calls from now on do without it.", removed)
        .without_query()
}

/// Uses a connection, and answers with the end of its credential.
pub(crate) async fn test(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(connection): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let stored = find(&context, &caller, &connection).await?;
    let tested = context.opened().await?.connections.test(&stored).await?;
    let expires_at = tested.expires.map(rfc3339);
    Ok(json_response(&ConnectionTestView { asked: tested.tested_by == TestedBy::Provider, expires_at }))
}

pub(crate) fn test_operation() -> Operation {
    let tested = AnswerSpec::json::<ConnectionTestView>(StatusCode::OK, "The provider takes the credential.");
    Operation::new("testConnection", "Asks the provider whether it takes a credential.", tested)
        .described("A refresh token is refreshed, at most once in 30 seconds.")
        .without_query()
        .refuses([Problem::CONNECTIONS_OFF, Problem::CONNECTION_UNUSABLE, Problem::PROVIDER_UNAVAILABLE])
}

/// Returns the connection that a path names, if it exists for the caller.
async fn find(context: &ApiContext, caller: &Caller, id: &str) -> Result<StoredConnection, Error> {
    let id = ConnectionId::parse(id).map_err(|_invalid| Error::Route)?;
    Ok(context.opened().await?.store.connection_within(&id, &caller.scope()).await?)
}
