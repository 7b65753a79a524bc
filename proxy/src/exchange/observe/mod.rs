//! Streams the answer through as it comes, while a meter watches, and distinguishes a whole answer from a part.
//!
//! The record is written before the last bytes are handed over. A stream that does not reach the upstream's own end is
//! never closed cleanly. If it is between two events, an error event follows. Then the connection is aborted, so that
//! no client takes a part for the whole.

mod broken_off;
mod counts;

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, header};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use platform_core::{
    record::{Outcome, Timeout},
    refusal::Refusal,
};
use platform_runtime::report;

pub(crate) use self::broken_off::BrokenOff;
use super::{
    call::Exchange,
    forward::Answer,
    upstream_error::{self, ErrorDetail},
};
use crate::{
    journal::Durable,
    mask::Mask,
    refusal::{self, Refused},
    upstream::Connection,
    usage::{DocumentFilter, EventFilter, Format, Meter, StreamProgress},
};

/// Most bytes of a document that are read ahead. A document waits until it is known to be an answer, or until this much
/// has come.
const MAX_AHEAD: usize = 64 << 10;

/// An answer on its way to the client.
#[derive(Debug)]
pub(crate) struct Observed {
    state: State,
    meter: Meter,
    passage: Passage,
    ahead: Ahead,
    /// Announced bytes of a document that did not come before it broke off.
    missing: Option<u64>,
    mask: Arc<Mask>,
    detail: ErrorDetail,
    /// Set while the upstream's next bytes are awaited.
    is_waiting: bool,
    exchange: Exchange,
}

/// Filter through which an answer passes, by its form.
#[derive(Debug)]
enum Passage {
    /// A stream, event by event.
    Events(Box<EventFilter>),
    /// A single document.
    Document(Box<DocumentFilter>),
}

/// The part of a document that is read before any of it passes.
#[derive(Debug)]
enum Ahead {
    /// The document is being read.
    Reading,
    /// This much was read, and is the next to pass.
    Read(Bytes),
    /// Nothing is read ahead, or it has passed.
    None,
}

#[derive(Debug)]
enum State {
    /// The upstream sends.
    Streaming(Box<Incoming>, Connection),
    /// The call has ended, and its record is on its way to the disk.
    Syncing(Durable, Rest),
    /// The answer breaks off and an error event was handed over; it is given a turn to be flushed.
    Flushing(BrokenOff),
    /// Nothing more comes after this error.
    Aborting(BrokenOff),
    /// All was handed over.
    Done,
}

/// Rest of an answer, handed over once the call's record is durable.
#[derive(Debug)]
enum Rest {
    /// The last bytes.
    Last(Bytes),
    /// The event that reports an error, if one fits, and then the error.
    Break(Option<Bytes>, BrokenOff),
}

/// Response to a call that the upstream has answered with success.
pub(super) enum Answered {
    /// The upstream's answer.
    Passing(Response<Box<Observed>>),
    /// The response in the place of a document that is not an answer.
    Replaced(Response<Bytes>),
}

/// Returns the response for the client.
pub(super) async fn respond(
    exchange: Exchange,
    (answer, connection): Answer,
    detail: ErrorDetail,
) -> Answered {
    let (head, body) = answer.into_parts();
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let meter = Meter::new(exchange.route(), Format::of(content_type));
    let has_no_body = body.is_end_stream();
    let mask = exchange.mask();
    let passage = if meter.reads_events() {
        Passage::Events(Box::new(EventFilter::new(exchange.route(), Arc::clone(&mask))))
    } else {
        Passage::Document(Box::new(DocumentFilter::new(Arc::clone(&mask))))
    };
    let mut observed = Observed {
        state: State::Done,
        meter,
        passage,
        ahead: Ahead::None,
        missing: None,
        mask,
        detail,
        is_waiting: false,
        exchange,
    };
    if has_no_body {
        // hyper never asks for a body that is known to be empty.
        observed.finish(connection).wait().await;
    } else {
        observed.state = State::Streaming(Box::new(body), connection);
        let text = observed.read_ahead().await;
        if observed.is_no_answer() {
            observed.give_up();
            let replaced =
                upstream_error::replace_document(&mut observed.exchange, &head, text, detail).await;
            return Answered::Replaced(replaced);
        }
        observed.ahead = if text.is_empty() { Ahead::None } else { Ahead::Read(text) };
    }
    let response = observed.exchange.passed_head(&head);
    Answered::Passing(response.map(|()| Box::new(observed)))
}

