//! Defines the prices of a model: the usual one, and dearer ones of some calls.

use crate::{budget::Price, money::NanoDollars, record::Tokens};

/// Prices of a model. If several hold for a call, the dearest counts, for each kind of token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tariff {
    /// Price of each call.
    pub usual: Price,
    /// Price of calls with a long prompt.
    pub long_prompt: Option<LongPromptPrice>,
    /// Price of calls that ask for a premium service.
    pub premium: Option<Price>,
}

/// Price of calls whose prompt is longer than a bound. It holds for all tokens of such a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongPromptPrice {
    /// Most tokens of a prompt that has the usual price.
    pub above: u64,
    /// Price of a million tokens.
    pub price: Price,
}

/// Service that a call asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Service {
    /// The usual service.
    #[default]
    Usual,
    /// Service that needs the capability `premium_service`: a tier, a speed or a region that costs more.
    Premium,
}

impl From<Price> for Tariff {
    fn from(usual: Price) -> Self {
        Self { usual, long_prompt: None, premium: None }
    }
}

impl Tariff {
    /// Returns whether no token costs anything.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        let long_prompt = self.long_prompt.map(|long| long.price);
        [Some(self.usual), long_prompt, self.premium].iter().flatten().all(Price::is_zero)
    }

    /// Returns the prices of calls that ask for `service`.
    #[must_use]
    pub fn of_service(self, service: Service) -> Self {
        match (service, self.premium) {
            (Service::Premium, Some(premium)) => Self { usual: self.usual.or_dearer(&premium), ..self },
            _ => self,
        }
    }

    /// Returns the price of a call with at most `input` tokens in its prompt.
    #[must_use]
    pub fn of_prompt(&self, input: u64) -> Price {
        let long_prompt = self.long_prompt.filter(|long| input > long.above);
        long_prompt.map_or(self.usual, |long| self.usual.or_dearer(&long.price))
    }

    /// Returns the cost of `tokens`.
    #[must_use]
    pub fn cost(&self, tokens: &Tokens) -> NanoDollars {
        self.of_prompt(tokens.input).of(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64, output: u64) -> Price {
        let [input, output] = [input, output].map(|dollars| NanoDollars(dollars * 1_000_000_000));
        Price { input, output, ..Price::default() }
    }

    #[test]
    fn the_dearest_price_that_holds_counts() {
        let long_prompt = LongPromptPrice { above: 200_000, price: price(6, 20) };
        let tariff =
            Tariff { usual: price(3, 15), long_prompt: Some(long_prompt), premium: Some(price(4, 30)) };
        let table = [
            (Service::Usual, 200_000, 200_000 * 3000 + 10 * 15_000),
            (Service::Usual, 200_001, 200_001 * 6000 + 10 * 20_000),
            (Service::Premium, 200_000, 200_000 * 4000 + 10 * 30_000),
            (Service::Premium, 200_001, 200_001 * 6000 + 10 * 30_000),
        ];
        for (service, input, cost) in table {
            let tokens = Tokens { input, output: 10, ..Tokens::default() };
            assert_eq!(tariff.of_service(service).cost(&tokens), NanoDollars(cost), "{service:?} {input}");
        }
        let control = Tariff::from(price(3, 15)).of_service(Service::Premium);
        let tokens = Tokens { input: 250_000, ..Tokens::default() };
        assert_eq!(control.cost(&tokens), NanoDollars(250_000 * 3000));
    }

    #[test]
    fn a_tariff_of_nothing_has_no_dearer_price() {
        let free = Tariff::default();
        let long_prompt = LongPromptPrice { above: 1, price: price(1, 0) };
        assert!(free.is_zero());
        assert!(!Tariff { long_prompt: Some(long_prompt), ..free }.is_zero());
        assert!(!Tariff { premium: Some(price(0, 1)), ..free }.is_zero());
    }
}
