//! Control answers that go on: the journal as it grows, and the tap of a run.

use bytes::Bytes;
use futures_util::stream;
use http::Uri;
use platform_core::{control::TapEvent, id::RunId};
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    watch,
};

use super::{
    Control,
    answer::{Answer, Error, ndjson},
    routes::query,
};
use crate::{journal::Follower, run::Stage};

/// `GET /v1/journal?after=SEQ[&journal=ID][&follow]`; without `after`, from the oldest line that is kept.
pub(super) fn journal(control: &Control, uri: &Uri) -> Result<Answer, Error> {
    let number = |text: &str| {
        text.parse().map_err(|_error| Error::Invalid(format!("after is not a sequence number: {text}")))
    };
    let after = query(uri, "after").map(number).transpose()?;
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
            Ok(lines) if lines.is_empty() => follower.more().await,
            lines => return (lines.map_err(std::io::Error::other), follower),
        }
    }
}

/// `GET /v1/runs/{run}/tap`
pub(super) fn tap(control: &Control, run: &RunId) -> Result<Answer, Error> {
    let live = control.runs.get(run).ok_or_else(|| Error::UnknownRun(run.to_string()))?;
    let tap = live.watch().ok_or_else(|| Error::NoTap(run.to_string()))?;
    let stage = live.changes();
    Ok(ndjson(stream::unfold((tap, stage), |(mut tap, mut stage)| async move {
        let event = next_event(&mut tap, &mut stage).await?;
        Some((serde_json::to_vec(&event).map(line).map_err(Into::into), (tap, stage)))
    })))
}

/// The next event, those before the run's end first.
async fn next_event(tap: &mut Receiver<TapEvent>, stage: &mut watch::Receiver<Stage>) -> Option<TapEvent> {
    tokio::select! {
        biased;
        event = tap.recv() => match event {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(TapEvent::Missed { count }),
            Err(RecvError::Closed) => None,
        },
        _ended = stage.wait_for(|stage| matches!(stage, Stage::Ended(_))) => None,
    }
}

fn line(mut json: Vec<u8>) -> Bytes {
    json.push(b'\n');
    json.into()
}
