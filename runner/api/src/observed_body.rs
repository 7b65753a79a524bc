//! Bodies of requests and answers that tell the connection's entry when they end; a request's body has a deadline.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::connection_table::ConnectionEntry;

/// Longest time in which a client may send a body, beside the time that its size allows.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a body for each of which the client gets another second.
const BYTES_PER_SECOND: u64 = 16 << 10;

/// Error of a body that does not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The client sends it too slowly.
    #[error("the body arrives too slowly")]
    Slow,
    /// The connection broke, or the framing is wrong.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// Body of a request.
#[derive(Debug)]
pub(crate) struct RequestBody {
    body: Incoming,
    entry: ConnectionEntry,
    received: u64,
    /// Deadline of what has to arrive; made when the reader first waits.
    deadline: Option<BodyDeadline>,
}

#[derive(Debug)]
struct BodyDeadline {
    began: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl RequestBody {
    /// Observes `body` for the connection of `entry`.
    pub(crate) fn new(body: Incoming, entry: ConnectionEntry) -> Self {
        if body.is_end_stream() {
            entry.receive();
        }
        Self { body, entry, received: 0, deadline: None }
    }

    /// Waits for the deadline of a body of which so much has come.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline.get_or_insert_with(|| {
            let began = Instant::now();
            BodyDeadline { began, sleep: Box::pin(sleep_until(began + BODY_TIMEOUT)) }
        });
        loop {
            ready!(deadline.sleep.as_mut().poll(context));
            let due = deadline.began + BODY_TIMEOUT + allowance(self.received);
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            deadline.sleep.as_mut().reset(due);
        }
    }
}

/// Returns the time that a body gets for its size.
const fn allowance(received: u64) -> Duration {
    Duration::from_millis(received.saturating_mul(1000) / BYTES_PER_SECOND)
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            ready!(self.poll_deadline(context));
            return Poll::Ready(Some(Err(BodyError::Slow)));
        };
        let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
        self.received += bytes.map_or(0, |bytes| bytes.len() as u64);
        if frame.is_none() || self.body.is_end_stream() {
            self.entry.receive();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Body of an answer. The request is finished when it is dropped.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    body: Body,
    entry: ConnectionEntry,
}

impl AnswerBody {
    /// Observes `body` for the connection of `entry`.
    pub(crate) const fn new(body: Body, entry: ConnectionEntry) -> Self {
        Self { body, entry }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.entry.finish();
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_bodies_have_more_time() {
        assert_eq!(allowance(0), Duration::ZERO);
        assert_eq!(allowance(8 << 10), Duration::from_millis(500));
        assert_eq!(allowance(16 << 20), Duration::from_secs(1024));
    }
}
