//! Serves freezes: stops and resumes the calls of an account, of a model, or all of them.

use std::collections::BTreeMap;

use axum::{
    Extension,
    extract::{FromRequestParts, Path, Request, State},
    http::{StatusCode, request::Parts},
    response::Response,
};
use platform_core::{
    control::{FreezeChange, Frozen},
    id::{AccountId, ModelName},
};
use runner_engine::freezes;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    body::refuse_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

/// Paths of what can be frozen.
pub(crate) const FREEZES: &str = "/api/v1/freezes";
pub(crate) const FREEZE_OF_ALL: &str = "/api/v1/freezes/all";
pub(crate) const FREEZE_OF_ACCOUNT: &str = "/api/v1/freezes/accounts/{account}";
/// Names of models may have slashes.
pub(crate) const FREEZE_OF_MODEL: &str = "/api/v1/freezes/models/{*model}";

/// Everything that is frozen.
#[derive(ToSchema)]
#[schema(as = FreezeList)]
#[expect(dead_code, reason = "schema of what `list` writes")]
struct FreezeListSchema {
    freezes: Vec<FreezeSchema>,
}

/// Everything that is frozen after a freeze.
#[derive(ToSchema)]
#[schema(as = FreezeAnswer)]
#[expect(dead_code, reason = "schema of what `freeze` writes")]
struct FreezeAnswerSchema {
    freezes: Vec<FreezeSchema>,
    /// The target, if its name may be wrong: nothing known has it.
    unknown: Vec<FreezeSchema>,
}

/// Everything that is frozen after a thaw.
#[derive(ToSchema)]
#[schema(as = ThawAnswer, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `thaw` writes")]
struct ThawAnswerSchema {
    freezes: Vec<FreezeSchema>,
    /// The target, if it was not frozen.
    not_frozen: Vec<FreezeSchema>,
}

/// Target of a freeze.
#[derive(ToSchema)]
#[schema(as = Freeze)]
#[expect(dead_code, reason = "the control API defines the target; this is its schema")]
struct FreezeSchema {
    kind: FreezeKind,
    /// The account or the model; absent if everything is frozen.
    #[schema(nullable = false)]
    name: Option<String>,
}

/// Kind of a freeze's target.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the control API defines the kind; this is its schema")]
enum FreezeKind {
    All,
    Account,
    Model,
}

/// Target that the path of a request names. A text that can be no name is not a resource.
pub(crate) struct FreezeTarget(Frozen);

impl<S: Send + Sync> FromRequestParts<S> for FreezeTarget {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let names = Path::<BTreeMap<String, String>>::from_request_parts(parts, state).await;
        let Path(names) = names.map_err(|_invalid| Error::Route)?;
        target(&names).map(Self)
    }
}

/// Lists everything that is frozen.
pub(crate) async fn list(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let frozen = context.ask_data_plane(async |data_plane| data_plane.frozen().await).await?;
    Ok(json_response(&json!({ "freezes": frozen })))
}

pub(crate) fn list_operation() -> Operation {
    let freezes = AnswerSpec::json::<FreezeListSchema>(StatusCode::OK, "Everything that is frozen.");
    Operation::new("listFreezes", "Lists everything that is frozen.", freezes).asking_data_plane()
}

/// Freezes the target of the path. A second time changes nothing.
pub(crate) async fn freeze(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    FreezeTarget(target): FreezeTarget,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let targets = [target];
    let FreezeChange { frozen, unmatched } =
        context.ask_data_plane(async |data_plane| data_plane.freeze(&targets).await).await?;
    tracing::info!(?targets, by = caller.name(), "calls frozen");
    let agents = &context.settings().get().agents;
    let unknown = context
        .ask_data_plane(async |data_plane| Ok(freezes::unknown_targets(unmatched, agents, data_plane).await));
    Ok(json_response(&json!({
        "freezes": frozen,
        "unknown": unknown.await?,
    })))
}

pub(crate) fn freeze_operation(id: &'static str) -> Operation {
    let summary = "Refuses new calls of the target, and cuts those in flight.";
    change_operation::<FreezeAnswerSchema>(id, summary)
}

/// Thaws the target of the path. A second time changes nothing.
pub(crate) async fn thaw(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    FreezeTarget(target): FreezeTarget,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let targets = [target];
    let FreezeChange { frozen, unmatched } =
        context.ask_data_plane(async |data_plane| data_plane.thaw(&targets).await).await?;
    tracing::info!(?targets, by = caller.name(), "calls thawed");
    Ok(json_response(&json!({
        "freezes": frozen,
        "notFrozen": unmatched,
    })))
}

pub(crate) fn thaw_operation(id: &'static str) -> Operation {
    change_operation::<ThawAnswerSchema>(id, "Allows the calls of the target again.")
}

fn change_operation<T: ToSchema>(id: &'static str, summary: &'static str) -> Operation {
    let freezes = AnswerSpec::json::<T>(StatusCode::OK, "Everything that is frozen now.");
    Operation::new(id, summary, freezes)
        .described("A second time changes nothing.")
        .asking_data_plane()
        .refuses([Problem::NOT_STORED])
}

/// Returns the target that the parameters of a path name. A text that can be no name is not a resource.
fn target(names: &BTreeMap<String, String>) -> Result<Frozen, Error> {
    if let Some(account) = names.get("account") {
        AccountId::parse(account).map(Frozen::Account).map_err(|_invalid| Error::Route)
    } else if let Some(model) = names.get("model") {
        ModelName::parse(model).map(Frozen::Model).map_err(|_invalid| Error::Route)
    } else {
        Ok(Frozen::All)
    }
}
