//! Tests containers that wait for a run: each is one run's, sealed like any other, and none is left.

use std::{collections::BTreeSet, fs};

use harness::{
    Up, World,
    docker::{containers_of, docker},
    dockerd::{Containers, Dockerd},
    eventually::eventually_within,
    pace,
    random::Random,
};
use platform_core::name::header;
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, order, record},
    runs::agents::Scraps,
    sandbox::shell_agent,
};

/// Script that prints what it is and what it finds, leaves something behind, and makes no call.
const LOOKS: &str = "echo $RUN_ID; hostname; ls -A; jq -r .[0].content .cogni/messages.json; \
     id -u; cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '; touch left /tmp/left; echo gone > .cogni/messages.json";

/// Starts a world without a worker, with an agent that keeps `warm` containers waiting.
async fn world(script: &str, warm: usize) -> World {
    let mut world = World::with(&format!(
        "{}{LEASE}",
        shell_agent(script, &format!("disk = '64MiB'\nwarm_pool_size = {warm}\n"))
    ))
    .await;
    assert!(world.stop_proxy().await);
    world
}

/// Returns the names of the containers that wait, or did until a run got them.
async fn warm_containers(world: &World) -> BTreeSet<String> {
    let mut warm_containers = containers_of(&world.installation()).await;
    warm_containers.retain(|name| name.contains("-warm-"));
    warm_containers.into_iter().collect()
}

/// Waits until as many containers as configured are ready; returns their names.
pub(super) async fn until_ready(world: &World, count: usize) -> BTreeSet<String> {
    so_many_wait(world, count).await;
    warm_containers(world).await
}

async fn so_many_wait(world: &World, count: usize) {
    eventually_within(PATIENCE, "they wait", || world.sluice().waiting(), |ready| *ready == count).await;
}

/// Returns the container that a run had.
fn container_of(record: &Value) -> String {
    let things = record["resources"].as_array().unwrap();
    let container = things.iter().rfind(|thing| thing["kind"] == "container").unwrap();
    container["name"].as_str().unwrap().to_owned()
}

/// Orders a run that asks `question`, and waits for its end.
async fn runs(world: &World, run: &str, question: &str) -> Value {
    let arguments = ["run", "--detach", "--run-id", run, "--agent", "test:sh", question];
    let ordered = world.sluice().run(&arguments).await;
    assert_eq!(ordered.code, Some(0), "{ordered:?}");
    ended(world, run).await
}

