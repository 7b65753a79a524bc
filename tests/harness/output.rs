//! Measures the memory that a run takes whose agent prints much.

use std::{fs, time::Duration};

use crate::world::World;

/// The most memory that `sluice run` has had, in KiB, while it ran `agent` as the run r1 of `world`.
///
/// # Panics
/// If it cannot be started.
pub async fn most_memory(world: &World, agent: &str) -> u64 {
    let mut child = world.sluice().silent().spawn(&["run", "--agent", agent, "--run-id", "r1", "q"]);
    let status = format!("/proc/{}/status", child.id().unwrap());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(most);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    most
}
