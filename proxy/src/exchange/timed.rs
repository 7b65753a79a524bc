//! Serves a connection when it is polled, and ends it or reports to its call when a timeout passes.
//!
//! One alarm per connection, set again only when it has rung or something is due earlier: a call with the
//! usual limits never touches it. Everything of a call runs when its connection is polled. So polling once
//! more reports a passed timeout to the call. If nothing of the call runs then, because its client takes
//! nothing, the connection is dropped.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::AsyncWrite,
    time::{Sleep, sleep_until},
};

use super::{
    accept::Service,
    carried::Carried,
    head_memory::{HeadPermit, Standing},
    patience::Passed,
    wire::{Socket, Wire},
};

/// The connection.
#[derive(Debug)]
pub(super) struct Timed<S>
where
    S: Socket,
{
    connection: http1::Connection<TokioIo<Wire<S>>, Service>,
    carried: Carried,
    heads: HeadPermit,
    alarm: Pin<Box<Sleep>>,
}

/// Reason why a connection ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The connection or its client ended it.
    Alone(hyper::Result<()>),
    /// The connection waited for too long.
    Passed(Passed),
    /// Its client has left a call.
    Abandoned,
    /// Its head is unfinished, and others need the memory.
    Evicted,
}

impl<S> Timed<S>
where
    S: Socket,
{
    pub(super) fn new(
        connection: http1::Connection<TokioIo<Wire<S>>, Service>,
        carried: Carried,
        heads: HeadPermit,
    ) -> Self {
        let first = carried.due().unwrap_or_else(Instant::now);
        Self { connection, carried, heads, alarm: Box::pin(sleep_until(first.into())) }
    }

    /// Ends the connection after the call that it carries, or now if it carries none.
    pub(super) fn close_softly(&mut self) {
        Pin::new(&mut self.connection).graceful_shutdown();
    }

    /// Ends it with `text`, as far as the client takes that at once.
    pub(super) fn end_with(self, text: &[u8]) {
        let mut stream = self.connection.into_parts().io.into_inner();
        let mut cx = Context::from_waker(Waker::noop());
        stream.say(&mut cx, text);
        drop(Pin::new(&mut stream).poll_shutdown(&mut cx));
    }

    /// Returns the timeout that has passed, once one has; the next one is `due` then.
    fn poll_alarm(&mut self, mut due: Option<Instant>, cx: &mut Context<'_>) -> Poll<Passed> {
        loop {
            let Some(at) = due.map(Into::into) else { return Poll::Pending };
            if at < self.alarm.deadline() || self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(at);
            }
            std::task::ready!(self.alarm.as_mut().poll(cx));
            if let Some(passed) = self.carried.pass(Instant::now()) {
                return Poll::Ready(passed);
            }
            due = self.carried.due();
        }
    }
}

impl<S> Future for Timed<S>
where
    S: Socket,
{
    type Output = Ended;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let this = self.get_mut();
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut this.connection).poll(cx) {
                return Poll::Ready(Ended::Alone(ended));
            }
            let waiting = this.carried.waiting();
            if let Some(timeout) = waiting.told {
                return Poll::Ready(Ended::Passed(Passed::Call(timeout)));
            }
            if waiting.is_abandoned {
                return Poll::Ready(Ended::Abandoned);
            }
            if this.heads.hold(waiting.held, cx.waker()) == Standing::Evicted {
                return Poll::Ready(Ended::Evicted);
            }
            let passed = std::task::ready!(this.poll_alarm(waiting.due, cx));
            if this.carried.told().is_none() {
                return Poll::Ready(Ended::Passed(passed));
            }
        }
    }
}
