//! Counts instructions per request. The count has no noise, so a change of a few percent is visible on any machine.
//!
//! `sluice-proxy` runs under `valgrind --tool=callgrind`, which counts every instruction it executes. Requests are sent
//! one after the other, and the cost of a case is the count over many of them, divided. The kept figures in
//! `bench/instructions.json` belong to the pinned compiler and the locked dependencies.

mod callgrind;
mod compare;

use std::{collections::BTreeMap, io, path::Path};

pub use self::compare::{TOLERANCE, Verdict, compare};
use crate::{fast::FastUpstream, load::Connection, measure::cores, peer::sluicegate, workload};

/// Instructions by case.
pub type Counts = BTreeMap<String, u64>;

/// Cases: a name, the model that selects the upstream's answer, bytes of body, and number of requests.
///
/// The upstream sends events one by one here. Without pauses, the number that arrives together would depend on the
/// machine.
const CASES: [(&str, &str, usize, u64); 3] = [
    ("1 KB request", "fast", 1024, 500),
    ("164 KB request", "fast", 164 << 10, 100),
    ("stream of 20 events", "fast-events20-gap5ms", 1024, 20),
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
    for (name, model, bytes, times) in CASES {
        progress(&format!("counting: {name}, {times} times"));
        let request = workload::chat(model, bytes);
        for _ in 0..times.div_ceil(10) {
            connection.exchange(&request).await?;
        }
        counter.read()?; // resets the count after the warm-up
        // The number of stream pieces that arrive together varies, so the median of three counts is used.
        let mut repeated = [0; 3];
        for count in &mut repeated {
            for _ in 0..times {
                connection.exchange(&request).await?;
            }
            *count = counter.read()? / times;
        }
        repeated.sort_unstable();
        counts.insert(name.to_owned(), repeated[1]);
    }
    Ok(counts)
}
