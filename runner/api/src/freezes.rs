//! Serves freezes: stops and resumes the calls of an account, of a model, or all of them.

use std::collections::BTreeMap;

use axum::{
    Extension,
    extract::{Path, Request, State},
    response::Response,
};
use platform_core::{
    control::{FreezeChange, Frozen},
    id::{AccountId, ModelName},
};
use runner_engine::freezes;
use serde_json::json;

use crate::{body::refuse_query, caller::Caller, context::ApiContext, error::Error, json_response};

/// Paths of what can be frozen.
pub(crate) const FREEZES: &str = "/api/v1/freezes";
pub(crate) const FREEZE_OF_ALL: &str = "/api/v1/freezes/all";
pub(crate) const FREEZE_OF_ACCOUNT: &str = "/api/v1/freezes/accounts/{account}";
/// Names of models may have slashes.
pub(crate) const FREEZE_OF_MODEL: &str = "/api/v1/freezes/models/{*model}";

/// Lists everything that is frozen.
pub(crate) async fn list(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let frozen = context.ask_data_plane(async |data_plane| data_plane.frozen().await).await?;
    Ok(json_response(&json!({ "freezes": frozen })))
}

/// Freezes the target of the path. A second time changes nothing.
pub(crate) async fn freeze(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path(names): Path<BTreeMap<String, String>>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let targets = [target(&names)?];
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

/// Thaws the target of the path. A second time changes nothing.
pub(crate) async fn thaw(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path(names): Path<BTreeMap<String, String>>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let targets = [target(&names)?];
    let FreezeChange { frozen, unmatched } =
        context.ask_data_plane(async |data_plane| data_plane.thaw(&targets).await).await?;
    tracing::info!(?targets, by = caller.name(), "calls thawed");
    Ok(json_response(&json!({
        "freezes": frozen,
        "notFrozen": unmatched,
    })))
}

/// Returns the target that the parameters of a path name. A text that can be no name is no resource.
fn target(names: &BTreeMap<String, String>) -> Result<Frozen, Error> {
    if let Some(account) = names.get("account") {
        AccountId::parse(account).map(Frozen::Account).map_err(|_invalid| Error::Route)
    } else if let Some(model) = names.get("model") {
        ModelName::parse(model).map(Frozen::Model).map_err(|_invalid| Error::Route)
    } else {
        Ok(Frozen::All)
    }
}
