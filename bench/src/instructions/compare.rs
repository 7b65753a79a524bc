//! Whether a count is what it was.

use super::Counts;

/// How much more a case may cost than what is kept, in percent.
pub const TOLERANCE: f64 = 5.0;

/// A case, then and now.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The case.
    pub case: String,
    /// What was kept, if the case was there.
    pub kept: Option<u64>,
    /// What it is now.
    pub now: u64,
}

impl Verdict {
    /// By how many percent it costs more than what was kept.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        self.kept.map(|kept| (self.now as f64 / kept.max(1) as f64 - 1.0) * 100.0)
    }

    /// Whether it may pass. A case without a kept figure may not: nobody has looked at it.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.change().is_some_and(|change| change <= TOLERANCE)
    }

    /// Whether the kept figure should be renewed, lest the next loss hides behind this gain.
    #[must_use]
    pub fn is_better(&self) -> bool {
        self.change().is_some_and(|change| change < -TOLERANCE)
    }
}

/// What became of each case of `now`.
#[must_use]
pub fn compare(kept: &Counts, now: &Counts) -> Vec<Verdict> {
    let verdict = |(case, now): (&String, &u64)| Verdict {
        case: case.clone(),
        kept: kept.get(case).copied(),
        now: *now,
    };
    now.iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_more_is_too_much_and_much_less_is_to_be_kept() {
        let counts = |figure: u64| Counts::from([("case".to_owned(), figure)]);
        let judged = |now| {
            let verdict = compare(&counts(1000), &counts(now)).remove(0);
            (verdict.is_good(), verdict.is_better())
        };
        assert_eq!(judged(1000), (true, false));
        assert_eq!(judged(1049), (true, false));
        assert_eq!(judged(1051), (false, false));
        assert_eq!(judged(949), (true, true));
        assert!(!compare(&Counts::new(), &counts(1))[0].is_good(), "a case nobody has looked at");
    }
}
