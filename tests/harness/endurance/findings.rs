//! Compares the journal at the end of a play with the calls that the upstream saw.

use std::collections::{BTreeMap, BTreeSet};

use bench::upstream::Ledger;
use platform_core::record::Outcome;

use super::auditor::Books;

/// Results of a play.
#[derive(Debug, Default)]
pub struct Findings {
    /// Operations by kind.
    pub operations: BTreeMap<&'static str, u64>,
    /// Records by outcome; a record of several refusals counts as that many.
    pub outcomes: BTreeMap<String, u64>,
    /// Lines of the journal.
    pub lines: u64,
    /// Calls that the upstream saw.
    pub seen: usize,
    /// Calls among them that have no record.
    pub unrecorded: Vec<String>,
    /// Calls among them that arrived twice.
    pub replayed: Vec<String>,
    /// Calls that the upstream has never seen, although the journal says that it answered them.
    pub invented: Vec<String>,
    /// Calls with a record that never arrived at the upstream; by outcome.
    pub never_arrived: BTreeMap<String, u64>,
    /// Faults that the follower of the journal found: gaps, repeated lines, a broken chain, two records of a call.
    pub faults: Vec<String>,
    /// Runs and accounts that exceed their limit by more than one answer.
    pub over: Vec<String>,
    /// Runs that used all their calls.
    pub used_up: u64,
    /// Runs that expired by the clock.
    pub timed_out: u64,
    /// Closed runs that could be opened again.
    pub reopened: Vec<String>,
    /// Starts of the proxy on a full disk.
    pub started_on_a_full_disk: u64,
    /// Connections that the follower made.
    pub follower_connections: u64,
    /// Longest time from a kill until every run's socket answered again, in milliseconds.
    pub longest_gap_ms: u64,
}

/// Ids of the calls that the upstream saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    ids: BTreeSet<String>,
    replayed: Vec<String>,
}

impl Seen {
    /// Adds the calls of the ledger, and clears the ledger, so that it does not grow.
    pub(super) fn take(&mut self, ledger: &Ledger) {
        let entries = ledger.all();
        ledger.clear();
        for entry in entries {
            let Some(id) = entry.header("x-litellm-call-id").first().map(|id| (*id).to_owned()) else {
                continue;
            };
            if !self.ids.insert(id.clone()) {
                self.replayed.push(id);
            }
        }
    }
}

impl Findings {
    pub(super) fn compare(&mut self, books: &Books, seen: Seen) {
        let unrecorded = seen.ids.iter().filter(|id| !books.calls.contains_key(*id));
        self.unrecorded = unrecorded.cloned().collect();
        for (id, call) in &books.calls {
            if call.outcome == Outcome::Refused || seen.ids.contains(id) {
                continue;
            }
            if call.was_answered {
                self.invented.push(id.clone());
            } else {
                *self.never_arrived.entry(call.outcome.to_string()).or_default() += 1;
            }
        }
        self.seen = seen.ids.len();
        self.replayed = seen.replayed;
        self.outcomes.clone_from(&books.outcomes);
        self.lines = books.at;
        self.faults.clone_from(&books.faults);
        self.follower_connections = books.connections;
    }

    /// Asserts that the journal has no fault and no limit was exceeded.
    ///
    /// # Panics
    /// If a finding is a fault.
    pub fn assert_sound(&self, seed: u64) {
        let none = Vec::<String>::new();
        for (fault, found) in [
            ("calls without a record", &self.unrecorded),
            ("calls sent twice", &self.replayed),
            ("answers that nobody gave", &self.invented),
            ("faults of the journal", &self.faults),
            ("limits exceeded", &self.over),
            ("closed runs opened again", &self.reopened),
        ] {
            assert_eq!(found, &none, "seed {seed}: {fault}; {self:#?}");
        }
        // A call that never arrived was in flight when the proxy, its client or its run ended.
        for outcome in self.never_arrived.keys() {
            let is_allowed =
                ["interrupted", "upstream_gone", "client_gone", "run_closed"].contains(&outcome.as_str());
            assert!(is_allowed, "seed {seed}: {outcome} and never arrived; {self:#?}");
        }
    }
}
