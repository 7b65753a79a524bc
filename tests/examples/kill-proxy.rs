//! `kill-proxy SEED KILLS THREADS ext4|tmpfs|none FILE` plays longer than a test may, and writes its findings as JSON.
//! THREADS are numbers of data-plane threads, such as `1,2`: it plays once with each. It fails if the findings have a
//! fault.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::measure::machine::Machine;
use harness::{
    endurance::{Findings, Marks, Play},
    volume::FileSystem,
};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [seed, kills, threads, disk, file] = arguments.as_slice() else {
        panic!("usage: kill-proxy SEED KILLS THREADS ext4|tmpfs|none FILE");
    };
    let disk = match disk.as_str() {
        "ext4" => Some((FileSystem::Ext4, 384)),
        "tmpfs" => Some((FileSystem::Tmpfs, 384)),
        _ => None,
    };
    let command = format!("cargo run -p tests --example kill-proxy {}", arguments.join(" "));
    let machine = Machine::here();
    let mut plays = Vec::new();
    for threads in threads.split(',') {
        let play = Play {
            seed: seed.parse().unwrap(),
            kills: kills.parse().unwrap(),
            threads: threads.parse().unwrap(),
            disk,
            durability: "process",
            marks: Marks::Kept,
        };
        let findings = recorded(play, &mut plays).await;
        // A shorter control, without marks.
        let control = Play { kills: play.kills.min(20), marks: Marks::Removed, ..play };
        let without_marks = recorded(control, &mut plays).await;
        let record = json!({ "command": command, "machine": machine, "plays": plays });
        std::fs::write(file, format!("{record:#}\n")).unwrap();
        findings.assert_sound(play.seed);
        assert!(!without_marks.unrecorded.is_empty(), "the control lost no call: {without_marks:#?}");
    }
}

/// Plays, and adds a summary to `plays`.
async fn recorded(play: Play, plays: &mut Vec<Value>) -> Findings {
    let began = Instant::now();
    let findings = play.run().await;
    plays.push(summary(&play, began, &findings));
    findings
}

fn summary(play: &Play, began: Instant, findings: &Findings) -> Value {
    json!({
        "seed": play.seed,
        "threads": play.threads,
        "marks": format!("{:?}", play.marks),
        "disk": format!("{:?}", play.disk),
        "seconds": began.elapsed().as_secs(),
        "operations": findings.operations,
        "lines": findings.lines,
        "outcomes": findings.outcomes,
        "calls_seen_by_the_upstream": findings.seen,
        "of_these_without_a_record": findings.unrecorded.len(),
        "of_these_sent_twice": findings.replayed.len(),
        "answers_recorded_that_nobody_gave": findings.invented.len(),
        "on_their_way_and_never_arrived": findings.never_arrived,
        "faults_of_sequence_or_chain_as_followed": findings.faults,
        "times_the_follower_began_again": findings.follower_connections,
        "over_their_limit": findings.over,
        "runs_that_used_all_their_calls": findings.used_up,
        "runs_whose_time_was_over_by_the_clock": findings.timed_out,
        "closed_runs_opened_again": findings.reopened,
        "started_on_a_full_disk": findings.started_on_a_full_disk,
        "longest_gap_ms": findings.longest_gap_ms,
    })
}
