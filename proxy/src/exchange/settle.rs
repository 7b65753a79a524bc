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

use super::{NO_ROUTE, Plane, carried::Carried, draft::Draft, identify::Caller, rewrite::Checked};
use crate::{
    budget::{self, Ask, Granted, Reservation},
    clock,
    journal::{Room, Synced},
    refusal::{self, Late, Refused},
    run::{Closing, InFlight, Run},
    usage::{Reading, UsageIs},
};

/// A call in the making of its record.
#[derive(Debug)]
pub(super) struct Exchange {
    plane: Arc<Plane>,
    run: Arc<Run>,
    began: Instant,
    /// Present until the call is settled.
    draft: Option<Box<Draft>>,
    call_id: CallId,
    route: Route,
    status: StatusCode,
    usage: UsageIs,
    /// Held until the call is settled, so that a run is idle only when all its records are written.
    place: Option<InFlight>,
    carried: Carried,
    /// Held until the call is settled.
    reservation: Option<Reservation>,
    /// In the journal, for the record; with the call's mark once it is sent.
    room: Option<Room>,
}

impl Exchange {
    pub(super) fn begin(plane: &Arc<Plane>, caller: &Caller, carried: &Carried) -> Self {
        let began = Instant::now();
        carried.begin(caller, began);
        let now = clock::now();
        let call_id = plane.call_ids.next(now);
        let draft = Draft::new(caller, call_id, clock::rfc3339(now));
        let exchange = Self {
            plane: Arc::clone(plane),
            run: Arc::clone(&caller.run),
            began,
            draft: Some(Box::new(draft)),
            call_id,
            route: NO_ROUTE,
            status: StatusCode::OK,
            usage: UsageIs::Theirs,
            place: None,
            carried: carried.clone(),
            reservation: None,
            room: None,
        };
        exchange.trace(|| Step::Accepted { identity: caller.identity });
        exchange
    }

    /// Counts the call against the rates of its run and account, whatever becomes of it.
    pub(super) fn pace(&self) -> Result<(), Refused> {
        Ok(budget::pace(&self.run.spending, &self.run.account, clock::uptime(self.began))?)
    }

    /// Takes the call's place in the run, if run and journal are open.
    pub(super) fn admit(&mut self, route: Route) -> Result<(), Refused> {
        self.route = route;
        self.note(|draft| draft.route = route);
        self.room = Some(self.plane.journal.room().ok_or(Refusal::JournalUnavailable)?);
        self.place = Some(self.run.enter()?);
        if self.run.is_over(clock::now()) {
            return Err(Refusal::RunDeadlineExceeded.into());
        }
        // Again: the token may have been revoked between its check and the call's beginning, unseen by the
        // code that cuts calls.
        let is_by_token = self.draft.as_ref().is_some_and(|draft| draft.record.identity == Identity::Token);
        if is_by_token && self.run.is_revoked() {
            return Err(Refusal::TokenRevoked.into());
        }
        self.is_let_go_on(None)?;
        self.reservation = Some(Reservation::enter(&self.run.spending, &self.run.account)?);
        self.trace(|| Step::Admitted { route });
        Ok(())
    }

    /// Sets aside what the call may need, and says how much that is.
    pub(super) fn reserve(&mut self, ask: &Ask) -> Result<Granted, Refused> {
        let reservation = self.reservation.as_mut().ok_or(Refusal::RunClosed)?;
        let granted = reservation.grow(ask)?;
        if let Some(draft) = &mut self.draft {
            (draft.granted, draft.price) = (granted.tokens, ask.price);
        }
        self.trace(|| {
            let Tokens { input: input_tokens, output: output_tokens, .. } = granted.tokens;
            let cost_nanodollars = ask.price.map(|price| price.most(input_tokens, output_tokens));
            Step::Reserved { input_tokens, output_tokens, cost_nanodollars }
        });
        Ok(granted)
    }

    fn is_let_go_on(&self, model: Option<&str>) -> Result<(), Refused> {
        self.plane.freezes.stop(&self.run.grant.account, model).map_or(Ok(()), |stop| Err(stop.into()))
    }

    pub(super) const fn run(&self) -> &Arc<Run> {
        &self.run
    }

    pub(super) const fn carried(&self) -> &Carried {
        &self.carried
    }

    pub(super) const fn plane(&self) -> &Arc<Plane> {
        &self.plane
    }

    pub(super) const fn route(&self) -> Route {
        self.route
    }

    pub(super) const fn call_id(&self) -> CallId {
        self.call_id
    }

