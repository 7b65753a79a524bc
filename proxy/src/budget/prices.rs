//! What models cost, as the configuration says.

use std::collections::BTreeMap;

use platform_core::budget::Price;

/// The model whose price holds for all that have none of their own.
const ANY: &str = "*";

/// Prices by the name a model is asked for by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prices(BTreeMap<String, Price>);

impl Prices {
    pub(crate) const fn new(by_name: BTreeMap<String, Price>) -> Self {
        Self(by_name)
    }

    /// The models that have a price of their own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| *name != ANY)
    }

    /// The price of `model`.
    pub(crate) fn of(&self, model: &str) -> Option<Price> {
        self.0.get(model).or_else(|| self.0.get(ANY)).copied()
    }
}
