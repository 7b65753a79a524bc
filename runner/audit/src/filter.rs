//! Selects records by run, account, outcome, refusal, tokens, kind and time.

use std::{
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    id::{AccountId, RunId},
    invalid::InvalidValue,
    record::{Kind, Outcome, TokensSource},
    refusal::Refusal,
};

use super::Entry;

/// Conditions on a record. An absent condition matches every record.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Run that made the call.
    pub run: Option<RunId>,
    /// Account that pays for the call.
    pub account: Option<AccountId>,
    /// Outcome of the call.
    pub outcome: Option<Outcome>,
    /// Refusal of the call. Calls that were not refused do not match.
    pub refusal: Option<Refusal>,
    /// Source of the record's token counts.
    pub tokens: Option<TokensSource>,
    /// Kind of the call: a call of the model API, or of a tool.
    pub kind: Option<Kind>,
    /// Earliest time at which the call began.
    pub from: Option<When>,
    /// Time before which the call began.
    pub to: Option<When>,
}

impl Filter {
    /// Returns whether `entry` meets all conditions.
    pub fn takes(&self, entry: &Entry<'_>) -> bool {
        let Self { run, account, outcome, refusal, tokens, kind, from, to } = self;
        run.as_ref().is_none_or(|run| run.as_str() == entry.run_id())
            && account.as_ref().is_none_or(|account| account.as_str() == entry.account())
            && outcome.is_none_or(|outcome| outcome == entry.outcome)
            && refusal.is_none_or(|refusal| Some(refusal) == entry.refusal)
            && tokens.is_none_or(|source| source == entry.tokens_source)
            && kind.is_none_or(|kind| kind == entry.kind)
            && from.as_ref().is_none_or(|from| from.0.as_str() <= entry.ts())
            && to.as_ref().is_none_or(|to| entry.ts() < to.0.as_str())
    }
}

/// Time, written as the journal writes it. Texts of this form sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(String);

impl When {
    fn at(time: SystemTime) -> Self {
        Self(humantime::format_rfc3339_micros(time).to_string())
    }

    /// Returns the milliseconds from the Unix epoch to this time, rounded down.
    #[must_use]
    pub fn unix_millis(&self) -> i64 {
        let time = humantime::parse_rfc3339(&self.0).unwrap_or(UNIX_EPOCH);
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

impl FromStr for When {
    type Err = InvalidValue;

    /// Parses `2026-11-21T08:30:00Z`, `2026-11-21` (the beginning of that day, UTC) or `90m` (that long ago).
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let full = humantime::parse_rfc3339_weak(text).or_else(|_error| humantime::parse_rfc3339(text));
        let day = || humantime::parse_rfc3339(&format!("{text}T00:00:00Z"));
        let ago = || {
            let duration: Option<Duration> = humantime::parse_duration(text).ok();
            duration.and_then(|duration| SystemTime::now().checked_sub(duration))
        };
        full.or_else(|_error| day()).ok().or_else(ago).map(Self::at).ok_or_else(|| {
            "expected a time such as `2026-11-21T08:30:00Z`, a day such as `2026-11-21` or how long ago, such as `90m`"
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_people_write_them() {
        let written = |text: &str| text.parse::<When>().map(|when| when.0);
        let cases = [
            ("2026-11-21T08:30:00Z", "2026-11-21T08:30:00.000000Z"),
            ("2026-11-21T08:30:00.5Z", "2026-11-21T08:30:00.500000Z"),
            ("2026-11-21 08:30:00", "2026-11-21T08:30:00.000000Z"),
            ("2026-11-21", "2026-11-21T00:00:00.000000Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(written(text).as_deref(), Ok(expected));
        }
        assert!("1h".parse::<When>().unwrap() < "1m".parse().unwrap());
        for bad in ["", "yesterday", "2026-13-01", "12"] {
            assert!(written(bad).is_err(), "{bad}");
        }
    }
}
