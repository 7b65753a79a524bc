//! State of the call on a connection: how it can be cancelled, and which timeouts are running.
//!
//! A client that does not read keeps its call waiting for ever, and no code of the call runs meanwhile. So
//! the connection itself is dropped when the run is cut, its gateway's listener closes, or a timeout passes.
//! The same happens when an operator freezes the call's account or model, or revokes its token. The call's
//! record says why.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    Plane,
    identify::Caller,
    inbound::{Inbound, Target},
    patience::{Passed, Patience, Quiet},
};
use crate::{freezes::Freezes, refusal::Refused, run::Run};

/// State of one connection. Clones refer to the same connection.
#[derive(Debug, Clone)]
pub(super) struct Carried(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    call: Mutex<Call>,
    is_of_another_run: Notify,
    quiet: Quiet,
    /// Cancelled when the gateway's listener closes; only on a gateway's connections.
    unheard: Option<CancellationToken>,
}

#[derive(Debug)]
struct Call {
    /// Run of the current or last call, some of whose bytes may wait to be read.
    run: Option<Arc<Run>>,
    /// Proof by which the run was found.
    identity: Identity,
    stage: Stage,
    patience: Patience,
    inbound: Inbound,
}

/// State of a connection that has nothing to do at the moment.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Time at which the next timeout passes.
    pub(super) due: Option<Instant>,
    /// Timeout that was reported to the call and that the call has not acted on.
    pub(super) told: Option<Timeout>,
    /// Bytes that hyper holds and that belong to no call.
    pub(super) held: u64,
    /// Set if the client has left a call that is in flight.
    pub(super) is_abandoned: bool,
}

#[derive(Debug, Default)]
enum Stage {
    /// There is no call in flight.
    #[default]
    Idle,
    /// The request's body is not read yet.
    Begun,
    /// The call asks for this model.
    Asks(Box<str>),
}

impl Carried {
    /// Creates the state of a connection that was accepted just now: of one run's own, or of the shared
    /// listener.
    pub(super) fn of(run: Option<Arc<Run>>, quiet: Quiet) -> Self {
        Self::until(None, run, quiet)
    }

    /// Creates the state of a gateway's connection, which is dropped when `unheard` is cancelled.
    pub(super) fn of_gateway(unheard: CancellationToken, quiet: Quiet) -> Self {
        Self::until(Some(unheard), None, quiet)
    }

    fn until(unheard: Option<CancellationToken>, run: Option<Arc<Run>>, quiet: Quiet) -> Self {
        let call = Call {
            run,
            identity: Identity::None,
            stage: Stage::Idle,
            patience: Patience::new(Instant::now()),
            inbound: Inbound::new(),
        };
        let (call, is_of_another_run) = (Mutex::new(call), Notify::new());
        Self(Arc::new(Connection { call, is_of_another_run, quiet, unheard }))
    }

    /// Begins a call of `caller`.
    pub(super) fn begin(&self, Caller { run, identity }: &Caller, now: Instant) {
        let mut call = self.call();
        call.identity = *identity;
        call.stage = Stage::Begun;
        call.patience.begin(now);
        if call.run.as_ref().is_none_or(|there| !Arc::ptr_eq(there, run)) {
            call.run = Some(Arc::clone(run));
            self.0.is_of_another_run.notify_one();
        }
    }

    /// Notes that the call asks for `model`.
    pub(super) fn asks(&self, model: &str) {
        self.call().stage = Stage::Asks(model.into());
    }

    /// Ends the call: it is settled, or the request was no call.
    pub(super) fn end(&self) {
        let mut call = self.call();
        call.stage = Stage::Idle;
        call.patience.end(Instant::now());
        call.inbound.expect_head();
    }

    /// Returns whether the connection must be dropped.
    pub(super) fn is_cut(&self, freezes: &Freezes) -> bool {
        if self.is_unheard() {
            return true;
        }
        let call = self.call();
        // A connection that has nothing of the run any more serves others.
        let is_in_use = !matches!(call.stage, Stage::Idle) || call.patience.is_left();
        let is_cut = call.run.as_ref().is_some_and(|run| run.cut().is_some()) || call.is_revoked();
        is_in_use && is_cut || call.stopped(freezes).is_some()
    }