    /// Notes that Sluicegate itself answers with success, in so many bytes.
    pub(super) fn told(&mut self, bytes: usize) {
        self.note(|draft| draft.status = StatusCode::OK.as_u16());
        self.passed_on(bytes);
    }

    /// Returns whether the call is not settled yet.
    pub(super) const fn is_open(&self) -> bool {
        self.draft.is_some()
    }

    /// Returns the upstream's status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Counts `bytes` bytes of the request's body. Returns how many that makes in all.
    pub(super) fn received(&mut self, bytes: usize) -> u64 {
        self.note(|draft| draft.request_bytes += bytes as u64);
        self.draft.as_ref().map_or(0, |draft| draft.record.request_bytes)
    }

    /// The request's body did not arrive whole: its sender has left, or it is not framed as HTTP wants it.
    pub(super) fn upload_broke_off(&mut self, broken: &hyper::Error) -> Refusal {
        if broken.is_incomplete_message() || broken.is_closed() {
            drop(self.settle(Outcome::ClientGone));
        }
        Refusal::BodyInvalid
    }

    /// Notes what the body asks for. Refuses the call if an operator has frozen its model.
    pub(super) fn asked(&mut self, asked: &Checked<'_>) -> Result<(), Refused> {
        let tells_usage = matches!(self.route, Route::ChatCompletions | Route::Completions);
        if tells_usage && asked.stream && !asked.usage_asked {
            self.usage = UsageIs::Ours;
        }
        if let Some(draft) = &mut self.draft {
            draft.media = asked.media;
        }
        self.note(|draft| {
            draft.model_asked = Some(JournalText::of(&asked.model));
            draft.stream = asked.stream;
        });
        let bytes = self.draft.as_ref().map_or(0, |draft| draft.record.request_bytes);
        self.trace(|| Step::BodyRead { bytes, model: JournalText::of(&asked.model), stream: asked.stream });
        // In this order: a freeze in between finds what the connection carries.
        self.carried.asks(&asked.model);
        self.is_let_go_on(Some(&asked.model))
    }

    /// Returns who asked for the event in which a stream reports its usage.
    pub(super) const fn usage(&self) -> UsageIs {
        self.usage
    }

    /// Marks the call, whose request is about to go to the upstream. If the future is dropped, the request
    /// was not sent.
    pub(super) async fn sending(&mut self) -> Result<(), Refusal> {
        if self.carried.is_abandoned() {
            // Nothing was sent, and nothing is: the connection ends now, and the call with it.
            std::future::pending::<()>().await;
        }
        let duration = self.elapsed_us();
        let (Some(draft), Some(room)) = (&mut self.draft, &mut self.room) else {
            return Err(Refusal::JournalUnavailable);
        };
        let journal = &self.plane.journal;
        let marked = match draft.as_interrupted(duration, |record| journal.mark(room, record)) {
            Ok(synced) => synced.await,
            Err(error) => Err(error),
        };
        draft.sent_us = duration;
        self.carried.wants(Timeout::FirstByte);
        marked.map_err(|error| {
            tracing::error!(call = %self.call_id, error = &error as &dyn std::error::Error, "call cannot be marked");
            Refusal::JournalUnavailable
        })
    }

    /// There is a connection: from now on some of the call may have arrived.
    pub(super) fn goes_out(&self, connection: trace::Connection) {
        if let Some(draft) = &self.draft {
            draft.sent.store(true, Ordering::Relaxed);
        }
        self.trace(|| Step::Sent { connection });
    }

    /// The head of the upstream's answer is there.
    pub(super) fn answered(&mut self, answer: &Response<Incoming>) {
        self.carried.has_come();
        self.status = answer.status();
        let status = answer.status().as_u16();
        let cost = answer
            .headers()
            .get(own::LITELLM_COST)
            .and_then(|cost| NanoDollars::parse_dollars(cost.to_str().ok()?));
        let ttfb = self.elapsed_us();
        self.note(|draft| {
            draft.status = status;
            draft.ttfb_us = Some(ttfb);
            draft.cost_nanodollars = cost;
        });
        self.trace(|| Step::FirstByte { status });
    }

    /// Some of the answer's body is passed on.
    pub(super) fn passed_on(&mut self, bytes: usize) {
        self.note(|draft| draft.response_bytes += bytes as u64);
        if bytes > 0 && self.run.trace.is_watched() {
            let at = self.elapsed_us();
            let step = self.draft.as_mut().and_then(|draft| {
                let so_far = (draft.record.response_bytes, draft.record.stream);
                draft.progress.piece(at, so_far)
            });
            step.into_iter().for_each(|step| self.run.trace.tell(self.call_id, at, step));
        }
    }

