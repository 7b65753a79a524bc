//! Reads the resident memory of processes, in KiB.

use std::time::Duration;

use serde::Serialize;
use tokio::process::Child;

use crate::{pace::pace, process::status_of};

/// Interval between two looks at a process that may end.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Memory of a process.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    /// Resident memory now.
    pub rss_kib: u64,
    /// The most so far.
    pub peak_kib: u64,
}

impl Memory {
    /// Returns the memory of a process; `None` if it has ended.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { rss_kib: status_of(pid, "VmRSS:")?, peak_kib: status_of(pid, "VmHWM:")? })
    }
}

/// Waits until `child` has ended, and returns its peak.
///
/// # Panics
/// If it cannot be waited for.
pub async fn peak_until_end(child: &mut Child) -> u64 {
    let pid = child.id().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = Memory::of(pid).map_or(peak, |memory| memory.peak_kib);
        pace(LOOK_INTERVAL).await;
    }
    peak
}
