//! Reports the outcome of a pass, for people and programs.

use std::collections::BTreeSet;

use platform_core::id::RunId;
use runner_store::ResourceKind;
use runner_telemetry::metrics::GcCounts;
use serde::{Serialize, Serializer};

use super::{
    decision::{Decision, GcMode},
    evidence::FoundResource,
    inventory::UnreadableSource,
};

/// Report of a pass.
#[derive(Debug, Serialize)]
pub struct GcReport {
    #[serde(rename = "dry_run", serialize_with = "serialize_dry_run")]
    pub(crate) act: GcMode,
    /// Sources that could not be read.
    #[serde(rename = "blind")]
    pub unreadable: Vec<UnreadableSource>,
    /// All resources that were judged.
    #[serde(rename = "things")]
    pub entries: Vec<GcEntry>,
}

/// A judged resource, and its outcome.
#[derive(Debug, Serialize)]
pub struct GcEntry {
    /// Kind of the resource: a container, a workspace or another.
    pub kind: ResourceKind,
    /// Name of the resource, or its id if its kind goes by ids.
    pub name: String,
    /// Run of the resource, according to its label or its row.
    #[serde(rename = "run")]
    pub run_id: Option<RunId>,
    /// Outcome of the pass for the resource.
    #[serde(flatten)]
    pub outcome: GcOutcome,
    /// Reason for the decision, in words.
    pub why: String,
}

/// Outcome of a pass for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum GcOutcome {
    /// The resource stays.
    Kept,
    /// The resource stays, because no evidence shows which run owns it.
    Unknown,
    /// The resource is dead, and the pass is a dry run.
    WouldRemove,
    /// The resource was dead, and is removed.
    Removed,
    /// The resource was dead and removed before; now its row says so.
    WasGone,
    /// The resource is dead, and could not be removed.
    Failed {
        /// Error of the removal.
        error: String,
    },
}

impl GcOutcome {
    /// Returns the outcome of a decision that is not carried out.
    pub(super) const fn of(decision: &Decision) -> Self {
        match decision {
            Decision::Keep(_) => Self::Kept,
            Decision::Remove(_) => Self::WouldRemove,
            Decision::Unknown(_) => Self::Unknown,
        }
    }

    /// Returns the name of the outcome, in at most three words.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Unknown => "unknown",
            Self::WouldRemove => "would be removed",
            Self::Removed => "removed",
            Self::WasGone => "was gone",
            Self::Failed { .. } => "failed",
        }
    }
}

impl GcEntry {
    pub(super) fn new(
        resource: &FoundResource,
        run_id: Option<RunId>,
        decision: &Decision,
        outcome: GcOutcome,
    ) -> Self {
        Self {
            kind: resource.kind(),
            name: resource.name().to_owned(),
            run_id,
            outcome,
            why: decision.to_string(),
        }
    }
}

impl GcReport {
    /// Returns the counts for the metrics.
    pub(crate) fn counts(&self) -> GcCounts {
        let unreadable = self.unreadable.iter().map(|source| source.part).collect();
        let mut counts = GcCounts { blind: unreadable, ..GcCounts::default() };
        for GcEntry { kind, outcome, .. } in &self.entries {
            let kind = *kind as usize;
            match outcome {
                GcOutcome::Removed => counts.removed[kind] += 1,
                GcOutcome::Failed { .. } => counts.failed[kind] += 1,
                GcOutcome::Unknown => counts.unknown[kind] += 1,
                GcOutcome::Kept | GcOutcome::WouldRemove | GcOutcome::WasGone => {}
            }
        }
        counts
    }

    /// Counts the resources with `outcome`, by its name.
    pub fn count(&self, outcome: &str) -> usize {
        self.entries.iter().filter(|entry| entry.outcome.name() == outcome).count()
    }
}

/// Problems that were logged, so that a lasting problem is not logged again.
#[derive(Debug, Default)]
pub(super) struct ReportedProblems(BTreeSet<String>);

impl ReportedProblems {
    /// Returns the problems in `report` that are new.
    pub(super) fn new_problems(&mut self, report: &GcReport) -> Vec<String> {
        let unreadable = report.unreadable.iter().map(|UnreadableSource { part, error }| {
            ((*part).to_owned(), format!("{part} cannot be searched for what is left of runs: {error}"))
        });
        let not_removed = report.entries.iter().filter_map(|GcEntry { kind, name, outcome, why, .. }| {
            let resource = format!("{} {name}", kind.name());
            let message = match outcome {
                GcOutcome::Failed { error } => format!("{resource} cannot be removed ({why}): {error}"),
                GcOutcome::Unknown => format!("{resource} is left alone: {why}"),
                GcOutcome::Kept | GcOutcome::WouldRemove | GcOutcome::Removed | GcOutcome::WasGone => {
                    return None;
                }
            };
            Some((format!("{resource} {}", outcome.name()), message))
        });
        let mut new = Vec::new();
        let problems = unreadable.chain(not_removed).map(|(key, message)| {
            if !self.0.contains(&key) {
                new.push(message);
            }
            key
        });
        self.0 = problems.collect();
        new
    }
}

fn serialize_dry_run<S: Serializer>(act: &GcMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*act == GcMode::DryRun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_problem_is_reported_once() {
        let report = |outcome: Option<GcOutcome>, unreadable: Option<&str>| GcReport {
            act: GcMode::Apply,
            unreadable: unreadable
                .map(|error| UnreadableSource { part: "proxy", error: error.to_owned() })
                .into_iter()
                .collect(),
            entries: outcome
                .map(|outcome| GcEntry {
                    kind: ResourceKind::Container,
                    name: "c1".to_owned(),
                    run_id: None,
                    outcome,
                    why: "its run has ended".to_owned(),
                })
                .into_iter()
                .collect(),
        };
        let failed = |error: &str| Some(GcOutcome::Failed { error: error.to_owned() });
        let mut reported = ReportedProblems::default();
        for (report, news) in [
            (report(failed("no"), None), 1),
            (report(failed("not now"), None), 0),
            (report(failed("no"), Some("gone")), 1),
            (report(Some(GcOutcome::Unknown), Some("still gone")), 1),
            (report(Some(GcOutcome::Removed), None), 0),
            (report(failed("no"), Some("gone")), 2),
            (report(Some(GcOutcome::Kept), None), 0),
        ] {
            let problems = reported.new_problems(&report);
            assert_eq!(problems.len(), news, "{problems:?} of {report:?}");
        }
    }
}
