//! Relays what the data plane's tap reports of a run's calls, as long as its agent runs.

use std::time::Duration;

use platform_core::{control::Usage, event::AgentEvent, id::RunId};
use runner_control_client::{DataPlane, Lines};
use runner_model::{away::Away, lifecycle::Failure};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Finished, telling::Telling};

/// Delay before a tap is opened again.
const PAUSE: Duration = Duration::from_millis(200);
/// Silence of the tap of an ended agent after which no more events are expected. The data plane does not hold events
/// back.
const QUIET: Duration = Duration::from_millis(20);

/// Records what the tap reports, until the agent is gone: from `tap`, and where that breaks off, from another tap of
/// the same run.
pub(super) async fn relay(
    (data_plane, run): (&DataPlane, &RunId),
    mut tap: Lines,
    telling: &Telling<'_>,
    gone: &CancellationToken,
) {
    loop {
        while let Some(line) = next(&mut tap, gone).await {
            match serde_json::from_slice(line) {
                Ok(line) => telling.tapped(line),
                Err(error) => tracing::debug!(%error, "a tap event that is not in the protocol"),
            }
        }
        if gone.is_cancelled() {
            return;
        }
        // The data plane was restarted, or has closed the run.
        tap = loop {
            tokio::time::sleep(PAUSE).await;
            match data_plane.tap(run, telling.tap()).await {
                Ok(tap) => break tap,
                Err(error) if error.is_away() => {}
                Err(_closed) => return,
            }
        };
    }
}

/// Returns the next line of a tap; `None` if it broke off, or an ended agent can have no more lines.
async fn next<'t>(tap: &'t mut Lines, gone: &CancellationToken) -> Option<&'t [u8]> {
    let quiet = async {
        gone.cancelled().await;
        tokio::time::sleep(QUIET).await;
    };
    tokio::select! {
        line = tap.next() => line.ok().flatten(),
        () = quiet => None,
    }
}

/// Sends the run's last events. They wait for their reader, which can hold up nothing else by now. The store has its
/// own copy.
pub(super) async fn announce(finished: &Finished, events: &mpsc::Sender<AgentEvent>) {
    let (last, end) = match &finished.answer {
        Ok(content) => {
            (Some(AgentEvent::AssistantFinal { content: content.clone(), cut_bytes: 0 }), AgentEvent::Done)
        }
        Err(Failure { code, message, .. }) => {
            (None, AgentEvent::Error { code: *code, message: message.clone() })
        }
    };
    let report = |Usage { calls, tokens, .. }| AgentEvent::UsageReport { calls, tokens };
    let usage = finished.usage.map(report);
    for event in [last, usage, Some(end)].into_iter().flatten() {
        // The reader may have left.
        drop(events.send(event).await);
    }
}
