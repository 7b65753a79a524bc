//! Exposes budgets: calls of one fuzzer in any order, and calls of several threads at once.

use std::{sync::Arc, time::Duration};

use platform_core::{
    budget::{Budget, LimitView, Price},
    control::Usage,
    money::NanoDollars,
    record::Tokens,
};

use crate::budget::{Granted, Reservation, ReservationRequest, Spending, pace};

/// Size of a call that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct CallSize {
    /// Tokens of its input.
    pub input: u64,
    /// Tokens of output, of each of its answers.
    pub output: u64,
    /// Number of its answers.
    pub answers: u64,
}

/// Calls of several runs of one account, under limits.
#[derive(Debug)]
pub struct Limits {
    /// Spending of each run, then of the account.
    spending: Vec<Arc<Spending>>,
    calls: Vec<Reservation>,
}

impl Limits {
    /// Begins with the limits and the earlier usage of each run, and last of the account.
    #[must_use]
    pub fn new(budgets: &[(Budget, Usage)]) -> Self {
        let spending = budgets.iter().map(|(budget, usage)| Arc::new(Spending::new(budget, usage))).collect();
        Self { spending, calls: Vec::new() }
    }

    /// Begins a call of `run` of this size. Returns the most it may use, or `None` if it may not begin now.
    pub fn begin(&mut self, run: usize, size: CallSize, price: Price) -> Option<Tokens> {
        let limits = RunLimits {
            run: Arc::clone(self.spending.get(run)?),
            account: Arc::clone(self.spending.last()?),
        };
        let (call, granted) = limits.reserve(size, price)?;
        self.calls.push(call);
        Some(granted.tokens)
    }

    /// Ends a call with its usage; without usage, before anything was sent. The last call takes its index.
    pub fn end(&mut self, call: usize, used: Option<(Tokens, NanoDollars)>) {
        let call = self.calls.swap_remove(call);
        if let Some((tokens, cost)) = used {
            call.settle(tokens, cost);
        }
    }

    /// Returns usage and reservations under each limit of a run or, last, of the account.
    #[must_use]
    pub fn view(&self, whose: usize) -> Vec<LimitView> {
        self.spending[whose].view()
    }
}

/// Limits of one run and of its account.
#[derive(Debug)]
pub struct RunLimits {
    run: Arc<Spending>,
    account: Arc<Spending>,
}

impl RunLimits {
    /// Begins with `budget` for a run, and for an account that no other run has.
    #[must_use]
    pub fn new(budget: &Budget) -> Self {
        Self { run: spending(budget), account: spending(budget) }
    }

    /// Returns the limits of another run of the same account.
    #[must_use]
    pub fn another_run(&self, budget: &Budget) -> Self {
        Self { run: spending(budget), account: Arc::clone(&self.account) }
    }

    /// Makes a call that uses all it may, from the first check of its limits to its settlement. Returns the tokens it
    /// used, or `None` if it may not begin now.
    #[must_use]
    pub fn call(&self, size: CallSize, price: Price) -> Option<Tokens> {
        let (call, Granted { tokens, .. }) = self.reserve(size, price)?;
        call.settle(tokens, price.of(&tokens));
        Some(tokens)
    }

    fn reserve(&self, size: CallSize, price: Price) -> Option<(Reservation, Granted)> {
        let Self { run, account } = self;
        let CallSize { input, output, answers } = size;
        pace(run, account, Duration::ZERO).ok()?;
        let mut call = Reservation::enter(run, account).ok()?;
        let request = ReservationRequest { input, output, least_output: 1, answers, price: Some(price) };
        let granted = call.grow(&request).ok()?;
        Some((call, granted))
    }
}

fn spending(budget: &Budget) -> Arc<Spending> {
    Arc::new(Spending::new(budget, &Usage::default()))
}
