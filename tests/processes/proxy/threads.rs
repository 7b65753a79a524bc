//! Tests which data-plane thread serves what: connections that runs share are spread over all threads, those of one run
//! stay on its thread.

use std::{collections::BTreeMap, time::Duration};

use harness::{
    Agent, Raw, World, agent::Wire, grant, pace, process::voluntary_switches, raw::read_until,
    shared::register_shared,
};
use http::Method;
use platform_core::{control::SocketDir, name::path::SOCKET_FILE};
use serde_json::json;
use tokio::io::AsyncWriteExt;

/// Requests by which a connection shows its thread. Other work wakes a thread a few times meanwhile.
const REQUESTS: u64 = 20;
/// Pause before each of them, in which the thread falls asleep.
const PAUSE_BEFORE_REQUEST: Duration = Duration::from_millis(2);

const THREADS: u64 = 4;

/// Starts a world with a proxy of four threads and a shared listener.
async fn world_of_four_threads() -> World {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    world.reconfigure("threads = 2", "threads = 4\nlisten = '127.0.0.1:0'\nlisten_serves = 'gateways'");
    world.start_proxy().await;
    world
}

/// Opens a connection that stays.
async fn connect(agent: &Agent) -> Box<dyn Wire> {
    let mut wire = Raw::request("GET", "/health").begin(agent).await;
    read_until(&mut wire, r#""ok""#).await;
    wire
}

/// Returns the thread that serves `wire`: each request wakes it, and no other.
async fn thread_of(world: &World, wire: &mut Box<dyn Wire>) -> String {
    let before = voluntary_switches(world.proxy_pid(), "plane-");
    assert_eq!(before.len() as u64, THREADS);
    for _ in 0..REQUESTS {
        pace(PAUSE_BEFORE_REQUEST).await;
        wire.write_all(&Raw::request("GET", "/health").bytes()).await.unwrap();
        read_until(wire, r#""ok""#).await;
    }
    let after = voluntary_switches(world.proxy_pid(), "plane-");
    let woken = |thread: &String| after[thread] - before[thread];
    let home = before.keys().max_by_key(|thread| woken(thread)).unwrap();
    assert!(woken(home) >= REQUESTS / 2, "the requests woke no thread: {before:?}, {after:?}");
    for other in before.keys().filter(|other| *other != home) {
        assert!(woken(other) < REQUESTS / 2, "requests woke {home} and {other}: {before:?}, {after:?}");
    }
    home.clone()
}

/// Opens `count` connections, and returns how many of them each thread serves.
async fn spread(world: &World, agent: &Agent, count: usize) -> BTreeMap<String, usize> {
    let mut wires = Vec::new();
    for _ in 0..count {
        wires.push(connect(agent).await);
    }
    let mut threads = BTreeMap::new();
    for wire in &mut wires {
        *threads.entry(thread_of(world, wire).await).or_default() += 1;
    }
    threads
}

async fn gateway(world: &World) -> Agent {
    let uid = rustix::process::geteuid().as_raw();
    let listener = json!({ "peer_uid": uid, "socket_dir": "00000000000000000000000000000001" });
    let answer = world.control.send(Method::PUT, "/v1/gateways/one", listener.to_string()).await;
    let dir: SocketDir = serde_json::from_slice(&answer.body).unwrap();
    Agent::on(&dir.path.join(SOCKET_FILE))
}

#[tokio::test]
async fn connections_of_a_gateway_use_all_threads() {
    let world = world_of_four_threads().await;
    let gateway = gateway(&world).await;
    let run = world.run("r1", "acct-1").await;
    let threads = spread(&world, &gateway, 16).await;
    assert_eq!(threads.values().copied().collect::<Vec<_>>(), [4; 4], "{threads:?}");
    // The control: a run's own socket is served by one thread.
    let threads = spread(&world, &run.agent, 8).await;
    assert_eq!(threads.len(), 1, "{threads:?}");
}

#[tokio::test]
async fn shared_connections_use_all_threads() {
    let world = world_of_four_threads().await;
    let shared = Agent::over_tcp(register_shared(&world, grant("r1", "acct-1")).await);
    let threads = spread(&world, &shared, 16).await;
    assert_eq!(threads.values().copied().collect::<Vec<_>>(), [4; 4], "{threads:?}");
}

/// An agent that reads an event does not wake the thread that has sent it.
#[tokio::test]
async fn an_event_of_a_stream_wakes_its_thread_once() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut stream = run.agent.stream("fake-words100-gap10ms").await;
    stream.next().await.unwrap();
    let before = voluntary_switches(world.proxy_pid(), "plane-");
    let mut events = 0;
    while stream.next().await.unwrap().is_some() {
        events += 1;
    }
    let after = voluntary_switches(world.proxy_pid(), "plane-");
    let woken = before.keys().map(|thread| after[thread] - before[thread]).max().unwrap();
    assert!(events >= 90, "{events} events came one by one");
    assert!(woken * 10 < events * 13, "{woken} wake-ups for {events} events");
}

/// A thread is not given another run because its turn has come, but because it has the least to do.
#[tokio::test]
async fn runs_open_on_the_thread_with_least_to_do() {
    let world = world_of_four_threads().await;
    let busy = world.run("r0", "acct-1").await;
    let mut wires = Vec::new();
    for _ in 0..8 {
        wires.push(connect(&busy.agent).await);
    }
    let home = thread_of(&world, &mut wires[0]).await;
    let mut threads = BTreeMap::<String, usize>::new();
    for number in 1..=9 {
        let run = world.run(&format!("r{number}"), "acct-1").await;
        let mut wire = connect(&run.agent).await;
        *threads.entry(thread_of(&world, &mut wire).await).or_default() += 1;
    }
    assert_eq!(threads.get(&home), None, "{home} has eight connections, and got a run: {threads:?}");
    assert_eq!(threads.values().copied().collect::<Vec<_>>(), [3; 3], "{threads:?}");
}
