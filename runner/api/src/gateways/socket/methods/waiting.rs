//! Waits for the end of runs.

use std::{sync::Arc, time::Duration};

use platform_core::id::RunId;
use runner_store::{Run, RunRecord};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::MethodCall;
use crate::gateways::socket::{
    refusal::{RETRY_DELAY, SocketRefusal},
    tenant::SocketTenant,
};

/// Wait for a run, and the longest one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT: Duration = Duration::from_mins(60);

/// Waits for the end of a run, and returns its record.
async fn wait_for_end(tenant: &SocketTenant, run_id: &RunId) -> Result<RunRecord, SocketRefusal> {
    let after = tenant.store().last_event(run_id).await?;
    let mut events = tenant.opened.feeds.subscribe(run_id, after);
    while events.next().await?.is_some() {}
    Ok(tenant.store().record(run_id).await?)
}

/// Waits for the end of a run, and returns the second answer of `agent`.
pub(super) async fn answer_at_end(tenant: Arc<SocketTenant>, run_id: RunId) -> Result<Value, SocketRefusal> {
    let record = wait_for_end(&tenant, &run_id).await?;
    let run = &record.run;
    if let Some(failure) = &run.error {
        let message = format!("run {run_id} failed ({}): {}", failure.code.code(), failure.message);
        return Err(SocketRefusal::invalid("RUN_FAILED", message));
    }
    if run.ended.is_none() {
        let message = format!("run {run_id} goes on, and cannot be followed: ask `agent.wait` for it");
        return Err(SocketRefusal::unavailable("RUN_NOT_FOLLOWED", message, RETRY_DELAY));
    }
    let text = record.answer.clone().unwrap_or_default();
    let duration = run.started.zip(run.ended).map(|(began, ended)| ended.0 - began.0);
    let usage = run.usage.as_ref().map(|usage| {
        let input = usage.tokens.input;
        let output = usage.tokens.output;
        json!({ "input": input, "output": output, "total": input.saturating_add(output) })
    });
    Ok(json!({
        "runId": run_id.as_str(), "status": "ok", "summary": "completed",
        "result": {
            "payloads": [{ "text": text, "mediaUrl": null }],
            "meta": { "durationMs": duration, "aborted": false, "agentMeta": { "model": run.model, "usage": usage } },
        },
    }))
}

/// Returns what `agent.wait` answers of a run that has ended.
fn outcome(run: &Run) -> Value {
    let mut outcome = json!({
        "runId": run.run_id.as_str(),
        "status": if run.error.is_some() { "error" } else { "ok" },
        "startedAt": run.started.map(|at| at.0),
        "endedAt": run.ended.map(|at| at.0),
    });
    if let Some(failure) = &run.error {
        outcome["error"] = failure.message.as_str().into();
    }
    outcome
}

impl MethodCall {
    pub(super) async fn wait(&self) -> Result<Value, SocketRefusal> {
        let named = self.params.text("runId")?;
        let wait: Option<u64> = self.params.optional("timeoutMs")?;
        let wait = wait.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT);
        let run = self.tenant.run(&named).await?.record.run;
        if run.ended.is_some() {
            return Ok(outcome(&run));
        }
        match timeout(wait, wait_for_end(&self.tenant, &run.run_id)).await {
            Ok(record) => {
                let run = record?.run;
                let is_over = run.ended.is_some();
                Ok(if is_over { outcome(&run) } else { still_running(&run.run_id) })
            }
            Err(_elapsed) => Ok(still_running(&run.run_id)),
        }
    }
}

fn still_running(run_id: &RunId) -> Value {
    json!({ "runId": run_id.as_str(), "status": "timeout" })
}