    /// Reports to watchers of the run's trace how far the call has come.
    pub(super) fn trace(&self, step: impl FnOnce() -> Step) {
        if self.run.trace.is_watched() {
            self.run.trace.tell(self.call_id, self.elapsed_us(), step());
        }
    }

    /// The answer has begun to say something.
    pub(super) fn speaks(&mut self) {
        let now = self.elapsed_us();
        if let Some(draft) = &mut self.draft {
            draft.heard_us = Some(now);
        }
    }

    /// Records what the answer reported about itself.
    pub(super) fn read(&mut self, reading: Reading) {
        if let Some(draft) = &mut self.draft {
            draft.read(reading);
        }
    }

    /// A limit of time has passed, which refuses the call for `reason`.
    pub(super) fn late(&self, reason: Refusal, timeout: Timeout) -> Refused {
        match self.run.grant.limits.times.of(timeout) {
            Some(limit) => Refused::late(reason, Late { timeout, limit }),
            None => reason.into(),
        }
    }

    /// A limit of time has passed, after the answer's beginning was there.
    pub(super) fn is_late(&mut self, timeout: Timeout) {
        self.note(|draft| draft.timeout = Some(timeout));
    }

    /// Refuses the call: Sluicegate answers it itself.
    pub(super) fn refuse(mut self, refused: &Refused) -> Synced {
        let reason = refused.reason;
        self.note(|draft| {
            draft.timeout = refused.timeout;
            draft.refusal = Some(reason);
            draft.rule.clone_from(&refused.rule);
            draft.status = refusal::status(reason).as_u16();
        });
        self.settle(match reason {
            _ if refused.timeout.is_some() => Outcome::TimedOut,
            Refusal::UpstreamUnreachable | Refusal::UpstreamFailed => Outcome::UpstreamGone,
            _ => Outcome::Refused,
        })
    }

    /// Sluicegate puts an answer of its own in the place of the upstream's, whose status the record keeps.
    pub(super) fn settle_mapped(&mut self, reason: Refusal, outcome: Outcome) -> Synced {
        self.note(|draft| draft.refusal = Some(reason));
        self.settle(outcome)
    }

    /// Nothing of the upstream's answer has passed: Sluicegate answers in its place.
    pub(super) fn takes_back(&mut self) {
        self.note(|draft| draft.response_bytes = 0);
    }

    /// Writes the record. Later calls do nothing. The returned value is ready when the answer's last bytes
    /// may leave; a caller without a client to answer drops it.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Synced {
        let duration = self.elapsed_us();
        let Some(draft) = self.draft.take() else { return Synced::Now };
        let record = draft.finish(outcome, duration);
        self.trace(|| ended(&record));
        if let Some(reservation) = self.reservation.take().filter(|_| outcome != Outcome::Refused) {
            reservation.settle(record.tokens, record.cost_nanodollars.unwrap_or_default());
        }
        self.carried.end();
        self.run.count(&record);
        if let Some(tap) = self.run.watched() {
            tap.end(&record);
        }
        self.plane.metrics.count(&record);
        let place = self.place.take();
        let appended = self.plane.journal.append(&record, self.room.take());
        self.trace(|| settled(&record));
        match appended {
            Ok(synced) => synced.holding(place),
            Err(error) => {
                tracing::error!(call = %self.call_id, error = &error as &dyn std::error::Error, "call is not in the journal");
                Synced::failed(error)
            }
        }
    }

    fn note(&mut self, change: impl FnOnce(&mut ExchangeRecord)) {
        if let Some(draft) = &mut self.draft {
            change(&mut draft.record);
        }
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns the outcome of a call that ends here without a stated reason.
    fn early_end(&self) -> Outcome {
        match self.run.cut() {
            Some(Closing::Closed | Closing::Over | Closing::Replaced) => Outcome::RunClosed,
            Some(Closing::Shutdown) => Outcome::Interrupted,
            None if self.carried.is_unheard() => Outcome::RunClosed,
            None if self.carried.stopped(&self.plane.freezes).is_some() => Outcome::Frozen,
            None if self.carried.told().is_some() => Outcome::TimedOut,
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
        if self.draft.is_some() {
            let outcome = self.early_end();
            if let Some(stopped) =
                self.carried.stopped(&self.plane.freezes).filter(|_| outcome == Outcome::Frozen)
            {
                self.note(|draft| (draft.refusal, draft.rule) = (Some(stopped.reason), stopped.rule));
            }
            if let Some(timeout) = self.carried.told().filter(|_| outcome == Outcome::TimedOut) {
                self.is_late(timeout);
            }
            drop(self.settle(outcome));
        }
    }
}
