//! Words refusals for limits that are short.

use std::borrow::Cow;

use platform_core::{budget::Limit, money::NanoDollars, refusal::Refusal, untrusted::JournalText};

use super::{Refused, words::message};
use crate::budget::{LimitOwner, QuotaError, QuotaShortfall, ToolQuotaError};

impl From<ToolQuotaError> for Refused {
    fn from(error: ToolQuotaError) -> Self {
        match error {
            ToolQuotaError::RateLimited(wait) => {
                let refused = Self::by_rule(Refusal::RateLimited, "tools.calls_per_minute");
                Self { wait: Some(wait.as_secs() + 1), ..refused }
            }
            ToolQuotaError::InFlight => Self::by_rule(Refusal::ConcurrencyLimited, "tools.calls_in_flight"),
            ToolQuotaError::Calls(QuotaShortfall::Reserved) => {
                Self::by_rule(Refusal::QuotaReserved, "tools.calls")
            }
            ToolQuotaError::Calls(QuotaShortfall::Exhausted { .. }) => {
                Self::by_rule(Refusal::QuotaExhausted, "tools.calls")
            }
        }
    }
}

impl From<QuotaError> for Refused {
    fn from(error: QuotaError) -> Self {
        let (owner, limit, reason) = match error {
            QuotaError::RateLimited(owner, _) => (owner, Limit::RequestsPerMinute, Refusal::RateLimited),
            QuotaError::Exceeded(owner, Limit::CallsInFlight, _) => {
                (owner, Limit::CallsInFlight, Refusal::ConcurrencyLimited)
            }
            QuotaError::Exceeded(owner, limit, QuotaShortfall::Reserved) => {
                (owner, limit, Refusal::QuotaReserved)
            }
            QuotaError::Exceeded(owner, limit, QuotaShortfall::Exhausted { .. }) => {
                (owner, limit, Refusal::QuotaExhausted)
            }
            QuotaError::Unpriced(owner) => (owner, Limit::CostNanodollars, Refusal::ModelUnpriced),
        };
        let wait = match error {
            QuotaError::RateLimited(_, wait) => Some(wait.as_secs() + 1),
            QuotaError::Exceeded(..) | QuotaError::Unpriced(_) => None,
        };
        let (whose, owner) = match owner {
            LimitOwner::Run => ("this run", "run"),
            LimitOwner::Account => ("this account", "account"),
        };
        let rule = Some(JournalText::of(&format!("{owner}.{}", limit.setting())));
        let message = match error {
            QuotaError::Exceeded(_, limit, QuotaShortfall::Exhausted { left: 0, .. }) => {
                format!("the limit of {limit} of {whose} is used up")
            }
            QuotaError::Exceeded(_, limit, QuotaShortfall::Exhausted { needed, left }) => format!(
                "this call may need {} of the limit of {limit} of {whose}, and {} is left",
                amount(limit, needed),
                amount(limit, left)
            ),
            QuotaError::Exceeded(_, limit, QuotaShortfall::Reserved) => {
                format!("the rest of the limit of {limit} of {whose} is reserved for calls in progress")
            }
            QuotaError::RateLimited(..) | QuotaError::Unpriced(_) => {
                message(reason).replace("this run or account", whose)
            }
        };
        Self { rule, message: Cow::Owned(message), wait, ..reason.into() }
    }
}

/// Returns an amount under `limit` in words.
fn amount(limit: Limit, amount: u64) -> String {
    match limit {
        Limit::CostNanodollars => NanoDollars(amount).to_string(),
        _ => amount.to_string(),
    }
}
