//! `reconcile FILE FEW MANY` reconciles MANY receipts with as many rows of a scripted ledger. It writes time and memory
//! as JSON. One row in ten has another cost than its receipt. It fails if `sluice` or the proxy needs more memory than for
//! FEW, or if a balance is not what the ledger says.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::time::{Duration, Instant};

use bench::{measure::machine::Machine, upstream::ScriptedUpstream};
use harness::{
    World,
    billing::balances,
    consumed::{Consumed, remove_files},
    memory::{Memory, peak_until_end},
    numbered_calls::{ACCOUNTS, COST, NumberedCalls},
    scripted_ledger::ScriptedLedger,
};
use platform_core::{credits::CreditRate, money::NanoDollars};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

/// Time over which the calls are spread.
const SPAN: Duration = Duration::from_secs(24 * 60 * 60);
/// Largest accepted difference of either process's peak, in KiB.
const MAX_GROWTH: u64 = 64 << 10;
/// Distance between two calls that have another cost in the ledger than in their record.
const CORRECTED_EVERY: u64 = 10;
/// Cost of such a call, according to the ledger.
const RIGHT_COST: NanoDollars = NanoDollars(46_000);

/// Reconciliation of many receipts, by one process.
#[derive(Debug, Serialize)]
struct Pass {
    rows: u64,
    milliseconds: u64,
    rows_per_second: u64,
    /// Peak of `sluice billing reconcile`.
    sluice_peak_kib: u64,
    /// Peak of the proxy since its start, and its memory afterwards.
    proxy: Memory,
    pages: usize,
    exit_code: Option<i32>,
    counts: Value,
}

/// Findings about so many rows.
#[derive(Debug, Serialize)]
struct Measured {
    receipts_stored_per_second: u64,
    first_pass: Pass,
    /// The same rows again: nothing is left to correct.
    second_pass: Pass,
    balances_are_right: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, few, many] = arguments.as_slice() else { panic!("usage: reconcile FILE FEW MANY") };
    let few = measure(few.parse().unwrap()).await;
    let many = measure(many.parse().unwrap()).await;
    let grown = [
        many.first_pass.sluice_peak_kib.saturating_sub(few.first_pass.sluice_peak_kib),
        many.first_pass.proxy.peak_kib.saturating_sub(few.first_pass.proxy.peak_kib),
    ];
    let record = json!({
        "command": format!("cargo run --release -p tests --example reconcile {}", arguments.join(" ")),
        "machine": Machine::here(),
        "few": few,
        "many": many,
        "sluice_grown_kib": grown[0],
        "proxy_grown_kib": grown[1],
        "may_grow_kib": MAX_GROWTH,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    for measured in [&few, &many] {
        let rows = measured.first_pass.rows;
        let corrected = rows.div_ceil(CORRECTED_EVERY);
        for pass in [&measured.first_pass, &measured.second_pass] {
            assert_eq!(pass.exit_code, Some(0), "{pass:?}");
            let counted = (&pass.counts["agreed"], &pass.counts["corrected"]);
            assert_eq!(counted, (&json!(rows - corrected), &json!(corrected)), "{pass:?}");
        }
        assert!(measured.balances_are_right, "each balance is what the ledger says");
    }
    assert!(grown.into_iter().all(|grown| grown <= MAX_GROWTH), "grown by {grown:?} KiB");
}

/// Stores the receipts of `rows` calls, and reconciles them twice.
async fn measure(rows: u64) -> Measured {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let ledger = ScriptedLedger::in_front_of(upstream.address()).await;
    let mut world = World::in_front_of(upstream, &ledger.base_url(), "").await;
    let calls = NumberedCalls::within(SPAN, rows);
    let consumed = Consumed::by_sluice_up(&mut world, calls).await;
    ledger.show(calls, spend);
    // Begins with a proxy that has served no one else.
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let first_pass = pass(&world, &ledger, rows).await;
    let second_pass = pass(&world, &ledger, rows).await;
    let balances_are_right = balances(&world).await == expected_balances(rows);
    assert!(world.stop_proxy().await);
    remove_files(&world);
    Measured {
        receipts_stored_per_second: consumed.lines_per_second(),
        first_pass,
        second_pass,
        balances_are_right,
    }
}

/// Runs `sluice billing reconcile` once.
async fn pass(world: &World, ledger: &ScriptedLedger, rows: u64) -> Pass {
    let pages = ledger.queries().len();
    let began = Instant::now();
    let mut child = world.sluice().spawn(&["billing", "reconcile", "--since", "25h", "--json"]);
    let sluice_peak_kib = peak_until_end(&mut child).await;
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
    let exit_code = child.wait().await.unwrap().code();
    let report: Value = serde_json::from_str(&said).unwrap();
    Pass {
        rows,
        milliseconds,
        rows_per_second: rows * 1000 / milliseconds.max(1),
        sluice_peak_kib,
        proxy: Memory::of(world.proxy_pid()).unwrap(),
        pages: ledger.queries().len() - pages,
        exit_code,
        counts: report["counts"].clone(),
    }
}

/// Returns the cost of call `number` according to the ledger.
fn cost(number: u64) -> NanoDollars {
    if number.is_multiple_of(CORRECTED_EVERY) { RIGHT_COST } else { COST }
}

#[expect(clippy::cast_precision_loss, reason = "costs are small")]
fn spend(number: u64) -> f64 {
    cost(number).0 as f64 / 1e9
}

/// Returns the balances of all accounts: what the ledger says that they have used.
fn expected_balances(rows: u64) -> Vec<i64> {
    let mut balances = vec![0; usize::try_from(ACCOUNTS).unwrap()];
    for number in 0..rows {
        balances[usize::try_from(number % ACCOUNTS).unwrap()] -=
            CreditRate::default().credits(cost(number)).0;
    }
    balances
}
