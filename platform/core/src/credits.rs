//! Defines credits, the unit in which accounts pay, and converts costs into them. The only place that does.

use std::{
    fmt,
    iter::Sum,
    num::NonZeroU32,
    ops::{Add, Neg, Sub},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::money::NanoDollars;

/// Number of credits; negative for what is taken back or owed. Sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Credits(pub i64);

/// Factor between the cost of a call and what its account pays: millionths, so that each one is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Markup {
    millionths: u32,
}

/// Error for a text that is not a markup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a markup: write a decimal number from 0 to {} with at most {} decimals, such as 1.25",
    Markup::GREATEST,
    Markup::DECIMALS
)]
pub struct InvalidMarkup {
    /// Text that was given.
    pub text: String,
}

/// Rate by which costs become credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditRate {
    /// Factor on the cost.
    pub markup: Markup,
    /// Number of credits that one dollar buys.
    pub credits_per_dollar: NonZeroU32,
}

impl Credits {
    /// Greatest number that one receipt or top-up has: every JSON reader keeps it exactly, and sums stay far from an
    /// overflow.
    pub const GREATEST: Self = Self(1 << 53);

    /// Returns whether one receipt or top-up can have this number.
    #[must_use]
    pub fn is_representable(&self) -> bool {
        (-Self::GREATEST..=Self::GREATEST).contains(self)
    }
}

impl Add for Credits {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Credits {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Credits {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Credits {
    fn sum<I: Iterator<Item = Self>>(credits: I) -> Self {
        credits.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Markup {
    /// Markup under which accounts pay the cost itself.
    pub const ONE: Self = Self { millionths: Self::UNIT };
    const UNIT: u32 = 1_000_000;
    const DECIMALS: usize = 6;
    /// Greatest markup.
    pub const GREATEST: u32 = 1000;
}

impl FromStr for Markup {
    type Err = InvalidMarkup;

    /// Reads a decimal number: `1.25`. Nothing is rounded.
    fn from_str(text: &str) -> Result<Self, InvalidMarkup> {
        let parse = || {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let exact = fraction.trim_end_matches('0');
            if !are_digits(whole) || !are_digits(fraction) || exact.len() > Self::DECIMALS {
                return None;
            }
            let millionths: u32 = format!("{exact:0<width$}", width = Self::DECIMALS).parse().ok()?;
            let millionths = whole.parse::<u32>().ok()?.checked_mul(Self::UNIT)?.checked_add(millionths)?;
            (millionths <= Self::GREATEST * Self::UNIT).then_some(Self { millionths })
        };
        parse().ok_or_else(|| InvalidMarkup { text: text.to_owned() })
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.millionths / Self::UNIT;
        let fraction = format!("{:0width$}", self.millionths % Self::UNIT, width = Self::DECIMALS);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            fraction => write!(f, "{whole}.{fraction}"),
        }
    }
}

impl CreditRate {
    /// Number of credits that one dollar buys, unless the configuration says another.
    pub const CREDITS_PER_DOLLAR: NonZeroU32 = NonZeroU32::new(10_000_000).unwrap();

    /// Returns the credits that a call pays that costs `cost`: rounded up once, at the end. Parts therefore cost at least
    /// the whole, and at most one credit more for each part.
    #[must_use]
    pub fn credits(&self, cost: NanoDollars) -> Credits {
        const NANOS: u128 = 1_000_000_000;
        // Below 2^64 × 2^30 × 2^32: no overflow.
        let product = u128::from(cost.0)
            * u128::from(self.markup.millionths)
            * u128::from(self.credits_per_dollar.get());
        let credits = product.div_ceil(NANOS * u128::from(Markup::UNIT));
        i64::try_from(credits).map_or(Credits::GREATEST, |credits| Credits(credits).min(Credits::GREATEST))
    }
}

impl Default for CreditRate {
    fn default() -> Self {
        Self { markup: Markup::ONE, credits_per_dollar: Self::CREDITS_PER_DOLLAR }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn rate(markup: &str, credits_per_dollar: u32) -> CreditRate {
        CreditRate {
            markup: markup.parse().unwrap(),
            credits_per_dollar: NonZeroU32::new(credits_per_dollar).unwrap(),
        }
    }

    #[test]
    fn markups_are_exact() {
        for (text, shown) in [
            ("1", "1"),
            ("1.25", "1.25"),
            ("0", "0"),
            ("0.000001", "0.000001"),
            ("1000", "1000"),
            ("1.50", "1.5"),
        ] {
            assert_eq!(text.parse::<Markup>().unwrap().to_string(), shown);
        }
        assert_eq!("1.00".parse(), Ok(Markup::ONE));
        assert_eq!("1.10000000000000000000".parse::<Markup>(), "1.1".parse());
        for text in [
            "",
            "-1",
            "+1",
            "1.",
            ".5",
            "1e1",
            "1,5",
            "nan",
            "1000.000001",
            "1001",
            "1.0000001",
            "4294967296",
            "1.2.3",
        ] {
            let error = text.parse::<Markup>().unwrap_err();
            assert!(error.to_string().contains("from 0 to 1000 with at most 6 decimals"), "{error}");
        }
    }

    #[test]
    fn credits_are_rounded_up() {
        for (rate, cost, credits) in [
            (CreditRate::default(), 0, 0),
            (CreditRate::default(), 100, 1),
            (CreditRate::default(), 101, 2),
            (CreditRate::default(), 1_000_000_000, 10_000_000),
            (rate("1.25", 10_000_000), 23_000, 288),
            (rate("0", 10_000_000), 23_000, 0),
            (rate("0.000001", 1), 1, 1),
            (rate("1000", u32::MAX), u64::MAX, Credits::GREATEST.0),
        ] {
            assert_eq!(rate.credits(NanoDollars(cost)), Credits(credits), "{rate:?} {cost}");
        }
    }

    fn any_rate() -> impl Strategy<Value = CreditRate> {
        let bounds = (0..=Markup::GREATEST * Markup::UNIT, 1..=u32::MAX);
        bounds.prop_map(|(millionths, credits_per_dollar)| CreditRate {
            markup: Markup { millionths },
            credits_per_dollar: NonZeroU32::new(credits_per_dollar).unwrap(),
        })
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(rate in any_rate(), parts in vec(0_u64..1_000_000, 0..20)) {
            let whole = rate.credits(NanoDollars(parts.iter().sum()));
            let sum: Credits = parts.iter().map(|part| rate.credits(NanoDollars(*part))).sum();
            prop_assert!(whole <= sum && sum <= whole + Credits(i64::try_from(parts.len()).unwrap()));
            prop_assert!(whole >= Credits(0));
        }

        #[test]
        fn rounding_favours_the_house_by_less_than_one(rate in any_rate(), cost in 0_u64..1 << 40) {
            let credits = u128::try_from(rate.credits(NanoDollars(cost)).0).unwrap();
            prop_assume!(credits < u128::try_from(Credits::GREATEST.0).unwrap());
            let unit = 1_000_000_000 * u128::from(Markup::UNIT);
            let exact = u128::from(cost) * u128::from(rate.markup.millionths) * u128::from(rate.credits_per_dollar.get());
            prop_assert!(exact <= credits * unit && credits * unit < exact + unit);
        }

        #[test]
        fn a_markup_is_read_as_it_is_written(millionths in 0..=Markup::GREATEST * Markup::UNIT) {
            let markup = Markup { millionths };
            prop_assert_eq!(markup.to_string().parse(), Ok(markup));
        }
    }
}
