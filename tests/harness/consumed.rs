//! Lets `sluice up` write the receipts of a long journal, and measures how fast and with how much memory.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;

use crate::{
    billing::receipts_consumer,
    long_journal::{JournalWriter, WrittenJournal},
    memory::Memory,
    numbered_calls::NumberedCalls,
    pace::pace,
    up::Up,
    world::World,
};

/// Interval between two looks at the consumer.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Looks after which a consumer that has acknowledged nothing has failed.
const MAX_STILL_LOOKS: u32 = 240;
/// Number of moments at which memory is noted, at even distances.
const MOMENTS: u64 = 10;

/// State of both processes at a moment.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Moment {
    /// Lines with receipts that are stored and acknowledged.
    pub lines: u64,
    /// Time since `sluice up` was ready.
    pub milliseconds: u64,
    /// Memory of `sluice up`.
    pub sluice: Memory,
    /// Memory of the proxy.
    pub proxy: Memory,
}

/// Journal that was consumed.
#[derive(Debug)]
pub struct Consumed {
    /// The journal.
    pub journal: WrittenJournal,
    /// Moments, the last one when all was acknowledged.
    pub moments: Vec<Moment>,
}

impl Consumed {
    /// Writes a journal of `calls` in `world`, starts its proxy again with it, and waits until a `sluice up` has stored
    /// all of them. It is stopped then; the proxy runs on.
    ///
    /// # Panics
    /// If the consumer stands still.
    pub async fn by_sluice_up(world: &mut World, calls: NumberedCalls) -> Self {
        assert!(world.stop_proxy().await);
        let journal = JournalWriter::in_place_of(&world.path().join("state")).write(calls.records());
        world.start_proxy().await;
        let up = Up::start(world.sluice().log_to(&world.path().join("up.log"))).await;
        let began = Instant::now();
        let mut moments = Vec::new();
        let mut seen = 0;
        let mut still = 0;
        while seen < journal.lines {
            pace(LOOK_INTERVAL).await;
            let acknowledged = &receipts_consumer(world).await["acknowledged"]["seq"];
            let lines = acknowledged.as_u64().unwrap_or_default();
            still = if lines > seen { 0 } else { still + 1 };
            assert!(still < MAX_STILL_LOOKS, "the consumer stands still at line {lines}");
            seen = lines;
            if lines >= journal.lines * (moments.len() as u64 + 1) / MOMENTS {
                moments.push(Moment {
                    lines,
                    milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap(),
                    sluice: Memory::of(up.child.id().unwrap()).unwrap(),
                    proxy: Memory::of(world.proxy_pid()).unwrap(),
                });
            }
        }
        up.stop(Signal::TERM).await;
        Self { journal, moments }
    }

    /// Returns the lines that were stored in a second.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn lines_per_second(&self) -> u64 {
        let last = self.moments.last().unwrap();
        last.lines * 1000 / last.milliseconds.max(1)
    }
}

/// Removes the journal and the store of `world`, too large to be searched for secrets.
///
/// # Panics
/// If they cannot be removed.
pub fn remove_files(world: &World) {
    for dir in ["state/journal", "store"] {
        std::fs::remove_dir_all(world.path().join(dir)).unwrap();
    }
}
