//! Shows the calls of host tools of a run that this process executes. `sluice up` executes them, and stores their events.

use std::time::Duration;

use platform_core::{event::AgentEvent, id::RunId};
use platform_runtime::report;
use runner_control_client::Follow;
use runner_engine::follow::{FollowEvent, Follower};
use runner_store::Store;
use tokio::{sync::mpsc, time::timeout};

/// Longest wait for the last stored events, once the run has ended.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the events of `run` that this process makes to `display`, and those of host tools that the store has. Events of
/// host tools come before the end of the run.
pub(super) async fn merge(
    store: Store,
    run_id: &RunId,
    mut own: mpsc::Receiver<AgentEvent>,
    display: mpsc::Sender<AgentEvent>,
) {
    let mut follower = Follower::of(store, run_id, 0, Follow::On);
    let mut has_more = true;
    loop {
        let event = tokio::select! {
            event = own.recv() => {
                let Some(event) = event else { return };
                if has_more && is_last(&event) {
                    has_more = false;
                    let rest = async { while let Some(call) = next(&mut follower).await { send(&display, call).await } };
                    drop(timeout(LAST_EVENTS_TIMEOUT, rest).await);
                }
                event
            }
            call = next(&mut follower), if has_more => {
                let Some(call) = call else {
                    has_more = false;
                    continue;
                };
                call
            }
        };
        send(&display, event).await;
    }
}

/// Sends an event. The display may be gone: the run goes on.
async fn send(display: &mpsc::Sender<AgentEvent>, event: AgentEvent) {
    drop(display.send(event).await);
}

/// Returns the next stored event of a host tool; `None` once there are no more.
async fn next(follower: &mut Follower) -> Option<AgentEvent> {
    loop {
        match follower.next().await {
            Ok(Some(FollowEvent::Stored(stored))) => {
                if let Ok(event @ AgentEvent::HostTool { .. }) = stored.event() {
                    return Some(event);
                }
            }
            Ok(Some(FollowEvent::Pruned { .. } | FollowEvent::Live(_))) => {}
            Ok(None) => return None,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "calls of host tools are not shown any more");
                return None;
            }
        }
    }
}

/// Returns whether the run has ended when this event comes.
const fn is_last(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::AssistantFinal { .. }
            | AgentEvent::UsageReport { .. }
            | AgentEvent::Error { .. }
            | AgentEvent::Done
    )
}
