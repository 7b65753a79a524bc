//! Measures the memory of `sluice run` while an agent prints much output.

use std::{fs, time::Duration};

use crate::world::World;

/// Executes `agent` as run `r1` of `world`, and returns the peak memory of `sluice run` in KiB.
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
