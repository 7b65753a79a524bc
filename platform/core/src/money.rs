//! Defines money as integer billionths of a dollar. Never a float: sums must not depend on their order.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, Sub},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// Amount in 10⁻⁹ US dollars. Sums saturate: 18 billion dollars is more than any budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoDollars(pub u64);

/// Amount in 10⁻⁹ US dollars that may be negative: a receipt, or a sum of receipts. Sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignedNanoDollars(pub i64);

/// Error for a text that is not an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDollars {
    /// Not an amount, or more than can be counted.
    #[error("`{text}` is not an amount of dollars such as `2.50`")]
    Malformed {
        /// Text that was given.
        text: String,
    },
    /// An amount with more digits than are counted.
    #[error("`{text}` is finer than the smallest unit, a billionth of a dollar (0.000000001)")]
    TooFine {
        /// Text that was given.
        text: String,
    },
}

/// Decimal digits of a dollar that are counted.
const NANO: i32 = 9;

/// Amount that a text names.
enum ReadDollars {
    Exact(NanoDollars),
    /// The nearest billionth, halves up.
    Rounded(NanoDollars),
}

impl NanoDollars {
    /// Reads a JSON number of dollars as LiteLLM writes it (`0.000023`, `2.3e-05`), rounding to the nearest billionth,
    /// halves up. Returns `None` for anything that is not a finite amount of at least zero.
    #[must_use]
    pub fn parse_dollars(text: &str) -> Option<Self> {
        ReadDollars::of(text, NANO).map(ReadDollars::amount)
    }

    /// Reads a JSON number of dollars for one thing, and returns the price of a million, rounded likewise.
    #[must_use]
    pub fn parse_price_of_million(text: &str) -> Option<Self> {
        ReadDollars::of(text, NANO + 6).map(ReadDollars::amount)
    }
}

impl ReadDollars {
    const fn amount(self) -> NanoDollars {
        let (Self::Exact(amount) | Self::Rounded(amount)) = self;
        amount
    }

    /// Reads a number, and counts it in units of ten to the power of `-digits_kept`; `None` if it is not a finite amount of at
    /// least zero.
    fn of(text: &str, digits_kept: i32) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        let plain =
            !whole.is_empty() && digits.len() <= 38 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !plain {
            return None;
        }
        let value: u128 = digits.parse().ok()?;
        let shift = exponent.checked_add(digits_kept)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let power = 10u128.checked_pow(shift.unsigned_abs());
        let (nanos, rest) = match (shift >= 0, power) {
            _ if value == 0 => (0, 0),
            (true, Some(power)) => (value.checked_mul(power)?, 0),
            (true, None) => return None,
            (false, Some(power)) => {
                let rest = value % power;
                (value / power + u128::from(rest >= power.div_ceil(2)), rest)
            }
            (false, None) => (0, value),
        };
        let amount = u64::try_from(nanos).ok().map(NanoDollars)?;
        Some(if rest == 0 { Self::Exact(amount) } else { Self::Rounded(amount) })
    }
}

impl NanoDollars {
    /// Returns the amount as it is displayed, without the dollar sign.
    #[must_use]
    pub fn to_plain_text(self) -> String {
        self.to_string().split_off(1)
    }
}

impl FromStr for NanoDollars {
    type Err = InvalidDollars;

    /// Reads dollars as a person writes them: `2.50` or `$2.50`. Never rounds: a small price would be none. An
    /// exponent may only make it smaller, as in prices of tokens: `1e9` is rather a mistake than a limit of a billion.
    fn from_str(text: &str) -> Result<Self, InvalidDollars> {
        let exponent = text.split_once(['e', 'E']).map(|(_, exponent)| exponent);
        if exponent.is_some_and(|exponent| !exponent.starts_with('-')) {
            return Err(InvalidDollars::Malformed { text: text.to_owned() });
        }
        match ReadDollars::of(text.trim().trim_start_matches('$'), NANO) {
            Some(ReadDollars::Exact(amount)) => Ok(amount),
            Some(ReadDollars::Rounded(_)) => Err(InvalidDollars::TooFine { text: text.to_owned() }),
            None => Err(InvalidDollars::Malformed { text: text.to_owned() }),
        }
    }
}

