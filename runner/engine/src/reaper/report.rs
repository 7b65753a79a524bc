//! Reports the outcome of a pass, for people and programs.

use std::collections::BTreeSet;

use platform_core::id::RunId;
use runner_store::Kind;
use runner_telemetry::metrics::GcCounts;
use serde::{Serialize, Serializer};

use super::{
    decision::{Act, Decision},
    evidence::{Blind, Thing},
};

/// Outcome of a pass.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(rename = "dry_run", serialize_with = "dry_run")]
    pub(crate) act: Act,
    /// Sources that could not be read.
    pub blind: Vec<Blind>,
    /// All resources that were judged.
    #[serde(rename = "things")]
    pub entries: Vec<Entry>,
}

/// A resource and its outcome.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Kind of the resource: a container, a workspace or another.
    pub kind: Kind,
    /// Name of the resource, or its id if its kind goes by ids.
    pub name: String,
    /// Run it belongs to, by its label or by its row.
    pub run: Option<RunId>,
    /// Outcome of the pass for the resource.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Reason of the decision, in words.
    pub why: String,
}

/// Outcome for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The resource stays.
    Kept,
    /// The resource stays, because nothing proves which run owns it.
    Unknown,
    /// The resource is dead, and the pass was to change nothing.
    WouldRemove,
    /// The resource was dead, and is removed.
    Removed,
    /// The resource was dead and gone already; now its row says so.
    WasGone,
    /// The resource is dead, and could not be removed.
    Failed {
        /// Error of the removal.
        error: String,
    },
}

impl Outcome {
    /// Returns the outcome of a decision that is not carried out.
    pub(super) const fn of(decision: &Decision) -> Self {
        match decision {
            Decision::Keep(_) => Self::Kept,
            Decision::Remove(_) => Self::WouldRemove,
            Decision::Unknown(_) => Self::Unknown,
        }
    }

    /// Returns its name in a word or three.
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

impl Entry {
    pub(super) fn new(thing: &Thing, run: Option<RunId>, decision: &Decision, outcome: Outcome) -> Self {
        Self { kind: thing.kind(), name: thing.name().to_owned(), run, outcome, why: decision.to_string() }
    }
}

impl Report {
    /// Returns the counts for the metrics.
    pub(crate) fn counts(&self) -> GcCounts {
        let blind = self.blind.iter().map(|blind| blind.part).collect();
        let mut counts = GcCounts { blind, ..GcCounts::default() };
        for Entry { kind, outcome, .. } in &self.entries {
            let kind = *kind as usize;
            match outcome {
                Outcome::Removed => counts.removed[kind] += 1,
                Outcome::Failed { .. } => counts.failed[kind] += 1,
                Outcome::Unknown => counts.unknown[kind] += 1,
                Outcome::Kept | Outcome::WouldRemove | Outcome::WasGone => {}
            }
        }
        counts
    }

    /// Counts the resources with `outcome`, by its name.
    pub fn count(&self, outcome: &str) -> usize {
        self.entries.iter().filter(|entry| entry.outcome.name() == outcome).count()
    }
}

/// Problems that were logged already: a lasting problem is not logged again.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeSet<String>);

impl Told {
    /// Returns the problems in `report` that are new.
    pub(super) fn news(&mut self, report: &Report) -> Vec<String> {
        let blind = report.blind.iter().map(|Blind { part, error }| {
            ((*part).to_owned(), format!("{part} cannot be searched for what is left of runs: {error}"))
        });
        let wrong = report.entries.iter().filter_map(|Entry { kind, name, outcome, why, .. }| {
            let thing = format!("{} {name}", kind.name());
            let what = match outcome {
                Outcome::Failed { error } => format!("{thing} cannot be removed ({why}): {error}"),
                Outcome::Unknown => format!("{thing} is left alone: {why}"),
                Outcome::Kept | Outcome::WouldRemove | Outcome::Removed | Outcome::WasGone => return None,
            };
            Some((format!("{thing} {}", outcome.name()), what))
        });
        let (wrong, mut news) = (blind.chain(wrong), Vec::new());
        let wrong = wrong.map(|(key, what)| {
            if !self.0.contains(&key) {
                news.push(what);
            }
            key
        });
        self.0 = wrong.collect();
        news
    }
}

fn dry_run<S: Serializer>(act: &Act, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*act == Act::Say)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_once_until_it_was_right() {
        let report = |outcome: Option<Outcome>, blind: Option<&str>| Report {
            act: Act::Do,
            blind: blind.map(|error| Blind { part: "proxy", error: error.to_owned() }).into_iter().collect(),
            entries: outcome
                .map(|outcome| Entry {
                    kind: Kind::Container,
                    name: "c1".to_owned(),
                    run: None,
                    outcome,
                    why: "its run has ended".to_owned(),
                })
                .into_iter()
                .collect(),
        };
        let failed = |error: &str| Some(Outcome::Failed { error: error.to_owned() });
        let mut told = Told::default();
        for (report, news) in [
            (report(failed("no"), None), 1),
            (report(failed("not now"), None), 0),
            (report(failed("no"), Some("gone")), 1),
            (report(Some(Outcome::Unknown), Some("still gone")), 1),
            (report(Some(Outcome::Removed), None), 0),
            (report(failed("no"), Some("gone")), 2),
            (report(Some(Outcome::Kept), None), 0),
        ] {
            let told = told.news(&report);
            assert_eq!(told.len(), news, "{told:?} of {report:?}");
        }
    }
}