impl Observed {
    /// Reads a document to its end, or as much of it as may wait; nothing of a stream.
    async fn read_ahead(&mut self) -> Bytes {
        let mut text = Bytes::new();
        if matches!(self.passage, Passage::Events(_)) {
            return text;
        }
        self.ahead = Ahead::Reading;
        while text.len() <= MAX_AHEAD {
            match poll_fn(|cx| self.poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    let piece = frame.into_data().unwrap_or_default();
                    text = if text.is_empty() { piece } else { [text, piece].concat().into() };
                }
                Some(Err(error)) => {
                    // The bytes that came are handed over, and given a turn to be flushed.
                    self.state = State::Flushing(error);
                    break;
                }
                None => break,
            }
            if self.is_done() {
                break;
            }
        }
        self.ahead = Ahead::None;
        text
    }

    /// Ends the call's answer before any of it has passed.
    fn give_up(&mut self) {
        self.state = State::Done;
        let mut report = self.meter.finish(None);
        report.failed = true;
        self.exchange.add_usage(report);
        self.exchange.discard_answer();
    }

    /// Returns whether a document that was read ahead reports an error, or is not an answer.
    fn is_no_answer(&self) -> bool {
        match &self.passage {
            Passage::Document(document) if self.is_done() => !document.is_answer(),
            Passage::Document(document) => document.has_come() && !document.looks_like_an_answer(),
            Passage::Events(_) => false,
        }
    }

    /// Polls the next piece of the answer, as [`http_body::Body::poll_frame`] requires.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if let Ahead::Read(text) = &mut self.ahead {
            let text = std::mem::take(text);
            self.ahead = Ahead::None;
            return Poll::Ready(Some(Ok(Frame::data(text))));
        }
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

    /// Returns whether the last piece was handed over.
    pub(super) const fn is_done(&self) -> bool {
        matches!((&self.state, &self.ahead), (State::Done, Ahead::None | Ahead::Reading))
    }

    /// Returns how much is still to come, if the upstream said.
    pub(super) fn size_hint(&self) -> http_body::SizeHint {
        // Withheld events will be missing, and redacted ones have another length.
        let Passage::Document(document) = &self.passage else { return http_body::SizeHint::default() };
        let ahead = if let Ahead::Read(text) = &self.ahead { text.len() } else { 0 };
        let to_come = match &self.state {
            State::Streaming(body, _) => body.size_hint().exact(),
            State::Done => Some(0),
            // The announced length shows a client that its answer is incomplete.
            State::Syncing(..) | State::Flushing(_) | State::Aborting(_) => self.missing,
        };
        let held = (ahead + document.held()) as u64;
        to_come.map(|length| http_body::SizeHint::with_exact(length + held)).unwrap_or_default()
    }

    fn poll_upstream(
        &mut self,
        mut body: Box<Incoming>,
        mut connection: Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        loop {
            let polled = connection.poll_frame(body.as_mut(), cx);
            if polled.is_ready() && std::mem::take(&mut self.is_waiting) {
                self.exchange.connection_state().arrived();
            }
            match polled {
                Poll::Pending => {
                    self.is_waiting = true;
                    if let Some(timeout) =
                        self.exchange.connection_state().await_upstream(Timeout::BetweenBytes)
                    {
                        self.missing = body.size_hint().exact();
                        return self.break_off(BrokenOff::Late(timeout), cx);
                    }
                    self.state = State::Streaming(body, connection);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers do not pass.
                    let Ok(piece) = frame.into_data() else { continue };
                    let piece = self.filter(piece);
                    if self.passes_no_answer() {
                        return self.break_off(BrokenOff::NoAnswer, cx);
                    }
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
                    self.missing = body.size_hint().exact();
                    return self.break_off(BrokenOff::Upstream(error), cx);
                }
            }
        }
    }

    /// Meters `piece`, and returns the part of the answer that may go to the agent now.
    fn filter(&mut self, piece: Bytes) -> Bytes {
        // Masked before it is read, so a secret in one piece reaches no record and no viewer. A secret that is spread
        // over pieces is found only on its way to the agent; viewers are people.
        let piece = self.mask.cover(piece);
        let call = self.exchange.call_id();
        let text_before = self.meter.text_bytes();
        match self.exchange.run().watched() {
            Some(tap) => self.meter.feed(&piece, Some(&mut |delta| tap.push(call, delta))),
            None => self.meter.feed(&piece, None),
        }
        if self.meter.text_bytes() > text_before {
            self.exchange.text_came();
        }
        let piece = match &mut self.passage {
            Passage::Events(events) => {
                let redact = |event: &[u8]| upstream_error::replace_event(&self.exchange, self.detail, event);
                events.follow(piece, self.exchange.usage(), redact)
            }
            Passage::Document(document) => document.follow(piece),
        };
        self.exchange.forwarded(piece.len());
        piece
    }

    /// Returns the last frame: `piece` and the bytes that were held back.
    fn finish_with(
        &mut self,
        piece: Bytes,
        connection: Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let rest = match &mut self.passage {
            Passage::Events(events) => {
                events.rest(|event| upstream_error::replace_event(&self.exchange, self.detail, event))
            }
            Passage::Document(document) => document.rest(),
        };
        self.exchange.forwarded(rest.len());
        let last = if rest.is_empty() { piece } else { [piece, rest].concat().into() };
        if matches!(self.ahead, Ahead::Reading) && self.is_no_answer() {
            // Another answer replaces it, and is the one that is recorded.
            self.exchange.context().upstream.give_back(connection);
            return Poll::Ready((!last.is_empty()).then(|| Ok(Frame::data(last))));
        }
        let synced = self.finish(connection);
        self.poll_synced(synced, Rest::Last(last), cx)
    }

    /// Returns whether a document turns out to be no answer after some of it has passed.
    fn passes_no_answer(&self) -> bool {
        let Passage::Document(document) = &self.passage else { return false };
        !matches!(self.ahead, Ahead::Reading) && !document.looks_like_an_answer()
    }

    /// Hands over the rest once the record is durable.
    fn poll_synced(
        &mut self,
        mut synced: Durable,
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

    /// Ends the call where the upstream ended its answer. Settles the reported usage, and returns the connection to the
    /// pool.
    fn finish(&mut self, connection: Connection) -> Durable {
        let call = self.exchange.call_id();
        let mut report = match self.exchange.run().watched() {
            Some(tap) => self.meter.finish(Some(&mut |delta| tap.push(call, delta))),
            None => self.meter.finish(None),
        };
        report.failed |= self.has_failed();
        let complete = self.meter.is_complete(&report) || !self.exchange.status().is_success();
        self.exchange.add_usage(report);
        let synced = self.exchange.settle(if complete { Outcome::Complete } else { Outcome::StreamError });
        self.exchange.context().upstream.give_back(connection);
        synced
    }

    /// Ends the answer before its end. The bytes that were handed over get a chance to be flushed first,
    /// because hyper drops those it holds when it meets an error.
    fn break_off(
        &mut self,
        error: BrokenOff,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        tracing::warn!(call = %self.exchange.call_id(), error = report::chain(&error), "answer breaks off");
        let (refused, outcome) = match &error {
            BrokenOff::Upstream(_) | BrokenOff::Journal(_) => {
                (Refusal::UpstreamFailed.into(), Outcome::UpstreamGone)
            }
            BrokenOff::NoAnswer => (Refusal::UpstreamFailed.into(), Outcome::StreamError),
            BrokenOff::Late(timeout) => {
                self.exchange.note_timeout(*timeout);
                (self.exchange.timeout_refusal(Refusal::UpstreamTimeout, *timeout), Outcome::TimedOut)
            }
        };
        let report = self.meter.finish(None);
        self.exchange.add_usage(report);
        let synced = self.exchange.settle(outcome);
        let last = self.last_event(refused);
        let event = match &mut self.passage {
            Passage::Events(events) if events.leaves_whole_events() => {
                Some([events.waiting(), last.into()].concat().into())
            }
            Passage::Events(_) | Passage::Document(_) => None,
        };
        self.poll_synced(synced, Rest::Break(event, error), cx)
    }

    /// Returns whether a stream carried an error, or anything else that is not an answer.
    const fn has_failed(&self) -> bool {
        match &self.passage {
            Passage::Events(events) => events.has_failed(),
            Passage::Document(_) => false,
        }
    }

    fn last_event(&self, refused: Refused) -> String {
        let redacted = match self.detail {
            ErrorDetail::Upstream => refused,
            ErrorDetail::Generic => refused.for_gateway(),
        };
        refusal::error_event(&redacted, self.exchange.route().dialect())
    }
}

impl Drop for Observed {
    /// Settles a call that ends in the middle, because its client has left or its run was cut: the answer so far still
    /// counts. A client that leaves after the mark that ends its stream, as official SDKs do, has received all of it.
    fn drop(&mut self) {
        if self.exchange.is_open() {
            let report = self.meter.finish(None);
            let was_complete =
                report.stage == StreamProgress::Complete && !(report.failed || self.has_failed());
            self.exchange.add_usage(report);
            if was_complete {
                drop(self.exchange.settle(Outcome::Complete));
            }
        }
    }
}
