//! Measures the memory of `sluice run` while an agent prints much output.

use crate::{memory::peak_until_end, world::World};

/// Executes `agent` as run `r1` of `world`, and returns the peak memory of `sluice run` in KiB.
///
/// # Panics
/// If it cannot be started.
pub async fn most_memory(world: &World, agent: &str) -> u64 {
    let mut child = world.sluice().silent().spawn(&["run", "--agent", agent, "--run-id", "r1", "q"]);
    peak_until_end(&mut child).await
}
