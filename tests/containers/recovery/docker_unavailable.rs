//! Kills, holds and restarts Docker while runs are at work and while they start, on a daemon of the test's own.

use std::{fs, time::Duration};

use harness::{
    CuttingDocker, Up, World,
    dockerd::{Containers, Dockerd},
    eventually::eventually_within,
    holds_for,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, let_go, order, record, state},
    sandbox::shell_agent,
};

/// Script that counts until it is released, remembers how often it was started, and prints all of it.
const COUNTS: &str = "echo started >> starts; n=0; \
     until [ -e go ]; do n=$((n+1)); echo $n; echo $n > n; sleep 0.05; done; \
     echo $n, $(wc -l < starts); touch ended";
/// Script that counts in one line, which has no end until its own.
const LINE: &str = "until [ -e go ]; do n=$((n+1)); printf '%s ' $n; echo $n > n; sleep 0.05; done";
/// Agent that runs `COUNTS`.
const AGENT: &str = "test:sh";

/// Starts a world with an agent and another one that may run for seconds only, on `dockerd`, with a worker.
async fn at_work(dockerd: &Dockerd) -> (World, Up) {
    let hasty = "[agents.'test:hasty']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['sleep', '60']\nprotocol = 'text'\nrun_timeout = '8s'\n";
    let settings = "run_timeout = '100s'\ndisk = '32 MiB'";
    let line = shell_agent(LINE, settings).replace("test:sh", "test:line");
    let agents = shell_agent(COUNTS, settings) + &line + hasty;
    let mut world = World::with(&format!("{agents}{LEASE}max_concurrent_runs = 12\n")).await;
    assert!(world.stop_proxy().await);
    world.use_docker_on(&dockerd.socket());
    let up = Up::start(world.sluice().env("SLUICE_LOG", "warn")).await;
    (world, up)
}

