//! Tests that `sluice up` bills and stops calls while Docker is away: only runs need it.

use harness::{Up, World, eventually};
use rustix::process::Signal;

#[tokio::test]
async fn balances_hold_while_docker_is_away() {
    let world = World::with("[billing]\nfloor = 0\n").await;
    let up = Up::start(world.sluice()).await;
    assert!(up.said.contains("ready, but: "), "control, no Docker: {}", up.said);
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200, "control");
    let taken = world.sluice().run(&["billing", "credit", "--account", "acct-1", "-5"]).await;
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let status = || async { run.agent.chat("fake").await.status.as_u16() };
    eventually("calls are refused", status, |status| *status == 400).await;
    up.stop(Signal::TERM).await;
}
