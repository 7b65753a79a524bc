//! Streams the chunks of an answer as server-sent events. The last one has the text `[DONE]`, by which clients tell an
//! end from a broken connection.

use std::convert::Infallible;

use axum::response::{
    Sse,
    sse::{Event, KeepAlive, KeepAliveStream},
};
use futures_util::{
    Stream, StreamExt,
    stream::{iter, unfold},
};
use serde_json::Value;

use crate::stream_response::HEARTBEAT_INTERVAL;

/// Text of the last event of a stream.
const LAST: &str = "[DONE]";

/// Answer that is written in chunks.
pub(crate) trait ChunkSource: Sized + Send + 'static {
    /// Waits for the next chunks of the answer.
    fn next(&mut self) -> impl Future<Output = Chunks> + Send;
}

/// Chunks of an answer.
pub(crate) enum Chunks {
    /// Others follow.
    More(Vec<Value>),
    /// The answer ends with them.
    Last(Vec<Value>),
}

/// Returns the stream of the chunks `first`, and of those of `source`, as they come.
pub(crate) fn chunk_stream(
    first: Vec<Value>,
    source: impl ChunkSource,
) -> Sse<KeepAliveStream<impl Stream<Item = Result<Event, Infallible>> + Send>> {
    let rest = unfold(Some(source), async |source| {
        let mut source = source?;
        Some(match source.next().await {
            Chunks::More(chunks) => (iter(events(chunks).chain(None)), Some(source)),
            Chunks::Last(chunks) => (iter(events(chunks).chain(Some(event(LAST)))), None),
        })
    });
    let events = iter(events(first)).chain(rest.flatten());
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL))
}

fn events(chunks: Vec<Value>) -> impl Iterator<Item = Result<Event, Infallible>> {
    chunks.into_iter().map(|chunk| event(&chunk.to_string()))
}

fn event(data: &str) -> Result<Event, Infallible> {
    Ok(Event::default().data(data))
}
