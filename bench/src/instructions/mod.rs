//! Counts instructions, locked instructions, allocations and system calls per request. The counts have no noise, so a
//! change of a few percent is visible on any machine.
//!
//! `sluice-proxy` runs under `valgrind --tool=callgrind`, which counts every instruction it executes. A locked one costs as
//! much as twenty others, and far more if another thread uses the same line of the cache. Requests are sent
//! one after the other, and the cost of a case is the count over many of them, divided. The kept figures in
//! `bench/instructions.json` belong to the pinned compiler and the locked dependencies.

mod callgrind;
mod compare;

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use self::callgrind::Totals;

pub use self::compare::{TOLERANCE, Verdict, compare};
use crate::{fast::FastUpstream, load::Connection, measure::cores, peer::sluicegate, request};

/// Cost of a request by case.
pub type Counts = BTreeMap<String, Cost>;

/// Counts per request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Instructions.
    pub instructions: f64,
    /// Instructions that lock the bus.
    pub locked: f64,
    /// System calls and clock reads: under valgrind, a clock read is a system call.
    pub system_calls: f64,
    /// Allocations.
    pub mallocs: f64,
}

impl Cost {
    fn of(totals: Totals, requests: u64) -> Self {
        let each = |count: u64| (count as f64 / requests as f64 * 10.0).round() / 10.0;
        Self {
            instructions: each(totals.instructions).round(),
            locked: each(totals.locked),
            system_calls: each(totals.system_calls),
            mallocs: each(totals.mallocs),
        }
    }

    /// Returns the median of each count by itself.
    fn median(costs: &[Self]) -> Self {
        let median = |count: fn(&Self) -> f64| {
            let mut counts: Vec<f64> = costs.iter().map(count).collect();
            counts.sort_by(f64::total_cmp);
            counts.get(counts.len() / 2).copied().unwrap_or_default()
        };
        Self {
            instructions: median(|cost| cost.instructions),
            locked: median(|cost| cost.locked),
            system_calls: median(|cost| cost.system_calls),
            mallocs: median(|cost| cost.mallocs),
        }
    }
}

/// A counted request.
struct Case {
    name: &'static str,
    request: fn() -> Arc<[u8]>,
    times: u64,
}

/// The upstream sends events one by one here. Without pauses, the number that arrives together would depend on the
/// machine.
const CASES: [Case; 4] = [
    Case { name: "1 KB request", request: || request::chat("fast", 1024), times: 240 },
    Case { name: "164 KB request", request: || request::chat("fast", 164 << 10), times: 40 },
    Case { name: "agent's request", request: request::agent, times: 40 },
    Case { name: "stream of 20 events", request: || request::chat("fast-events20-gap5ms", 1024), times: 12 },
];

/// Counts every case. Leaves the proxy's files in `dir`.
///
/// # Errors
/// If valgrind is missing or the proxy does not answer under it.
pub async fn count(dir: &Path, progress: impl Fn(&str)) -> io::Result<Counts> {
    cores::pin_self()?;
    let upstream = FastUpstream::start().await?;
    let proxy = sluicegate::UNDER_CALLGRIND.start(dir, &upstream.address().into())?;
    let counter = callgrind::Counter::of(&proxy);
    let mut connection = Connection::open(&proxy.target).await?;
    let mut counts = Counts::new();
    for Case { name, request, times } in CASES {
        progress(&format!("counting: {name}, {times} times"));
        let request = request();
        for _ in 0..times.div_ceil(10) {
            connection.exchange(&request).await?;
        }
        counter.read()?; // resets the counts after the warm-up
        // The number of pieces in which a large body or a stream arrives varies, so the median of five counts is used.
        let mut repeated = Vec::new();
        for _ in 0..5 {
            for _ in 0..times {
                connection.exchange(&request).await?;
            }
            repeated.push(Cost::of(counter.read()?, times));
        }
        counts.insert(name.to_owned(), Cost::median(&repeated));
    }
    Ok(counts)
}
