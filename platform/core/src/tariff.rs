//! Defines the prices of a model: the usual one, and dearer ones of some calls.

use crate::{budget::Price, money::NanoDollars, record::Tokens};

/// Name of the price of all models without one of their own.
pub const ANY_MODEL: &str = "*";

/// Looks up the price of `model`: its own, else that of all models.
pub fn find_price<P>(model: &str, price_of: impl Fn(&str) -> Option<P>) -> Option<P> {
    price_of(model).or_else(|| price_of(ANY_MODEL))
}

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

/// Price of calls with a prompt longer than a bound. It holds for all tokens of such a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongPromptPrice {
    /// Most tokens of a prompt that has the usual price.
    pub above: u64,
    /// Price of a million tokens.
    pub price: Price,
}

/// Prices of a million tokens, as far as a source has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartialPrice {
    /// [`Price::input`]
    pub input: Option<NanoDollars>,
    /// [`Price::output`]
    pub output: Option<NanoDollars>,
    /// [`Price::cached`]
    pub cached: Option<NanoDollars>,
    /// [`Price::cache_written`]
    pub cache_written: Option<NanoDollars>,
    /// [`Price::cache_written_1h`]
    pub cache_written_1h: Option<NanoDollars>,
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

impl PartialPrice {
    /// Returns whether it has no price at all.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the price, if it has what each needs: `input` and `output`. The others follow from `input`.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        let (input, output) = self.input.zip(self.output)?;
        Some(Price {
            input,
            output,
            cached: self.cached.unwrap_or(input),
            // The default is Anthropic's price. Other providers charge nothing for cache writes and count none.
            cache_written: self.cache_written.unwrap_or(NanoDollars(input.0.saturating_add(input.0 / 4))),
            cache_written_1h: self.cache_written_1h.unwrap_or(NanoDollars(input.0.saturating_mul(2))),
        })
    }

    /// Returns the price, with those of `usual` in place of absent ones; `None` if all are absent.
    #[must_use]
    pub fn or(&self, usual: &Price) -> Option<Price> {
        (!self.is_absent()).then(|| Price {
            input: self.input.unwrap_or(usual.input),
            output: self.output.unwrap_or(usual.output),
            cached: self.cached.unwrap_or(usual.cached),
            cache_written: self.cache_written.unwrap_or(usual.cache_written),
            cache_written_1h: self.cache_written_1h.unwrap_or(usual.cache_written_1h),
        })
    }
}

impl Tariff {
    /// Returns the dearer of two tariffs, for each kind of token. Prompts are long from the lower bound on.
    #[must_use]
    pub fn or_dearer(&self, other: &Self) -> Self {
        let dearer = |one: Option<Price>, other: Option<Price>| match (one, other) {
            (Some(one), Some(other)) => Some(one.or_dearer(&other)),
            (one, other) => one.or(other),
        };
        let above = self.long_prompt.iter().chain(&other.long_prompt).map(|long| long.above).min();
        let price = |tariff: &Self| tariff.long_prompt.map(|long| long.price);
        let long_prompt = above.zip(dearer(price(self), price(other)));
        Self {
            usual: self.usual.or_dearer(&other.usual),
            long_prompt: long_prompt.map(|(above, price)| LongPromptPrice { above, price }),
            premium: dearer(self.premium, other.premium),
        }
    }

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
    fn the_dearer_of_two_tariffs_has_no_cheap_part() {
        let long = |above, dollars| Some(LongPromptPrice { above, price: price(dollars, 20) });
        let one = Tariff { usual: price(3, 15), long_prompt: long(200_000, 6), premium: None };
        let other =
            Tariff { usual: price(2, 16), long_prompt: long(128_000, 5), premium: Some(price(4, 30)) };
        let expected =
            Tariff { usual: price(3, 16), long_prompt: long(128_000, 6), premium: Some(price(4, 30)) };
        assert_eq!((one.or_dearer(&other), other.or_dearer(&one)), (expected, expected));
        let plain = Tariff::from(price(1, 1));
        assert_eq!(plain.or_dearer(&one), one, "a part that one of them has");
    }

    #[test]
    fn an_absent_price_follows_from_others() {
        let [one, two] = [1_000_000_000, 2_000_000_000].map(NanoDollars);
        let partial = PartialPrice { input: Some(one), output: Some(two), ..PartialPrice::default() };
        let complete = partial.price().unwrap();
        assert_eq!((complete.cached, complete.cache_written_1h), (one, two));
        let tier = PartialPrice { input: Some(two), ..PartialPrice::default() };
        assert_eq!(tier.price(), None);
        assert_eq!(tier.or(&complete), Some(Price { input: two, ..complete }));
        assert_eq!(PartialPrice::default().or(&complete), None, "none at all is not a price");
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
