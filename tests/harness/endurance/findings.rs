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
    /// Records by outcome; refusals that are summed up as many as they stand for.
    pub outcomes: BTreeMap<String, u64>,
    /// Lines of the journal.
    pub lines: u64,
    /// Calls that the upstream saw.
    pub seen: usize,
    /// Calls among them that have no record.
    pub unrecorded: Vec<String>,
    /// Calls among them that arrived twice.
    pub replayed: Vec<String>,
    /// Calls of which the journal says that the upstream answered, and that it has never seen.
    pub invented: Vec<String>,
    /// Calls that were about to be sent, or were on their way, and have never arrived; by outcome.
    pub never_arrived: BTreeMap<String, u64>,
    /// Faults of the journal as it was followed: gaps, lines twice, a chain that does not fit, two records of a call.
    pub faults: Vec<String>,
    /// Runs and accounts that used more than the limit and one answer that was too long.
    pub over: Vec<String>,
    /// Runs that had used all they may.
    pub used_up: u64,
    /// Runs whose time was over by the clock.
    pub timed_out: u64,
    /// Runs that were closed and could be opened again.
    pub reopened: Vec<String>,
    /// Starts of the proxy on a full disk.
    pub started_on_a_full_disk: u64,
    /// Connections that the follower made.
    pub follower_connections: u64,
    /// The longest time from a kill until every run's socket answered again, in milliseconds.
    pub longest_gap_ms: u64,
}

/// The upstream's side: ids of calls.
#[derive(Debug, Default)]
pub(super) struct Seen {
    ids: BTreeSet<String>,
    replayed: Vec<String>,
}

impl Seen {
    /// Takes what the ledger holds over, and clears it, so that it does not grow.
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

    /// # Panics
    /// If anything is not as it should be.
    pub fn assert_sound(&self, seed: u64) {
        let none = Vec::<String>::new();
        for (what, found) in [
            ("calls without a record", &self.unrecorded),
            ("calls sent twice", &self.replayed),
            ("answers that nobody gave", &self.invented),
            ("faults of the journal", &self.faults),
            ("limits exceeded", &self.over),
            ("closed runs opened again", &self.reopened),
        ] {
            assert_eq!(found, &none, "seed {seed}: {what}; {self:#?}");
        }
        // A call that never arrives was on its way when something died or left.
        for outcome in self.never_arrived.keys() {
            let may =
                ["interrupted", "upstream_gone", "client_gone", "run_closed"].contains(&outcome.as_str());
            assert!(may, "seed {seed}: {outcome} and never arrived; {self:#?}");
        }
    }
}
