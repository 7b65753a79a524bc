//! Tests `sluice up`: it is ready only with everything that a run needs.

use bench::upstream::ScriptedUpstream;
use harness::{KeyRejectingUpstream, Up, World};
use rustix::process::Signal;

#[tokio::test]
async fn up_is_ready_only_if_runs_can_be_executed() {
    let world = World::start().await;
    let good = Up::start(world.sluice()).await;
    assert!(good.said.ends_with("\nready\n"), "the control: {}", good.said);
    good.stop(Signal::TERM).await;
    let docker = ("SLUICE_SANDBOX_DOCKER_SOCKET", "/nowhere/docker.sock");
    let store = ("SLUICE_STORE_URL", "sqlite:///proc/nowhere/sluice.db");
    for ((variable, value), obstacle) in [(docker, "Docker does not answer"), (store, "/proc/nowhere")] {
        let up = Up::start(world.sluice().env(variable, value)).await;
        let last = up.said.lines().last().unwrap();
        assert!(last.starts_with("ready, but: ") && last.contains(obstacle), "{last}");
        up.stop(Signal::TERM).await;
    }
    let rejecting = KeyRejectingUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    let up = Up::start(world.sluice()).await;
    assert!(up.said.contains("ready, but: the upstream refuses the key in "), "{}", up.said);
    up.stop(Signal::TERM).await;
}
