//! Writes exactly one record per call, whatever ended it.
//!
//! An [`Exchange`] is the unfinished record. It is settled once, explicitly, where the call's end is known.
//! If it is dropped before, the client has left or the run was cut, and that is the record.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use http::{Response, StatusCode};
use hyper::body::Incoming;
use platform_core::{
    id::CallId,
    money::NanoDollars,
    name::header as own,
    record::{ExchangeRecord, Identity, Outcome, Timeout, Tokens},
    refusal::Refusal,
    route::Route,
    trace::{self, Step},
    untrusted::JournalText,
};
use platform_runtime::report;

use super::{
    NO_ROUTE, ServeContext, connection_state::ConnectionState, identify::Caller,
    record_builder::RecordBuilder, rewrite::Checked,
};
use crate::{
    budget::{self, Granted, Reservation, ReservationRequest},
    clock,
    journal::{Durable, SpaceReservation},
    refusal::{self, Late, Refused},
    run::{Closing, InFlight, Run},
    trace::AnswerSoFar,
    usage::{UsageEventFor, UsageReport},
};

/// A call whose record is not written yet.
#[derive(Debug)]
pub(super) struct Exchange {
    context: Arc<ServeContext>,
    run: Arc<Run>,
    began: Instant,
    /// Present until the call is settled.
    builder: Option<Box<RecordBuilder>>,
    call_id: CallId,
    route: Route,
    status: StatusCode,
    usage: UsageEventFor,
    /// Held until the call is settled, so that a run is idle only when all its records are written.
    in_flight: Option<InFlight>,
    connection_state: ConnectionState,
    /// Held until the call is settled.
    reservation: Option<Reservation>,
    /// Space in the journal for the record, with the call's mark once the call is sent.
    record_space: Option<SpaceReservation>,
}

