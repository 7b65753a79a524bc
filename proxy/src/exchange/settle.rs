//! Writes exactly one record per call, whatever ended it.
//!
//! An [`Exchange`] is the unfinished record. It is settled once, explicitly, where the call's end is known.
//! If it is dropped before, the client has left or the run was cut, and that is the record.

use platform_core::{
    record::{ExchangeRecord, Kind, Outcome, Timeout},
    refusal::Refusal,
    trace::Step,
};

use super::{call::Exchange, record_builder::RecordBuilder};
use crate::{
    clock,
    journal::Durable,
    output_rates::LEAST_RATE,
    refusal::{self, Late, Refused},
    run::Closing,
};

impl Exchange {
    /// Writes the record. Later calls do nothing. The returned value is ready when the answer's last bytes
    /// may leave; a caller without a client to answer drops it.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Durable {
        let duration = self.elapsed_us();
        let Some(mut builder) = self.builder.take() else { return Durable::Now };
        let rate = self.output_rate(&mut builder, duration);
        let mut record = builder.finish(outcome, duration, rate);
        if outcome == Outcome::Complete && self.connection_state.has_outlived_client() {
            record.outcome = Outcome::ClientGone;
        }
        self.trace(|| ended(&record));
        if let Some(reservation) = self.reservation.take().filter(|_| outcome != Outcome::Refused) {
            reservation.settle(record.tokens, record.cost_nanodollars.unwrap_or_default());
        }
        if let Some(reservation) = self.tool_reservation.take().filter(|_| outcome != Outcome::Refused) {
            reservation.settle();
        }
        self.connection_state.end_call();
        self.run.count(&record);
        if let Some(tap) = self.run.watched().filter(|_| record.kind == Kind::Model) {
            tap.end(&record);
        }
        self.context.metrics.count(&record);
        self.trace(|| settled(&record));
        self.context.journal.append(record, self.record_space.take(), self.in_flight.take())
    }

    /// Learns the rate of a call with known tokens. Returns the tokens a second that each answer of another call may
    /// have had unseen.
    fn output_rate(&self, builder: &mut RecordBuilder, duration: u64) -> u64 {
        let rates = &self.context.output_rates;
        if let Some(rate) = builder.exact_rate(duration).filter(|rate| *rate > LEAST_RATE) {
            rates.note(builder.model(), rate, clock::now);
            builder.record.output_rate = Some(rate);
        }
        if !builder.is_partly_seen() {
            return 0;
        }
        let set = self.context.snapshot.load().output_rates.get(builder.model()).copied();
        set.unwrap_or_else(|| rates.of(builder.model(), clock::now()))
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
            Refusal::UpstreamUnreachable
            | Refusal::UpstreamReset
            | Refusal::UpstreamFailed
            | Refusal::OutcomeUnknown
            | Refusal::ToolAnswerTooLarge => Outcome::UpstreamGone,
            _ => Outcome::Refused,
        })
    }

    /// Settles a call when Sluicegate replaces its answer. The record keeps the upstream's status.
    pub(super) fn settle_mapped(&mut self, reason: Refusal, outcome: Outcome) -> Durable {
        self.note(|record| record.refusal = Some(reason));
        self.settle(outcome)
    }

    /// Returns the refusal for `reason` of a call after its `timeout` has passed.
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

    /// Returns the outcome of a call that ends here without a stated reason.
    fn early_end(&self) -> Outcome {
        match self.run.cut() {
            _ if self.connection_state.has_outlived_client() => Outcome::ClientGone,
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
