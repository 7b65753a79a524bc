//! Tests that runs survive their worker: killed at any point, stopped, started again.

use std::{fs, time::Duration};

use harness::{
    Up, World,
    docker::{Starts, containers_of},
    eventually::eventually_within,
};
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::sandbox::shell_agent;

/// Lease that is short, so that a run is soon taken over after its worker died.
pub(crate) const LEASE: &str = "[worker]\nlease_duration = '2s'\n";
/// Longest time from a kill to the end of the run: the lease, and everything anew on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a world without a proxy: `sluice up` starts one.
async fn world(agent: &str) -> World {
    let mut world = World::with(&format!("{agent}{LEASE}")).await;
    assert!(world.stop_proxy().await);
    world
}

/// Orders a run that `sluice up` is to work on.
pub(crate) async fn order(world: &World, run: &str, agent: &str) {
    let outcome = world.sluice().run(&["run", "--detach", "--run-id", run, "--agent", agent, "q"]).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), run), "{outcome:?}");
}

/// Returns everything that is known of a run.
pub(crate) async fn record(world: &World, run: &str) -> Value {
    let outcome = world.sluice().run(&["runs", "show", run, "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.result()
}

pub(crate) async fn state(world: &World, run: &str) -> String {
    record(world, run).await["state"].as_str().unwrap().to_owned()
}

/// Waits for the end of a run, and returns it.
pub(crate) async fn ended(world: &World, run: &str) -> Value {
    let over = |record: &Value| !record["ended_ms"].is_null();
    eventually_within(PATIENCE, &format!("{run} ends"), || record(world, run), over).await
}

/// Starts counting the starts of the world's agents.
async fn follow(world: &World) -> Starts {
    Starts::follow(&world.installation(), &world.path().join("starts")).await
}

/// Agent that answers from the model, by the one call that a run makes.
const ASKS: &str = "sandbox:agent";

#[tokio::test]
async fn a_queued_run_is_executed_by_the_next_worker() {
    let world = world("").await;
    let starts = follow(&world).await;
    order(&world, "r1", ASKS).await;
    assert_eq!(state(&world, "r1").await, "queued", "nobody is there");
    let up = Up::start(world.sluice()).await;
    let waited = world.sluice().run(&["runs", "wait", "r1"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(waited.stdout.trim(), record(&world, "r1").await["answer"].as_str().unwrap());
    order(&world, "r1", ASKS).await;
    assert_eq!(world.upstream.ledger().all().len(), 1, "the same order again is the same run");
    assert_eq!(starts.of("r1"), 1);
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Nothing is done twice, either.
#[tokio::test]
async fn a_worker_death_at_any_step_loses_nothing() {
    let world = world("").await;
    let starts = follow(&world).await;
    for point in Point::ALL {
        let run = format!("r-{}", point.name());
        let armed = world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
        let mut up = Up::start(armed).await;
        order(&world, &run, ASKS).await;
        assert_eq!(up.death().await, Some(9), "{} was reached", point.name());
        // The proxy goes on, and the next worker adopts it.
        let next = Up::start(world.sluice()).await;
        assert!(next.said.contains("adopted"), "{}", next.said);
        let record = ended(&world, &run).await;
        assert_eq!(record["state"], "succeeded", "{}: {record:#}", point.name());
        assert_eq!(starts.of(&run), 1, "{}: an agent is started once", point.name());
        eventually_within(PATIENCE, "nothing is left", || world.left(), Vec::is_empty).await;
        next.stop(Signal::TERM).await;
        up.kill_proxy().await;
    }
    assert_eq!(world.upstream.ledger().all().len(), Point::ALL.len(), "one call of each run");
}

fn kill(pid: u32) {
    // It may be gone already, which is as good.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).ok();
}

/// The next worker stores that the agent was cancelled or had timed out.
#[tokio::test]
async fn the_reason_of_an_end_outlives_its_worker() {
    let hangs = "[agents.'test:late']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['sleep', '60']\nprotocol = 'text'\nrun_timeout = '6s'\n\
                 [agents.'test:long']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['sleep', '60']\nprotocol = 'text'\n";
    let world = world(hangs).await;
    for (run, end) in [("late", "timed_out"), ("long", "cancelled")] {
        let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", "ended:kill")).await;
        order(&world, run, &format!("test:{run}")).await;
        eventually_within(PATIENCE, "it runs", || state(&world, run), |state| state == "running").await;
        if run == "long" {
            let mut cancel = world.sluice().spawn(&["runs", "cancel", run]);
            up.child.wait().await.unwrap();
            cancel.kill().await.unwrap();
        } else {
            up.child.wait().await.unwrap();
        }
        let next = Up::start(world.sluice()).await;
        let record = ended(&world, run).await;
        assert_eq!((&record["state"], &record["epoch"]), (&json!(end), &json!(2)), "{record:#}");
        next.stop(Signal::TERM).await;
        up.kill_proxy().await;
    }
    world.assert_nothing_left().await;
}

/// Returns an agent that says something, waits until it may go on, and says something else. Its workspace is small: runs
/// wait while the disk has less space than all of them may use.
fn patient() -> String {
    let settings = "run_timeout = '60s'\ndisk = '32 MiB'";
    shell_agent("echo before; until [ -e go ]; do sleep 0.1; done; echo after", settings)
}

#[tokio::test]
async fn twenty_agents_survive_a_change_of_workers() {
    const RUNS: usize = 20;
    let world = world(&patient()).await;
    let starts = follow(&world).await;
    world.reconfigure(
        "lease_duration = '2s'",
        &format!("lease_duration = '2s'\nmax_concurrent_runs = {RUNS}"),
    );
    let mut up = Up::start(world.sluice()).await;
    let runs: Vec<_> = (0..RUNS).map(|n| format!("r{n}")).collect();
    for run in &runs {
        order(&world, run, "test:sh").await;
    }
    for run in &runs {
        // `running` is stored before the start, and a worker that dies in between leaves it to the next one.
        eventually_within(PATIENCE, "they run", || async { starts.of(run) }, |starts| *starts == 1).await;
    }
    // The first ones end while no worker watches.
    kill(up.child.id().unwrap());
    up.child.wait().await.unwrap();
    for run in &runs[..RUNS / 2] {
        let_go(&world, run).await;
    }
    let next = Up::start(world.sluice()).await;
    for run in &runs[RUNS / 2..] {
        let_go(&world, run).await;
    }
    for run in &runs {
        let record = ended(&world, run).await;
        assert_eq!(
            (&record["state"], &record["answer"]),
            (&json!("succeeded"), &json!("before\nafter")),
            "{record:#}"
        );
        assert_eq!((record["epoch"].as_u64(), starts.of(run)), (Some(2), 1), "{run}");
    }
    next.stop(Signal::TERM).await;
    kill(up.proxy_pid);
    world.assert_nothing_left().await;
}

/// Lets a patient agent go on.
pub(crate) async fn let_go(world: &World, run: &str) {
    fs::write(world.workspace(run).await.join("go"), "").unwrap();
}

#[tokio::test]
async fn a_stopped_worker_hands_its_runs_over_at_once() {
    let world = world(&patient()).await;
    world.reconfigure("lease_duration = '2s'", "lease_duration = '10min'");
    let up = Up::start(world.sluice()).await;
    order(&world, "r1", "test:sh").await;
    // The agent itself: its first process does not start where the proxy, which stops with the worker, has no socket yet.
    let printed = || async { world.sluice().run(&["runs", "logs", "r1"]).await.stdout };
    eventually_within(PATIENCE, "the agent works", printed, |printed| printed.contains("before")).await;
    up.stop(Signal::TERM).await;
    let containers = containers_of(&world.installation()).await;
    assert_eq!(containers.len(), 1, "the agent is still at work");
    let next = Up::start(world.sluice()).await;
    let_go(&world, "r1").await;
    let record = ended(&world, "r1").await;
    assert_eq!(record["answer"], "before\nafter", "{record:#}");
    next.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_runs_to_the_next() {
    // Docker waits two seconds before it kills an agent that does not care.
    let stubborn = shell_agent(
        "trap 'touch told' TERM; touch set; until [ -e go ]; do sleep 0.1; done",
        "run_timeout = '60s'",
    );
    let world = world(&stubborn).await;
    for times in [1, 2] {
        let run = format!("r{times}");
        order(&world, &run, "test:sh").await;
        let mut up = world.sluice().seated(&["up"]);
        up.sees("it is ready", |screen| screen.contains("twice leaves them")).await;
        let running = || async { containers_of(&world.installation()).await.len() };
        eventually_within(PATIENCE, "it runs", running, |agents| *agents == 1).await;
        eventually_within(PATIENCE, "it runs", || state(&world, &run), |state| state == "running").await;
        let workspace = world.workspace(&run).await;
        let (set, told) = (workspace.join("set"), workspace.join("told"));
        eventually_within(PATIENCE, "it does not care", || async { set.exists() }, |set| *set).await;
        for _ in 0..times {
            up.signal(Signal::INT);
            eventually_within(PATIENCE, "it is told", || async { told.exists() }, |told| *told).await;
        }
        let left = up.left().await;
        assert_eq!(left.code, 0, "{}", left.text);
        let agents = containers_of(&world.installation()).await.len();
        assert_eq!(agents, times - 1, "one Ctrl-C cancels, the second leaves: {}", left.text);
    }
    let next = Up::start(world.sluice()).await;
    let record = ended(&world, "r2").await;
    assert_eq!((&record["state"], &record["epoch"]), (&json!("cancelled"), &json!(2)), "{record:#}");
    next.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn runs_are_cancelled_wherever_they_are() {
    let world = world(&patient()).await;
    order(&world, "waits", "test:sh").await;
    let cancel = async |run| world.sluice().run(&["runs", "cancel", run]).await;
    let outcome = cancel("waits").await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), "waits cancelled"), "{outcome:?}");

    let up = Up::start(world.sluice()).await;
    order(&world, "works", "test:sh").await;
    eventually_within(PATIENCE, "it runs", || state(&world, "works"), |state| state == "running").await;
    assert_eq!(cancel("works").await.stdout.trim(), "works cancelled");
    let waited = world.sluice().run(&["runs", "wait", "works"]).await;
    assert_eq!(waited.code, Some(130), "{waited:?}");
    assert_eq!(cancel("works").await.stdout.trim(), "works cancelled", "once more changes nothing");

    // A worker in another process learns of the cancellation as well.
    let child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "here", "q"]);
    world.workspace("here").await;
    eventually_within(PATIENCE, "it runs", || state(&world, "here"), |state| state == "running").await;
    cancel("here").await;
    assert_eq!(child.wait_with_output().await.unwrap().status.code(), Some(130));
    let unknown = cancel("nobody").await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_outlives_its_proxy() {
    let world = world(&patient()).await;
    let up = Up::start(world.sluice()).await;
    order(&world, "r1", "test:sh").await;
    eventually_within(PATIENCE, "it runs", || state(&world, "r1"), |state| state == "running").await;
    kill(up.proxy_pid);
    let back = || async { world.control.health().await.map(|health| health.pid).unwrap_or(up.proxy_pid) };
    let proxy = eventually_within(PATIENCE, "the proxy is back", back, |pid| *pid != up.proxy_pid).await;
    let_go(&world, "r1").await;
    assert_eq!(ended(&world, "r1").await["answer"], "before\nafter");
    up.stop(Signal::TERM).await;
    kill(proxy);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_workspace_is_kept_when_that_is_asked_for() {
    let world = World::with(&shell_agent("echo work > result; echo done", "")).await;
    let outcome = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r1", "--keep", "q"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let record = record(&world, "r1").await;
    let stages: Vec<_> = record["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thing| (&thing["kind"], &thing["stage"]))
        .collect();
    assert!(stages.contains(&(&json!("workspace"), &json!("kept"))), "{stages:?}");
    assert_eq!(fs::read_to_string(world.workspace("r1").await.join("result")).unwrap(), "work\n");
}
