//! The call that a connection carries, as far as somebody outside may end it.
//!
//! A client that does not read keeps its call waiting for ever, where nothing of the call runs: so it is the connection that
//! goes, when the run is cut or an operator stops the call's account or model. The call's record says why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Plane;
use crate::{
    freezes::{Freezes, Stop},
    run::Run,
};

/// What one connection carries. Clones are of the same connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Carried(Arc<Connection>);

#[derive(Debug, Default)]
struct Connection {
    call: Mutex<Call>,
    is_of_another_run: Notify,
}

#[derive(Debug, Default)]
struct Call {
    /// Whose the call is, or the last one was: some of its bytes may wait to be read.
    run: Option<Arc<Run>>,
    stage: Stage,
}

#[derive(Debug, Default)]
enum Stage {
    /// There is no call in flight.
    #[default]
    Idle,
    /// What it asks for is not read yet.
    Begun,
    /// It asks for this model.
    Asks(Box<str>),
}

impl Carried {
    /// Nothing yet, on a connection of `run`'s own.
    pub(super) fn of(run: Arc<Run>) -> Self {
        let call = Call { run: Some(run), stage: Stage::Idle };
        Self(Arc::new(Connection { call: Mutex::new(call), is_of_another_run: Notify::new() }))
    }

    /// A call of `run` begins.
    pub(super) fn begin(&self, run: &Arc<Run>) {
        let mut call = self.call();
        call.stage = Stage::Begun;
        if call.run.as_ref().is_none_or(|there| !Arc::ptr_eq(there, run)) {
            call.run = Some(Arc::clone(run));
            self.0.is_of_another_run.notify_one();
        }
    }

    /// The call asks for `model`.
    pub(super) fn asks(&self, model: &str) {
        self.call().stage = Stage::Asks(model.into());
    }

    /// The call is settled.
    pub(super) fn end(&self) {
        self.call().stage = Stage::Idle;
    }

    /// Whether the connection has to go.
    pub(super) fn is_cut(&self, freezes: &Freezes) -> bool {
        let call = self.call();
        call.run.as_ref().is_some_and(|run| run.cut().is_some()) || call.stopped(freezes).is_some()
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
            tokio::select! {
                () = changed => {}
                () = self.0.is_of_another_run.notified() => {}
            }
        }
    }

    /// By what an operator has stopped the call in flight, if one has.
    pub(super) fn stopped(&self, freezes: &Freezes) -> Option<Stop> {
        self.call().stopped(freezes)
    }

    fn call(&self) -> MutexGuard<'_, Call> {
        self.0.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    fn stopped(&self, freezes: &Freezes) -> Option<Stop> {
        let model = match &self.stage {
            Stage::Idle => return None,
            Stage::Begun => None,
            Stage::Asks(model) => Some(&**model),
        };
        self.run.as_ref().and_then(|run| freezes.stop(&run.grant.account, model))
    }
}
