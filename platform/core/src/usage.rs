//! Sums up the tokens and the cost of calls.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::{
    money::NanoDollars,
    record::{Outcome, Tokens},
};

/// Totals over the calls of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Calls that were not refused.
    pub calls: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Tokens of all these calls.
    pub tokens: Tokens,
    /// Cost of all these calls, as far as it is known.
    pub cost_nanodollars: NanoDollars,
}

impl Usage {
    /// Adds `calls` calls that ended in the same way, with their tokens and cost together.
    pub fn add(&mut self, outcome: Outcome, calls: u64, tokens: &Tokens, cost: NanoDollars) {
        let counted = if outcome == Outcome::Refused { &mut self.refused } else { &mut self.calls };
        *counted = counted.saturating_add(calls);
        self.tokens += *tokens;
        self.cost_nanodollars = self.cost_nanodollars + cost;
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let Self { calls, refused, tokens, cost_nanodollars } = other;
        self.calls = self.calls.saturating_add(calls);
        self.refused = self.refused.saturating_add(refused);
        self.tokens += tokens;
        self.cost_nanodollars = self.cost_nanodollars + cost_nanodollars;
    }
}
