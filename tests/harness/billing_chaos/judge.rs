//! Compares the evidence of a play: each served call has one receipt, and receipts come to what LiteLLM spent.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::evidence::{Evidence, ReceiptSeen};

/// Longest time from the end of a call until its row is in LiteLLM's database; a kill before that loses the row.
const WRITTEN_MS: u64 = 15_000;
/// Outcome of a call with a whole answer.
const COMPLETE: &str = "complete";
/// Outcomes of a call that may have ended while the proxy connected to LiteLLM: LiteLLM was gone, or the client left.
const UNSENT: [&str; 2] = ["upstream_gone", "client_gone"];
/// Reason of a receipt without a price.
const UNPRICED: &str = "unpriced";
/// Most faults that are kept.
const MAX_FAULTS: usize = 20;

/// Figures of a play, and its faults.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Runs by state.
    pub runs: BTreeMap<String, usize>,
    /// Calls that the upstream served.
    pub served: usize,
    /// Calls that the journal has as sent, by outcome.
    pub sent: BTreeMap<String, usize>,
    /// Receipts by the reason for their amount.
    pub receipts: BTreeMap<String, usize>,
    /// Rows of LiteLLM's ledger.
    pub rows: usize,
    /// Outcomes that the reconciliation reported.
    pub reported: BTreeMap<String, u64>,
    /// Calls without a row, by the reason.
    pub missing: BTreeMap<String, usize>,
    /// Sum of all receipts, in nano-dollars.
    pub charged: i64,
    /// Part of that sum for calls without a row.
    pub charged_missing: i64,
    /// Sum of all rows, in nano-dollars.
    pub spent: i64,
    /// Calls that limits counted before LiteLLM's ledger was read.
    pub counted: Counted,
    /// Violations, in words.
    pub faults: Vec<String>,
}

/// Sums that limits counted at the end of each call, beside those that LiteLLM spent. Calls without a row or a price are left
/// out.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Number of calls.
    pub calls: usize,
    /// Calls among them that were cut.
    pub cut: usize,
    /// Sum that limits counted, in nano-dollars.
    pub nanodollars: i64,
    /// Sum that LiteLLM spent, in nano-dollars.
    pub spent: i64,
    /// Calls that were counted for less than LiteLLM spent, in words.
    pub below: Vec<String>,
}

impl Evidence {
    /// Compares everything.
    #[must_use]
    pub fn judge(&self) -> Findings {
        let mut found = Findings {
            runs: self.runs.clone(),
            served: self.served.len(),
            rows: self.rows,
            reported: self.reported.clone(),
            spent: self.spent.values().map(|spent| spent.cast_signed()).sum(),
            ..Findings::default()
        };
        for call in self.sent.values() {
            *found.sent.entry(call.outcome.clone()).or_default() += 1;
        }
        for receipt in &self.receipts {
            *found.receipts.entry(receipt.reason.clone()).or_default() += 1;
            found.charged += receipt.nanodollars;
        }
        self.compare_served(&mut found);
        self.compare_receipts(&mut found);
        self.compare_accounts(&mut found);
        self.compare_spend(&mut found);
        found.counted = self.counted();
        found.faults.truncate(MAX_FAULTS);
        found
    }

    /// Checks that the upstream served each call once, and only calls that the journal has. LiteLLM's HTTP client sends
    /// a request again if its connection breaks before an answer, and counts that as one call.
    fn compare_served(&self, found: &mut Findings) {
        let mut answered = BTreeSet::new();
        for request in &self.served {
            if answered.contains(&request.call) {
                found.faults.push(format!("served again after an answer: {request:?}"));
            }
            if !request.was_cut {
                answered.insert(&request.call);
            }
            if !self.sent.contains_key(&request.call) {
                found.faults.push(format!("served and not in the journal: {request:?}"));
            }
        }
        if self.lines != self.sent.len() {
            found.faults.push(format!("{} lines of {} calls", self.lines, self.sent.len()));
        }
    }

