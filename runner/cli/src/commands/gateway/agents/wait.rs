//! Waits until a gateway has the newest revision of an agent.

use std::time::Duration;

use platform_runtime::poll::poll;
use runner_store::{GatewayAgent, GatewayAgentKey, Store};
use tokio::time::{interval, timeout};

use super::{AgentError, Error};
use crate::commands::progress::{ProgressLine, REDRAW_INTERVAL};

/// Interval between looks.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Longest wait. A managed gateway takes seconds; one that restarts half a minute.
const APPLY_TIMEOUT: Duration = Duration::from_secs(90);

/// Waits until the gateway has the agent as it is stored now, or has lost one that was removed. A terminal shows the time.
pub(super) async fn until_applied(store: &Store, key: &GatewayAgentKey) -> Result<(), Error> {
    let mut applied = std::pin::pin!(timeout(APPLY_TIMEOUT, wait(store, key)));
    let Some(mut progress) = ProgressLine::on_terminal() else { return ended(applied.await, key) };
    let mut ticks = interval(REDRAW_INTERVAL);
    loop {
        tokio::select! {
            result = &mut applied => return ended(result, key),
            _ = ticks.tick() => progress.draw(|_| format!("{} gets {}", key.gateway, key.agent)),
        }
    }
}

async fn wait(store: &Store, key: &GatewayAgentKey) -> Result<(), Error> {
    poll(CHECK_INTERVAL, async || match store.gateway_agent(key).await {
        Ok(None) => Some(Ok(())),
        Ok(Some(stored)) if stored.is_applied() => Some(Ok(())),
        Ok(Some(GatewayAgent { problem: Some(problem), .. })) => {
            Some(Err(AgentError::NotApplied { key: key.clone(), problem }.into()))
        }
        Ok(Some(_)) => None,
        Err(error) => Some(Err(error.into())),
    })
    .await
}

fn ended<E>(result: Result<Result<(), Error>, E>, key: &GatewayAgentKey) -> Result<(), Error> {
    result.unwrap_or_else(|_elapsed| {
        let problem = format!("no `sluice up` has given it within {} s", APPLY_TIMEOUT.as_secs());
        Err(AgentError::NotApplied { key: key.clone(), problem }.into())
    })
}
