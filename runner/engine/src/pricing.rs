//! Refuses runs if their first call could not pass: a limit of cost applies, and their model has no price.

use platform_core::id::AccountId;
use platform_runtime::settings::Settings;

use crate::run_request::RunRequest;

/// Refusal of a run because its model has no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpriced {
    /// The run has a limit of cost.
    #[error(
        "the run has a limit of cost, and model {model} has no price: add [prices.\"{model}\"], or run it without --cost and without `cost` in its agent's entry"
    )]
    UnderRunLimit {
        /// Model of the run.
        model: String,
    },
    /// The account of the run has a limit of cost.
    #[error(
        "account {account} has a limit of cost, and model {model} has no price: add [prices.\"{model}\"], or remove `cost` from the entry of the account in [accounts]"
    )]
    UnderAccountLimit {
        /// Model of the run.
        model: String,
        /// Account that pays.
        account: AccountId,
    },
}

/// Checks that calls of the run's model can pass its limits of cost under `settings`. A run without a model makes no
/// calls.
///
/// # Errors
/// [`Unpriced`], if none can.
pub(crate) fn check_price(settings: &Settings, request: &RunRequest) -> Result<(), Unpriced> {
    check_price_by(settings, request, |model| settings.may_have_price(model))
}

/// Checks the same with what `has_price` says of models: a caller may know the prices that the upstream shows.
///
/// # Errors
/// [`Unpriced`], if no call can pass.
pub fn check_price_by(
    settings: &Settings,
    request: &RunRequest,
    has_price: impl Fn(&str) -> bool,
) -> Result<(), Unpriced> {
    let model = &request.spec.model;
    if model.is_empty() || has_price(model) {
        return Ok(());
    }
    let model = model.clone();
    if request.spec.agent.budget.cost_nanodollars.is_some() {
        return Err(Unpriced::UnderRunLimit { model });
    }
    let account = &request.account;
    match settings.accounts.of(account).budget.cost_nanodollars {
        Some(_) => Err(Unpriced::UnderAccountLimit { model, account: account.clone() }),
        None => Ok(()),
    }
}
