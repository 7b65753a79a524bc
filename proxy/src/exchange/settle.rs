//! settle: exactly one record per call, whatever ended it.
//!
//! An [`Exchange`] is the record in the making. It is settled once, explicitly, where the call's end is
//! known; if it is dropped before, the client has left or the run was cut, and that is the record.

use std::{sync::Arc, time::Instant};

use http::{Response, StatusCode};
use hyper::body::Incoming;
use platform_core::{
    id::CallId,
    money::NanoDollars,
    name::header as own,
    record::{ExchangeRecord, Outcome},
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};

use super::{NO_ROUTE, Plane, carried::Carried, draft::Draft, identify::Caller, rewrite::Checked};
use crate::{
    budget::{Ask, Granted, Reservation},
    clock,
    journal::{Room, Synced},
    refusal::{self, Refused},
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
        carried.begin(&caller.run);
        let now = clock::now();
        let call_id = plane.call_ids.next(now);
        let draft = Draft::new(caller, call_id, clock::rfc3339(now));
        Self {
            plane: Arc::clone(plane),
            run: Arc::clone(&caller.run),
            began: Instant::now(),
            draft: Some(Box::new(draft)),
            call_id,
            route: NO_ROUTE,
            status: StatusCode::OK,
            usage: UsageIs::Theirs,
            place: None,
            carried: carried.clone(),
            reservation: None,
            room: None,
        }
    }

    /// Takes the call's place in the run, if run and journal are open.
    pub(super) fn admit(&mut self, route: Route) -> Result<(), Refused> {
        self.route = route;
        self.note(|draft| draft.route = route);
        self.room = Some(self.plane.journal.room().ok_or(Refusal::JournalUnavailable)?);
        self.place = Some(self.run.enter()?);
        if self.run.is_over(clock::now()) {
            return Err(Refusal::RunOver.into());
        }
        self.is_let_go_on(None)?;
        let entered = Reservation::enter(&self.run.spending, &self.run.account, clock::uptime(self.began))?;
        self.reservation = Some(entered);
        Ok(())
    }

    /// Sets aside what the call may need, and says how much that is.
    pub(super) fn reserve(&mut self, ask: &Ask) -> Result<Granted, Refused> {
        let reservation = self.reservation.as_mut().ok_or(Refusal::RunClosed)?;
        let granted = reservation.grow(ask)?;
        if let Some(draft) = &mut self.draft {
            (draft.granted, draft.price) = (granted.tokens, ask.price);
        }
        Ok(granted)
    }

    fn is_let_go_on(&self, model: Option<&str>) -> Result<(), Refusal> {
        let stopped = self.plane.freezes.stop(&self.run.grant.account, model);
        if stopped { Err(Refusal::Frozen) } else { Ok(()) }
    }

    pub(super) const fn run(&self) -> &Arc<Run> {
        &self.run
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

    /// Sluicegate itself answers with success, in so many bytes.
    pub(super) fn told(&mut self, bytes: usize) {
        self.note(|draft| draft.status = StatusCode::OK.as_u16());
        self.passed_on(bytes);
    }

    /// Whether the call is not settled yet.
    pub(super) const fn is_open(&self) -> bool {
        self.draft.is_some()
    }

    /// The upstream's status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Some of the request's body arrived; returns how much that makes in all.
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

    /// What the body asks for is known.
    pub(super) fn asked(&mut self, asked: &Checked<'_>) -> Result<(), Refusal> {
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
        // In this order: a freeze in between finds what the connection carries.
        self.carried.asks(&asked.model);
        self.is_let_go_on(Some(&asked.model))
    }

    /// Whether the agent is to see the event in which a stream tells its usage.
    pub(super) const fn usage(&self) -> UsageIs {
        self.usage
    }

    /// The request is about to go to the upstream: the call is marked, and whoever drops the future has not sent it.
    pub(super) async fn sending(&mut self) -> Result<(), Refusal> {
        let duration = self.elapsed_us();
        let (Some(draft), Some(room)) = (&mut self.draft, &mut self.room) else {
            return Err(Refusal::JournalUnavailable);
        };
        let journal = &self.plane.journal;
        let marked = match draft.as_interrupted(duration, |record| journal.mark(room, record)) {
            Ok(synced) => synced.await,
            Err(error) => Err(error),
        };
        draft.sent = marked.is_ok();
        marked.map_err(|error| {
            tracing::error!(call = %self.call_id, error = &error as &dyn std::error::Error, "call cannot be marked");
            Refusal::JournalUnavailable
        })
    }

    /// The head of the upstream's answer is there.
    pub(super) fn answered(&mut self, answer: &Response<Incoming>) {
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
    }

    /// Some of the answer's body is passed on.
    pub(super) fn passed_on(&mut self, bytes: usize) {
        self.note(|draft| draft.response_bytes += bytes as u64);
    }

    /// What the answer said about itself.
    pub(super) fn read(&mut self, reading: Reading) {
        if let Some(draft) = &mut self.draft {
            draft.read(reading);
        }
    }

    /// Sluicegate answers the call itself.
    pub(super) fn refuse(mut self, reason: Refusal) -> Synced {
        self.note(|draft| {
            draft.refusal = Some(reason);
            draft.status = refusal::status(reason).as_u16();
        });
        self.settle(match reason {
            Refusal::UpstreamUnreachable | Refusal::UpstreamFailed => Outcome::UpstreamGone,
            Refusal::UpstreamTimeout => Outcome::TimedOut,
            _ => Outcome::Refused,
        })
    }

    /// Sluicegate puts an answer of its own in the place of the upstream's, whose status the record keeps.
    pub(super) fn settle_mapped(mut self, reason: Refusal) -> Synced {
        self.note(|draft| draft.refusal = Some(reason));
        self.settle(Outcome::Complete)
    }

    /// Writes the record. Later calls do nothing. What it returns is ready when the answer's last bytes may leave; who has
    /// nobody to answer drops it.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Synced {
        let duration = self.elapsed_us();
        let Some(draft) = self.draft.take() else { return Synced::Now };
        let record = draft.finish(outcome, duration);
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
        match self.plane.journal.append(&record, self.room.take()) {
            Ok(synced) => synced.holding(place),
            Err(error) => {
                tracing::error!(call = %self.call_id, error = &error as &dyn std::error::Error, "call is not in the journal");
                Synced::Now
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

    /// What it means that the call ends here, without anybody having said why.
    fn early_end(&self) -> Outcome {
        match self.run.cut() {
            Some(Closing::Closed | Closing::Over) => Outcome::RunClosed,
            Some(Closing::Shutdown) => Outcome::Interrupted,
            None if self.carried.is_stopped(&self.plane.freezes) => Outcome::Frozen,
            None => Outcome::ClientGone,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.draft.is_some() {
            let outcome = self.early_end();
            if outcome == Outcome::Frozen {
                self.note(|draft| draft.refusal = Some(Refusal::Frozen));
            }
            drop(self.settle(outcome));
        }
    }
}
