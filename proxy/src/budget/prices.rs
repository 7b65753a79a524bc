//! Prices of models: those of the configuration, and those that the upstream shows for models without one there.

use std::{collections::BTreeMap, sync::Arc};

use platform_core::{
    control::{ModelPrice, PriceSource},
    tariff::{ANY_MODEL, Service, Tariff, find_price},
};

/// Prices, by the model name that a call asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prices {
    table: BTreeMap<String, Tariff>,
    /// `None` as long as the upstream has not said what it shows.
    shown: Option<Arc<BTreeMap<String, Tariff>>>,
}

/// Prices of a model, by their source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownPrice {
    /// Those of the configuration.
    Table(Tariff),
    /// Those that the upstream shows.
    Shown(Tariff),
}

impl KnownPrice {
    pub(crate) const fn tariff(self) -> Tariff {
        let (Self::Table(tariff) | Self::Shown(tariff)) = self;
        tariff
    }

    /// Returns the prices of calls that ask for `service`.
    pub(crate) fn of_service(self, service: Service) -> Self {
        match self {
            Self::Table(tariff) => Self::Table(tariff.of_service(service)),
            Self::Shown(tariff) => Self::Shown(tariff.of_service(service)),
        }
    }
}

impl Prices {
    pub(crate) fn new(table: BTreeMap<String, Tariff>) -> Self {
        Self { table, shown: None }
    }

    /// Replaces the prices that the upstream shows.
    pub(crate) fn showing(self, shown: Option<Arc<BTreeMap<String, Tariff>>>) -> Self {
        Self { shown, ..self }
    }

    /// Returns the prices that the upstream shows, once it has said.
    pub(crate) const fn shown(&self) -> Option<&Arc<BTreeMap<String, Tariff>>> {
        self.shown.as_ref()
    }

    /// Returns all prices that calls can have, those of the configuration first. A price of the configuration for all
    /// models leaves none to the upstream.
    pub(crate) fn list(&self) -> Vec<ModelPrice> {
        let price = |source| {
            move |(model, tariff): (&String, &Tariff)| ModelPrice {
                model: model.clone(),
                source,
                input: tariff.usual.input,
                output: tariff.usual.output,
            }
        };
        let shown =
            self.shown.iter().filter(|_| !self.table.contains_key(ANY_MODEL)).flat_map(|shown| shown.iter());
        let shown = shown.filter(|(model, _)| !self.table.contains_key(*model));
        self.table
            .iter()
            .map(price(PriceSource::Table))
            .chain(shown.map(price(PriceSource::Upstream)))
            .collect()
    }

    /// Returns the models that have their own price in the configuration.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(String::as_str).filter(|name| *name != ANY_MODEL)
    }

    /// Returns the price of `model`. That of the configuration overrides that of the upstream, which has no name for all
    /// models.
    pub(crate) fn of(&self, model: &str) -> Option<KnownPrice> {
        let table = find_price(model, |name| self.table.get(name)).copied();
        let shown = || self.shown.as_ref()?.get(model).copied().map(KnownPrice::Shown);
        table.map(KnownPrice::Table).or_else(shown)
    }
}
