//! Defines months, for statements.

use std::{fmt, str::FromStr, time::SystemTime};

use serde::Serialize;

use super::UnixMillis;

/// Month in UTC: `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Month {
    year: u16,
    month: u8,
}

/// Error for a text that is not a month.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a month such as 2026-11")]
pub struct InvalidMonth {
    /// Text that was given.
    pub text: String,
}

impl FromStr for Month {
    type Err = InvalidMonth;

    fn from_str(text: &str) -> Result<Self, InvalidMonth> {
        let parse = || {
            let (year, month) =
                text.split_once('-').filter(|(year, month)| year.len() == 4 && month.len() == 2)?;
            let are_digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            let month = Self { year: year.parse().ok()?, month: month.parse().ok()? };
            (are_digits && (1..=12).contains(&month.month) && (1970..9999).contains(&month.year))
                .then_some(month)
        };
        parse().ok_or_else(|| InvalidMonth { text: text.to_owned() })
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl Serialize for Month {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Month {
    /// Returns the month of `time`.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let text = humantime::format_rfc3339_seconds(time).to_string();
        text.get(..7).and_then(|month| month.parse().ok()).unwrap_or(Self { year: 1970, month: 1 })
    }

    /// Returns the time at which the month begins.
    #[must_use]
    pub fn begin(self) -> UnixMillis {
        let begin = humantime::parse_rfc3339(&format!("{self}-01T00:00:00Z"));
        let since_epoch = begin.ok().and_then(|begin| begin.duration_since(std::time::UNIX_EPOCH).ok());
        UnixMillis(since_epoch.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default())
    }

    /// Returns the time at which the month has ended.
    #[must_use]
    pub fn end(self) -> UnixMillis {
        let next = match self.month {
            12 => Self { year: self.year + 1, month: 1 },
            month => Self { month: month + 1, ..self },
        };
        next.begin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_begins() {
        let month = |text: &str| text.parse::<Month>().unwrap();
        assert_eq!(month("1970-01").begin(), UnixMillis(0));
        assert_eq!(month("2026-11").end(), month("2026-12").begin());
        assert_eq!(month("2026-12").end(), month("2027-01").begin());
        let last_second = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_798_761_599);
        assert_eq!(Month::of(last_second), month("2026-12"));
        assert_eq!((month("2028-02").end().0 - month("2028-02").begin().0) / 86_400_000, 29);
        for text in ["2026", "2026-13", "2026-00", "26-01", "2026-1", "2026-11-01", "+026-01", "1969-12", ""]
        {
            assert!(text.parse::<Month>().is_err(), "{text}");
        }
    }
}
