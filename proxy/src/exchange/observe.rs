//! observe: the answer streams through as it comes, a meter watches, and the end is told apart.
//!
//! The record is written before the last bytes are handed over. A stream that does not reach the upstream's
//! own end is never closed cleanly: an error event follows if the stream stands between two events, then
//! the connection is aborted, so that no client takes a part for the whole.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header, response::Parts};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use platform_core::{
    id::CallId,
    name::header as own,
    record::{Outcome, Timeout},
    refusal::Refusal,
};

use super::{
    Body, BrokenOff,
    complain::{self, Words},
    forward::Answer,
    released,
    settle::Exchange,
};
use crate::{
    journal::Synced,
    refusal::{self, Refused},
    upstream::Connection,
    usage::{Format, Meter, Stage, Withheld},
};

/// Response headers that pass. Everything else tells of the upstream's insides, or of other tenants.
const PASSED: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, HeaderName::from_static("request-id")];

/// An answer on its way through.
#[derive(Debug)]
pub(crate) struct Observed {
    state: State,
    meter: Meter,
    /// What of a stream is not for the agent, or not as it is.
    withheld: Option<Withheld>,
    words: Words,
    /// Whether the upstream's next bytes are waited for.
    waits: bool,
    /// Some text has come.
    speaks: bool,
    exchange: Exchange,
}

#[derive(Debug)]
enum State {
    /// The upstream sends.
    Streaming(Box<Incoming>, Connection),
    /// The call has ended, and its record is on its way to the disk.
    Syncing(Synced, Rest),
    /// The answer breaks off and an error event was handed over; it is given a turn to be flushed.
    Flushing(BrokenOff),
    /// Nothing more comes after this error.
    Aborting(BrokenOff),
    /// All was handed over.
    Done,
}

/// What is handed over when the call's record is where it has to be.
#[derive(Debug)]
enum Rest {
    /// The last bytes.
    Last(Bytes),
    /// The event that tells of an error, if it fits, and then the error.
    Break(Option<Bytes>, BrokenOff),
}

/// The response for the client.
pub(super) async fn respond(
    exchange: Exchange,
    (answer, connection): Answer,
    words: Words,
) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let meter = Meter::new(exchange.route(), Format::of(content_type));
    let mut response = with_head(&head, exchange.call_id());
    let has_no_body = body.is_end_stream();
    let withheld = meter.reads_events().then(Withheld::default);
    let mut observed =
        Observed { state: State::Done, meter, withheld, words, waits: false, speaks: false, exchange };
    if has_no_body {
        // hyper never asks for a body that is known to be empty.
        released(observed.finish(connection)).await;
    } else {
        observed.state = State::Streaming(Box::new(body), connection);
    }
    *response.body_mut() = Body::Observed(Box::new(observed));
    response
}

/// A response with what passes of the upstream's `head`, and no body yet.
pub(super) fn with_head(head: &Parts, call: CallId) -> Response<Body> {
    let mut response = Response::new(Body::from(String::new()));
    *response.status_mut() = head.status;
    *response.headers_mut() = passed(&head.headers);
    if let Ok(value) = http::HeaderValue::from_bytes(&call.to_ascii()) {
        response.headers_mut().insert(own::LITELLM_CALL_ID, value);
    }
    response
}

fn passed(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    for name in &PASSED {
        if let Some(value) = from.get(name) {
            headers.insert(name, value.clone());
        }
    }
    if let Some(value) = retry_after(from) {
        headers.insert(header::RETRY_AFTER, value.clone());
    }
    headers
}

/// When to come again. LiteLLM puts its provider's headers under a name of its own, which no SDK looks at.
pub(super) fn retry_after(from: &HeaderMap) -> Option<&HeaderValue> {
    from.get(header::RETRY_AFTER).or_else(|| from.get(own::LITELLM_PROVIDER_RETRY_AFTER))
}

impl Observed {
    /// The next piece of the answer, as [`http_body::Body::poll_frame`] wants it.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Streaming(body, connection) => self.poll_upstream(body, connection, cx),
            State::Syncing(synced, rest) => self.poll_synced(synced, rest, cx),
            State::Flushing(error) => {
                self.state = State::Aborting(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            State::Aborting(error) => Poll::Ready(Some(Err(error))),
            State::Done => Poll::Ready(None),
        }
    }

    /// Whether the last piece was handed over.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// How much is still to come, if the upstream said.
    pub(super) fn size_hint(&self) -> http_body::SizeHint {
        match &self.state {
            // What is withheld will be missing, and what is scrubbed has another length.
            State::Streaming(body, _) if self.withheld.is_none() => body.size_hint(),
            _ => http_body::SizeHint::default(),
        }
    }

    fn poll_upstream(
        &mut self,
        mut body: Box<Incoming>,
        mut connection: Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        loop {
            let polled = connection.poll_frame(body.as_mut(), cx);
            if polled.is_ready() && std::mem::take(&mut self.waits) {
                self.exchange.carried().has_come();
            }
            match polled {
                Poll::Pending => {
                    self.waits = true;
                    if let Some(timeout) = self.exchange.carried().wants(Timeout::BetweenBytes) {
                        return self.break_off(BrokenOff::Late(timeout), cx);
                    }
                    self.state = State::Streaming(body, connection);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers do not pass.
                    let Ok(piece) = frame.into_data() else { continue };
                    let piece = self.note(piece);
                    if body.is_end_stream() {
                        return self.finish_with(piece, connection, cx);
                    }
                    if !piece.is_empty() {
                        self.state = State::Streaming(body, connection);
                        return Poll::Ready(Some(Ok(Frame::data(piece))));
                    }
                }
                Poll::Ready(None) => return self.finish_with(Bytes::new(), connection, cx),
                Poll::Ready(Some(Err(error))) => {
                    return self.break_off(BrokenOff::Upstream(error), cx);
                }
            }
        }
    }

