//! Identifies one start of a gateway. A restarted gateway has forgotten its turns, and would run one of them again.
//!
//! The turn's task decides what counts as forgotten.

use std::{
    convert::Infallible,
    fmt,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Difference between a gateway's clock and ours that is ignored.
pub(crate) const MAX_CLOCK_SKEW: Duration = Duration::from_secs(2);

/// Identity of one start of a gateway, as the gateway reports it. Newer gateways name each start, older ones report
/// only their uptime. The text form can be stored and is read again by [`str::parse`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootId {
    name: Option<String>,
    /// Seconds since 1970, by our clock.
    began: Option<u64>,
}

impl BootId {
    /// Builds the identity from what a gateway reports of its start. A name that is not 1 to 128 letters, digits, `-`,
    /// `_` and `.` is left out.
    #[must_use]
    pub(crate) fn from_report(name: Option<String>, uptime: Option<Duration>, now: SystemTime) -> Self {
        let began = uptime.and_then(|uptime| now.checked_sub(uptime)?.duration_since(UNIX_EPOCH).ok());
        Self { name: name.filter(|name| is_name(name)), began: began.map(|began| began.as_secs()) }
    }

    /// Returns whether the two are known to be different starts. Without names this compares times of this host's
    /// clock, so if that clock is set meanwhile, one start counts as two.
    #[must_use]
    pub fn is_other_than(&self, other: &Self) -> bool {
        match self.has_another_name(other) {
            Some(is_other) => is_other,
            None => self
                .began
                .zip(other.began)
                .is_some_and(|(one, another)| one.abs_diff(another) > MAX_CLOCK_SKEW.as_secs()),
        }
    }

    /// Compares the names alone; `None` unless both have one.
    pub(crate) fn has_another_name(&self, other: &Self) -> Option<bool> {
        self.name.as_ref().zip(other.name.as_ref()).map(|(one, another)| one != another)
    }
}

fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// `NAME@SECONDS`, either of which may be missing.
impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or_default())?;
        match self.began {
            Some(began) => write!(f, "@{began}"),
            None => f.write_str("@"),
        }
    }
}

impl FromStr for BootId {
    type Err = Infallible;

    /// Reads the text form. Any other text is a start of which nothing is known.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (name, began) = text.split_once('@').unwrap_or_default();
        Ok(Self { name: Some(name.to_owned()).filter(|name| is_name(name)), began: began.parse().ok() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(name: &str, uptime: Option<u64>) -> BootId {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        BootId::from_report(
            name,
            uptime.map(Duration::from_secs),
            UNIX_EPOCH + Duration::from_secs(1_000_000),
        )
    }

    #[test]
    fn boots_differ_by_name_or_time() {
        for (one, another, is_other) in [
            (boot("a", Some(9)), boot("a", Some(900)), false),
            (boot("a", Some(9)), boot("b", Some(9)), true),
            (boot("", Some(100)), boot("", Some(101)), false),
            (boot("", Some(100)), boot("", Some(5)), true),
            (boot("a", Some(100)), boot("", Some(5)), true),
            (boot("", None), boot("", Some(5)), false),
            (boot("", None), boot("b", None), false),
        ] {
            assert_eq!(one.is_other_than(&another), is_other, "{one} {another}");
            assert_eq!(another.is_other_than(&one), is_other, "{another} {one}");
        }
    }

    #[test]
    fn a_start_is_read_as_it_was_written() {
        for kept in [boot("a-1", Some(9)), boot("", Some(9)), boot("a", None), boot("", None)] {
            assert_eq!(kept.to_string().parse::<BootId>(), Ok(kept));
        }
        assert_eq!(boot("a@b", None), BootId::default(), "no name");
        assert_eq!("whatever".parse::<BootId>(), Ok(BootId::default()));
    }
}
