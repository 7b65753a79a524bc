//! What a run tells while it goes on.

use std::time::Duration;

use platform_core::{
    control::{TapEvent, Usage},
    event::AgentEvent,
    id::RunId,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Finished;
use crate::{
    away::Away,
    data_plane::{DataPlane, Lines},
    lifecycle::Failure,
    sandbox::Piece,
};

/// Pause before a tap is opened again.
const PAUSE: Duration = Duration::from_millis(200);
/// For how long nothing comes from a tap whose agent is gone before nothing is expected. The data plane does not hold back.
const QUIET: Duration = Duration::from_millis(20);

/// Passes on what the container prints and what the data plane sees stream by, until both have ended: `tap`, and where
/// that breaks off, another one of the same run.
pub(super) async fn relay(
    (data_plane, run): (&DataPlane, &RunId),
    mut tap: Lines,
    mut output: mpsc::Receiver<Piece>,
    events: &mpsc::Sender<AgentEvent>,
) {
    let over = CancellationToken::new();
    let from_tap = async {
        loop {
            while let Some(line) = next(&mut tap, &over).await {
                match serde_json::from_slice(line) {
                    Ok(event) => streamed(event).into_iter().for_each(|event| tell(events, event)),
                    Err(error) => tracing::debug!(%error, "a tap event that is not in the protocol"),
                }
            }
            if over.is_cancelled() {
                return;
            }
            // The data plane was restarted, or has closed the run.
            tap = loop {
                tokio::time::sleep(PAUSE).await;
                match data_plane.tap(run).await {
                    Ok(tap) => break tap,
                    Err(error) if error.is_away() => {}
                    Err(_closed) => return,
                }
            };
        }
    };
    let from_container = async {
        while let Some(Piece { stream, text }) = output.recv().await {
            tell(events, AgentEvent::Log { stream, text });
        }
        over.cancel();
    };
    tokio::join!(from_tap, from_container);
}

/// The next line of a tap; `None` if it broke off, or nothing more is to be expected of an agent that is gone.
async fn next<'t>(tap: &'t mut Lines, over: &CancellationToken) -> Option<&'t [u8]> {
    let quiet = async {
        over.cancelled().await;
        tokio::time::sleep(QUIET).await;
    };
    tokio::select! {
        line = tap.next() => line.ok().flatten(),
        () = quiet => None,
    }
}

fn streamed(event: TapEvent) -> Option<AgentEvent> {
    match event {
        TapEvent::Text { delta, .. } => Some(AgentEvent::TextDelta { delta }),
        TapEvent::Tool { name, .. } => Some(AgentEvent::Tool { name }),
        TapEvent::Missed { count } => Some(AgentEvent::Missed { count }),
        // The run's own report sums them up.
        TapEvent::Ended { .. } => None,
    }
}

/// The run's last events. They wait for their reader, who by now can hold up nothing else.
pub(super) async fn announce(finished: &Finished, events: &mpsc::Sender<AgentEvent>) {
    let (last, end) = match &finished.answer {
        Ok(content) => (Some(AgentEvent::AssistantFinal { content: content.clone() }), AgentEvent::Done),
        Err(Failure { code, message }) => (None, AgentEvent::Error { code: *code, message: message.clone() }),
    };
    let report = |Usage { calls, tokens, .. }| AgentEvent::UsageReport { calls, tokens };
    let usage = finished.usage.map(report);
    for event in [last, usage, Some(end)].into_iter().flatten() {
        // A reader that has left does not want to know.
        drop(events.send(event).await);
    }
}

/// Tells a live event, unless the reader is too far behind.
pub(super) fn tell(events: &mpsc::Sender<AgentEvent>, event: AgentEvent) {
    drop(events.try_send(event));
}
