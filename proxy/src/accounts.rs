//! Keeps the spending and the limits of each account. All runs of an account share them.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    sync::Arc,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use platform_core::{
    budget::{Budget, Limit},
    control::{AccountView, Usage},
    id::AccountId,
};
use platform_runtime::{report, settings};

use crate::{
    account_limits::{AccountLimits, SetLimits},
    budget::Spending,
};

/// All known accounts: those with their own budget, and those that called.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Budgets of the configuration.
    budgets: ArcSwap<settings::Accounts>,
    /// Limits that replace those of the configuration.
    limits: AccountLimits,
    spending: DashMap<AccountId, Arc<Spending>>,
}

impl Accounts {
    /// Returns accounts under the configured budgets or the `limits` that replace them, with their earlier spending.
    pub(crate) fn new(
        budgets: settings::Accounts,
        limits: AccountLimits,
        mut spent: HashMap<AccountId, Usage>,
    ) -> Self {
        for account in budgets.named.keys().cloned().chain(limits.accounts()) {
            spent.entry(account).or_default();
        }
        let spending = spent.into_iter().map(|(account, usage)| {
            let configured = *budget_of(&budgets, &account);
            let budget = limits.of(&account, &configured).unwrap_or_else(|| {
                // The configuration was edited while no proxy ran. Should it return, the old limits must not.
                forget(&limits, &account);
                configured
            });
            (account, Arc::new(Spending::new(&budget, &usage)))
        });
        Self { spending: spending.collect(), limits, budgets: ArcSwap::from_pointee(budgets) }
    }

    /// Applies the configuration's budgets to the accounts for which they changed. The others keep their limits, which
    /// may come from [`Accounts::set_limits`].
    pub(crate) fn configure(&self, budgets: settings::Accounts) {
        let before = self.budgets.swap(Arc::new(budgets));
        let after = self.budgets.load();
        let known: BTreeSet<_> = self.spending.iter().map(|entry| entry.key().clone()).collect();
        for account in known.into_iter().chain(after.named.keys().cloned()) {
            let budget = budget_of(&after, &account);
            if budget != budget_of(&before, &account) {
                forget(&self.limits, &account);
                self.of(&account).set_limits(budget);
            }
        }
    }

    /// Returns the account's spending.
    pub(crate) fn of(&self, account: &AccountId) -> Arc<Spending> {
        let new = || Arc::new(Spending::new(budget_of(&self.budgets.load(), account), &Usage::default()));
        Arc::clone(&self.spending.entry(account.clone()).or_insert_with(new))
    }

    /// Returns whether `account` has its own budget, a run, or a call in the journal.
    pub(crate) fn contains(&self, account: &AccountId) -> bool {
        self.spending.contains_key(account)
    }

    /// Replaces the limits of an account, until the configuration changes them. They hold when this returns.
    ///
    /// # Errors
    /// If they are not stored: a restart would forget them.
    pub(crate) fn set_limits(&self, account: &AccountId, budget: Budget) -> io::Result<AccountView> {
        let spending = self.of(account);
        spending.set_limits(&budget);
        let configured = *budget_of(&self.budgets.load(), account);
        self.limits.set(account, SetLimits { budget, configured })?;
        Ok(view(account, &spending))
    }

    /// Returns the limits that replace those of the configuration.
    pub(crate) const fn limits(&self) -> &AccountLimits {
        &self.limits
    }

    /// Returns the amount that calls in flight have reserved under `limit`, over all accounts.
    pub(crate) fn reserved(&self, limit: Limit) -> u64 {
        self.spending.iter().fold(0, |sum, spending| sum.saturating_add(spending.reserved(limit)))
    }

    /// Returns all accounts, by name.
    pub(crate) fn views(&self) -> Vec<AccountView> {
        let mut views: Vec<_> = self.spending.iter().map(|entry| view(entry.key(), entry.value())).collect();
        views.sort_by(|one, other| one.account.cmp(&other.account));
        views
    }
}

/// Forgets what was set for `account`. If the disk rejects that, it is tried again with the other changes.
fn forget(limits: &AccountLimits, account: &AccountId) {
    if let Err(error) = limits.forget(account) {
        tracing::error!(%account, error = report::chain(&error), "the end of an account's set limits is not stored yet");
    }
}

fn view(account: &AccountId, spending: &Spending) -> AccountView {
    AccountView { account: account.clone(), limits: spending.view(), inexact: spending.inexact() }
}

fn budget_of<'b>(budgets: &'b settings::Accounts, account: &AccountId) -> &'b Budget {
    &budgets.of(account).budget
}
