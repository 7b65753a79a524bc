//! Keeps the state of the call on a connection: how it can be cancelled, and which timeouts are running.
//!
//! A client that does not read keeps its call waiting for ever, and no code of the call runs meanwhile. So
//! the connection itself is dropped when the run is cut, its gateway's listener closes, or a timeout passes.
//! The same happens when an operator freezes the call's account or model, or revokes its token. The call's
//! record says why.

use std::{
    cell::{RefCell, RefMut},
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::Poll,
    time::Instant,
};

use platform_core::{
    grant::CallTimes,
    record::{Identity, Timeout},
    refusal::Refusal,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    inbound::{Inbound, Target},
    timeouts::{ConnectionTimeouts, Expired, IdleTimeouts},
};
use crate::{freezes::Freezes, refusal::Refused, run::Run};

/// State of one connection, which stays on its thread. Clones refer to the same connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionState(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    call: RefCell<ActiveCall>,
    /// Notified when a call of another run begins.
    run_changed: Notify,
    idle_timeouts: IdleTimeouts,
    /// Cancelled when the gateway's listener closes; only on a gateway's connections.
    listener_closed: Option<CancellationToken>,
}

#[derive(Debug)]
struct ActiveCall {
    /// Run of the current or last call; some bytes of that call may wait to be read.
    run: Option<Arc<Run>>,
    /// Proof by which the run was found.
    identity: Identity,
    stage: CallStage,
    /// Refusal by which an operator has stopped the call. It stays, also if the freeze is lifted at once.
    stopped: Option<Refused>,
    /// Set while the call goes on also if its client leaves.
    outlives_client: bool,
    timeouts: ConnectionTimeouts,
    inbound: Inbound,
}

/// Status of a connection that has nothing to do at the moment.
#[derive(Debug)]
pub(crate) struct ConnectionStatus {
    /// Time at which the next timeout passes.
    pub(crate) deadline: Option<Instant>,
    /// Timeout that was reported to the call and that the call has not acted on.
    pub(crate) reported: Option<Timeout>,
    /// Bytes that hyper holds and that belong to no call.
    pub(crate) head_bytes: u64,
    /// Set if the client has left a call that is in flight and that ends with it.
    pub(crate) is_abandoned: bool,
}

#[derive(Debug, Default)]
enum CallStage {
    /// No call is in flight.
    #[default]
    Idle,
    /// The request's body is not read yet.
    Begun,
    /// The call asks for this model.
    ModelKnown(Box<str>),
    /// The call is one of host tools.
    Tool,
}

impl ConnectionState {
    /// Creates the state of a connection that was accepted just now: of one run's own, or of the shared
    /// listener.
    pub(crate) fn new(run: Option<Arc<Run>>, idle_timeouts: IdleTimeouts) -> Self {
        Self::build(None, run, idle_timeouts)
    }

    /// Creates the state of a gateway's connection, which is dropped when `listener_closed` is cancelled.
    pub(crate) fn for_gateway(listener_closed: CancellationToken, idle_timeouts: IdleTimeouts) -> Self {
        Self::build(Some(listener_closed), None, idle_timeouts)
    }

    fn build(
        listener_closed: Option<CancellationToken>,
        run: Option<Arc<Run>>,
        idle_timeouts: IdleTimeouts,
    ) -> Self {
        let call = ActiveCall {
            run,
            identity: Identity::None,
            stage: CallStage::Idle,
            stopped: None,
            outlives_client: false,
            timeouts: ConnectionTimeouts::new(Instant::now()),
            inbound: Inbound::new(),
        };
        let run_changed = Notify::new();
        Self(Rc::new(Inner { call: RefCell::new(call), run_changed, idle_timeouts, listener_closed }))
    }

    /// Begins a call of `run`, which was found by a proof of the kind `identity`.
    pub(crate) fn begin_call(&self, run: &Arc<Run>, identity: Identity, now: Instant) {
        let mut call = self.call();
        call.identity = identity;
        call.stage = CallStage::Begun;
        call.stopped = None;
        call.outlives_client = false;
        call.timeouts.begin_call(now);
        if call.run.as_ref().is_none_or(|other| !Arc::ptr_eq(other, run)) {
            call.run = Some(Arc::clone(run));
            self.0.run_changed.notify_one();
        }
    }

    /// Notes that the call asks for `model`.
    pub(crate) fn set_model(&self, model: &str) {
        self.call().stage = CallStage::ModelKnown(model.into());
    }

