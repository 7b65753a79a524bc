//! Starts and stops managed gateways, and shows what they print, as `sluice gateway` does.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Settings, task};
use runner_gateways::managed::{Error as GatewayError, KeptData, ManagedGateway, StartResult};
use runner_store::Store;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::agents::FoundGateway;
use crate::{
    body::{ObjectId, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

/// Longest wait for an action. A gateway that has sessions to end takes longer, and goes on after the answer.
const ACTION_TIMEOUT: Duration = Duration::from_secs(8);
/// Number of lines that are shown of what a gateway prints.
const LOG_LINES: u32 = 500;

/// Outcome of an action.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAction)]
struct ActionView {
    gateway: String,
    /// `started`, `unchanged`, `reloaded`, `restarted`, `stopped`, `was_down`, or `underway` if it takes longer.
    outcome: &'static str,
    /// Settings in which a running gateway differed.
    changed: Vec<String>,
}

/// End of what a gateway has printed.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayLog)]
struct LogView {
    /// Last 500 lines.
    text: String,
}

/// Action on a gateway.
#[derive(Debug, Clone, Copy)]
enum LifecycleChange {
    Start,
    Stop,
}

impl LifecycleChange {
    /// Acts on the gateway `id`.
    async fn take(
        self,
        settings: &Settings,
        id: &GatewayId,
        store: &Store,
    ) -> Result<ActionView, GatewayError> {
        let managed = ManagedGateway::open(settings, id).await?;
        let on_progress = |_progress: runner_gateways::managed::StartProgress<'_>| {};
        let none = Vec::new();
        let (outcome, changed) = match self {
            Self::Start => match managed.up(store, &on_progress).await? {
                StartResult::Started => ("started", none),
                StartResult::Unchanged => ("unchanged", none),
                StartResult::Reloaded(changed) => ("reloaded", changed),
                StartResult::Restarted(changed) => ("restarted", changed),
            },
            Self::Stop if managed.down(KeptData::State, &on_progress).await? => ("stopped", none),
            Self::Stop => ("was_down", none),
        };
        Ok(ActionView { gateway: id.to_string(), outcome, changed })
    }
}

/// Starts a managed gateway.
pub(crate) async fn start(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(gateway): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    act(&context, &caller, &gateway, LifecycleChange::Start).await
}

pub(crate) fn start_operation() -> Operation {
    operation("startGateway", "Starts a managed gateway, as `sluice gateway up` does.")
        .described("One that runs as it is configured is left alone. One that differs is restarted, once its sessions have ended or `drain_timeout` has passed.")
}

/// Stops a managed gateway. Its state stays.
pub(crate) async fn stop(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(gateway): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    act(&context, &caller, &gateway, LifecycleChange::Stop).await
}

pub(crate) fn stop_operation() -> Operation {
    operation("stopGateway", "Stops a managed gateway, as `sluice gateway down` does.")
        .described("Its sessions get `drain_timeout` to end. Its conversations and its agents' files stay.")
}

fn operation(id: &'static str, summary: &'static str) -> Operation {
    let done = AnswerSpec::json::<ActionView>(StatusCode::OK, "The action is done.");
    let underway = AnswerSpec::json::<ActionView>(StatusCode::ACCEPTED, "The action goes on.");
    Operation::new(id, summary, done).or(underway).without_query().refuses([
        Problem::GATEWAY_REFUSED,
        Problem::GATEWAY_FAILED,
        Problem::GATEWAY_UNAVAILABLE,
        Problem::DOCKER_UNAVAILABLE,
        Problem::DATA_PLANE_UNAVAILABLE,
    ])
}

async fn act(
    context: &ApiContext,
    caller: &Caller,
    gateway: &str,
    action: LifecycleChange,
) -> Result<Response, Error> {
    let settings: Arc<Settings> = context.settings().get();
    let id = FoundGateway::find(&settings, caller, gateway)?.id.clone();
    let store = context.opened().await?.store.clone();
    tracing::info!(gateway = %id, ?action, by = caller.name(), "gateway acted on");
    let name = id.clone();
    // An action that is cut in the middle would leave the gateway down.
    let acting = task::spawn("action on a gateway", async move {
        let done = action.take(&settings, &id, &store).await;
        if let Err(error) = &done {
            tracing::warn!(gateway = %id, ?action, error = report::chain(error), "gateway not acted on");
        }
        done
    });
    match timeout(ACTION_TIMEOUT, acting).await {
        Ok(Ok(done)) => Ok(json_response(&done.map_err(|error| Error::Gateway(Box::new(error)))?)),
        Ok(Err(_panicked)) => Err(Error::Internal),
        Err(_elapsed) => {
            let view = ActionView { gateway: name.to_string(), outcome: "underway", changed: Vec::new() };
            Ok((StatusCode::ACCEPTED, json_response(&view)).into_response())
        }
    }
}

/// Shows what a managed gateway has printed.
pub(crate) async fn show_log(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(gateway): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let id = FoundGateway::find(&settings, &caller, &gateway)?.id;
    let failed = |error| Error::Gateway(Box::new(error));
    let managed = ManagedGateway::open(&settings, id).await.map_err(failed)?;
    let text = managed.log(LOG_LINES).await.map_err(failed)?;
    Ok(json_response(&LogView { text }))
}

pub(crate) fn show_log_operation() -> Operation {
    let log = AnswerSpec::json::<LogView>(StatusCode::OK, "The last 500 lines.");
    Operation::new("showGatewayLog", "Shows what a managed gateway has printed.", log)
        .without_query()
        .refuses([
            Problem::GATEWAY_REFUSED,
            Problem::GATEWAY_FAILED,
            Problem::GATEWAY_UNAVAILABLE,
            Problem::DOCKER_UNAVAILABLE,
        ])
}