/// Returns the number that a run's agent has counted to.
async fn counted(world: &World, run: &str) -> u64 {
    let record = record(world, run).await;
    assert!(record["ended_ms"].is_null(), "{run} is over: {} {}", record["error"], record["resources"]);
    let text = fs::read_to_string(world.workspace(run).await.join("n")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Waits until each agent has counted `further`.
async fn all_count(world: &World, runs: &[String], further: u64) {
    for run in runs {
        let from = counted(world, run).await;
        let look = || counted(world, run);
        eventually_within(PATIENCE, "it counts", look, |now| *now >= from + further).await;
    }
}

async fn order_all(world: &World, runs: &[String]) {
    for run in runs {
        order(world, run, AGENT).await;
    }
}

fn named(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{what}-{number}")).collect()
}

/// Asserts that an agent was started once, came to its end, and that nothing of what it printed is missing.
fn assert_unharmed(record: &Value) {
    assert_eq!(record["state"], json!("succeeded"), "{record:#}");
    let answer = record["answer"].as_str().unwrap();
    let (counted, last) = answer.rsplit_once('\n').unwrap_or(("", answer));
    let (most, starts) = last.split_once(", ").unwrap();
    let expected: Vec<_> = (1..=most.parse::<u64>().unwrap()).map(|n| n.to_string()).collect();
    assert_eq!(
        (counted.lines().collect::<Vec<_>>(), starts),
        (expected.iter().map(String::as_str).collect(), "1")
    );
}

async fn nothing_left(world: &World, dockerd: &Dockerd) {
    assert_eq!(dockerd.containers().await, Vec::<String>::new());
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_paused_docker_harms_no_run() {
    let dockerd = Dockerd::start(Containers::GoOn).await;
    let (world, up) = at_work(&dockerd).await;
    let (at_work, starting) = (named("works", 3), named("starts", 4));
    order_all(&world, &at_work).await;
    all_count(&world, &at_work, 5).await;
    order(&world, "hasty", "test:hasty").await;
    let look = || state(&world, "hasty");
    eventually_within(PATIENCE, "it runs", look, |state| state == "running").await;
    order_all(&world, &starting).await;
    dockerd.signal(Signal::STOP);
    // The story: so long, in which one run's time is over.
    let hasty = || record(&world, "hasty");
    let still = "nobody can end it";
    holds_for(Duration::from_secs(12), still, hasty, |hasty| hasty["ended_ms"].is_null()).await;
    dockerd.signal(Signal::CONT);
    let hasty = ended(&world, "hasty").await;
    assert_eq!(
        (&hasty["state"], &hasty["error"]["code"]),
        (&json!("timed_out"), &json!("timeout")),
        "{hasty:#}"
    );
    all_count(&world, &starting, 5).await;
    for run in at_work.iter().chain(&starting) {
        let_go(&world, run).await;
    }
    for run in at_work.iter().chain(&starting) {
        assert_unharmed(&ended(&world, run).await);
    }
    up.stop(Signal::TERM).await;
    nothing_left(&world, &dockerd).await;
}

/// Containers run on beside Docker. An answer is whole, or the run fails: Docker loses the end of one that ends without
/// it, and the beginning of an unfinished line.
#[tokio::test]
async fn a_killed_docker_shortens_no_answer() {
    let mut dockerd = Dockerd::start(Containers::GoOn).await;
    let (world, up) = at_work(&dockerd).await;
    let go_on = named("goes-on", 2);
    order_all(&world, &go_on).await;
    order(&world, "ends", AGENT).await;
    order(&world, "line", "test:line").await;
    let all = [&go_on[..], &["ends".to_owned(), "line".to_owned()]].concat();
    all_count(&world, &all, 5).await;
    let workspace = world.workspace("ends").await;
    dockerd.end(Signal::KILL).await;
    fs::write(workspace.join("go"), "").unwrap();
    let has_ended = || std::future::ready(workspace.join("ended").exists());
    eventually_within(PATIENCE, "it ends without Docker", has_ended, |ended| *ended).await;
    dockerd.again(Containers::GoOn).await;
    all_count(&world, &go_on, 5).await;
    for run in [&go_on[..], &["line".to_owned()]].concat() {
        let_go(&world, &run).await;
    }
    for run in &go_on {
        assert_unharmed(&ended(&world, run).await);
    }
    for run in ["ends", "line"] {
        let record = ended(&world, run).await;
        let found = (&record["state"], &record["error"]["code"], &record["exit_code"]);
        assert_eq!(found, (&json!("failed"), &json!("docker_unavailable"), &json!(0)), "{record:#}");
    }
    // The control: with Docker there, both succeed.
    for (run, agent) in [("whole", AGENT), ("whole-line", "test:line")] {
        order(&world, run, agent).await;
        all_count(&world, &[run.to_owned()], 5).await;
        let_go(&world, run).await;
        assert_eq!(ended(&world, run).await["state"], json!("succeeded"));
    }
    up.stop(Signal::TERM).await;
    nothing_left(&world, &dockerd).await;
}

/// A relay between Sluicegate and Docker ends the attachment, and nothing else.
#[tokio::test]
async fn the_end_of_a_connection_is_no_end_of_output() {
    const PRINTS: &str = "echo cut here; until [ -e go ]; do sleep 0.05; done; seq 20; until [ -e end ]; do sleep 0.05; done; seq 3";
    let answer: Vec<_> = (1..=20).chain(1..=3).map(|line| line.to_string()).collect();
    let answer = format!("cut here\n{}", answer.join("\n"));
    for (mark, cuts) in [("cut here", 1), ("never printed", 0)] {
        let mut world = World::with(&(shell_agent(PRINTS, "run_timeout = '100s'\n") + LEASE)).await;
        assert!(world.stop_proxy().await);
        let docker = CuttingDocker::on(&world.path().join("cut.sock"), mark);
        world.use_docker_on(docker.socket());
        let up = Up::start(world.sluice().env("SLUICE_LOG", "warn")).await;
        order(&world, "r1", AGENT).await;
        let printed = async |text: &str| {
            let events = world.sluice().run(&["runs", "events", "r1"]).await.stdout;
            events.contains(text)
        };
        eventually_within(PATIENCE, "it prints", || printed("cut here"), |printed| *printed).await;
        eventually_within(PATIENCE, "it is cut", || std::future::ready(docker.cuts()), |seen| *seen == cuts)
            .await;
        let_go(&world, "r1").await;
        eventually_within(PATIENCE, "its output comes live", || printed("19"), |printed| *printed).await;
        fs::write(world.workspace("r1").await.join("end"), "").unwrap();
        let record = ended(&world, "r1").await;
        assert_eq!(
            (&record["state"], &record["answer"]),
            (&json!("succeeded"), &json!(answer)),
            "{record:#}"
        );
        assert_eq!(docker.cuts(), cuts);
        up.stop(Signal::TERM).await;
        world.assert_nothing_left().await;
    }
}

/// Docker ends its containers; the next runs succeed.
#[tokio::test]
async fn a_docker_restart_fails_only_current_runs() {
    let mut dockerd = Dockerd::start(Containers::End).await;
    let (world, up) = at_work(&dockerd).await;
    for (signal, exit_code) in [(Signal::TERM, 143), (Signal::KILL, 143)] {
        let runs = named(&format!("s{}", signal.as_raw()), 3);
        order_all(&world, &runs).await;
        all_count(&world, &runs, 5).await;
        dockerd.end(signal).await;
        dockerd.again(Containers::End).await;
        for run in &runs {
            let record = ended(&world, run).await;
            assert_eq!(
                (&record["state"], &record["exit_code"], &record["error"]["code"]),
                (&json!("failed"), &json!(exit_code), &json!("container_failed")),
                "{record:#}"
            );
            let message = record["error"]["message"].as_str().unwrap();
            assert!(message.contains("SIGTERM"), "{message}");
        }
    }
    let runs = named("after", 2);
    order_all(&world, &runs).await;
    all_count(&world, &runs, 5).await;
    for run in &runs {
        let_go(&world, run).await;
        assert_unharmed(&ended(&world, run).await);
    }
    up.stop(Signal::TERM).await;
    nothing_left(&world, &dockerd).await;
}
