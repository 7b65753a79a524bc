//! Explains calls that were answered and not refused: upstream errors passed on to the client, and answers that
//! broke off.

use platform_core::{
    record::{ExchangeRecord, Kind, Outcome},
    refusal::Refusal,
};

use super::{Advice, AdvisedCall, explain};

impl AdvisedCall<'_> {
    /// Explains a call that was not refused, if its answer is not what the client asked for.
    pub(super) fn explain_answered(self) -> Option<Advice> {
        match self.record.outcome {
            _ if self.is_passed_error() => Some(self.explain_passed_error()),
            _ if self.is_cut() => Some(self.explain_cut()),
            _ if self.record.kind != Kind::Model => None,
            Outcome::UpstreamGone | Outcome::StreamError => {
                Some(self.explain_upstream(Refusal::UpstreamFailed))
            }
            Outcome::TimedOut => Some(self.explain_timeout()),
            _ => None,
        }
    }

    /// Returns whether the upstream refused the call, and the client received its words.
    fn is_passed_error(self) -> bool {
        self.record.kind == Kind::Model
            && self.record.outcome == Outcome::Complete
            && self.record.status >= 400
    }

    /// Explains an error of the upstream. The journal does not have its words, because they may repeat the prompt.
    fn explain_passed_error(self) -> Advice {
        let ExchangeRecord { status, run_id, .. } = self.record;
        let cause = match status {
            408 | 429 | 500.. => "it failed or is overloaded, and the call may be sent again",
            404 => "it has no such model or route",
            _ => "it does not take the request",
        };
        let where_words_are = "the agent received its words, and most agents print them; the journal and the proxy's log have none";
        explain(&format!("the upstream answered {status}: {cause}. {where_words_are}"))
            .command(format!("sluice runs logs {run_id}"))
            .command("sluice models")
    }
}
