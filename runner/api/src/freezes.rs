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
use serde::Serialize;
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
#[derive(Serialize, ToSchema)]
#[schema(as = FreezeList)]
struct FreezeListView {
    freezes: Vec<FreezeView>,
}

/// Everything that is frozen after a freeze.
#[derive(Serialize, ToSchema)]
#[schema(as = FreezeAnswer)]
struct FreezeAnswerView {
    freezes: Vec<FreezeView>,
    /// The target, if its name may be wrong: nothing known has it.
    unknown: Vec<FreezeView>,
}

/// Everything that is frozen after a thaw.
#[derive(Serialize, ToSchema)]
#[schema(as = ThawAnswer)]
#[serde(rename_all = "camelCase")]
struct ThawAnswerView {
    freezes: Vec<FreezeView>,
    /// The target, if it was not frozen.
    not_frozen: Vec<FreezeView>,
}

/// Target of a freeze.
#[derive(Serialize, ToSchema)]
#[schema(as = Freeze)]
struct FreezeView {
    kind: FreezeKind,
    /// The account or the model; absent if everything is frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
}

/// Kind of a freeze's target.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FreezeKind {
    All,
    Account,
    Model,
}

impl From<Frozen> for FreezeView {
    fn from(frozen: Frozen) -> Self {
        match frozen {
            Frozen::All => Self { kind: FreezeKind::All, name: None },
            Frozen::Account(account) => Self { kind: FreezeKind::Account, name: Some(account.to_string()) },
            Frozen::Model(model) => Self { kind: FreezeKind::Model, name: Some(model.to_string()) },
        }
    }
}

fn views(frozen: Vec<Frozen>) -> Vec<FreezeView> {
    frozen.into_iter().map(FreezeView::from).collect()
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
    Ok(json_response(&FreezeListView { freezes: views(frozen) }))
}

pub(crate) fn list_operation() -> Operation {
    let freezes = AnswerSpec::json::<FreezeListView>(StatusCode::OK, "Everything that is frozen.");
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
    Ok(json_response(&FreezeAnswerView { freezes: views(frozen), unknown: views(unknown.await?) }))
}

pub(crate) fn freeze_operation(id: &'static str) -> Operation {
    let summary = "Refuses new calls of the target, and cuts those in flight.";
    change_operation::<FreezeAnswerView>(id, summary)
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
    Ok(json_response(&ThawAnswerView { freezes: views(frozen), not_frozen: views(unmatched) }))
}

pub(crate) fn thaw_operation(id: &'static str) -> Operation {
    change_operation::<ThawAnswerView>(id, "Allows the calls of the target again.")
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
