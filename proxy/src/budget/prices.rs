//! Prices of models, from the configuration.

use std::collections::BTreeMap;

use platform_core::tariff::Tariff;

/// Model whose price holds for all models without one of their own.
const ANY: &str = "*";

/// Prices, by the model name that a call asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prices(BTreeMap<String, Tariff>);

impl Prices {
    pub(crate) const fn new(by_name: BTreeMap<String, Tariff>) -> Self {
        Self(by_name)
    }

    /// Returns the models that have a price of their own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| *name != ANY)
    }

    /// Returns the price of `model`.
    pub(crate) fn of(&self, model: &str) -> Option<Tariff> {
        self.0.get(model).or_else(|| self.0.get(ANY)).copied()
    }
}
