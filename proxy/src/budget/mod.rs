//! Enforces limits: a call's greatest need is set aside before its first byte goes out, and settled when it has
//! ended.
//!
//! Each run and each account has a [`Spending`]; a call draws on both, always in this order, and returns what it does
//! not need. Other modules know what a call asks for, and how a refusal looks.

mod prices;
mod quota;
mod rate;
mod reservation;
#[cfg(test)]
mod tests;
mod tools;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use platform_core::{
    budget::{Budget, Limit, LimitView, Price},
    control::{InexactCalls, Usage},
    money::NanoDollars,
    record::{Correction, Figures, Tokens},
};

pub(crate) use self::{
    prices::{KnownPrice, Prices},
    quota::QuotaShortfall,
    reservation::{Granted, Reservation, pace},
    tools::{ToolQuotaError, ToolReservation, ToolSpending},
};
use self::{
    quota::{Quota, UNLIMITED},
    rate::Rate,
};
use crate::sum;

/// Usage and reservations under one budget.
#[derive(Debug)]
pub(crate) struct Spending {
    rate: Rate,
    quotas: [Quota; QUOTAS.len()],
    unpriced: AtomicU64,
    estimated: AtomicU64,
}

/// Limits that are amounts, in the order in which they are drawn on.
const QUOTAS: [Limit; 6] = [
    Limit::CallsInFlight,
    Limit::Requests,
    Limit::InputTokens,
    Limit::OutputTokens,
    Limit::TotalTokens,
    Limit::CostNanodollars,
];

/// Limits to which an answer is cut down.
const CAPPING_LIMITS: [Limit; 3] = [Limit::OutputTokens, Limit::TotalTokens, Limit::CostNanodollars];

/// Amounts for the limits of [`QUOTAS`].
type Amounts = [u64; QUOTAS.len()];

/// Owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitOwner {
    Run,
    Account,
}

/// Reason that a call may not be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaError {
    /// The limit has not enough left.
    Exceeded(LimitOwner, Limit, QuotaShortfall),
    /// The call comes too early, by this duration.
    RateLimited(LimitOwner, Duration),
    /// The budget limits money, and the model has no price.
    Unpriced(LimitOwner),
}

/// Greatest need of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservationRequest {
    /// Most tokens its prompt can have.
    pub(crate) input: u64,
    /// Most tokens that each answer may have, by the agent and the grant.
    pub(crate) output: u64,
    /// Fewest tokens to which each answer can be cut down.
    pub(crate) least_output: u64,
    /// Number of answers.
    pub(crate) answers: u64,
    /// Price of its tokens, if that is known.
    pub(crate) price: Option<Price>,
}

impl Spending {
    /// Returns the spending under `budget` of a run or account that has used `usage` so far.
    pub(crate) fn new(budget: &Budget, usage: &Usage) -> Self {
        let used = amounts_used(usage.calls, usage.tokens, usage.cost_nanodollars);
        Self {
            rate: Rate::new(budget.requests_per_minute),
            quotas: std::array::from_fn(|at| {
                Quota::new(budget.allows(QUOTAS[at]).unwrap_or(UNLIMITED), used[at])
            }),
            unpriced: usage.inexact.unpriced.into(),
            estimated: usage.inexact.estimated.into(),
        }
    }

    /// Adds calls with inexact figures. They bound nothing: a reader of the usage has to know of them.
    pub(crate) fn add_inexact(&self, InexactCalls { unpriced, estimated }: InexactCalls) {
        sum::add(&self.unpriced, unpriced, Ordering::Relaxed);
        sum::add(&self.estimated, estimated, Ordering::Relaxed);
    }

    /// Returns the calls with inexact figures.
    pub(crate) fn inexact(&self) -> InexactCalls {
        InexactCalls {
            unpriced: self.unpriced.load(Ordering::Relaxed),
            estimated: self.estimated.load(Ordering::Relaxed),
        }
    }

    /// Corrects the figures of a call that has ended.
    pub(crate) fn correct(&self, correction: &Correction) {
        let amounts = |figures: Figures| amounts_used(0, figures.tokens(), figures.cost_nanodollars);
        let moved = amounts(correction.before).into_iter().zip(amounts(correction.after));
        for (quota, (before, after)) in self.quotas.iter().zip(moved) {
            quota.correct(before, after);
        }
    }

