//! Reserves the amounts that one call may need, of its run's budget and of its account's. They are released when the
//! call ends, however it ends.

use std::{sync::Arc, time::Duration};

use platform_core::{budget::Limit, money::NanoDollars, record::Tokens};

use super::{
    Amounts, CAPPING_LIMITS, LimitOwner, QuotaError, QuotaShortfall, ReservationRequest, Spending,
    amounts_used,
};

/// A call's reservation under the budgets of its run and account.
#[derive(Debug)]
pub(crate) struct Reservation {
    run: Arc<Spending>,
    account: Arc<Spending>,
    amounts: Amounts,
}

/// Bounds of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Most tokens of each answer.
    pub(crate) output_each: u64,
    /// Most tokens of prompt and answers.
    pub(crate) tokens: Tokens,
}

/// Counts a call that comes at `now`, since an arbitrary fixed moment, against the rates of its run and account. A call
/// that is refused later for another reason counts as well: otherwise nothing would bound a flood of such calls.
pub(crate) fn pace(run: &Spending, account: &Spending, now: Duration) -> Result<(), QuotaError> {
    let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let taken = run.rate.take(now).map_err(|wait| QuotaError::RateLimited(LimitOwner::Run, wait))?;
    account.rate.take(now).map(drop).map_err(|wait| {
        run.rate.give_back(taken);
        QuotaError::RateLimited(LimitOwner::Account, wait)
    })
}

impl Reservation {
    /// Counts one more request, in flight from now on.
    pub(crate) fn enter(run: &Arc<Spending>, account: &Arc<Spending>) -> Result<Self, QuotaError> {
        let mut entered =
            Self { run: Arc::clone(run), account: Arc::clone(account), amounts: Amounts::default() };
        entered.add(&ENTRY)?;
        Ok(entered)
    }

    /// Reserves the amounts that the call may need. It grants less than the call asks for only if that much would not
    /// be left even after all others have ended.
    pub(crate) fn grow(&mut self, request: &ReservationRequest) -> Result<Granted, QuotaError> {
        // Other calls may have used up part of the rest since it was read; then it is read again.
        for _attempt in 0..MAX_ATTEMPTS {
            let output_each = self
                .run
                .output(LimitOwner::Run, request)?
                .min(self.account.output(LimitOwner::Account, request)?);
            let output = output_each.saturating_mul(request.answers);
            let tokens = Tokens { input: request.input, output, ..Tokens::default() };
            let cost = request.price.unwrap_or_default().most(request.input, output);
            match self.add(&amounts_used(0, tokens, cost)) {
                Ok(()) => return Ok(Granted { output_each, tokens }),
                Err(QuotaError::Exceeded(_, limit, QuotaShortfall::Exhausted { .. }))
                    if CAPPING_LIMITS.contains(&limit) => {}
                Err(error) => return Err(error),
            }
        }
        Err(QuotaError::Exceeded(LimitOwner::Account, Limit::TotalTokens, QuotaShortfall::Reserved))
    }

    /// Settles the reservation of a call that has ended, with its usage.
    pub(crate) fn settle(mut self, tokens: Tokens, cost: NanoDollars) {
        self.give_back(&amounts_used(1, tokens, cost));
    }

    fn add(&mut self, amounts: &Amounts) -> Result<(), QuotaError> {
        self.run.reserve(LimitOwner::Run, amounts)?;
        if let Err(error) = self.account.reserve(LimitOwner::Account, amounts) {
            self.run.settle(amounts, &Amounts::default());
            return Err(error);
        }
        self.amounts.iter_mut().zip(amounts).for_each(|(held, amount)| *held += amount);
        Ok(())
    }

    fn give_back(&mut self, used: &Amounts) {
        let reserved = std::mem::take(&mut self.amounts);
        self.run.settle(&reserved, used);
        self.account.settle(&reserved, used);
    }
}

/// Number of attempts to reserve the rest, while other calls use it up.
const MAX_ATTEMPTS: usize = 16;

/// Amounts of an entry: one call in flight, one request.
const ENTRY: Amounts = [1, 1, 0, 0, 0, 0];

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(&Amounts::default());
    }
}
