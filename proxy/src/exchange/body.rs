//! Defines the body of a response: a text of our own, or an answer that is being observed.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body::{Frame, SizeHint};
use platform_core::{record::Timeout, route::Dialect};

use super::observe::Observed;
use crate::{
    journal,
    refusal::{self, Refused},
};

/// Body of a response to a client.
#[derive(Debug)]
pub(crate) enum Body {
    /// A text of our own, once.
    Own(Option<Bytes>),
    /// The upstream's answer.
    Observed(Box<Observed>),
}

/// Reason why an answer ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenOff {
    /// The upstream broke off.
    #[error("the upstream closed the connection")]
    Upstream(#[source] hyper::Error),
    /// A timeout of the call passed.
    #[error("the limit {} of the call passed", .0.word())]
    Late(Timeout),
    /// The document so far is not an answer, and some of it has passed.
    #[error("the upstream reported an error in the middle of its answer")]
    NoAnswer,
    /// The call's record cannot be made durable. Without it the end of the answer is not sent.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

impl Body {
    /// Returns a response with a JSON document of our own, and status 200.
    pub(crate) fn json(text: String) -> Response<Self> {
        let mut response = Response::new(Self::from(text));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// Returns the response that reports `refused` to a client, in the dialect of the route it called.
    pub(super) fn refusal(refused: &Refused, dialect: Dialect) -> Response<Self> {
        refusal::respond(refused, dialect).map(Self::from)
    }
}

impl From<Bytes> for Body {
    fn from(text: Bytes) -> Self {
        Self::Own(Some(text))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Own(Some(text.into()))
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
