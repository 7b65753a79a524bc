//! Enforces limits: a call's greatest need is set aside before its first byte goes out, and settled when it has
//! ended.
//!
//! Each run and each account has a [`Spending`]; a call draws on both, always in this order, and returns what it does
//! not need. Other modules know what a call asks for, and how a refusal looks.

mod pot;
mod prices;
mod rate;
mod reservation;
#[cfg(test)]
mod tests;

use std::time::Duration;

use platform_core::{
    budget::{Budget, Limit, LimitView, Price},
    control::Usage,
    money::NanoDollars,
    record::Tokens,
};

pub(crate) use self::{
    pot::Shortage,
    prices::Prices,
    reservation::{Granted, Reservation, pace},
};
use self::{
    pot::{Pot, UNLIMITED},
    rate::Rate,
};

/// Usage and reservations under one budget.
#[derive(Debug)]
pub(crate) struct Spending {
    rate: Rate,
    pots: [Pot; POTS.len()],
}

/// Limits that are amounts, in the order in which they are drawn on.
const POTS: [Limit; 6] = [
    Limit::CallsInFlight,
    Limit::Requests,
    Limit::InputTokens,
    Limit::OutputTokens,
    Limit::TotalTokens,
    Limit::CostNanodollars,
];

/// Limits to which an answer is cut down.
const CUT_DOWN: [Limit; 3] = [Limit::OutputTokens, Limit::TotalTokens, Limit::CostNanodollars];

/// Amounts for the limits of [`POTS`].
type Amounts = [u64; POTS.len()];

/// Owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Run,
    Account,
}

/// Reason that a call may not be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// The limit has not enough left.
    Of(Whose, Limit, Shortage),
    /// The call comes too early, by this duration.
    RateLimited(Whose, Duration),
    /// The budget limits money, and the model has no price.
    Unpriced(Whose),
}

/// Greatest need of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    /// Most tokens its prompt can have.
    pub(crate) input: u64,
    /// Most tokens that each answer may have, by the agent and the grant.
    pub(crate) output: u64,
    /// Number of answers.
    pub(crate) answers: u64,
    /// Price of its tokens, if that is known.
    pub(crate) price: Option<Price>,
}

impl Spending {
    /// Returns the spending under `budget` of a run or account that has used `usage` so far.
    pub(crate) fn new(budget: &Budget, usage: &Usage) -> Self {
        let used = used(usage.calls, usage.tokens, usage.cost_nanodollars);
        Self {
            rate: Rate::new(budget.requests_per_minute),
            pots: std::array::from_fn(|at| Pot::new(budget.allows(POTS[at]).unwrap_or(UNLIMITED), used[at])),
        }
    }

    /// Replaces the limits. Usage and reservations stay.
    pub(crate) fn allow(&self, budget: &Budget) {
        self.rate.allow(budget.requests_per_minute);
        for (pot, limit) in self.pots.iter().zip(POTS) {
            pot.allow(budget.allows(limit).unwrap_or(UNLIMITED));
        }
    }

    /// Returns usage and reservations under each limit.
    pub(crate) fn view(&self) -> Vec<LimitView> {
        let of = |limit| match self.pot(limit) {
            Some(pot) => {
                LimitView { limit, allowed: pot.allowed(), used: pot.used(), reserved: pot.reserved() }
            }
            None => LimitView { limit, allowed: self.rate.allowed(), used: 0, reserved: 0 },
        };
        Limit::ALL.map(of).into()
    }

    /// Returns what calls in flight have reserved under `limit`.
    pub(crate) fn reserved(&self, limit: Limit) -> u64 {
        self.pot(limit).map_or(0, Pot::reserved)
    }

    /// Returns the counters of `limit`, if it is an amount.
    fn pot(&self, limit: Limit) -> Option<&Pot> {
        POTS.iter().zip(&self.pots).find_map(|(its, pot)| (*its == limit).then_some(pot))
    }

    /// Returns the most tokens each answer to `ask` can have within the unused rest of all limits, including what
    /// other calls have reserved.
    fn output(&self, whose: Whose, ask: &Ask) -> Result<u64, Short> {
        let is_paid = self.pot(Limit::CostNanodollars).and_then(Pot::allowed).is_some();
        let price = match ask.price {
            None if is_paid => return Err(Short::Unpriced(whose)),
            price => price.unwrap_or_default(),
        };
        let mut most = ask.output;
        for limit in CUT_DOWN {
            let prompt = match limit {
                Limit::TotalTokens => ask.input,
                Limit::CostNanodollars => price.most(ask.input, 0).0,
                _ => 0,
            };
            let used_up = Short::Of(whose, limit, Shortage::UsedUp);
            let unused = self.pot(limit).map_or(UNLIMITED, Pot::unused);
            let left = unused.checked_sub(prompt).ok_or(used_up)?;
            let tokens = match limit {
                Limit::CostNanodollars => price.output_for(NanoDollars(left)).unwrap_or(u64::MAX),
                _ => left,
            };
            most = tokens.checked_div(ask.answers).unwrap_or(most).min(most);
            if most == 0 {
                return Err(used_up);
            }
        }
        Ok(most)
    }

    fn reserve(&self, whose: Whose, amounts: &Amounts) -> Result<(), Short> {
        for (at, (pot, amount)) in self.pots.iter().zip(amounts).enumerate() {
            if let Err(shortage) = pot.reserve(*amount) {
                self.pots.iter().zip(amounts).take(at).for_each(|(pot, amount)| pot.settle(*amount, 0));
                return Err(Short::Of(whose, POTS[at], shortage));
            }
        }
        Ok(())
    }

    fn settle(&self, reserved: &Amounts, used: &Amounts) {
        for ((pot, reserved), used) in self.pots.iter().zip(reserved).zip(used) {
            pot.settle(*reserved, *used);
        }
    }
}

/// Returns the amount that this usage counts under each limit.
fn used(requests: u64, tokens: Tokens, cost: NanoDollars) -> Amounts {
    POTS.map(|limit| match limit {
        Limit::Requests => requests,
        Limit::InputTokens => tokens.input,
        Limit::OutputTokens => tokens.output,
        Limit::TotalTokens => tokens.input.saturating_add(tokens.output),
        Limit::CostNanodollars => cost.0,
        Limit::CallsInFlight | Limit::RequestsPerMinute => 0,
    })
}
