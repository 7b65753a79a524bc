//! Provides the request body for the upstream: pieces of memory, one after the other, of known total length.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Pieces that are still to be sent.
#[derive(Debug)]
pub(crate) struct Pieces(vec::IntoIter<Bytes>);

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(pieces.into_iter())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|piece| piece.len() as u64).sum())
    }
}
