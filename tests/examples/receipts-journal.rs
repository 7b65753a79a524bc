//! `receipts-journal FILE LINES SENT_EVERY` lets `sluice up` write the receipts of a long journal. It writes time and
//! memory as JSON. One line in SENT_EVERY is of a call that was sent upstream. It fails if the memory of either process
//! grows after the first tenth, or if a balance is wrong.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::time::{Duration, Instant};

use bench::measure::machine::Machine;
use harness::{
    World,
    billing::balances,
    consumed::{Consumed, Moment, remove_files},
    numbered_calls::{ACCOUNTS, COST, NumberedCalls},
};
use platform_core::credits::CreditRate;
use serde_json::json;

/// Time over which the calls are spread.
const SPAN: Duration = Duration::from_secs(24 * 60 * 60);
/// Largest accepted growth of either process after the first tenth, in KiB.
const MAX_GROWTH: u64 = 64 << 10;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, lines, sent_every] = arguments.as_slice() else {
        panic!("usage: receipts-journal FILE LINES SENT_EVERY");
    };
    let calls = NumberedCalls::within(SPAN, lines.parse().unwrap()).sent_every(sent_every.parse().unwrap());
    let mut world = World::quiet("[journal]\ndisk_budget = '32 GiB'\n").await;
    let began = Instant::now();
    let consumed = Consumed::by_sluice_up(&mut world, calls).await;
    let seconds = began.elapsed().as_secs();
    let sent: Vec<_> = (0..ACCOUNTS).map(|account| calls.sent_by(account)).collect();
    let credits = CreditRate::default().credits(COST).0;
    let expected: Vec<_> =
        sent.iter().filter(|sent| **sent > 0).map(|sent| -credits * sent.cast_signed()).collect();
    let found = balances(&world).await;
    let store = std::fs::metadata(world.path().join("store/sluice.db")).unwrap().len();
    assert!(world.stop_proxy().await);
    remove_files(&world);
    let last = consumed.moments.last().unwrap();
    let receipts: u64 = sent.iter().sum();
    let grown = |rss: fn(&Moment) -> u64| rss(last).saturating_sub(rss(&consumed.moments[0]));
    let grown = [grown(|moment| moment.sluice.peak_kib), grown(|moment| moment.proxy.peak_kib)];
    let record = json!({
        "command": format!("cargo run --release -p tests --example receipts-journal {}", arguments.join(" ")),
        "machine": Machine::here(),
        "lines": consumed.journal.lines,
        "journal_bytes": consumed.journal.bytes,
        "store_bytes": store,
        "receipts": receipts,
        "milliseconds": last.milliseconds,
        "seconds_with_the_writing_of_the_journal": seconds,
        "lines_per_second": consumed.lines_per_second(),
        "receipts_per_second": receipts * 1000 / last.milliseconds.max(1),
        "moments": consumed.moments,
        "sluice_grown_kib": grown[0],
        "proxy_grown_kib": grown[1],
        "may_grow_kib": MAX_GROWTH,
        "balances_are_right": found == expected,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    assert_eq!(found, expected, "each balance is the sum of its receipts");
    assert!(grown.into_iter().all(|grown| grown <= MAX_GROWTH), "grown by {grown:?} KiB");
}