impl Add for NanoDollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for NanoDollars {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for NanoDollars {
    /// Writes dollars with the nine digits that are exact, trailing zeros beyond cents cut: `$0.000023`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.0 % 1_000_000_000);
        let kept = fraction.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / 1_000_000_000, &fraction[..kept])
    }
}

impl From<NanoDollars> for SignedNanoDollars {
    fn from(amount: NanoDollars) -> Self {
        Self(i64::try_from(amount.0).unwrap_or(i64::MAX))
    }
}

impl SignedNanoDollars {
    /// Returns the amount as it is displayed, without the dollar sign.
    #[must_use]
    pub fn to_plain_text(self) -> String {
        self.to_string().replacen('$', "", 1)
    }
}

impl Add for SignedNanoDollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for SignedNanoDollars {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for SignedNanoDollars {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for SignedNanoDollars {
    /// Writes dollars like [`NanoDollars`], with a sign if they are negative: `-$0.000023`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", NanoDollars(self.0.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dollars_as_upstreams_write_them() {
        let cases = [
            ("0", 0),
            ("0.0", 0),
            ("1", 1_000_000_000),
            ("2.3e-05", 23_000),
            ("0.000023", 23_000),
            ("1E-9", 1),
            ("4e-10", 0),
            ("5e-10", 1),
            ("1.5e-9", 2),
            ("0.1234567894", 123_456_789),
            ("12.5", 12_500_000_000),
            ("1e2", 100_000_000_000),
            ("1e-999", 0),
            ("0e99", 0),
            ("2.2999999999999997e-05", 23_000),
        ];
        for (text, nanos) in cases {
            assert_eq!(NanoDollars::parse_dollars(text), Some(NanoDollars(nanos)), "{text}");
        }
    }

    #[test]
    fn reads_the_price_of_one_as_that_of_a_million() {
        let cases = [
            ("3e-06", 3_000_000_000),
            ("2.4999999999999998e-06", 2_500_000_000),
            ("0.0000000375", 37_500_000),
            ("5e-16", 1),
            ("4e-16", 0),
            ("0.0", 0),
            ("18000", 18_000_000_000_000_000_000),
        ];
        for (text, nanos) in cases {
            assert_eq!(NanoDollars::parse_price_of_million(text), Some(NanoDollars(nanos)), "{text}");
        }
        for text in ["18447", "-1e-06", "NaN", "null", ""] {
            assert_eq!(NanoDollars::parse_price_of_million(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_an_amount() {
        for text in [
            "",
            "-1",
            "+1",
            "NaN",
            "inf",
            "1e",
            "e5",
            ".5",
            "1.2.3",
            "0x10",
            "1e99",
            "1_000",
            " 1",
            "1e3000000000",
        ] {
            assert_eq!(NanoDollars::parse_dollars(text), None, "{text}");
        }
    }

    #[test]
    fn people_write_no_large_exponent() {
        for text in ["2.50", "$2.50", " 2.50 ", "250e-2"] {
            assert_eq!(text.parse(), Ok(NanoDollars(2_500_000_000)), "{text}");
        }
        for text in ["1e9", "$1E3", "1e+2", "1e0"] {
            let malformed = InvalidDollars::Malformed { text: text.to_owned() };
            assert_eq!(text.parse::<NanoDollars>(), Err(malformed), "{text}");
            let upstreams = NanoDollars::parse_dollars(text.trim_start_matches('$'));
            assert!(upstreams.is_some(), "control: upstreams write {text}");
        }
    }

    #[test]
    fn is_shown_in_dollars() {
        assert_eq!(NanoDollars(23_000).to_string(), "$0.000023");
        assert_eq!(NanoDollars(12_500_000_000).to_string(), "$12.50");
        assert_eq!(NanoDollars(0).to_string(), "$0.00");
        assert_eq!(NanoDollars(23_000).to_plain_text(), "0.000023");
        assert_eq!(SignedNanoDollars(-23_000).to_string(), "-$0.000023");
        assert_eq!(SignedNanoDollars(-23_000).to_plain_text(), "-0.000023");
        assert_eq!(SignedNanoDollars::from(NanoDollars(u64::MAX)), SignedNanoDollars(i64::MAX));
    }
}