impl Exchange {
    pub(super) fn begin(
        context: &Arc<ServeContext>,
        caller: &Caller,
        connection_state: &ConnectionState,
    ) -> Self {
        let began = Instant::now();
        connection_state.begin_call(caller, began);
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
            in_flight: None,
            connection_state: connection_state.clone(),
            reservation: None,
            record_space: None,
        };
        exchange.trace(|| Step::Accepted { identity: caller.identity });
        exchange
    }

    /// Counts the call against the rates of its run and account, whatever becomes of it.
    pub(super) fn pace(&self) -> Result<(), Refused> {
        Ok(budget::pace(&self.run.spending, &self.run.account, clock::uptime(self.began))?)
    }

    /// Counts the call as in flight, if run and journal are open.
    pub(super) fn admit(&mut self, route: Route) -> Result<(), Refused> {
        self.route = route;
        self.note(|record| record.route = route);
        self.record_space = Some(self.context.journal.reserve_space().ok_or(Refusal::JournalUnavailable)?);
        self.in_flight = Some(self.run.enter()?);
        if self.run.is_expired(clock::now()) {
            return Err(Refusal::RunDeadlineExceeded.into());
        }
        // Checked again: the token may have been revoked between its check and the call's beginning, unseen by the code
        // that cuts calls.
        let is_by_token =
            self.builder.as_ref().is_some_and(|builder| builder.record.identity == Identity::Token);
        if is_by_token && self.run.is_revoked() {
            return Err(Refusal::TokenRevoked.into());
        }
        self.check_freezes(None)?;
        self.reservation = Some(Reservation::enter(&self.run.spending, &self.run.account)?);
        self.trace(|| Step::Admitted { route });
        Ok(())
    }

    /// Reserves the amounts that the call may need, and returns them.
    pub(super) fn reserve(&mut self, request: &ReservationRequest) -> Result<Granted, Refused> {
        let reservation = self.reservation.as_mut().ok_or(Refusal::RunClosed)?;
        let granted = reservation.grow(request)?;
        if let Some(builder) = &mut self.builder {
            builder.granted = granted.tokens;
            builder.price = request.price;
        }
        self.trace(|| {
            let Tokens { input: input_tokens, output: output_tokens, .. } = granted.tokens;
            let cost_nanodollars = request.price.map(|price| price.most(input_tokens, output_tokens));
            Step::Reserved { input_tokens, output_tokens, cost_nanodollars }
        });
        Ok(granted)
    }

    fn check_freezes(&self, model: Option<&str>) -> Result<(), Refused> {
        self.context.freezes.stop(&self.run.grant.account, model).map_or(Ok(()), |stop| Err(stop.into()))
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

    /// Notes that Sluicegate itself answers with success, in so many bytes.
    pub(super) fn answered_locally(&mut self, bytes: usize) {
        self.note(|record| record.status = StatusCode::OK.as_u16());
        self.forwarded(bytes);
    }

    /// Returns whether the call is not settled yet.
    pub(super) const fn is_open(&self) -> bool {
        self.builder.is_some()
    }

    /// Returns the upstream's status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Counts `bytes` bytes of the request's body. Returns how many that makes in all.
    pub(super) fn count_body(&mut self, bytes: usize) -> u64 {
        self.note(|record| record.request_bytes += bytes as u64);
        self.builder.as_ref().map_or(0, |builder| builder.record.request_bytes)
    }

    /// Ends a call whose body did not arrive whole: its sender has left, or it is not framed as HTTP wants it.
    pub(super) fn upload_failed(&mut self, broken: &hyper::Error) -> Refusal {
        if broken.is_incomplete_message() || broken.is_closed() {
            drop(self.settle(Outcome::ClientGone));
        }
        Refusal::BodyInvalid
    }

    /// Notes the model and the form of the answer that the body requests. Refuses the call if an operator has frozen
    /// its model.
    pub(super) fn body_checked(&mut self, checked: &Checked<'_>) -> Result<(), Refused> {
        let reports_usage = matches!(self.route, Route::ChatCompletions | Route::Completions);
        if reports_usage && checked.stream && !checked.usage_asked {
            self.usage = UsageEventFor::Sluicegate;
        }
        if let Some(builder) = &mut self.builder {
            builder.media = checked.media;
        }
        self.note(|record| {
            record.model_asked = Some(JournalText::of(&checked.model));
            record.stream = checked.stream;
        });
        let bytes = self.builder.as_ref().map_or(0, |builder| builder.record.request_bytes);
        self.trace(|| Step::BodyRead {
            bytes,
            model: JournalText::of(&checked.model),
            stream: checked.stream,
        });
        // The model is set first, so that a freeze in between finds it.
        self.connection_state.set_model(&checked.model);
        self.check_freezes(Some(&checked.model))
    }

    /// Returns the party that requested the event in which a stream reports its usage.
    pub(super) const fn usage(&self) -> UsageEventFor {
        self.usage
    }

    /// Marks the call, whose request is about to go to the upstream. If the future is dropped, the request
    /// was not sent.
    pub(super) async fn mark_in_flight(&mut self) -> Result<(), Refusal> {
        if self.connection_state.is_abandoned() {
            // Nothing was sent, and nothing will be: the connection ends now, and the call with it.
            std::future::pending::<()>().await;
        }
        let duration = self.elapsed_us();
        let builder = self.builder.as_mut().ok_or(Refusal::JournalUnavailable)?;
        let space = self.record_space.as_mut().ok_or(Refusal::JournalUnavailable)?;
        let journal = &self.context.journal;
        let marked = match builder.as_interrupted(duration, |record| journal.mark(space, record)) {
            Ok(durable) => durable.await,
            Err(error) => Err(error),
        };
        builder.sent_us = duration;
        self.connection_state.await_upstream(Timeout::FirstByte);
        marked.map_err(|error| {
            let error = report::chain(&error);
            tracing::error!(call = %self.call_id, error, "call not sent: it cannot be marked in flight");
            Refusal::JournalUnavailable
        })
    }

    /// Notes that there is a connection: from now on some of the call may have arrived.
    pub(super) fn connected(&self, connection: trace::Connection) {
        if let Some(builder) = &self.builder {
            builder.sent.store(true, Ordering::Relaxed);
        }
        self.trace(|| Step::Sent { connection });
    }

    /// Notes that the head of the upstream's answer has come.
    pub(super) fn head_received(&mut self, answer: &Response<Incoming>) {
        self.connection_state.arrived();
        self.status = answer.status();
        let status = answer.status().as_u16();
        let cost = answer
            .headers()
            .get(own::LITELLM_COST)
            .and_then(|cost| NanoDollars::parse_dollars(cost.to_str().ok()?));
        let ttfb = self.elapsed_us();
        self.note(|record| {
            record.status = status;
            record.ttfb_us = Some(ttfb);
            record.cost_nanodollars = cost;
        });
        self.trace(|| Step::FirstByte { status });
    }

    /// Counts bytes of the answer's body that are forwarded.
    pub(super) fn forwarded(&mut self, bytes: usize) {
        self.note(|record| record.response_bytes += bytes as u64);
        if bytes > 0 && self.run.trace.is_watched() {
            let at = self.elapsed_us();
            let step = self.builder.as_mut().and_then(|builder| {
                let answer = AnswerSoFar::of(&builder.record);
                builder.progress.forwarded(at, answer)
            });
            step.into_iter().for_each(|step| self.run.trace.report(self.call_id, at, step));
        }
    }

    /// Reports to watchers of the run's trace how far the call has come.
    pub(super) fn trace(&self, step: impl FnOnce() -> Step) {
        if self.run.trace.is_watched() {
            self.run.trace.report(self.call_id, self.elapsed_us(), step());
        }
    }

    /// Notes that the first text of the answer has come.
    pub(super) fn text_started(&mut self) {
        let now = self.elapsed_us();
        if let Some(builder) = &mut self.builder {
            builder.first_text_us = Some(now);
        }
    }

    /// Records the usage that the answer reported.
    pub(super) fn add_usage(&mut self, report: UsageReport) {
        if let Some(builder) = &mut self.builder {
            builder.add_usage(report);
        }
    }

    /// Returns the refusal for `reason` of a call whose `timeout` has passed.
    pub(super) fn timeout_refusal(&self, reason: Refusal, timeout: Timeout) -> Refused {
        match self.run.grant.limits.times.of(timeout) {
            Some(limit) => Refused::late(reason, Late { timeout, limit }),
            None => reason.into(),
        }
    }

    /// Notes that `timeout` has passed, after the answer began.
    pub(super) fn note_timeout(&mut self, timeout: Timeout) {
        self.note(|record| record.timeout = Some(timeout));
    }

    /// Refuses the call: Sluicegate answers it itself.
    pub(super) fn refuse(mut self, refused: &Refused) -> Durable {
        let reason = refused.reason;
        self.note(|record| {
            record.timeout = refused.timeout;
            record.refusal = Some(reason);
            record.rule.clone_from(&refused.rule);
            record.status = refusal::status(reason).as_u16();
        });
        self.settle(match reason {
            _ if refused.timeout.is_some() => Outcome::TimedOut,
            Refusal::UpstreamUnreachable | Refusal::UpstreamFailed => Outcome::UpstreamGone,
            _ => Outcome::Refused,
        })
    }

    /// Settles a call whose answer Sluicegate replaces. The record keeps the upstream's status.
    pub(super) fn settle_mapped(&mut self, reason: Refusal, outcome: Outcome) -> Durable {
        self.note(|record| record.refusal = Some(reason));
        self.settle(outcome)
    }

    /// Notes that nothing of the upstream's answer has passed: Sluicegate answers in its place.
    pub(super) fn discard_answer(&mut self) {
        self.note(|record| record.response_bytes = 0);
    }

    /// Writes the record. Later calls do nothing. The returned value is ready when the answer's last bytes
    /// may leave; a caller without a client to answer drops it.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Durable {
        let duration = self.elapsed_us();
        let Some(builder) = self.builder.take() else { return Durable::Now };
        let record = builder.finish(outcome, duration);
        self.trace(|| ended(&record));
        if let Some(reservation) = self.reservation.take().filter(|_| outcome != Outcome::Refused) {
            reservation.settle(record.tokens, record.cost_nanodollars.unwrap_or_default());
        }
        self.connection_state.end_call();
        self.run.count(&record);
        if let Some(tap) = self.run.watched() {
            tap.end(&record);
        }
        self.context.metrics.count(&record);
        self.trace(|| settled(&record));
        self.context.journal.append(record, self.record_space.take(), self.in_flight.take())
    }

    fn note(&mut self, change: impl FnOnce(&mut ExchangeRecord)) {
        if let Some(builder) = &mut self.builder {
            change(&mut builder.record);
        }
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns the outcome of a call that ends here without a stated reason.
    fn early_end(&self) -> Outcome {
        match self.run.cut() {
            Some(Closing::Closed | Closing::Expired | Closing::Replaced) => Outcome::RunClosed,
            Some(Closing::Shutdown) => Outcome::Interrupted,
            None if self.connection_state.is_listener_closed() => Outcome::RunClosed,
            None if self.connection_state.operator_stop(&self.context.freezes).is_some() => Outcome::Frozen,
            None if self.connection_state.reported_timeout().is_some() => Outcome::TimedOut,
            None => Outcome::ClientGone,
        }
    }
}

fn ended(record: &ExchangeRecord) -> Step {
    let ExchangeRecord { outcome, status, refusal, ref rule, response_bytes: bytes, .. } = *record;
    Step::Ended { outcome, status, refusal, rule: rule.clone(), bytes }
}

const fn settled(record: &ExchangeRecord) -> Step {
    let ExchangeRecord { tokens, tokens_source, cost_nanodollars, cost_source, .. } = *record;
    Step::Settled { tokens, tokens_source, cost_nanodollars, cost_source }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.builder.is_some() {
            let outcome = self.early_end();
            if let Some(stopped) = self
                .connection_state
                .operator_stop(&self.context.freezes)
                .filter(|_| outcome == Outcome::Frozen)
            {
                self.note(|record| {
                    record.refusal = Some(stopped.reason);
                    record.rule = stopped.rule;
                });
            }
            if let Some(timeout) =
                self.connection_state.reported_timeout().filter(|_| outcome == Outcome::TimedOut)
            {
                self.note_timeout(timeout);
            }
            drop(self.settle(outcome));
        }
    }
}
