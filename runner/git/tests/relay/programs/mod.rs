//! programs plants what git would run: hooks, filters, drivers, helpers. The naive command runs each; the relay none.

mod commands;
mod vectors;

use std::time::Duration;

use runner_git::{PushOutcome, RelayPolicy};

use self::vectors::{VECTORS, Vector};
use crate::{
    canary::Canary,
    world::{Relayed, World},
};

/// Longest time for one vector.
const VECTOR_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs one vector, and returns what is wrong.
async fn fault_of(vector: &Vector, world: &World) -> Option<&'static str> {
    let canary = Canary::new(&world.dir);
    let agent = world.agent().await;
    agent.write("work.txt", vector.name);
    agent.commit("Work");
    (vector.plant)(&agent, &canary);
    agent.bundle(&world.bundle_file());
    let tip = agent.tip();
    // Plain git stood in for the container so far.
    canary.ran();
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    if canary.ran() {
        return Some("the relay runs it");
    }
    let pushed = matches!(relayed, Relayed::Pushed(PushOutcome::Pushed));
    if !pushed || world.remote_tip("sandbox/run-1") != Some(tip) {
        return Some("the work did not arrive");
    }
    (vector.naive)(&agent, world);
    (!canary.ran()).then_some("its control does not run it")
}

#[tokio::test]
async fn no_planted_program_runs() {
    let world = World::new();
    let mut faults = Vec::new();
    for vector in VECTORS {
        let fault = tokio::time::timeout(VECTOR_TIMEOUT, fault_of(vector, &world)).await;
        let fault = fault.unwrap_or(Some("it took too long"));
        faults.extend(fault.map(|fault| format!("{}: {fault}", vector.name)));
    }
    assert!(VECTORS.len() >= 30, "{} vectors", VECTORS.len());
    assert!(faults.is_empty(), "{faults:#?}");
}
