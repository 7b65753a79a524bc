//! Reads the settings of receipts and accounts' balances.

use std::{collections::BTreeSet, num::NonZeroU32, path::PathBuf};

use platform_core::{
    credits::{CreditRate, Credits, Markup},
    id::{AccountId, ModelName},
    limit::Millis,
};

use super::Settings;
use crate::config::{About, Section, ValidationError};

/// Shortest interval between two reconciliations, and shortest delay of a row.
const MIN_INTERVAL: Millis = Millis::seconds(1);
/// Delay of a row in LiteLLM's ledger, several times the longest one seen.
const LEDGER_DELAY: Millis = Millis::seconds(60);

/// `[billing]`
#[derive(Debug, Clone)]
pub struct Billing {
    /// Models that may cost nothing to call, by the name in the request.
    pub free_models: BTreeSet<ModelName>,
    /// Rate by which costs become credits.
    pub rate: CreditRate,
    /// Balance below which an account's calls are refused; none if absent.
    pub floor: Option<Credits>,
    /// Interval at which receipts are compared with the upstream's ledger; never if absent.
    pub reconcile_every: Option<Millis>,
    /// Longest time from the end of a call until its row is in the upstream's ledger.
    pub ledger_delay: Millis,
    /// File of the token with which LiteLLM reports calls; without it the environment may have the token.
    pub ingest_token_file: Option<PathBuf>,
}

impl Default for Billing {
    fn default() -> Self {
        Self {
            free_models: BTreeSet::new(),
            rate: CreditRate::default(),
            floor: None,
            reconcile_every: None,
            ledger_delay: LEDGER_DELAY,
            ingest_token_file: None,
        }
    }
}

impl Billing {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let free_models = section.field(
            "free_models",
            "Models whose calls may cost nothing, by the name in the request. A cost that the upstream reports is charged all the same, and without one such a call costs 0; that of any other model without a price is unpriced. They have no price in `[prices]` but 0, and no floor refuses their calls.",
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
        let doc = "Interval at which `sluice up` compares receipts with LiteLLM's spend logs, and corrects them; never if absent. LiteLLM needs a database for that.";
        let reconcile_every = section.field("reconcile_every", doc).at_least(&MIN_INTERVAL).optional();
        let doc = "Longest time from the end of a call until it is in LiteLLM's spend logs. A call that is not there by then is missing.";
        let ledger_delay = section.field("ledger_delay", doc).at_least(&MIN_INTERVAL).or(LEDGER_DELAY);
        let doc = "File of the token with which LiteLLM's generic callback reports calls to the API, so that they are compared soon; closed to other users. Without it BILLING_INGEST_TOKEN is the token; without both the API takes no such reports.";
        let ingest_token_file = section.field("ingest_token_file", doc).optional();
        Self {
            reconcile_every,
            ledger_delay,
            ingest_token_file,
            free_models: free_models.list_or(Vec::new()).into_iter().collect(),
            rate,
            floor: floor.optional(),
        }
    }
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
