//! Compares counts with the kept ones.

use std::collections::BTreeSet;

use super::Counts;

/// Largest accepted increase over the kept count, in percent.
pub const TOLERANCE: f64 = 5.0;

/// A case with its kept and its new count.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Name of the case.
    pub case: String,
    /// Kept count, if the case has one.
    pub kept: Option<u64>,
    /// New count, if the case still exists.
    pub now: Option<u64>,
}

impl Verdict {
    /// Returns the increase over the kept count, in percent.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        Some((self.now? as f64 / self.kept?.max(1) as f64 - 1.0) * 100.0)
    }

    /// Returns whether the case passes. A case without a kept count fails, because its count has not been reviewed. A
    /// case that is no longer counted fails as well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.change().is_some_and(|change| change <= TOLERANCE)
    }

    /// Returns whether the kept count should be renewed, so that this gain cannot hide the next loss.
    #[must_use]
    pub fn is_better(&self) -> bool {
        self.change().is_some_and(|change| change < -TOLERANCE)
    }
}

/// Compares each case that is kept or counted now.
#[must_use]
pub fn compare(kept: &Counts, now: &Counts) -> Vec<Verdict> {
    let cases: BTreeSet<&String> = kept.keys().chain(now.keys()).collect();
    let verdict = |case: &String| Verdict {
        case: case.clone(),
        kept: kept.get(case).copied(),
        now: now.get(case).copied(),
    };
    cases.into_iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures that are much lower are to be kept as the new ones.
    #[test]
    fn five_percent_more_fails_the_comparison() {
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
        assert!(!compare(&counts(1), &Counts::new())[0].is_good(), "a case that is counted no more");
    }
}
