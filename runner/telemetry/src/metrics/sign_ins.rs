//! Counts how browsers sign in to the dashboard, and what they report of its pages.

use platform_runtime::metrics::{Cells, Exposition, Kind};

/// Way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInWay {
    /// With the token of a principal.
    Token,
    /// With a link of `sluice dashboard`.
    Link,
}

/// Result of an attempt to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInResult {
    /// A session began.
    Accepted,
    /// The token or the link was wrong or had ended.
    Refused,
    /// A wrong one, after many others.
    Limited,
}

/// Fate of a browser's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CspReportFate {
    /// Stored in its own row, or in one with others of the same.
    Kept,
    /// Left out: it was one of too many, or the store failed.
    Dropped,
}

impl SignInWay {
    const ALL: [(Self, &'static str); 2] = [(Self::Token, "token"), (Self::Link, "link")];
}

impl SignInResult {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Accepted, "accepted"), (Self::Refused, "refused"), (Self::Limited, "limited")];
}

impl CspReportFate {
    const ALL: [(Self, &'static str); 2] = [(Self::Kept, "kept"), (Self::Dropped, "dropped")];
}

/// Counters of what browsers do.
#[derive(Debug)]
pub(super) struct BrowserCounters {
    sign_ins: Cells,
    reports: Cells,
}

impl Default for BrowserCounters {
    fn default() -> Self {
        let sign_ins = Cells::new(SignInWay::ALL.len() * SignInResult::ALL.len());
        Self { sign_ins, reports: Cells::new(CspReportFate::ALL.len()) }
    }
}

impl BrowserCounters {
    pub(super) fn signed_in(&self, way: SignInWay, result: SignInResult) {
        self.sign_ins.add(cell(way, result), 1);
    }

    pub(super) fn csp_reported(&self, fate: CspReportFate) {
        self.reports.add(fate as usize, 1);
    }

    pub(super) fn render(&self, text: &mut Exposition) {
        let help = "Attempts of browsers to sign in; limited ones are wrong ones after many others.";
        let mut family = text.family(Kind::Counter, "sluice_sign_ins_total", help);
        for (way, way_word) in SignInWay::ALL {
            for (result, word) in SignInResult::ALL {
                let labels = [("way", way_word), ("result", word)];
                family.sample(&labels, self.sign_ins.get(cell(way, result)));
            }
        }
        let help = "Reports of browsers that the policy of the dashboard's pages blocked something.";
        let mut family = text.family(Kind::Counter, "sluice_csp_reports_total", help);
        for (fate, word) in CspReportFate::ALL {
            family.sample(&[("result", word)], self.reports.get(fate as usize));
        }
    }
}

const fn cell(way: SignInWay, result: SignInResult) -> usize {
    way as usize * SignInResult::ALL.len() + result as usize
}