    /// Notes that the call is one of host tools, which may take another time than a model call.
    pub(crate) fn set_tool_call(&self) {
        self.call().stage = CallStage::Tool;
    }

    /// Ends the call: it is settled, or the request was not a call.
    pub(crate) fn end_call(&self) {
        let mut call = self.call();
        call.stage = CallStage::Idle;
        call.stopped = None;
        call.timeouts.end_call(Instant::now());
        call.inbound.expect_head();
    }

    /// Returns whether the connection must be dropped.
    pub(crate) fn is_cut(&self, freezes: &Freezes) -> bool {
        if self.is_listener_closed() {
            return true;
        }
        let mut call = self.call();
        // A connection without bytes of the run may serve another run.
        let is_in_use = !matches!(call.stage, CallStage::Idle) || call.timeouts.is_write_blocked();
        let is_cut = call.run.as_ref().is_some_and(|run| run.cut().is_some()) || call.is_revoked();
        is_in_use && is_cut || call.operator_stop(freezes).is_some()
    }

    /// Waits until the connection must be dropped, for calls of any run.
    pub(crate) async fn wait_until_cut(self, freezes: Arc<Freezes>) {
        loop {
            let run = self.call().run.clone();
            // Subscribed before the check, so that no change in between is missed.
            let mut changes = run.as_ref().map(|run| run.changes());
            if self.is_cut(&freezes) {
                return;
            }
            let changed = async {
                match &mut changes {
                    // The sender lives as long as the run.
                    Some(changes) => drop(changes.changed().await),
                    None => std::future::pending().await,
                }
            };
            let listener_closed = async {
                match &self.0.listener_closed {
                    Some(listener_closed) => listener_closed.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.0.run_changed.notified() => {}
                () = listener_closed => {}
            }
        }
    }

    /// Returns whether the listener of its gateway was closed.
    pub(crate) fn is_listener_closed(&self) -> bool {
        self.0.listener_closed.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Returns the refusal by which an operator has stopped the call in flight, if there is one.
    pub(crate) fn operator_stop(&self, freezes: &Freezes) -> Option<Refused> {
        self.call().operator_stop(freezes)
    }

    fn call(&self) -> RefMut<'_, ActiveCall> {
        self.0.call.borrow_mut()
    }
}

/// Bytes that come from the client.
impl ConnectionState {
    /// Notes that `bytes` have come from the client.
    pub(crate) fn received(&self, bytes: &[u8]) {
        let mut call = self.call();
        call.timeouts.received(Instant::now);
        call.inbound.received(bytes);
    }

    /// Notes that the client will send nothing more. As with nginx, it has left then: a bridge turns a close into an end
    /// of input.
    pub(crate) fn input_ended(&self) {
        self.call().input_ended();
    }

    /// Lets the call in flight go on if its client leaves.
    pub(crate) fn outlive_client(&self) {
        self.call().outlives_client = true;
    }

    /// Ends the call in flight with its client from now on; if the client has left before, now.
    pub(crate) fn end_with_client(&self) {
        self.call().outlives_client = false;
    }

    /// Notes that the client has left, unless the call in flight ends with it. Returns whether the call goes on.
    pub(crate) fn leave_call(&self) -> bool {
        let mut call = self.call();
        if call.outlives_client {
            call.input_ended();
        }
        call.goes_on()
    }

    /// Returns whether the call in flight goes on without its client.
    pub(crate) fn goes_on(&self) -> bool {
        self.call().goes_on()
    }

    /// Returns whether the client has left the call in flight, which did not end with it.
    pub(crate) fn has_outlived_client(&self) -> bool {
        let call = self.call();
        call.outlives_client && call.is_left()
    }

    /// Notes that hyper has passed on a head of `size` bytes.
    pub(crate) fn take_head(&self, size: usize) -> Target {
        self.call().inbound.take_head(size as u64)
    }

    /// Notes that bytes that come now belong to the body of a call that is settled.
    pub(crate) fn discard_body(&self) {
        self.call().inbound.discard();
    }

    /// Notes that `bytes` bytes of such a body came.
    pub(crate) fn discarded(&self, bytes: usize) {
        self.call().inbound.take(bytes as u64);
    }

    /// Returns whether a call is in flight.
    pub(crate) fn has_call(&self) -> bool {
        self.call().timeouts.has_call()
    }

    /// Returns whether the client has left a call that is in flight and that ends with it.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.call().is_abandoned()
    }