    /// Replaces the limits. Usage and reservations stay.
    pub(crate) fn set_limits(&self, budget: &Budget) {
        self.rate.set_limit(budget.requests_per_minute);
        for (quota, limit) in self.quotas.iter().zip(QUOTAS) {
            quota.set_limit(budget.allows(limit).unwrap_or(UNLIMITED));
        }
    }

    /// Returns usage and reservations under each limit.
    pub(crate) fn view(&self) -> Vec<LimitView> {
        let of = |limit| match self.quota(limit) {
            Some(quota) => {
                LimitView { limit, allowed: quota.allowed(), used: quota.used(), reserved: quota.reserved() }
            }
            None => LimitView { limit, allowed: self.rate.allowed(), used: 0, reserved: 0 },
        };
        Limit::ALL.map(of).into()
    }

    /// Returns the amount that calls in flight have reserved under `limit`.
    pub(crate) fn reserved(&self, limit: Limit) -> u64 {
        self.quota(limit).map_or(0, Quota::reserved)
    }

    /// Returns the counters of `limit`, if it is an amount.
    fn quota(&self, limit: Limit) -> Option<&Quota> {
        QUOTAS.iter().zip(&self.quotas).find_map(|(other, quota)| (*other == limit).then_some(quota))
    }

    /// Returns the most tokens each answer to `request` can have within the unused rest of all limits, including what
    /// other calls have reserved.
    fn output(&self, owner: LimitOwner, request: &ReservationRequest) -> Result<u64, QuotaError> {
        let is_paid = self.quota(Limit::CostNanodollars).and_then(Quota::allowed).is_some();
        let price = match request.price {
            None if is_paid => return Err(QuotaError::Unpriced(owner)),
            price => price.unwrap_or_default(),
        };
        let mut most = request.output;
        for limit in CAPPING_LIMITS {
            let prompt = match limit {
                Limit::TotalTokens => request.input,
                Limit::CostNanodollars => price.most(request.input, 0).0,
                _ => 0,
            };
            let unused = self.quota(limit).map_or(UNLIMITED, Quota::unused);
            let shortest = request.least_output.saturating_mul(request.answers);
            let needed = match limit {
                Limit::CostNanodollars => price.most(request.input, shortest).0,
                _ => prompt.saturating_add(shortest),
            };
            let exhausted =
                QuotaError::Exceeded(owner, limit, QuotaShortfall::Exhausted { needed, left: unused });
            let left = unused.checked_sub(prompt).ok_or(exhausted)?;
            let tokens = match limit {
                Limit::CostNanodollars => price.output_for(NanoDollars(left)).unwrap_or(u64::MAX),
                _ => left,
            };
            most = tokens.checked_div(request.answers).unwrap_or(most).min(most);
            if most < request.least_output.max(1) {
                return Err(exhausted);
            }
        }
        Ok(most)
    }

    fn reserve(&self, owner: LimitOwner, amounts: &Amounts) -> Result<(), QuotaError> {
        for (at, (quota, amount)) in self.quotas.iter().zip(amounts).enumerate() {
            if let Err(shortfall) = quota.reserve(*amount) {
                self.quotas.iter().zip(amounts).take(at).for_each(|(quota, amount)| quota.settle(*amount, 0));
                return Err(QuotaError::Exceeded(owner, QUOTAS[at], shortfall));
            }
        }
        Ok(())
    }

    fn settle(&self, reserved: &Amounts, used: &Amounts) {
        for ((quota, reserved), used) in self.quotas.iter().zip(reserved).zip(used) {
            quota.settle(*reserved, *used);
        }
    }
}

/// Returns the amounts that this usage counts under each limit.
fn amounts_used(requests: u64, tokens: Tokens, cost: NanoDollars) -> Amounts {
    QUOTAS.map(|limit| match limit {
        Limit::Requests => requests,
        Limit::InputTokens => tokens.input,
        Limit::OutputTokens => tokens.output,
        Limit::TotalTokens => tokens.input.saturating_add(tokens.output),
        Limit::CostNanodollars => cost.0,
        Limit::CallsInFlight | Limit::RequestsPerMinute => 0,
    })
}
