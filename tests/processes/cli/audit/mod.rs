//! `sluice audit`, command by command, against real calls.

mod advice;
mod export;
mod show;
mod stats;
mod tail;
mod top;
mod trace;
mod verify;

use harness::World;
use serde_json::Value;

/// Returns the output of a command that succeeds.
async fn said(world: &World, arguments: &[&str]) -> String {
    let outcome = world.sluice().run(&[&["audit"], arguments].concat()).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}: {outcome:?}");
    outcome.stdout
}

/// The same, in JSON.
async fn json_of(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&said(world, &[arguments, &["--json"]].concat()).await).unwrap()
}