    /// Checks that each sent call has one receipt beside corrections, and that there are no others. A call has none only
    /// if it ended before the proxy was connected to LiteLLM, which has no row of it then; the upstream did not serve it.
    fn compare_receipts(&self, found: &mut Findings) {
        let mut counts: BTreeMap<_, i32> = self.sent.values().map(|call| (&call.reference, 0)).collect();
        let firsts = self.receipts.iter().filter(|receipt| !receipt.is_correction);
        firsts.for_each(|receipt| *counts.entry(&receipt.reference).or_default() += 1);
        for (call, sent) in &self.sent {
            let is_unsent = UNSENT.contains(&sent.outcome.as_str()) && !self.was_served(call);
            match counts.remove(&sent.reference) {
                Some(0) if is_unsent => {
                    *found.sent.entry(format!("{}, not connected", sent.outcome)).or_default() += 1;
                }
                Some(1) => {}
                count => found.faults.push(format!("{count:?} receipts of {sent:?}")),
            }
        }
        found.faults.extend(counts.keys().map(|reference| format!("{reference} is of no call")));
    }

    /// Checks that each receipt, corrections included, is of the account with which its run was ordered.
    fn compare_accounts(&self, found: &mut Findings) {
        let wrong =
            self.receipts.iter().filter(|receipt| self.accounts.get(&receipt.run) != Some(&receipt.account));
        found.faults.extend(wrong.map(|receipt| format!("another account pays: {receipt:?}")));
    }

    fn counted(&self) -> Counted {
        let mut counted = Counted::default();
        for receipt in self.receipts.iter().filter(|receipt| !receipt.is_correction) {
            let (Some(spent), Some(sent)) = (self.spent.get(&receipt.call), self.sent.get(&receipt.call))
            else {
                continue;
            };
            if receipt.reason == UNPRICED {
                continue;
            }
            counted.calls += 1;
            counted.cut += usize::from(sent.outcome != COMPLETE);
            counted.nanodollars += receipt.nanodollars;
            counted.spent += spent.cast_signed();
            if receipt.nanodollars < spent.cast_signed() {
                counted.below.push(format!("{} of {spent}: {receipt:?} {sent:?}", receipt.nanodollars));
            }
        }
        counted
    }

    fn was_served(&self, call: &str) -> bool {
        self.served.iter().any(|served| served.call == call)
    }

    /// Checks that the receipts of each call come to what LiteLLM spent for it. A call without a row needs a reason.
    fn compare_spend(&self, found: &mut Findings) {
        let mut receipts = BTreeMap::<_, Vec<_>>::new();
        for receipt in &self.receipts {
            receipts.entry(&receipt.call).or_default().push(receipt);
        }
        let mut missing = 0;
        for (call, receipts) in &receipts {
            let charged: i64 = receipts.iter().map(|receipt| receipt.nanodollars).sum();
            if let Some(spent) = self.spent.get(*call) {
                if charged != spent.cast_signed() {
                    found.faults.push(format!(
                        "{charged} is charged of {spent}: {receipts:?} {:?}",
                        self.sent.get(*call)
                    ));
                }
                continue;
            }
            found.charged_missing += charged;
            missing += u64::from(receipts.iter().all(|receipt| receipt.reason != "no_usage"));
            self.explain_missing(call, receipts[0], found);
        }
        for call in self.spent.keys().filter(|call| !receipts.contains_key(call)) {
            found.faults.push(format!("LiteLLM has {call:?}, which has no receipt"));
        }
        if self.reported.get("missing") != Some(&missing) {
            found.faults.push(format!("{missing} are missing: {:?}", self.reported));
        }
    }

    /// Counts a call without a row by its reason: LiteLLM was killed, the call never reached the upstream, its answer told
    /// no usage, or its answer has no end. LiteLLM does not always write a row of the last two.
    fn explain_missing(&self, call: &str, receipt: &ReceiptSeen, found: &mut Findings) {
        let Some(sent) = self.sent.get(call) else { return };
        let lost = receipt.called_ms..=receipt.called_ms + sent.duration_ms + WRITTEN_MS;
        let mut served = self.served.iter().filter(|served| served.call == call);
        let reason = if self.litellm_kills.iter().any(|killed| lost.contains(killed)) {
            "litellm_killed"
        } else if !self.was_served(call) {
            "not_served"
        } else if sent.outcome != COMPLETE {
            &sent.outcome
        } else if !served.any(|served| served.told_usage) {
            "without_usage"
        } else {
            found.faults.push(format!("LiteLLM has no row of {receipt:?} {sent:?}"));
            return;
        };
        *found.missing.entry(reason.to_owned()).or_default() += 1;
    }
}
