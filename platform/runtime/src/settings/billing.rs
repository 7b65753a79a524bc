//! Reads the settings of receipts and accounts' balances.

use std::{collections::BTreeSet, num::NonZeroU32, path::PathBuf};

use platform_core::{
    credits::{CreditRate, Credits, Markup},
    id::{AccountId, ModelName},
    limit::Millis,
};

use super::Settings;
use crate::config::{self, About, Section, ValidationError, settings};

/// Shortest interval between two reconciliations, and shortest delay of a row.
const MIN_INTERVAL: Millis = Millis::seconds(1);
/// Delay of a row in LiteLLM's ledger, several times the longest one seen.
const LEDGER_DELAY: Millis = Millis::seconds(60);

settings! {
    /// `[billing]`
    #[derive(Debug, Clone)]
    pub struct Billing read from section {
        /// Models that may cost nothing to call, by the name in the request.
        pub free_models: BTreeSet<ModelName> = read_free_models(section),
        /// Rate by which costs become credits.
        pub rate: CreditRate = read_rate(section),
        /// Balance in credits below which the calls of an account are refused, those of free models excepted; may be
        /// negative. No balance is too low if absent.
        pub floor: Option<Credits> => optional(),
        /// Interval at which `sluice up` compares receipts with LiteLLM's spend logs, and corrects them; never if
        /// absent. LiteLLM needs a database for that.
        pub reconcile_every: Option<Millis> => at_least(&MIN_INTERVAL).optional(),
        /// Longest time from the end of a call until it is in LiteLLM's spend logs. A call that is not there by then is
        /// missing.
        pub ledger_delay: Millis => at_least(&MIN_INTERVAL).or(LEDGER_DELAY),
        /// File of the token with which LiteLLM's generic callback reports calls to the API, so that they are compared
        /// soon; closed to other users. Without it BILLING_INGEST_TOKEN is the token; without both the API takes no
        /// such reports.
        pub ingest_token_file: Option<PathBuf> => optional(),
    }
}

impl Default for Billing {
    fn default() -> Self {
        config::defaults(Self::read)
    }
}

fn read_free_models(section: &Section<'_>) -> BTreeSet<ModelName> {
    let doc = "Models whose calls may cost nothing, by the name in the request. A cost that the upstream reports is charged all the same, and without one such a call costs 0; that of any other model without a price is unpriced. They have no price in `[prices]` but 0, and no floor refuses their calls.";
    section.field("free_models", doc).list_or(Vec::new()).into_iter().collect()
}

fn read_rate(section: &Section<'_>) -> CreditRate {
    let doc = "Factor between the cost of a call and what its account pays: a decimal number with at most 6 decimals.";
    let markup = section.field("markup", doc).or(Markup::ONE);
    let per_dollar = section.field("credits_per_dollar", "Credits that one dollar buys.");
    let per_dollar = NonZeroU32::new(per_dollar.or(CreditRate::CREDITS_PER_DOLLAR.get()));
    CreditRate { markup, credits_per_dollar: per_dollar.unwrap_or(CreditRate::CREDITS_PER_DOLLAR) }
}

/// Returns the conflicts between free models and prices: a price is charged, and no floor would refuse the call.
pub(super) fn errors(settings: &Settings) -> Vec<ValidationError> {
    let priced = settings.billing.free_models.iter().filter_map(|model| {
        let (name, price) = settings.price_of(model.as_str())?;
        let problem = format!(
            "`{model}` is listed as free, and [prices.\"{name}\"] has a price for it: take it off the list, or give it `input = \"0\"` and `output = \"0\"` in [prices.\"{model}\"]"
        );
        let about = || About::Setting("billing.free_models".to_owned());
        (!price.is_zero()).then(|| ValidationError { about: about(), problem })
    });
    priced.collect()
}

impl Settings {
    /// Returns the balance below which the calls of `account` are refused.
    #[must_use]
    pub fn floor_of(&self, account: &AccountId) -> Option<Credits> {
        self.accounts.of(account).floor.or(self.billing.floor)
    }

    /// Returns the floor of `account`, if a balance of `credits` is below it.
    #[must_use]
    pub fn floor_above(&self, account: &AccountId, credits: Credits) -> Option<Credits> {
        self.floor_of(account).filter(|floor| credits < *floor)
    }

    /// Returns the greatest floor that any account has.
    #[must_use]
    pub fn greatest_floor(&self) -> Option<Credits> {
        let accounts = self.accounts.named.values().chain([&self.accounts.any]);
        accounts.filter_map(|account| account.floor).chain(self.billing.floor).max()
    }
}
