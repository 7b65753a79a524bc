//! Defines the budget of a run or an account, and the use of each limit.
//!
//! Only the types that both planes share are here. The data plane enforces the limits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{money::NanoDollars, record::Tokens};

/// Limits over the whole life of a run or an account. An absent limit does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Calls that are not refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Calls per minute, in the long run; as many may come at once after a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Calls at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_in_flight: Option<u64>,
    /// Tokens of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Cost in billionths of a dollar. Under this limit only models with a price may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nanodollars: Option<NanoDollars>,
}

/// Name of one limit of a [`Budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// [`Budget::requests`]
    Requests,
    /// [`Budget::requests_per_minute`]
    RequestsPerMinute,
    /// [`Budget::calls_in_flight`]
    CallsInFlight,
    /// [`Budget::input_tokens`]
    InputTokens,
    /// [`Budget::output_tokens`]
    OutputTokens,
    /// [`Budget::total_tokens`]
    TotalTokens,
    /// [`Budget::cost_nanodollars`]
    CostNanodollars,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 7] = [
        Self::Requests,
        Self::RequestsPerMinute,
        Self::CallsInFlight,
        Self::InputTokens,
        Self::OutputTokens,
        Self::TotalTokens,
        Self::CostNanodollars,
    ];

    /// Returns the limit in words, for a sentence: "the limit of …".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestsPerMinute => "requests per minute",
            Self::CallsInFlight => "calls in flight",
            Self::InputTokens => "input tokens",
            Self::OutputTokens => "output tokens",
            Self::TotalTokens => "total tokens",
            Self::CostNanodollars => "cost",
        }
    }

    /// Returns the name of the limit in the configuration and in the rule of a record.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestsPerMinute => "requests_per_minute",
            Self::CallsInFlight => "calls_in_flight",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::TotalTokens => "total_tokens",
            Self::CostNanodollars => "cost",
        }
    }

    /// Formats an amount in the limit's unit, for people.
    #[must_use]
    pub fn amount(self, amount: u64) -> String {
        match self {
            Self::CostNanodollars => NanoDollars(amount).to_string(),
            _ => amount.to_string(),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl Budget {
    /// Returns the amount that `limit` allows; `None` if it is not set.
    #[must_use]
    pub fn allows(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Requests => self.requests,
            Limit::RequestsPerMinute => self.requests_per_minute,
            Limit::CallsInFlight => self.calls_in_flight,
            Limit::InputTokens => self.input_tokens,
            Limit::OutputTokens => self.output_tokens,
            Limit::TotalTokens => self.total_tokens,
            Limit::CostNanodollars => self.cost_nanodollars.map(|cost| cost.0),
        }
    }

    /// Sets `limit` to this amount; `None` removes it.
    pub fn allow(&mut self, limit: Limit, allowed: Option<u64>) {
        match limit {
            Limit::Requests => self.requests = allowed,
            Limit::RequestsPerMinute => self.requests_per_minute = allowed,
            Limit::CallsInFlight => self.calls_in_flight = allowed,
            Limit::InputTokens => self.input_tokens = allowed,
            Limit::OutputTokens => self.output_tokens = allowed,
            Limit::TotalTokens => self.total_tokens = allowed,
            Limit::CostNanodollars => self.cost_nanodollars = allowed.map(NanoDollars),
        }
    }
}

/// Use of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitView {
    /// The limit.
    pub limit: Limit,
    /// Amount that it allows; `None` if it does not apply.
    pub allowed: Option<u64>,
    /// Amount used by calls that have ended; zero for a rate and for calls in flight.
    pub used: u64,
    /// Amount reserved for calls in flight.
    pub reserved: u64,
}

impl LimitView {
    /// Returns the amount left for new calls.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        self.allowed.map(|allowed| allowed.saturating_sub(self.used).saturating_sub(self.reserved))
    }
}

/// Price of a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// Price of tokens of the prompt.
    pub input: NanoDollars,
    /// Price of tokens of the answer, reasoning included.
    pub output: NanoDollars,
    /// Price of tokens of the prompt that are read from a cache.
    pub cached: NanoDollars,
    /// Price of tokens of the prompt that are written to a cache.
    pub cache_written: NanoDollars,
    /// Price of tokens of the prompt that are written to a cache that keeps them for an hour.
    pub cache_written_1h: NanoDollars,
}

/// Number of tokens that a price is for.
const MILLION: u128 = 1_000_000;

