//! Serves the list of configured gateways, with the state of each. Starts none of them.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    response::Response,
};
use futures_util::future::join_all;
use platform_core::id::GatewayId;
use platform_runtime::{
    report,
    settings::{Gateway, Settings},
};
use runner_gateways::managed;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{body::refuse_query, context::ApiContext, error::Error, json_response};

/// Longest wait for the state of a gateway.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);

/// Lists the gateways of the configuration.
pub(crate) async fn list(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let views = settings.gateways.iter().map(|(id, gateway)| gateway_json(&settings, id, gateway));
    Ok(json_response(&json!({ "gateways": join_all(views).await })))
}

async fn gateway_json(settings: &Settings, id: &GatewayId, gateway: &Gateway) -> Value {
    let state = timeout(STATE_TIMEOUT, managed::state(settings, id, gateway)).await;
    let mut view = json!({
        "id": id,
        "managed": gateway.is_managed(),
        "url": gateway.url,
        "account": gateway.account,
        "maxConcurrentSessions": gateway.max_concurrent_sessions,
        "attribution": gateway.attribution,
        "agents": gateway.is_managed().then_some(&gateway.managed.agents),
    });
    let reason = match state {
        Ok(Ok(state)) => {
            view["state"] = state.word().into();
            return view;
        }
        Ok(Err(error)) => report::chain(&error),
        Err(_elapsed) => "it did not answer in time".to_owned(),
    };
    view["state"] = "unknown".into();
    view["reason"] = reason.into();
    view
}
