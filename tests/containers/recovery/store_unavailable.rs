//! Tests a store that is unavailable for a while: no run fails for it, and no agent has more time for it.

use harness::{Up, World, docker::docker, eventually::eventually_within, process::is_suspended};
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};
use test_postgres::Server;

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, order, state},
    sandbox::shell_agent,
};

/// Starts a world that keeps its runs in its own Postgres.
async fn world(agents: &str) -> (World, Server) {
    let postgres = Server::start().await;
    let mut world = World::with(&format!("{agents}{LEASE}")).await;
    assert!(world.stop_proxy().await);
    drop(world.keep_store_at(&postgres.url()).await);
    (world, postgres)
}

/// Counts the containers of the world in which something runs.
async fn at_work(world: &World) -> usize {
    let of = format!("label=sluicegate.installation={}", world.installation());
    docker(&["ps", "--quiet", "--filter", &of]).await.lines().count()
}

#[tokio::test]
async fn a_run_times_out_while_the_store_is_away() {
    let late = "[agents.'test:late']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['sleep', '60']\nprotocol = 'text'\nrun_timeout = '12s'\n";
    let (world, postgres) = world(&format!("{}{late}", shell_agent("sleep 60", "run_timeout = '55s'"))).await;
    let up = Up::start(world.sluice()).await;
    for (run, agent) in [("late", "test:late"), ("long", "test:sh")] {
        order(&world, run, agent).await;
    }
    eventually_within(PATIENCE, "both run", || at_work(&world), |agents| *agents == 2).await;
    postgres.pause();
    assert_eq!(at_work(&world).await, 2, "none was over its time before");
    eventually_within(PATIENCE, "one is ended", || at_work(&world), |agents| *agents == 1).await;
    postgres.resume();
    let late = ended(&world, "late").await;
    assert_eq!(late["state"], "timed_out", "{late:#}");
    assert_eq!(state(&world, "long").await, "running", "that the store was away ends nothing");
    let cancelled = world.sluice().run(&["runs", "cancel", "long"]).await;
    assert_eq!(cancelled.stdout.trim(), "long cancelled", "{cancelled:?}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_being_prepared_waits_for_the_store() {
    let (world, postgres) = world("").await;
    let log = world.path().join("up.log");
    let armed = format!("{}:stop", Point::WorkspaceMade.name());
    let up = Up::start(world.sluice().log_to(&log).env("SLUICE_FAILPOINT", &armed)).await;
    order(&world, "r1", "sandbox:agent").await;
    let pid = up.child.id().unwrap();
    let suspended = || async { is_suspended(pid) };
    eventually_within(PATIENCE, "it stands still", suspended, |suspended| *suspended).await;
    postgres.pause();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::CONT).unwrap();
    // Longer than the lease, and than anything would wait that is not meant to.
    let said = || async { std::fs::read_to_string(&log).unwrap() };
    eventually_within(PATIENCE, "it waits", said, |said| said.contains("store unavailable")).await;
    postgres.resume();
    let record = ended(&world, "r1").await;
    assert_eq!(record["state"], "succeeded", "{record:#}");
    assert_eq!(world.upstream.ledger().all().len(), 1, "its agent ran once");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