    /// Returns when the connection has to go, whichever run's calls it carries until then.
    pub(super) async fn until_cut(self, plane: Arc<Plane>) {
        loop {
            let run = self.call().run.clone();
            // Before it is looked, so that nothing changes unseen in between.
            let mut changes = run.as_ref().map(|run| run.changes());
            if self.is_cut(&plane.freezes) {
                return;
            }
            let changed = async {
                match &mut changes {
                    // The sender lives as long as the run.
                    Some(changes) => drop(changes.changed().await),
                    None => std::future::pending().await,
                }
            };
            let unheard = async {
                match &self.0.unheard {
                    Some(unheard) => unheard.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.0.is_of_another_run.notified() => {}
                () = unheard => {}
            }
        }
    }

    /// Returns whether the listener of its gateway was closed.
    pub(super) fn is_unheard(&self) -> bool {
        self.0.unheard.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Returns how an operator has stopped the call in flight, if one has.
    pub(super) fn stopped(&self, freezes: &Freezes) -> Option<Refused> {
        self.call().stopped(freezes)
    }

    fn call(&self) -> MutexGuard<'_, Call> {
        self.0.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes.
impl Carried {
    /// Notes that `bytes` have come from the client.
    pub(super) fn came(&self, bytes: &[u8]) {
        let mut call = self.call();
        call.patience.came(Instant::now);
        call.inbound.came(bytes);
    }

    /// Notes that the client will send nothing more. As at nginx that ends its call: a bridge turns a close into it.
    pub(super) fn has_ended(&self) {
        self.call().inbound.end();
    }

    /// Notes that hyper has passed on a head of `size` bytes.
    pub(super) fn take_head(&self, size: usize) -> Target {
        self.call().inbound.take_head(size as u64)
    }

    /// Notes that bytes that come now belong to the body of a call that is settled.
    pub(super) fn discards(&self) {
        self.call().inbound.discard();
    }

    /// Notes that so many bytes of it came.
    pub(super) fn discarded(&self, bytes: usize) {
        self.call().inbound.take(bytes as u64);
    }

    /// Returns whether a call is in flight.
    pub(super) fn has_call(&self) -> bool {
        self.call().patience.has_call()
    }

    /// Returns whether the client has left the call that is in flight.
    pub(super) fn is_abandoned(&self) -> bool {
        self.call().is_abandoned()
    }

    /// Returns what the connection waits for.
    pub(super) fn waiting(&self) -> Waiting {
        let call = self.call();
        let next = call.patience.next(self.0.quiet, &call.times());
        Waiting {
            due: next.map(|(at, _)| at),
            told: call.patience.told(),
            held: call.inbound.held(),
            is_abandoned: call.is_abandoned(),
        }
    }
}

/// Time.
impl Carried {
    /// Notes that the client takes nothing for now.
    pub(super) fn is_unread(&self) {
        self.call().patience.is_unread(Instant::now());
    }

    /// Notes that the client takes what is ready for it.
    pub(super) fn is_read(&self) {
        self.call().patience.is_read();
    }

    /// Begins the wait for the request's body.
    pub(super) fn wants_body(&self) {
        self.call().patience.wants_body(Instant::now());
    }

    /// Counts `bytes` bytes of the request's body.
    pub(super) fn got_body(&self, bytes: usize, times: &CallTimes) {
        let mut call = self.call();
        call.patience.got_body(bytes as u64, times.body_bytes().max(1), Instant::now);
        call.inbound.take(bytes as u64);
    }

    /// Begins the wait for the upstream, within `timeout`. Returns the timeout that has passed, if one has.
    pub(super) fn wants(&self, timeout: Timeout) -> Option<Timeout> {
        let mut call = self.call();
        call.patience.wants(timeout, Instant::now);
        call.patience.told()
    }

    /// Notes that the wait is over.
    pub(super) fn has_come(&self) {
        self.call().patience.has_come();
    }

    /// Returns the timeout of the call that has passed, until the call is settled.
    pub(super) fn told(&self) -> Option<Timeout> {
        self.call().patience.told()
    }

    /// Waits for `future` no longer than the call's limits allow. Polled with the connection, which knows when one passes.
    pub(super) async fn in_time<F: Future>(&self, future: F) -> Result<F::Output, Timeout> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.told().map_or(Poll::Pending, |timeout| Poll::Ready(Err(timeout))),
        })
        .await
    }

    /// Returns the time at which the next timeout passes.
    pub(super) fn due(&self) -> Option<Instant> {
        let call = self.call();
        call.patience.next(self.0.quiet, &call.times()).map(|(at, _)| at)
    }

    /// Returns the timeout that has passed by `now`, if one has.
    pub(super) fn pass(&self, now: Instant) -> Option<Passed> {
        let mut call = self.call();
        let times = call.times();
        call.patience.pass(self.0.quiet, &times, now)
    }
}

impl Call {
    const fn is_abandoned(&self) -> bool {
        self.patience.has_call() && self.inbound.has_ended()
    }

    fn stopped(&self, freezes: &Freezes) -> Option<Refused> {
        let model = match &self.stage {
            Stage::Idle => return None,
            Stage::Begun => None,
            Stage::Asks(model) => Some(&**model),
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
        self.run.as_ref().map(|run| run.grant.limits.times).unwrap_or_default()
    }
}