#[tokio::test]
async fn a_warm_container_serves_one_run_only() {
    let world = world(LOOKS, 2).await;
    let up = Up::start(world.sluice()).await;
    let mut seen = BTreeSet::new();
    for round in 0..4 {
        let waiting = until_ready(&world, 2).await;
        let (run, question) = (format!("r{round}"), format!("question {round}"));
        let id = |name: &String| docker_id(name.clone());
        let ids: Vec<_> = futures_util::future::join_all(waiting.iter().map(id)).await;
        let record = runs(&world, &run, &question).await;
        let container = container_of(&record);
        assert!(waiting.contains(&container), "{container} did not wait: {waiting:?}");
        assert!(seen.insert(container.clone()), "{container} had a run before");
        let answer = record["answer"].as_str().unwrap();
        let lines: Vec<_> = answer.lines().collect();
        let [said_run, host, files, asked, uid, interface] = lines[..] else { panic!("{answer}") };
        assert_eq!((said_run, files, asked, uid), (run.as_str(), ".cogni", question.as_str(), "1001"));
        assert_eq!(interface, "lo", "no network");
        assert!(ids.iter().any(|id| id.starts_with(host)), "{host} is none of {ids:?}");
        assert_eq!(record["state"], "succeeded");
    }
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_warm_container_has_its_agents_port() {
    let ask = "curl --silent --fail $OPENAI_BASE_URL/models >/dev/null && echo $OPENAI_BASE_URL";
    let mut world = World::with(&shell_agent(ask, "bridge_port = 4180\nwarm_pool_size = 1\n")).await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    let waiting = until_ready(&world, 1).await;
    let record = runs(&world, "r1", "question").await;
    assert!(waiting.contains(&container_of(&record)), "{record}");
    assert_eq!(record["answer"], "http://localhost:4180/v1", "{record}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

async fn docker_id(name: String) -> String {
    docker(&["inspect", "--format", "{{.Id}}", &name]).await
}

#[tokio::test]
async fn a_warm_container_is_sealed_like_any_other() {
    let world = world("sleep 1", 1).await;
    let up = Up::start(world.sluice()).await;
    let waiting = until_ready(&world, 1).await;
    let format = "{{json .HostConfig}}\n{{json .Config.Env}}\n{{json .Config.User}}\n{{json .Mounts}}";
    let inspected = docker(&["inspect", "--format", format, waiting.first().unwrap()]).await;
    let parts: Vec<Value> = inspected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [host, env, user, mounts] = &parts[..] else { panic!("{inspected}") };
    assert_eq!((&host["NetworkMode"], &host["ReadonlyRootfs"]), (&"none".into(), &true.into()));
    assert_eq!((&host["CapDrop"][0], user), (&"ALL".into(), &"1001:1001".into()));
    assert_eq!(host["SecurityOpt"][0], "no-new-privileges:true");
    assert!(!env.to_string().contains("RUN_ID"), "nobody's run yet: {env}");
    let writable: Vec<_> = mounts
        .as_array()
        .unwrap()
        .iter()
        .filter(|mount| mount["RW"] == true)
        .map(|mount| &mount["Destination"])
        .collect();
    assert_eq!(writable, ["/workspace"], "{mounts}");
    // It can reach no server: its socket comes with its run.
    let script =
        "ls -A /llm-sock /sluice; curl --silent --max-time 2 http://localhost:8080/health || echo nobody";
    let tried = docker(&["exec", waiting.first().unwrap(), "bash", "-c", script]).await;
    assert!(tried.ends_with("nobody"), "{tried}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Eight are made at a time. They leave nothing behind.
#[tokio::test]
async fn forty_claims_reuse_nothing() {
    const RUNS: usize = 40;
    let world = world(LOOKS, 4).await;
    world.reconfigure("lease_duration = '2s'", "lease_duration = '20s'\nmax_concurrent_runs = 8");
    let up = Up::start(world.sluice()).await;
    until_ready(&world, 4).await;
    let people = (0..8).map(async |person| {
        let mut containers = Vec::new();
        for number in (person..RUNS).step_by(8) {
            let (run, question) = (format!("r{number}"), format!("question {number}"));
            let record = runs(&world, &run, &question).await;
            assert_eq!(record["state"], "succeeded", "{record:#}");
            let answer = record["answer"].as_str().unwrap();
            assert!(answer.starts_with(&format!("{run}\n")) && answer.contains(&question), "{answer}");
            assert_eq!(answer.lines().nth(2), Some(".cogni"), "the workspace was empty: {answer}");
            containers.push(container_of(&record));
        }
        containers
    });
    let containers = futures_util::future::join_all(people).await.concat();
    let distinct: BTreeSet<_> = containers.iter().collect();
    assert_eq!(distinct.len(), RUNS, "one each");
    let warm = containers.iter().filter(|name| name.contains("-warm-")).count();
    assert!(warm >= 4, "those that waited were taken: {containers:?}");
    until_ready(&world, 4).await;
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// The worker dies at any point on the way.
#[tokio::test]
async fn a_warm_run_survives_an_early_worker_death() {
    survives(&Point::ALL[..7]).await;
}

#[tokio::test]
async fn a_warm_run_survives_a_late_worker_death() {
    survives(&Point::ALL[7..]).await;
}

async fn survives(points: &[Point]) {
    let world = world("", 0).await;
    world.reconfigure("[worker]", "[agents.'sandbox:agent']\ndisk = '64MiB'\nwarm_pool_size = 1\n[worker]");
    for point in points {
        let run = format!("r-{}", point.name());
        let armed = world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
        let mut up = Up::start(armed).await;
        until_ready(&world, 1).await;
        order(&world, &run, "sandbox:agent").await;
        up.child.wait().await.unwrap();
        let next = Up::start(world.sluice()).await;
        let record = ended(&world, &run).await;
        assert_eq!(record["state"], "succeeded", "{}: {record:#}", point.name());
        assert!(
            record["resources"].to_string().contains("-warm-"),
            "{}: it took one: {record:#}",
            point.name()
        );
        next.stop(Signal::TERM).await;
        kill(up.proxy_pid);
    }
    let of_runs = world
        .upstream
        .ledger()
        .all()
        .into_iter()
        .filter(|call| !call.header(header::COGNI_RUN_ID).is_empty());
    assert_eq!(of_runs.count(), points.len(), "an agent is started once");
    // Warm containers of killed workers are removed when their leases are over.
    let abandoned = warm_containers(&world).await;
    let up = Up::start(world.sluice()).await;
    let only_new = |warm_containers: &BTreeSet<String>| {
        warm_containers.len() == 1 && warm_containers.is_disjoint(&abandoned)
    };
    eventually_within(PATIENCE, "only one waits", || warm_containers(&world), only_new).await;
    until_ready(&world, 1).await;
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Those that were half made go, too.
#[tokio::test]
async fn warm_containers_of_a_killed_worker_go() {
    let world = world(LOOKS, 2).await;
    for point in Point::POOL {
        let mut up =
            Up::start(world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()))).await;
        up.child.wait().await.unwrap();
        kill(up.proxy_pid);
    }
    let mut up = Up::start(world.sluice()).await;
    let abandoned = until_ready(&world, 2).await;
    up.child.kill().await.unwrap();
    let next = Up::start(world.sluice()).await;
    let only_new = |warm_containers: &BTreeSet<String>| {
        warm_containers.len() == 2 && warm_containers.is_disjoint(&abandoned)
    };
    let reaped = || async {
        drop(world.sluice().run(&["doctor", "--reap"]).await);
        warm_containers(&world).await
    };
    eventually_within(PATIENCE, "what was abandoned is gone", reaped, only_new).await;
    let record = runs(&world, "r1", "q").await;
    assert!(!abandoned.contains(&container_of(&record)));
    next.stop(Signal::TERM).await;
    // It was adopted, and goes on.
    kill(up.proxy_pid);
    world.assert_nothing_left().await;
}

fn kill(pid: u32) {
    // It may be gone already, which is as good.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).ok();
}

#[tokio::test]
async fn warm_containers_follow_their_image_and_entry() {
    let world = world(LOOKS, 1).await;
    let scraps = Scraps::of(&world);
    let image = scraps.image_that_waits("warm", "one").await;
    world.reconfigure("sluicegate/sandbox-runtime:latest", &image);
    let up = Up::start(world.sluice()).await;
    let first = until_ready(&world, 1).await;
    // The name comes to stand for another image.
    scraps.image_that_waits("warm", "two").await;
    let changed = |before: BTreeSet<String>| {
        move |warm_containers: &BTreeSet<String>| {
            warm_containers.len() == 1 && warm_containers.is_disjoint(&before)
        }
    };
    let look = || warm_containers(&world);
    let second = eventually_within(PATIENCE, "the image's", look, changed(first)).await;
    world.reconfigure("warm_pool_size = 1", "warm_pool_size = 1\nmemory = '256MiB'");
    kill_process(Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap(), Signal::HUP).unwrap();
    let third = eventually_within(PATIENCE, "the entry's", look, changed(second)).await;
    let memory = docker(&["inspect", "--format", "{{.HostConfig.Memory}}", third.first().unwrap()]).await;
    assert_eq!(memory, (256 << 20).to_string());
    world.reconfigure("warm_pool_size = 1", "warm_pool_size = 0");
    kill_process(Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap(), Signal::HUP).unwrap();
    eventually_within(PATIENCE, "none", look, BTreeSet::is_empty).await;
    let record = runs(&world, "r1", "q").await;
    assert_eq!(record["state"], "succeeded", "without, too");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn one_that_ended_while_it_waited_is_no_runs() {
    let world = world(LOOKS, 2).await;
    let up = Up::start(world.sluice()).await;
    let waiting = until_ready(&world, 2).await;
    for name in &waiting {
        docker(&["kill", name]).await;
    }
    // At once, and once it was noticed.
    for run in ["r1", "r2"] {
        let record = runs(&world, run, "q").await;
        assert_eq!(record["state"], "succeeded", "{record:#}");
        assert!(!waiting.contains(&container_of(&record)), "{record:#}");
        until_ready(&world, 2).await;
    }
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn no_early_output_of_an_agent_is_lost() {
    let numbers: Vec<_> = (1..=20_000).map(|number| number.to_string()).collect();
    let world = world("seq 20000; exit 3", 1).await;
    let up = Up::start(world.sluice()).await;
    let mut random = Random::of(7);
    for run in 0..5 {
        until_ready(&world, 1).await;
        pace(std::time::Duration::from_millis(random.below(50) as u64)).await;
        let run = format!("r{run}");
        runs(&world, &run, "q").await;
        let record = record(&world, &run).await;
        assert!(container_of(&record).contains("-warm-"));
        assert_eq!(record["exit_code"], 3);
        let logs = world.sluice().run(&["runs", "logs", &run]).await;
        let lines: Vec<_> = logs.stdout.lines().collect();
        assert_eq!(lines, numbers, "{} lines", lines.len());
    }
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// The log says why.
#[tokio::test]
async fn an_image_that_cannot_wait_starts_cold() {
    let world = world(LOOKS, 1).await;
    let scraps = Scraps::of(&world);
    let image = scraps.image("cold", "one").await;
    world.reconfigure("sluicegate/sandbox-runtime:latest", &image);
    let up = Up::start(world.sluice().log_to(&world.path().join("up.log"))).await;
    let record = runs(&world, "r1", "q").await;
    assert_eq!(record["state"], "succeeded", "{record:#}");
    assert!(!container_of(&record).contains("-warm-"));
    let said = || async { fs::read_to_string(world.path().join("up.log")).unwrap() };
    let named = |said: &String| said.contains("do not wait for a start file");
    eventually_within(PATIENCE, "it is told", said, named).await;
    assert_eq!(warm_containers(&world).await.len(), 0);
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_docker_restart_replaces_warm_containers() {
    let mut dockerd = Dockerd::start(Containers::End).await;
    let world = world(LOOKS, 2).await;
    world.use_docker_on(&dockerd.socket());
    let up = Up::start(world.sluice().env("SLUICE_LOG", "warn")).await;
    for signal in [Signal::TERM, Signal::KILL] {
        so_many_wait(&world, 2).await;
        let before = dockerd.containers().await;
        dockerd.end(signal).await;
        dockerd.again(Containers::End).await;
        let run = format!("r{}", signal.as_raw());
        let record = runs(&world, &run, "q").await;
        assert_eq!(record["state"], "succeeded", "{record:#}");
        assert!(!before.contains(&container_of(&record)), "{record:#}");
        let replaced = || dockerd.containers();
        let others = |now: &Vec<String>| now.len() == 2 && now.iter().all(|name| !before.contains(name));
        eventually_within(PATIENCE, "others wait", replaced, others).await;
    }
    up.stop(Signal::TERM).await;
    assert_eq!(dockerd.containers().await, Vec::<String>::new());
    world.assert_nothing_left().await;
}
