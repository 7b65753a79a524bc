//! What a run has failed of whose last call failed: the name that it has wherever its agent lives.

use platform_core::{
    event::RunErrorCode as Code,
    record::{CallEnd, Outcome},
    refusal::Refusal,
};

use crate::lifecycle::Failure;

/// What `last` is called as the reason of a failure; nothing if it was answered, or its agent left it.
pub(crate) fn failure(last: Option<CallEnd>) -> Option<Failure> {
    let call = last.filter(|call| call.is_failure())?;
    let code = code(call)?;
    let why = match (call.refusal, call.outcome) {
        (Some(refusal), _) => refusal.code().to_owned(),
        (None, Outcome::Complete) => format!("status {}", call.status),
        (None, outcome) => outcome.to_string(),
    };
    let message = match code {
        Code::ContextOverflow => "the conversation is too long for the model".to_owned(),
        Code::LimitUsedUp => "a limit of the run or its account is used up".to_owned(),
        Code::ModelBusy => format!("the model API is too busy, or failed ({why})"),
        Code::ModelAway => format!("the model API could not be reached, or broke off ({why})"),
        _ => format!("the model API refused the run's last call ({why})"),
    };
    Some(Failure::new(code, message))
}

const fn code(call: CallEnd) -> Option<Code> {
    Some(match (call.refusal, call.outcome) {
        (Some(Refusal::ContextOverflow), _) => Code::ContextOverflow,
        (Some(Refusal::LimitUsedUp | Refusal::ModelUnpriced), _) => Code::LimitUsedUp,
        (Some(Refusal::UpstreamBusy | Refusal::TooFast | Refusal::TooManyAtOnce | Refusal::LimitHeld), _) => {
            Code::ModelBusy
        }
        (
            Some(
                Refusal::UpstreamUnreachable
                | Refusal::UpstreamDown
                | Refusal::UpstreamFailed
                | Refusal::UpstreamTimeout
                | Refusal::Draining
                | Refusal::JournalUnavailable,
            ),
            _,
        ) => Code::ModelAway,
        (Some(_), _) => Code::ModelRefused,
        (None, Outcome::Complete) if matches!(call.status, 408 | 429 | 500..) => Code::ModelBusy,
        (None, Outcome::Complete) => Code::ModelRefused,
        // The agent's side left: that is how it ends what it gives up.
        (None, Outcome::ClientGone | Outcome::RunClosed) => return None,
        (None, _) => Code::ModelAway,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(outcome: Outcome, status: u16, refusal: Option<Refusal>) -> Option<(Code, String)> {
        let failure = failure(Some(CallEnd { outcome, status, refusal }))?;
        Some((failure.code, failure.message))
    }

    #[test]
    fn each_end_of_the_last_call_has_one_name() {
        use Outcome as O;
        use Refusal as R;
        for (outcome, status, refusal, code) in [
            (O::Complete, 401, Some(R::UpstreamAuth), Code::ModelRefused),
            (O::Complete, 402, Some(R::UpstreamAuth), Code::ModelRefused),
            (O::Complete, 400, None, Code::ModelRefused),
            (O::Complete, 400, Some(R::UpstreamRefused), Code::ModelRefused),
            (O::Refused, 400, Some(R::ModelNotGranted), Code::ModelRefused),
            (O::Complete, 400, Some(R::ContextOverflow), Code::ContextOverflow),
            (O::Refused, 400, Some(R::LimitUsedUp), Code::LimitUsedUp),
            (O::Complete, 408, None, Code::ModelBusy),
            (O::Complete, 429, None, Code::ModelBusy),
            (O::Complete, 503, None, Code::ModelBusy),
            (O::Complete, 500, Some(R::UpstreamBusy), Code::ModelBusy),
            (O::Refused, 429, Some(R::TooFast), Code::ModelBusy),
            (O::UpstreamGone, 502, Some(R::UpstreamUnreachable), Code::ModelAway),
            (O::UpstreamGone, 200, None, Code::ModelAway),
            (O::StreamError, 200, None, Code::ModelAway),
            (O::TimedOut, 504, Some(R::UpstreamTimeout), Code::ModelAway),
            (O::Interrupted, 0, None, Code::ModelAway),
        ] {
            let (found, message) = named(outcome, status, refusal).unwrap();
            assert_eq!(found, code, "{outcome} {status} {refusal:?}: {message}");
        }
        assert_eq!(
            named(O::Complete, 429, None).unwrap().1,
            "the model API is too busy, or failed (status 429)"
        );
        assert!(named(O::UpstreamGone, 200, None).unwrap().1.ends_with("(upstream_gone)"));
    }

    #[test]
    fn a_call_that_was_answered_or_given_up_explains_nothing() {
        assert_eq!(failure(None), None);
        for outcome in [Outcome::Complete, Outcome::ClientGone, Outcome::RunClosed] {
            assert_eq!(named(outcome, 200, None), None, "{outcome}");
        }
    }
}