    /// Takes note of `piece`, and returns what of it is for the agent now.
    fn note(&mut self, piece: Bytes) -> Bytes {
        let call = self.exchange.call_id();
        match self.exchange.run().watched() {
            Some(tap) => self.meter.feed(&piece, Some(&mut |heard| tap.hear(call, heard))),
            None => self.meter.feed(&piece, None),
        }
        if !self.speaks && self.meter.has_text() {
            self.speaks = true;
            self.exchange.speaks();
        }
        let scrub = |event: &[u8]| complain::event(&self.exchange, self.words, event);
        let piece = match &mut self.withheld {
            Some(withheld) => withheld.follow(piece, (&self.meter, self.exchange.usage()), scrub),
            None => piece,
        };
        self.exchange.passed_on(piece.len());
        piece
    }

    /// The last frame: `piece` and what was held back.
    fn finish_with(
        &mut self,
        piece: Bytes,
        connection: Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let scrub = |event: &[u8]| complain::event(&self.exchange, self.words, event);
        let rest = self.withheld.as_mut().map(|withheld| withheld.rest(scrub)).unwrap_or_default();
        self.exchange.passed_on(rest.len());
        let last = if rest.is_empty() { piece } else { [piece, rest].concat().into() };
        let synced = self.finish(connection);
        self.poll_synced(synced, Rest::Last(last), cx)
    }

    /// What is left, once the record is where it has to be.
    fn poll_synced(
        &mut self,
        mut synced: Synced,
        rest: Rest,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match (Pin::new(&mut synced).poll(cx), rest) {
            (Poll::Pending, rest) => {
                self.state = State::Syncing(synced, rest);
                Poll::Pending
            }
            (Poll::Ready(Ok(())), Rest::Last(last)) => {
                Poll::Ready((!last.is_empty()).then(|| Ok(Frame::data(last))))
            }
            (Poll::Ready(Err(error)), Rest::Last(_)) => Poll::Ready(Some(Err(error.into()))),
            (Poll::Ready(_), Rest::Break(Some(event), error)) => {
                self.state = State::Flushing(error);
                Poll::Ready(Some(Ok(Frame::data(event))))
            }
            (Poll::Ready(_), Rest::Break(None, error)) => {
                self.state = State::Aborting(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// The upstream's own end: what it said is settled, and its connection serves the next call.
    fn finish(&mut self, connection: Connection) -> Synced {
        let call = self.exchange.call_id();
        let reading = match self.exchange.run().watched() {
            Some(tap) => self.meter.finish(Some(&mut |heard| tap.hear(call, heard))),
            None => self.meter.finish(None),
        };
        let complete = self.meter.is_complete(&reading) || !self.exchange.status().is_success();
        self.exchange.read(reading);
        let synced = self.exchange.settle(if complete { Outcome::Complete } else { Outcome::StreamError });
        self.exchange.plane().upstream.give_back(connection);
        synced
    }

    /// Ends the answer before its end. What was handed over so far is given a turn to be flushed: hyper drops what it
    /// holds when it meets an error.
    fn break_off(
        &mut self,
        error: BrokenOff,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        tracing::warn!(call = %self.exchange.call_id(), error = &error as &dyn std::error::Error, "answer breaks off");
        let (refused, outcome) = match &error {
            BrokenOff::Upstream(_) | BrokenOff::Journal(_) => {
                (Refusal::UpstreamFailed.into(), Outcome::UpstreamGone)
            }
            BrokenOff::Late(timeout) => {
                self.exchange.is_late(*timeout);
                (self.exchange.late(Refusal::UpstreamTimeout, *timeout), Outcome::TimedOut)
            }
        };
        let reading = self.meter.finish(None);
        self.exchange.read(reading);
        let synced = self.exchange.settle(outcome);
        let fits = self.withheld.as_ref().is_some_and(Withheld::leaves_whole_events);
        let event = fits.then(|| self.last_event(refused).into());
        self.poll_synced(synced, Rest::Break(event, error), cx)
    }

    fn last_event(&self, refused: Refused) -> String {
        let told = match self.words {
            Words::Theirs => refused,
            Words::Ours => refused.to_a_gateway(),
        };
        refusal::error_event(&told, self.exchange.route().dialect())
    }
}

impl Drop for Observed {
    /// A client that leaves, or a run that is cut, ends the call in the middle: what the answer has said so far
    /// still counts. One that leaves after the mark that ends its stream, as official SDKs do, has had it all.
    fn drop(&mut self) {
        if self.exchange.is_open() {
            let reading = self.meter.finish(None);
            let had_it_all = reading.stage == Stage::Ended && !reading.failed;
            self.exchange.read(reading);
            if had_it_all {
                drop(self.exchange.settle(Outcome::Complete));
            }
        }
    }
}
