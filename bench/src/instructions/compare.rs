//! Compares counts with the kept ones.

use std::collections::BTreeSet;

use super::{Cost, Counts};

/// Largest accepted increase over the kept count, in percent.
pub const TOLERANCE: f64 = 5.0;

/// Increase of system calls per request that is not judged: how many events arrive together depends on the machine.
const SYSTEM_CALL_SLACK: f64 = 2.0;

/// A figure of a case with its kept and its new count.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Name of the case.
    pub case: String,
    /// Counted item: instructions, or one of the others.
    pub unit: &'static str,
    /// Kept count, if the case has one.
    pub kept: Option<f64>,
    /// New count, if the case still exists.
    pub now: Option<f64>,
    /// Increase that is accepted in any case.
    slack: f64,
}

impl Verdict {
    /// Returns the increase over the kept count, in percent.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        Some((self.now? / self.kept?.max(0.01) - 1.0) * 100.0)
    }

    /// Returns whether the case passes. A case without a kept count fails, because its count has not been reviewed. A
    /// case without a new count fails as well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (Some(kept), Some(now)) = (self.kept, self.now) else { return false };
        now <= kept * (1.0 + TOLERANCE / 100.0) || now <= kept + self.slack
    }

    /// Returns whether the kept count should be renewed, so that this gain cannot hide the next loss.
    #[must_use]
    pub fn is_better(&self) -> bool {
        let (Some(kept), Some(now)) = (self.kept, self.now) else { return false };
        now < kept * (1.0 - TOLERANCE / 100.0) && now < kept - self.slack
    }
}

/// Compares each figure of each case that is kept or counted now.
#[must_use]
pub fn compare(kept: &Counts, now: &Counts) -> Vec<Verdict> {
    type Figure = (&'static str, fn(&Cost) -> f64, f64);
    const FIGURES: [Figure; 4] = [
        ("instructions", |cost| cost.instructions, 0.0),
        ("locked instructions", |cost| cost.locked, 0.0),
        ("allocations", |cost| cost.mallocs, 0.0),
        ("system calls and clock reads", |cost| cost.system_calls, SYSTEM_CALL_SLACK),
    ];
    let cases: BTreeSet<&String> = kept.keys().chain(now.keys()).collect();
    let verdicts = |case: &String| {
        FIGURES.map(|(unit, figure, slack)| Verdict {
            case: case.clone(),
            unit,
            kept: kept.get(case).map(figure),
            now: now.get(case).map(figure),
            slack,
        })
    };
    cases.into_iter().flat_map(verdicts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(cost: Cost) -> Counts {
        Counts::from([("case".to_owned(), cost)])
    }

    /// Figures that are much lower are to be kept as the new ones.
    #[test]
    fn five_percent_more_fails_the_comparison() {
        let judged = |change: fn(&mut Cost)| {
            let kept = Cost { instructions: 1000.0, locked: 100.0, system_calls: 8.0, mallocs: 40.0 };
            let mut now = kept;
            change(&mut now);
            let verdicts = compare(&counts(kept), &counts(now));
            (verdicts.iter().all(Verdict::is_good), verdicts.iter().any(Verdict::is_better))
        };
        assert_eq!(judged(|_| {}), (true, false));
        assert_eq!(judged(|now| now.instructions = 1049.0), (true, false));
        assert_eq!(judged(|now| now.instructions = 1051.0), (false, false));
        assert_eq!(judged(|now| now.locked = 106.0), (false, false));
        assert_eq!(judged(|now| now.mallocs = 37.0), (true, true));
        assert_eq!(judged(|now| now.system_calls = 9.9), (true, false));
        assert_eq!(judged(|now| now.system_calls = 10.1), (false, false));
        let all_fail = |kept: &Counts, now: &Counts| !compare(kept, now).iter().any(Verdict::is_good);
        assert!(all_fail(&Counts::new(), &counts(Cost::default())), "a case that was never reviewed");
        assert!(all_fail(&counts(Cost::default()), &Counts::new()), "a case that is counted no more");
    }
}
