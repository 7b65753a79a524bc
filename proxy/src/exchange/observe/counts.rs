//! Counts for the record what the answer brings: bytes, text, usage.

use crate::{exchange::call::Exchange, trace::AnswerSoFar, usage::UsageReport};

impl Exchange {
    /// Counts bytes of the answer's body that are forwarded.
    pub(in crate::exchange) fn forwarded(&mut self, bytes: usize) {
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

    /// Notes that text of the answer has come.
    pub(in crate::exchange) fn text_came(&mut self) {
        let now = self.elapsed_us();
        if let Some(builder) = &mut self.builder {
            builder.silence.text_came(now);
        }
    }

    /// Records the usage that the answer reported.
    pub(in crate::exchange) fn add_usage(&mut self, report: UsageReport) {
        if let Some(builder) = &mut self.builder {
            builder.add_usage(report);
        }
    }

    /// Notes that nothing of the upstream's answer has passed: Sluicegate answers in its place.
    pub(in crate::exchange) fn discard_answer(&mut self) {
        self.note(|record| record.response_bytes = 0);
    }
}
