//! Defines the results of checks, for people and for programs.

use serde::Serialize;

/// Result of one check.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

/// Outcome of a check.
#[derive(Debug, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The checked part works.
    Ok { found: String },
    /// The checked part does not work.
    Broken { found: String, fix: String },
    /// The check was skipped, because the part that it needs is broken.
    Unknown { needs: &'static str },
}

impl Check {
    pub(super) const fn ok(name: &'static str, found: String) -> Self {
        Self { name, verdict: Verdict::Ok { found } }
    }

    pub(super) fn broken(name: &'static str, found: String, fix: &str) -> Self {
        Self { name, verdict: Verdict::Broken { found, fix: fix.to_owned() } }
    }

    pub(super) const fn unknown(name: &'static str, needs: &'static str) -> Self {
        Self { name, verdict: Verdict::Unknown { needs } }
    }

    pub(crate) const fn is_ok(&self) -> bool {
        matches!(self.verdict, Verdict::Ok { .. })
    }
}
