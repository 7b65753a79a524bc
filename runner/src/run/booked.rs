//! A run's row, for whoever lives the run: its steps are stored in its name, and its lease is renewed meanwhile.

use platform_core::{id::RunId, limit::Millis};
use platform_runtime::report;

use super::{Host, Order, plan};
use crate::{
    lifecycle::State,
    store::{self, Created, For, Hold, Step, Store},
};

/// How long after its holder was last heard of a run is taken over. Long beside a pause of the machine, short beside a
/// run that nobody cleans up.
const LEASE: Millis = Millis::seconds(60);
/// Renewals in the time of a lease: some may fail.
const RENEWALS: u32 = 4;

/// Why a run is not ours to live.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It is not stored, so nothing may act.
    #[error("the run is not stored, and nothing acts before it is")]
    NotStored(#[source] store::Error),
    /// Nothing runs twice.
    #[error("run {run} was ordered before and is {state}: `sluice runs show {run}` tells of it")]
    Before {
        /// The run.
        run: RunId,
        /// Where it stands.
        state: State,
    },
}

/// A run that is stored, and ours.
#[derive(Debug)]
pub(crate) struct Booked {
    store: Store,
    hold: Hold,
}

impl Booked {
    /// Stores `order` as a run of this process. Nothing acts before.
    pub(crate) async fn book(host: &Host, order: &Order) -> Result<Self, Error> {
        let who = For::Me(&host.worker, LEASE);
        match host.store.create(&plan::row(order), who).await.map_err(Error::NotStored)? {
            Created::New(run) => Ok(Self { store: host.store.clone(), hold: run.hold() }),
            Created::Before(run) => Err(Error::Before { run: run.run, state: run.state }),
        }
    }

    /// Stores a step; only then may it be done.
    pub(super) async fn step(&self, step: impl Into<Step>) -> Result<(), store::Error> {
        self.store.step(&self.hold, &step.into()).await.map(drop)
    }

    /// Renews the lease until somebody else has taken the run over; returns how that was found out. While the store
    /// cannot be asked the run goes on: it is ours until somebody else says otherwise.
    pub(super) async fn keep(&self) -> store::Error {
        let mut tick = tokio::time::interval(LEASE.duration() / RENEWALS);
        tick.tick().await;
        loop {
            tick.tick().await;
            match self.store.renew(&self.hold, LEASE).await {
                Err(lost @ (store::Error::Fenced { .. } | store::Error::Unknown { .. })) => return lost,
                Err(error) => {
                    tracing::warn!(run = %self.hold.run, error = %report::chain(&error), "lease is not renewed");
                }
                Ok(()) => {}
            }
        }
    }
}
