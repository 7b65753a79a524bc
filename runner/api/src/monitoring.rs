//! Serves what programs read that watch `sluice up`: its metrics, and whether it works.

use axum::{
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use platform_runtime::metrics;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

/// Readiness of `sluice up`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Readiness)]
struct ReadyAnswer {
    /// True: otherwise the answer is a problem.
    ready: bool,
}

/// Answers with the metrics in Prometheus's text format.
pub(crate) async fn render_metrics(State(context): State<ApiContext>) -> Response {
    let text = context.observer.metrics.render().await;
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

pub(crate) fn metrics_operation() -> Operation {
    let text = AnswerSpec::text(metrics::CONTENT_TYPE, "Metrics in Prometheus's text format.");
    Operation::new("readMetrics", "Answers with the metrics of `sluice up`.", text)
}

/// Answers as long as the API does.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

pub(crate) fn alive_operation() -> Operation {
    let text = AnswerSpec::text("text/plain; charset=utf-8", "The text `ok`.");
    Operation::new("checkHealth", "Answers as long as the API does.", text)
}

/// Answers whether runs can be ordered: the store is open and answers.
pub(crate) async fn ready(State(context): State<ApiContext>) -> Result<Response, Error> {
    context.opened().await?.store.queue().await?;
    Ok(json_response(&ReadyAnswer { ready: true }))
}

pub(crate) fn ready_operation() -> Operation {
    let answer = AnswerSpec::json::<ReadyAnswer>(StatusCode::OK, "Runs can be ordered.");
    Operation::new("checkReadiness", "Answers whether runs can be ordered.", answer)
        .refuses([Problem::STARTING, Problem::STORE_UNAVAILABLE])
}
