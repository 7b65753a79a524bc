//! `receipts FILE RUNS CALLS SEED [of-texts]` makes more calls than a test may, while the proxy, the worker and LiteLLM are killed.
//! It writes as JSON how receipts compare with the upstream's ledgers, and fails if they differ.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::{process::Command, time::Instant};

use bench::measure::machine::Machine;
use harness::billing_chaos::{BillingChaos, Kills, ScriptedUsage};
use serde_json::json;

const USAGE: &str = "usage: receipts FILE RUNS CALLS SEED [of-texts]";
/// Most that limits may count, in percent of what LiteLLM spends, where the upstream reports the usage of its texts.
const MAX_COUNTED_PERCENT: i64 = 130;
/// Runs for each kill of a victim.
const RUNS_PER_PROXY: usize = 10;
const RUNS_PER_WORKER: usize = 15;
const RUNS_PER_LITELLM: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, runs, calls, seed, usage @ ..] = arguments.as_slice() else { panic!("{USAGE}") };
    let usage = match usage {
        [] => ScriptedUsage::Random,
        [word] if word == "of-texts" => ScriptedUsage::OfTexts,
        _ => panic!("{USAGE}"),
    };
    let number = |text: &String| text.parse::<usize>().expect(USAGE);
    let runs = number(runs);
    let kills = Kills {
        proxy: runs / RUNS_PER_PROXY,
        worker: runs / RUNS_PER_WORKER,
        litellm: runs / RUNS_PER_LITELLM,
    };
    let play = BillingChaos { seed: seed.parse().expect(USAGE), runs, calls: number(calls), kills, usage };
    let began = Instant::now();
    let found = play.play().await.judge();
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let record = json!({
        "command": format!("cargo run -p tests --example receipts {}", arguments.join(" ")),
        "commit": String::from_utf8_lossy(&commit).trim(),
        "machine": Machine::here(),
        "kills": kills,
        "seconds": began.elapsed().as_secs(),
        "found": found,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    assert_eq!(found.faults, Vec::<String>::new());
    if usage == ScriptedUsage::OfTexts {
        let counted = &found.counted;
        assert!(counted.nanodollars * 100 <= counted.spent * MAX_COUNTED_PERCENT, "{counted:?}");
        assert_eq!(counted.below, Vec::<String>::new());
    }
}
