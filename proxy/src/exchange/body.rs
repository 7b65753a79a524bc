//! Defines the body of a response: a text of our own, or an answer that is being observed.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::observe::{BrokenOff, Observed};

/// Body of a response to a client.
#[derive(Debug)]
pub(crate) enum Body {
    /// A text of our own, once.
    Own(Option<Bytes>),
    /// The upstream's answer.
    Observed(Box<Observed>),
}

impl From<Bytes> for Body {
    fn from(text: Bytes) -> Self {
        Self::Own(Some(text))
    }
}

impl From<Box<Observed>> for Body {
    fn from(answer: Box<Observed>) -> Self {
        Self::Observed(answer)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            Self::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Observed(observed) => observed.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(text) => text.is_none(),
            Self::Observed(observed) => observed.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Self::Observed(observed) => observed.size_hint(),
        }
    }
}
