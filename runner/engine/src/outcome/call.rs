//! Names the failure of a run after its last call failed. The code is the same for containers and gateways.

use platform_core::{
    event::RunErrorCode as Code,
    record::{CallEnd, Outcome},
    refusal::Refusal,
};
use runner_model::lifecycle::Failure;

/// Returns the failure that the last call explains; `None` if the call was answered, or abandoned by its agent.
pub(crate) fn failure(last: Option<CallEnd>) -> Option<Failure> {
    let call = last.filter(|call| call.is_failure())?;
    let code = error_code(call)?;
    let reason = match (call.refusal, call.outcome) {
        (Some(refusal), _) => refusal.code().to_owned(),
        (None, Outcome::Complete) => format!("status {}", call.status),
        (None, outcome) => outcome.to_string(),
    };
    let message = match code {
        Code::ContextOverflow => "the conversation is too long for the model".to_owned(),
        Code::QuotaExhausted if call.refusal == Some(Refusal::BalanceExhausted) => {
            "the balance of the account is below its floor".to_owned()
        }
        Code::QuotaExhausted => "a limit of the run or its account is used up".to_owned(),
        Code::ModelUnpriced => {
            "the model has no price, and the run or its account has a limit of cost".to_owned()
        }
        Code::ModelBusy => format!("the model API is too busy, or failed ({reason})"),
        Code::ModelUnavailable => {
            format!("the model API could not be reached, or closed the connection ({reason})")
        }
        _ => format!("the model API refused the run's last call ({reason})"),
    };
    Some(Failure::new(code, message))
}

const fn error_code(call: CallEnd) -> Option<Code> {
    Some(match (call.refusal, call.outcome) {
        (Some(Refusal::ContextOverflow), _) => Code::ContextOverflow,
        (Some(Refusal::QuotaExhausted | Refusal::BalanceExhausted), _) => Code::QuotaExhausted,
        (Some(Refusal::ModelUnpriced), _) => Code::ModelUnpriced,
        (
            Some(
                Refusal::UpstreamBusy
                | Refusal::RateLimited
                | Refusal::ConcurrencyLimited
                | Refusal::QuotaReserved,
            ),
            _,
        ) => Code::ModelBusy,
        (
            Some(
                Refusal::UpstreamUnreachable
                | Refusal::UpstreamUnavailable
                | Refusal::UpstreamReset
                | Refusal::UpstreamFailed
                | Refusal::UpstreamTimeout
                | Refusal::Draining
                | Refusal::JournalUnavailable,
            ),
            _,
        ) => Code::ModelUnavailable,
        (Some(_), _) => Code::ModelRefused,
        (None, Outcome::Complete) if matches!(call.status, 408 | 429 | 500..) => Code::ModelBusy,
        (None, Outcome::Complete) => Code::ModelRefused,
        // The agent closed the connection to abandon the call.
        (None, Outcome::ClientGone | Outcome::RunClosed) => return None,
        (None, _) => Code::ModelUnavailable,
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
            (O::Refused, 400, Some(R::QuotaExhausted), Code::QuotaExhausted),
            (O::Refused, 400, Some(R::BalanceExhausted), Code::QuotaExhausted),
            (O::Refused, 400, Some(R::ModelUnpriced), Code::ModelUnpriced),
            (O::Complete, 408, None, Code::ModelBusy),
            (O::Complete, 429, None, Code::ModelBusy),
            (O::Complete, 503, None, Code::ModelBusy),
            (O::Complete, 500, Some(R::UpstreamBusy), Code::ModelBusy),
            (O::Refused, 429, Some(R::RateLimited), Code::ModelBusy),
            (O::UpstreamGone, 502, Some(R::UpstreamUnreachable), Code::ModelUnavailable),
            (O::UpstreamGone, 200, None, Code::ModelUnavailable),
            (O::StreamError, 200, None, Code::ModelUnavailable),
            (O::TimedOut, 504, Some(R::UpstreamTimeout), Code::ModelUnavailable),
            (O::Interrupted, 0, None, Code::ModelUnavailable),
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
    fn an_answered_or_abandoned_call_is_no_failure() {
        assert_eq!(failure(None), None);
        for outcome in [Outcome::Complete, Outcome::ClientGone, Outcome::RunClosed] {
            assert_eq!(named(outcome, 200, None), None, "{outcome}");
        }
    }
}
