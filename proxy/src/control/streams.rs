//! Streams control answers that go on: the journal as it grows, the tap and the trace of a run.

use bytes::Bytes;
use futures_util::stream;
use http::Uri;
use platform_core::{id::RunId, trace::TraceEvent};
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    watch,
};

use super::{
    Control,
    answer::{ControlResponse, Error, ndjson},
    request::query,
};
use crate::{
    journal::Follower,
    run::{RunStage, TraceWatcher},
};

/// Serves `GET /v1/journal?after=SEQ[&journal=ID][&follow]`; without `after`, from the oldest line that is kept.
pub(super) fn journal(control: &Control, uri: &Uri) -> Result<ControlResponse, Error> {
    let after = after(uri)?;
    let follower = control.journal.follow(after, query(uri, "journal"))?;
    Ok(if query(uri, "follow").is_some() {
        ndjson(stream::unfold(follower, |follower| async { Some(next_lines(follower).await) }))
    } else {
        ndjson(stream::unfold(follower, |mut follower| async {
            let lines = follower.batch().map_err(std::io::Error::other);
            (!matches!(&lines, Ok(lines) if lines.is_empty())).then_some((lines, follower))
        }))
    })
}

async fn next_lines(mut follower: Follower) -> (std::io::Result<Bytes>, Follower) {
    loop {
        match follower.batch() {
            Ok(lines) if lines.is_empty() => follower.wait_for_more().await,
            lines => return (lines.map_err(std::io::Error::other), follower),
        }
    }
}

/// Returns the sequence number to go on from, if the request has one.
fn after(uri: &Uri) -> Result<Option<u64>, Error> {
    let number = |text: &str| {
        text.parse().map_err(|_error| Error::Invalid(format!("after is not a sequence number: {text}")))
    };
    query(uri, "after").map(number).transpose()
}

/// Serves `GET /v1/runs/{run}/tap[?after=N]`; without `after`, from the oldest line that is kept.
pub(super) fn tap(control: &Control, run_id: &RunId, uri: &Uri) -> Result<ControlResponse, Error> {
    let live = control.runs.get(run_id).ok_or_else(|| Error::UnknownRun(run_id.to_string()))?;
    let tap = live
        .watch(&control.taps, after(uri)?.unwrap_or_default())
        .ok_or_else(|| Error::NoTap(run_id.to_string()))?;
    let stage = live.changes();
    Ok(ndjson(stream::unfold((tap, stage), |(mut tap, mut stage)| async move {
        let next = tokio::select! {
            biased;
            next = tap.next() => next?,
            _ended = stage.wait_for(has_ended) => return None,
        };
        Some((serde_json::to_vec(&next).map(line).map_err(Into::into), (tap, stage)))
    })))
}

const fn has_ended(stage: &RunStage) -> bool {
    matches!(stage, RunStage::Ended(_))
}

/// Serves `GET /v1/runs/{run}/trace`.
pub(super) fn trace(control: &Control, run_id: &RunId) -> Result<ControlResponse, Error> {
    let live = control.runs.get(run_id).ok_or_else(|| Error::UnknownRun(run_id.to_string()))?;
    let stage = live.changes();
    let watcher = TraceWatcher::of(live);
    Ok(ndjson(stream::unfold((watcher, stage), |(mut watcher, mut stage)| async move {
        let missed = |count| TraceEvent::Missed { count };
        let event = next_event(&mut watcher.events, &mut stage, missed).await?;
        Some((serde_json::to_vec(&event).map(line).map_err(Into::into), (watcher, stage)))
    })))
}

/// Returns the next event, those before the run's end first.
async fn next_event<E: Clone>(
    events: &mut Receiver<E>,
    stage: &mut watch::Receiver<RunStage>,
    missed: impl FnOnce(u64) -> E,
) -> Option<E> {
    tokio::select! {
        biased;
        event = events.recv() => match event {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(missed(count)),
            Err(RecvError::Closed) => None,
        },
        _ended = stage.wait_for(has_ended) => None,
    }
}

fn line(mut json: Vec<u8>) -> Bytes {
    json.push(b'\n');
    json.into()
}