impl Price {
    /// Returns whether no token costs anything.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the highest cost of this many tokens of prompts and answers.
    #[must_use]
    pub fn most(&self, input: u64, output: u64) -> NanoDollars {
        total_cost([(input, self.dearest_input()), (output, self.output)])
    }

    /// Returns the tokens of answers that `money` can buy; `None` if they cost nothing.
    #[must_use]
    pub fn output_for(&self, money: NanoDollars) -> Option<u64> {
        let tokens = (u128::from(money.0) * MILLION).checked_div(self.output.0.into())?;
        Some(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    /// Returns the cost of `tokens`.
    #[must_use]
    pub fn of(&self, tokens: &Tokens) -> NanoDollars {
        let plain = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_written);
        total_cost([
            (plain, self.input),
            (tokens.cached, self.cached),
            (tokens.cache_written.saturating_sub(tokens.cache_written_1h), self.cache_written),
            (tokens.cache_written_1h, self.cache_written_1h),
            (tokens.output, self.output),
        ])
    }

    /// Returns the dearer of two prices, for each kind of token.
    #[must_use]
    pub fn or_dearer(&self, other: &Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cached: self.cached.max(other.cached),
            cache_written: self.cache_written.max(other.cache_written),
            cache_written_1h: self.cache_written_1h.max(other.cache_written_1h),
        }
    }

    /// Returns each price times `permille` thousandths, rounded up.
    #[must_use]
    pub fn times_permille(&self, permille: u64) -> Self {
        let times =
            |NanoDollars(price): NanoDollars| NanoDollars(price.saturating_mul(permille).div_ceil(1000));
        Self {
            input: times(self.input),
            output: times(self.output),
            cached: times(self.cached),
            cache_written: times(self.cache_written),
            cache_written_1h: times(self.cache_written_1h),
        }
    }

    fn dearest_input(&self) -> NanoDollars {
        self.input.max(self.cached).max(self.cache_written).max(self.cache_written_1h)
    }
}

/// Returns the total cost, rounded up once.
fn total_cost<const N: usize>(parts: [(u64, NanoDollars); N]) -> NanoDollars {
    let costs = parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price.0));
    let total = costs.fold(0, u128::saturating_add).div_ceil(MILLION);
    NanoDollars(u64::try_from(total).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_a_field_of_the_budget() {
        for (amount, limit) in (1..).zip(Limit::ALL) {
            let name = serde_json::to_value(limit).unwrap();
            let budget: Budget =
                serde_json::from_value(serde_json::json!({ name.as_str().unwrap(): amount })).unwrap();
            assert_eq!(budget.allows(limit), Some(amount), "{name}");
            let mut same = Budget::default();
            same.allow(limit, Some(amount));
            assert_eq!(same, budget, "{name}");
            assert_eq!(
                Limit::ALL.iter().filter(|other| budget.allows(**other).is_some()).count(),
                1,
                "{name}"
            );
        }
        assert!(
            serde_json::from_str::<Budget>(r#"{"request":1}"#).is_err(),
            "a misspelt limit is not ignored"
        );
    }

    #[test]
    fn prices_per_million_tokens_are_rounded_up() {
        let dollars = |text| NanoDollars::parse_dollars(text).unwrap();
        let price = Price {
            input: dollars("2.50"),
            output: dollars("10"),
            cached: dollars("0.0375"),
            cache_written: dollars("3.125"),
            cache_written_1h: dollars("5"),
        };
        let tokens = Tokens {
            input: 1000,
            output: 10,
            cached: 600,
            reasoning: 5,
            cache_written: 100,
            cache_written_1h: 0,
        };
        assert_eq!(price.of(&tokens), NanoDollars(300 * 2500 + 600 * 75 / 2 + 100 * 3125 + 10 * 10_000));
        let hour = Tokens { cache_written_1h: 40, ..tokens };
        assert_eq!(price.of(&hour).0 - price.of(&tokens).0, 40 * (5000 - 3125));
        assert_eq!(price.of(&Tokens { input: 1, cached: 1, ..Tokens::default() }), NanoDollars(38));
        assert_eq!(price.most(1000, 10), NanoDollars(1000 * 5000 + 10 * 10_000));
        assert_eq!(price.output_for(NanoDollars(99_999)), Some(9));
        assert_eq!(Price::default().output_for(NanoDollars(1)), None);
        assert_eq!(price.most(u64::MAX, u64::MAX).0, u64::MAX);
    }
}
