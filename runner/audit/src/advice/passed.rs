//! Explains errors of the upstream that were passed on: the client received the upstream's own words.

use platform_core::record::{ExchangeRecord, Kind, Outcome};

use super::{Advice, AdvisedCall, explain};

impl AdvisedCall<'_> {
    /// Returns whether the upstream refused the call, and the client received its words.
    pub(super) fn is_passed_error(self) -> bool {
        self.record.kind == Kind::Model
            && self.record.outcome == Outcome::Complete
            && self.record.status >= 400
    }

    /// Explains an error of the upstream. The journal does not have its words, because they may repeat the prompt.
    pub(super) fn explain_passed_error(self) -> Advice {
        let ExchangeRecord { status, run_id, .. } = self.record;
        let cause = match status {
            408 | 429 | 500.. => "it failed or has too much to do, and the call may be sent again",
            404 => "it has no such model or route",
            _ => "it does not take the request",
        };
        let where_words_are = "the agent received its words, and most agents print them; the journal and the proxy's log have none";
        explain(&format!("the upstream answered {status}: {cause}. {where_words_are}"))
            .command(format!("sluice runs logs {run_id}"))
            .command("sluice models")
    }
}
