//! Reads the settings of receipts and accounts' balances.

use std::{collections::BTreeSet, num::NonZeroU32};

use platform_core::{
    credits::{CreditRate, Credits, Markup},
    id::{AccountId, ModelName},
};

use super::Settings;
use crate::config::Section;

/// `[billing]`
#[derive(Debug, Clone, Default)]
pub struct Billing {
    /// Models whose calls cost nothing, by the name in the request.
    pub free_models: BTreeSet<ModelName>,
    /// Rate by which costs become credits.
    pub rate: CreditRate,
    /// Balance below which an account's calls are refused; none if absent.
    pub floor: Option<Credits>,
}

impl Billing {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let free_models = section.field(
            "free_models",
            "Models whose calls cost nothing, by the name in the request. A call of any other model with a cost of 0 is unpriced.",
        );
        let markup = section.field(
            "markup",
            "Factor between the cost of a call and what its account pays: a decimal number with at most 6 decimals.",
        );
        let per_dollar = section.field("credits_per_dollar", "Credits that one dollar buys.");
        let floor = section.field(
            "floor",
            "Balance in credits below which the calls of an account are refused, those of free models excepted; may be negative. No balance is too low if absent.",
        );
        let rate = CreditRate {
            markup: markup.or(Markup::ONE),
            credits_per_dollar: NonZeroU32::new(per_dollar.or(CreditRate::CREDITS_PER_DOLLAR.get()))
                .unwrap_or(CreditRate::CREDITS_PER_DOLLAR),
        };
        Self {
            free_models: free_models.list_or(Vec::new()).into_iter().collect(),
            rate,
            floor: floor.optional(),
        }
    }
}

impl Settings {
    /// Returns the balance below which the calls of `account` are refused.
    #[must_use]
    pub fn floor_of(&self, account: &AccountId) -> Option<Credits> {
        self.accounts.of(account).floor.or(self.billing.floor)
    }

    /// Returns the greatest floor that any account has.
    #[must_use]
    pub fn greatest_floor(&self) -> Option<Credits> {
        let accounts = self.accounts.named.values().chain([&self.accounts.any]);
        accounts.filter_map(|account| account.floor).chain(self.billing.floor).max()
    }
}
