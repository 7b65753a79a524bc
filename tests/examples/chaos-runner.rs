//! `chaos-runner FILE KILLS [SEED]` plays longer than a test may, and writes its findings as JSON. It writes the file
//! after each round and continues the play of an existing file. It fails if the findings have a fault.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::{collections::BTreeMap, fs};

use bench::measure::machine::Machine;
use harness::runner_chaos::{Round, Stage};
use serde_json::{Value, json};

/// Longest time until rest at the end of a round, in milliseconds.
const REST_MS: u64 = 30_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (file, kills, seed) = match arguments.as_slice() {
        [file, kills] => (file, kills, 1),
        [file, kills, seed] => (file, kills, seed.parse().unwrap()),
        _ => panic!("usage: chaos-runner FILE KILLS [SEED]"),
    };
    let kills: u64 = kills.parse().unwrap();
    let mut rounds = earlier_rounds(file, seed);
    let mut stage = Stage::set(seed).await;
    while rounds.iter().map(kills_of).sum::<u64>() < kills {
        let round = stage.round(rounds.len() as u64).await;
        rounds.push(round);
        let command = format!("cargo run -p tests --example chaos-runner FILE {kills} {seed}");
        let record = json!({ "command": command, "seed": seed, "machine": Machine::here(),
            "totals": totals(&rounds), "rounds": rounds });
        fs::write(format!("{file}.new"), format!("{record:#}\n")).unwrap();
        fs::rename(format!("{file}.new"), file).unwrap();
    }
    stage.end().await;
    let faults: Vec<_> = rounds.iter().flat_map(|round| &round.faults).collect();
    assert!(faults.is_empty(), "seed {seed}: {faults:#?}");
    let late = rounds.iter().filter(|round| round.quiet_ms > REST_MS).count();
    assert_eq!(late, 0, "rounds that took longer than {REST_MS} ms to come to rest");
}

/// Returns the rounds of an earlier part of this play from the file.
fn earlier_rounds(file: &str, seed: u64) -> Vec<Round> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["seed"], seed, "{file} is of another play");
    serde_json::from_value(record["rounds"].clone()).unwrap()
}

fn kills_of(round: &Round) -> u64 {
    round.kills.values().sum()
}

fn totals(rounds: &[Round]) -> Value {
    let sums = |counts: fn(&Round) -> &BTreeMap<String, u64>| {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (name, count) in rounds.iter().flat_map(counts) {
            *sums.entry(name.as_str()).or_default() += count;
        }
        sums
    };
    let sum = |count: fn(&Round) -> u64| rounds.iter().map(count).sum::<u64>();
    json!({
        "rounds": rounds.len(),
        "kills": sums(|round| &round.kills),
        "stops": sum(|round| round.stops),
        "runs": sums(|round| &round.runs),
        "take_overs": sum(|round| round.take_overs),
        "seconds": sum(|round| round.seconds),
        "longest_quiet_ms": rounds.iter().map(|round| round.quiet_ms).max(),
        "ended_by_themselves": sum(|round| round.ended_by_themselves.len() as u64),
        "faults": sum(|round| round.faults.len() as u64),
    })
}