    /// Returns the connection's status.
    pub(crate) fn status(&self) -> ConnectionStatus {
        let call = self.call();
        let next = call.timeouts.next(self.0.idle_timeouts, &call.times());
        ConnectionStatus {
            deadline: next.map(|(at, _)| at),
            reported: call.timeouts.reported(),
            head_bytes: call.inbound.held(),
            is_abandoned: call.is_abandoned(),
        }
    }
}

/// Waits and their timeouts.
impl ConnectionState {
    /// Notes that the client reads nothing for now.
    pub(crate) fn write_blocked(&self) {
        self.call().timeouts.write_blocked(Instant::now());
    }

    /// Notes that the client reads again.
    pub(crate) fn write_resumed(&self) {
        self.call().timeouts.write_resumed();
    }

    /// Begins the wait for the request's body.
    pub(crate) fn await_body(&self) {
        self.call().timeouts.await_body(Instant::now());
    }

    /// Counts `bytes` bytes of the request's body.
    pub(crate) fn received_body(&self, bytes: usize, times: &CallTimes) {
        let mut call = self.call();
        call.timeouts.received_body(bytes as u64, times.body_bytes().max(1), Instant::now);
        call.inbound.take(bytes as u64);
    }

    /// Begins the wait for the upstream, within `timeout`. Returns the timeout that has passed, if one has.
    pub(crate) fn await_upstream(&self, timeout: Timeout) -> Option<Timeout> {
        let mut call = self.call();
        call.timeouts.await_upstream(timeout, Instant::now);
        call.timeouts.reported()
    }

    /// Ends the wait.
    pub(crate) fn arrived(&self) {
        self.call().timeouts.arrived();
    }

    /// Returns the timeout of the call that has passed, until the call is settled.
    pub(crate) fn reported_timeout(&self) -> Option<Timeout> {
        self.call().timeouts.reported()
    }

    /// Waits for `future` no longer than the call's timeouts allow. Polled with the connection, which knows when one
    /// passes.
    pub(crate) async fn within_timeouts<F: Future>(&self, future: F) -> Result<F::Output, Timeout> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => {
                self.reported_timeout().map_or(Poll::Pending, |timeout| Poll::Ready(Err(timeout)))
            }
        })
        .await
    }

    /// Returns the time at which the next timeout passes.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let call = self.call();
        call.timeouts.next(self.0.idle_timeouts, &call.times()).map(|(at, _)| at)
    }

    /// Returns the timeout that has passed by `now`, if one has.
    pub(crate) fn expire(&self, now: Instant) -> Option<Expired> {
        let mut call = self.call();
        let times = call.times();
        call.timeouts.expire(self.0.idle_timeouts, &times, now)
    }
}

impl ActiveCall {
    fn input_ended(&mut self) {
        self.inbound.end();
        if self.outlives_client {
            self.timeouts.client_left(Instant::now);
        }
    }

    const fn is_left(&self) -> bool {
        self.timeouts.has_call() && self.inbound.has_ended()
    }

    fn is_abandoned(&self) -> bool {
        self.is_left() && !self.goes_on()
    }

    /// Returns whether the call goes on without its client. A run that closes waits for no such call.
    fn goes_on(&self) -> bool {
        let is_open = || self.run.as_ref().is_some_and(|run| run.closing().is_none());
        self.outlives_client && self.is_left() && is_open()
    }

    fn operator_stop(&mut self, freezes: &Freezes) -> Option<Refused> {
        if self.stopped.is_none() {
            self.stopped = self.present_stop(freezes);
        }
        self.stopped.clone()
    }

    fn present_stop(&self, freezes: &Freezes) -> Option<Refused> {
        let model = match &self.stage {
            CallStage::Idle => return None,
            CallStage::Begun | CallStage::Tool => None,
            CallStage::ModelKnown(model) => Some(&**model),
        };
        if self.is_revoked() {
            return Some(Refusal::TokenRevoked.into());
        }
        self.run.as_ref().and_then(|run| freezes.stop(&run.grant.account, model)).map(Refused::from)
    }

    /// Returns whether the call came by a token that was revoked.
    fn is_revoked(&self) -> bool {
        self.identity == Identity::Token && self.run.as_ref().is_some_and(|run| run.is_revoked())
    }

    fn times(&self) -> CallTimes {
        let Some(run) = &self.run else { return CallTimes::default() };
        let times = run.grant.limits.times;
        match self.stage {
            CallStage::Tool => CallTimes { call_ms: run.grant.host_tools.limits.call_ms, ..times },
            CallStage::Idle | CallStage::Begun | CallStage::ModelKnown(_) => times,
        }
    }
}
