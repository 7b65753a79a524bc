//! `limits-chaos SEED OPERATIONS FILE` plays longer than a test may, and writes its findings as JSON.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::measure::machine::Machine;
use harness::chaos::{Chaos, Findings, Found, Limits};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [seed, operations, file] = arguments.as_slice() else {
        panic!("usage: limits-chaos SEED OPERATIONS FILE");
    };
    let (seed, operations) = (seed.parse().unwrap(), operations.parse().unwrap());
    let mut plays = Vec::new();
    for limits in [Limits::Hold, Limits::Off] {
        let began = Instant::now();
        let findings = Chaos::play(seed, operations, limits).await;
        plays.push(json!({
            "limits": format!("{limits:?}"),
            "seconds": began.elapsed().as_secs(),
            "operations": findings.operations,
            "outcomes": findings.outcomes,
            "largest_complete_call": findings.largest_call,
            "runs": sums(&findings, findings.runs.values()),
            "accounts": sums(&findings, findings.accounts.values()),
        }));
    }
    let record = json!({ "seed": seed, "machine": Machine::here(), "plays": plays });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
}

fn sums<'f>(findings: &Findings, all: impl Iterator<Item = &'f Found> + Clone) -> Value {
    let over = |found: &Found| found.tokens.saturating_sub(found.allowed);
    let differs = |found: &&Found| found.told.is_some_and(|told| told != (found.tokens, found.calls));
    json!({
        "count": all.clone().count(),
        "tokens": all.clone().map(|found| found.tokens).sum::<u64>(),
        "most_over_its_limit": all.clone().map(over).max(),
        "over_by_more_than_one_call": all.clone().filter(|found| over(found) > findings.largest_call).count(),
        "still_reserved": all.clone().map(|found| found.reserved).sum::<u64>(),
        "told_other_than_recorded": all.filter(differs).count(),
    })
}
