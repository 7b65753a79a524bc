//! Plays beats as a response body, and reports its progress to the ledger.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::{api::Kind, ledger::Call, staging::Beat};

/// Reason why a connection gets no (further) answer. hyper closes it then, with this as its error's source.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// The script resets the connection.
    #[error("the script cuts the connection")]
    Cut,
    /// The request did not arrive as a whole.
    #[error("the request's body broke off")]
    RequestBroken,
}

/// A response body. hyper drops it when it is played to its end or when the client departs. The drop of the call
/// reports that to the ledger.
pub(super) struct Playback {
    beats: vec::IntoIter<Beat>,
    pause: Option<Pin<Box<Sleep>>>,
    /// Length that the head declares, if the answer is in one piece.
    length: Option<u64>,
    call: Option<Call>,
}

impl Playback {
    /// Creates an answer of unknown length.
    pub(super) fn streamed(call: Call, beats: Vec<Beat>) -> Self {
        Self { beats: beats.into_iter(), pause: None, length: None, call: Some(call) }
    }

    /// Creates an answer in one piece. The head declares its full length even if its beats break off before.
    pub(super) fn whole(call: Call, beats: Vec<Beat>, length: usize) -> Self {
        Self { length: u64::try_from(length).ok(), ..Self::streamed(call, beats) }
    }

    /// Creates an empty answer, which is complete at once: hyper never polls the body of an answer that may have none.
    pub(super) fn empty(mut call: Call) -> Self {
        call.answered();
        Self::whole(call, Vec::new(), 0)
    }

    /// Creates an answer about the ledger, which the ledger does not record.
    pub(super) fn unrecorded(body: Bytes) -> Self {
        let length = u64::try_from(body.len()).ok();
        let beats = vec![Beat::Send(body, Kind::Frame)];
        Self { beats: beats.into_iter(), pause: None, length, call: None }
    }

    fn sent(&mut self, kind: Kind) {
        if let Some(call) = &mut self.call {
            if kind == Kind::Content {
                call.sent_content();
            }
            if self.beats.as_slice().is_empty() {
                call.answered();
            }
        }
    }
}

impl Body for Playback {
    type Data = Bytes;
    type Error = NoAnswer;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NoAnswer>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match self.beats.next() {
                None => return Poll::Ready(None),
                Some(Beat::Pause(length)) => self.pause = Some(Box::pin(sleep(length))),
                Some(Beat::Flush) => {
                    // hyper flushes its buffer whenever the body is not ready, and then polls again.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Beat::Send(bytes, kind)) => {
                    self.sent(kind);
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Beat::Cut) => {
                    if let Some(call) = &mut self.call {
                        call.cut();
                    }
                    return Poll::Ready(Some(Err(NoAnswer::Cut)));
                }
                Some(Beat::Stall) => {
                    // The beat stays in place, so that the next poll stalls as well.
                    self.beats = vec![Beat::Stall].into_iter();
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.beats.as_slice().is_empty() && self.pause.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}
