//! Instructions per request: the figure without noise, so that a change of a few percent can be told on any machine.
//!
//! `sluice-proxy` runs under `valgrind --tool=callgrind`, which counts every instruction it executes. One request is
//! sent after the other; what a case costs is the count over many of them, divided. The figures that are kept,
//! `bench/instructions.json`, are of the pinned compiler and the locked dependencies.

mod callgrind;
mod compare;

use std::{collections::BTreeMap, io, path::Path};

pub use self::compare::{TOLERANCE, Verdict, compare};
use crate::{fast::FastUpstream, load::Connection, measure::cores, peer::sluicegate, workload};

/// Instructions by case.
pub type Counts = BTreeMap<String, u64>;

/// What is counted: a name, the model that makes the upstream answer as wanted, bytes of body, and how often.
///
/// Events are sent one by one here: as fast as they come, how many arrive together would depend on the machine.
const CASES: [(&str, &str, usize, u64); 3] = [
    ("1 KB request", "fast", 1024, 500),
    ("164 KB request", "fast", 164 << 10, 100),
    ("stream of 20 events", "fast-events20-gap5ms", 1024, 20),
];

/// Counts every case. The proxy's files are left in `dir`.
///
/// # Errors
/// If valgrind is missing or the proxy does not answer under it.
pub async fn count(dir: &Path, progress: impl Fn(&str)) -> io::Result<Counts> {
    cores::pin_self()?;
    let upstream = FastUpstream::start().await?;
    let proxy = sluicegate::UNDER_CALLGRIND.start(dir, upstream.address())?;
    let counter = callgrind::Counter::of(&proxy);
    let mut connection = Connection::open(&proxy.target).await?;
    let mut counts = Counts::new();
    for (name, model, bytes, times) in CASES {
        progress(&format!("counting: {name}, {times} times"));
        let request = workload::chat(model, bytes);
        for _ in 0..times.div_ceil(10) {
            connection.exchange(&request).await?;
        }
        counter.read()?; // and begin again
        // How many pieces of a stream arrive together is not ours to say: the median of three is.
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
