//! Defines a call before its record is written; every phase works on it.
//!
//! Each phase adds its own methods to [`Exchange`], beside the code that calls them.

use std::{sync::Arc, time::Instant};

use http::StatusCode;
use platform_core::{id::CallId, record::ExchangeRecord, route::Route, trace::Step};

use super::{
    context::ServeContext,
    identify::Caller,
    record_builder::{NO_ROUTE, RecordBuilder},
};
use crate::{
    budget::{Reservation, ToolReservation},
    clock,
    journal::SpaceReservation,
    run::{InFlight, Run},
    server::ConnectionState,
    usage::UsageEventFor,
};

/// A call before its record is written.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) context: Arc<ServeContext>,
    pub(super) run: Arc<Run>,
    pub(super) began: Instant,
    /// Present until the call is settled.
    pub(super) builder: Option<Box<RecordBuilder>>,
    pub(super) call_id: CallId,
    pub(super) route: Route,
    pub(super) status: StatusCode,
    pub(super) usage: UsageEventFor,
    /// Most tokens of each answer, if that is less than the call asked for.
    pub(super) output_limit: Option<u64>,
    /// Held until the call is settled, so that a run is idle only when all its records are written.
    pub(super) in_flight: Option<InFlight>,
    pub(super) connection_state: ConnectionState,
    /// Held until the call is settled.
    pub(super) reservation: Option<Reservation>,
    /// Held until the call is settled; only for calls of host tools.
    pub(super) tool_reservation: Option<ToolReservation>,
    /// Space in the journal for the record, with the call's mark once the call is sent.
    pub(super) record_space: Option<SpaceReservation>,
}

impl Exchange {
    pub(super) fn begin(
        context: &Arc<ServeContext>,
        caller: &Caller,
        connection_state: &ConnectionState,
    ) -> Self {
        let began = Instant::now();
        connection_state.begin_call(&caller.run, caller.identity, began);
        let now = clock::now();
        let call_id = context.call_ids.next(now);
        let builder = RecordBuilder::new(caller, call_id, clock::rfc3339(now));
        let exchange = Self {
            context: Arc::clone(context),
            run: Arc::clone(&caller.run),
            began,
            builder: Some(Box::new(builder)),
            call_id,
            route: NO_ROUTE,
            status: StatusCode::OK,
            usage: UsageEventFor::Agent,
            output_limit: None,
            in_flight: None,
            connection_state: connection_state.clone(),
            reservation: None,
            tool_reservation: None,
            record_space: None,
        };
        exchange.trace(|| Step::Accepted { identity: caller.identity });
        exchange
    }

    pub(super) const fn run(&self) -> &Arc<Run> {
        &self.run
    }

    pub(super) const fn connection_state(&self) -> &ConnectionState {
        &self.connection_state
    }

    pub(super) const fn context(&self) -> &Arc<ServeContext> {
        &self.context
    }

    pub(super) const fn route(&self) -> Route {
        self.route
    }

    pub(super) const fn call_id(&self) -> CallId {
        self.call_id
    }

    /// Returns the model that the call asks for, empty once it is settled.
    pub(super) fn model(&self) -> &str {
        self.builder.as_ref().map_or("", |builder| builder.model())
    }

    /// Returns whether the call is not settled yet.
    pub(super) const fn is_open(&self) -> bool {
        self.builder.is_some()
    }

    /// Returns the upstream's status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the party that requested the event in which a stream reports its usage.
    pub(super) const fn usage(&self) -> UsageEventFor {
        self.usage
    }

    /// Reports to watchers of the run's trace how far the call has come.
    pub(super) fn trace(&self, step: impl FnOnce() -> Step) {
        if self.run.trace.is_watched() {
            self.run.trace.report(self.call_id, self.elapsed_us(), step());
        }
    }

    /// Changes the record, unless the call is settled.
    pub(super) fn note(&mut self, change: impl FnOnce(&mut ExchangeRecord)) {
        if let Some(builder) = &mut self.builder {
            change(&mut builder.record);
        }
    }

    /// Returns the time since the call began, in microseconds.
    pub(super) fn elapsed_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
