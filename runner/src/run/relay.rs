//! What the data plane sees of a run's calls, as long as its agent is there.

use std::time::Duration;

use platform_core::{control::Usage, event::AgentEvent, id::RunId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Finished, telling::Telling};
use crate::{
    away::Away,
    data_plane::{DataPlane, Lines},
    lifecycle::Failure,
};

/// Pause before a tap is opened again.
const PAUSE: Duration = Duration::from_millis(200);
/// For how long nothing comes from a tap whose agent is gone before nothing is expected. The data plane does not hold back.
const QUIET: Duration = Duration::from_millis(20);

/// Tells what streams by, until the agent is gone: from `tap`, and where that breaks off, from another one of the same run.
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

/// The next line of a tap; `None` if it broke off, or nothing more is to be expected of an agent that is gone.
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

/// The run's last events. They wait for their reader, who by now can hold up nothing else. The store has its own.
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
        // A reader that has left does not want to know.
        drop(events.send(event).await);
    }
}
