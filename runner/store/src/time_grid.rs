//! Defines the spans of time by which figures are summed up, and rows of such spans.

use platform_core::limit::Millis;

use super::UnixMillis;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Span of time by which figures are summed up. Spans begin at multiples of their length, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SumSpan {
    /// Five minutes.
    FiveMinutes,
    /// An hour.
    Hour,
    /// A day.
    Day,
}

/// Row of equal spans: the bars of a chart over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrid {
    /// Length of each span.
    pub span: SumSpan,
    /// Time at which the first one begins.
    pub from: UnixMillis,
    /// Number of spans.
    pub spans: u32,
}

impl SumSpan {
    /// All spans, the shortest first.
    pub const ALL: [Self; 3] = [Self::FiveMinutes, Self::Hour, Self::Day];

    /// Returns the length in milliseconds.
    #[must_use]
    pub const fn length(self) -> i64 {
        match self {
            Self::FiveMinutes => 5 * MINUTE,
            Self::Hour => HOUR,
            Self::Day => DAY,
        }
    }

    /// Returns the beginning of the span that `time` is in.
    #[must_use]
    pub const fn begin_of(self, time: UnixMillis) -> UnixMillis {
        UnixMillis(time.0 - time.0.rem_euclid(self.length()))
    }

    /// Returns how long sums of this span are kept; `None` for always.
    pub(super) const fn kept(self) -> Option<Millis> {
        match self {
            Self::FiveMinutes => Some(Millis(DAY.unsigned_abs())),
            Self::Hour => Some(Millis(8 * DAY.unsigned_abs())),
            Self::Day => None,
        }
    }
}

impl TimeGrid {
    /// Returns the row of `spans` spans of which the last one has `now` in it.
    #[must_use]
    pub fn up_to(now: UnixMillis, span: SumSpan, spans: u32) -> Self {
        let before = i64::from(spans.saturating_sub(1)).saturating_mul(span.length());
        Self { span, from: UnixMillis(span.begin_of(now).0.saturating_sub(before)), spans }
    }

    /// Returns the time at which the last span has ended.
    #[must_use]
    pub fn until(&self) -> UnixMillis {
        let length = i64::from(self.spans).saturating_mul(self.span.length());
        UnixMillis(self.from.0.saturating_add(length))
    }

    /// Returns the times at which the spans begin.
    pub fn begins(&self) -> impl Iterator<Item = UnixMillis> {
        let from = self.from.0;
        let length = self.span.length();
        (0..i64::from(self.spans)).map(move |number| UnixMillis(from + number * length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_ends_with_the_present_span() {
        let now = UnixMillis(3 * DAY + 5 * HOUR + 7 * MINUTE);
        let grid = TimeGrid::up_to(now, SumSpan::Hour, 24);
        assert_eq!(
            (grid.from, grid.until()),
            (UnixMillis(2 * DAY + 6 * HOUR), UnixMillis(3 * DAY + 6 * HOUR))
        );
        let begins: Vec<_> = grid.begins().collect();
        assert_eq!((begins.len(), begins[0], begins[23]), (24, grid.from, SumSpan::Hour.begin_of(now)));
        assert_eq!(SumSpan::FiveMinutes.begin_of(now), UnixMillis(3 * DAY + 5 * HOUR + 5 * MINUTE));
        assert_eq!(TimeGrid::up_to(now, SumSpan::Day, 1).from, UnixMillis(3 * DAY));
    }
}
