//! Tests clients that cost time: slow ones, silent ones, too many. They cost a bounded amount of memory and their own
//! place. They cost other clients nothing.

use std::{fs, net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use harness::{
    Agent, Run, World,
    agent::{Answering, Wire, chat_body},
    eventually,
    eventually::{PATIENCE, eventually_within, settled},
    pace,
    process::cpu_ticks,
    raw::{Raw, read_until},
    shared::{register_shared, share, token},
};
use platform_core::{
    grant::CallTimes,
    limit::Millis,
    record::{JournalLine, Outcome, Timeout},
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::proxy::timeouts::timed;

const CHAT: &str = "/v1/chat/completions";

/// Starts a world with more settings for its proxy.
async fn world_with(settings: &str) -> World {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    world.reconfigure("threads = 2", &format!("threads = 2\n{settings}"));
    world.start_proxy().await;
    world
}

/// Makes one call on a connection that stays open.
async fn call_on(wire: &mut Box<dyn Wire>, token: Option<&str>) -> String {
    let raw = Raw::post(CHAT, &chat_body("fake-words3", Answering::Whole));
    let raw = token.into_iter().fold(raw, |raw, token| raw.header("x-run-token", token));
    wire.write_all(&raw.bytes()).await.unwrap();
    read_until(wire, "\"usage\"").await
}

/// Waits until the proxy closes the connection, and returns what it says before that.
async fn closed(wire: &mut Box<dyn Wire>) -> String {
    let mut text = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, wire.read_to_end(&mut text)).await;
    ended.expect("the proxy closes the connection").ok();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn only_idle_connections_are_closed() {
    let world = world_with("keep_alive_timeout = '1s'").await;
    let run = world.run("r1", "acct-1").await;
    let mut wire = run.agent.connect().await.unwrap();
    for _ in 0..3 {
        assert!(call_on(&mut wire, None).await.starts_with("HTTP/1.1 200"));
        pace(Duration::from_millis(50)).await;
    }
    let slow = Raw::post(CHAT, &chat_body("fake-words3-firstbyte2000ms", Answering::Whole));
    wire.write_all(&slow.bytes()).await.unwrap();
    read_until(&mut wire, "\"usage\"").await;
    assert!(!closed(&mut wire).await.contains("HTTP/1.1"), "no answer to what was not asked");
    assert!(world.records(4).await.iter().all(|line| line.record.outcome == Outcome::Complete));
    let mut health = run.agent.connect().await.unwrap();
    health.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    let text = closed(&mut health).await;
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with('}'), "{text}");
}

#[tokio::test]
async fn a_slow_head_is_answered_as_too_slow() {
    let world = world_with("header_read_timeout = '1s'").await;
    let run = world.run("r1", "acct-1").await;
    let head = Raw::request("GET", "/v1/models").header("x-padding", &"x".repeat(200)).bytes();
    let mut second = run.agent.connect().await.unwrap();
    call_on(&mut second, None).await;
    for mut wire in [run.agent.connect().await.unwrap(), second] {
        let mut sent = 0;
        while sent < head.len() && wire.write_all(&head[sent..=sent]).await.is_ok() {
            sent += 1;
            pace(Duration::from_millis(10)).await;
        }
        assert!(sent < head.len());
        let text = closed(&mut wire).await;
        assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("\"head_too_slow\""), "{text}");
        assert!(text.contains("proxy.header_read_timeout"), "{text}");
    }
    // A client that never sends anything receives nothing.
    assert_eq!(closed(&mut run.agent.connect().await.unwrap()).await, "");
    // Control: in two pieces, and then idle for longer than a head may take.
    let mut wire = run.agent.connect().await.unwrap();
    let call = Raw::post(CHAT, &chat_body("fake-words3", Answering::Whole)).bytes();
    wire.write_all(&call[..20]).await.unwrap();
    pace(Duration::from_millis(50)).await;
    wire.write_all(&call[20..]).await.unwrap();
    read_until(&mut wire, "\"usage\"").await;
    pace(Duration::from_secs(2)).await;
    assert!(call_on(&mut wire, None).await.starts_with("HTTP/1.1 200"));
}

fn memory_kib(world: &World) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", world.proxy_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Number of slow clients of each kind, and memory that each of them may occupy in the proxy.
const SWARM: usize = 100;
const EACH_KIB: u64 = 1 << 10;

/// Starts a slow client: half a head, half a body, an answer that is not read.
async fn slow(run: &Run, kind: usize) -> Box<dyn Wire> {
    let call = Raw::post(CHAT, &chat_body("fake-big1m", Answering::Whole)).bytes();
    let end = [30, call.len() - 10, call.len()][kind];
    let mut wire = run.agent.connect().await.unwrap();
    wire.write_all(&call[..end]).await.unwrap();
    wire
}

#[tokio::test]
async fn slow_clients_are_cut_and_cost_others_nothing() {
    let world = world_with("header_read_timeout = '30s'").await;
    let patient = Millis::seconds(30);
    let times = CallTimes { body_ms: patient, client_ms: patient, ..CallTimes::default() };
    let bad = world.run_with(timed("bad", times)).await;
    let good = world.run("good", "acct-2").await;
    good.agent.chat("fake").await;
    let before = memory_kib(&world);
    let swarm = join_all((0..3 * SWARM).map(|n| slow(&bad, n % 3))).await;
    let in_flight = || async { world.control.health().await.unwrap().in_flight };
    eventually("the swarm is there", in_flight, |calls| *calls == 2 * SWARM as u64).await;
    for _ in 0..50 {
        assert_eq!(good.agent.chat("fake").await.status, 200);
    }
    assert_eq!(in_flight().await, 2 * SWARM as u64, "they are all there still");
    let grown = memory_kib(&world).saturating_sub(before);
    assert!(grown < 3 * SWARM as u64 * EACH_KIB, "the proxy has grown by {grown} KiB");
    eventually_within(Duration::from_secs(90), "all are cut", in_flight, |calls| *calls == 0).await;
    for timeout in [Timeout::Body, Timeout::Client] {
        // Calls in quick succession that were not sent share a record, those with slow heads among them.
        let cut = |lines: &Vec<JournalLine>| {
            let calls = lines
                .iter()
                .filter(|line| line.record.timeout == Some(timeout))
                .map(|line| line.record.calls);
            calls.sum::<u64>() == SWARM as u64
        };
        eventually("each is recorded", || world.journal(), cut).await;
    }
    drop(swarm);
}

/// Returns whether a new connection is served; otherwise it is refused because of too many connections.
async fn is_served(agent: &Agent) -> bool {
    let mut wire = agent.connect().await.unwrap();
    let sent = wire.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").await;
    let text = closed(&mut wire).await;
    let is_told = text.starts_with("HTTP/1.1 503 ") && text.contains("\"too_many_connections\"");
    assert!(text.starts_with("HTTP/1.1 200 ") || is_told || sent.is_err(), "{text}");
    !is_told && sent.is_ok()
}

/// Connections that are there go on.
#[tokio::test]
async fn connections_are_bounded_per_run_and_in_total() {
    let world = world_with("max_connections_per_run = 3\nmax_connections = 6").await;
    let (one, other) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    let third = world.run("r3", "acct-3").await;
    let mut held = Vec::new();
    for (run, room) in [(&one, 3), (&other, 2)] {
        for _ in 0..room {
            let mut wire = run.agent.connect().await.unwrap();
            call_on(&mut wire, None).await;
            held.push(wire);
        }
        assert!(!is_served(&run.agent).await, "there are {room} already");
    }
    assert!(!is_served(&one.agent).await && world.control.health().await.is_ok());
    assert!(is_served(&third.agent).await, "one is always left for a run that has none");
    for wire in &mut held {
        assert!(call_on(wire, None).await.starts_with("HTTP/1.1 200"), "those that are there go on");
    }
    held.truncate(4);
    eventually("there is room again", || is_served(&other.agent), |served| *served).await;
    assert!(!is_served(&one.agent).await, "it has its three still");
    drop(held);
    eventually("for all", || is_served(&one.agent), |served| *served).await;
}

/// Other runs may call on it.
#[tokio::test]
async fn an_idle_shared_connection_outlives_its_run() {
    let mut world = World::start().await;
    share(&mut world, "clients").await;
    let address = register_shared(&world, harness::grant("r1", "acct-1")).await;
    register_shared(&world, harness::grant("r2", "acct-2")).await;
    let token = |run: &str| token(run, 0, "new", 3600);
    let mut wire = Agent::over_tcp(address).connect().await.unwrap();
    assert!(call_on(&mut wire, Some(&token("r1"))).await.starts_with("HTTP/1.1 200"));
    world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
    assert!(call_on(&mut wire, Some(&token("r2"))).await.starts_with("HTTP/1.1 200"));
    assert_eq!(world.records(2).await[1].record.run_id.as_str(), "r2");
    let timers = || async { keepalive_timers(address) };
    eventually("one that vanishes is asked after", timers, |timers| timers == &[true]).await;
    // Control: a connection of a run's own goes with it.
    let own = world.run("r3", "acct-1").await;
    let mut wire = own.agent.connect().await.unwrap();
    call_on(&mut wire, None).await;
    world.control.close(&own.grant.run_id, 0).await.unwrap();
    assert_eq!(closed(&mut wire).await, "");
}

/// Returns for each connection accepted at `address` whether the kernel's keep-alive timer runs (proc(5), `tr`).
fn keepalive_timers(address: SocketAddr) -> Vec<bool> {
    let local = format!("0100007F:{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let established = lines.filter(|fields| fields[1] == local && fields[3] == "01");
    established.map(|fields| fields[5].starts_with("02:")).collect()
}

/// A run wants all connections of a proxy with 256 descriptors; it gets half of the some eighty that there is room for.
#[tokio::test]
async fn one_run_cannot_take_every_descriptor() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    world.start_proxy_within(256).await;
    let (greedy, other) = (world.run("greedy", "acct-1").await, world.run("other", "acct-2").await);
    let mut held = Vec::new();
    for _ in 0..120 {
        let mut wire = greedy.agent.connect().await.unwrap();
        wire.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n").await.ok();
        held.push(wire);
    }
    let mut served = 0;
    for wire in &mut held {
        let mut start = [0; 12];
        wire.read_exact(&mut start).await.unwrap();
        served += usize::from(&start == b"HTTP/1.1 200");
    }
    assert!((20..60).contains(&served), "{served} of 120");
    // Control: there would have been room for more, and others have it.
    assert_eq!(other.agent.chat("fake").await.status, 200);
    let mut more = Vec::new();
    for _ in 0..10 {
        let mut wire = other.agent.connect().await.unwrap();
        assert!(call_on(&mut wire, None).await.starts_with("HTTP/1.1 200"));
        more.push(wire);
    }
}

fn descriptors(world: &World) -> u64 {
    fs::read_dir(format!("/proc/{}/fd", world.proxy_pid())).unwrap().count() as u64
}

/// Changes how many descriptors the proxy may have; returns the previous limit.
fn limit_descriptors(world: &World, limit: Rlimit) -> Rlimit {
    let pid = Pid::from_raw(world.proxy_pid().cast_signed());
    prlimit(pid, Resource::Nofile, limit).unwrap()
}

/// Control goes on, and the proxy accepts again when there are descriptors.
#[tokio::test]
async fn a_lack_of_descriptors_is_survived() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut there = run.agent.connect().await.unwrap();
    call_on(&mut there, None).await;
    let mut streaming = run.agent.stream("fake-words40-gap50ms").await;
    streaming.next().await.unwrap();
    let count = || async { descriptors(&world) };
    let before = settled("descriptors", Duration::from_millis(50), count).await;
    let limit = Rlimit { current: Some(before), maximum: Some(20_000) };
    let was = limit_descriptors(&world, limit);
    assert_eq!(was.current, was.maximum, "it was raised at the start");

    // Each of them takes one at least, if there is one.
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut wire = run.agent.connect().await.unwrap();
        wire.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        waiting.push(wire);
    }
    let log = || async { world.log() };
    eventually("it is said", log, |log| log.contains("cannot accept")).await;
    let cpu = cpu_ticks(world.proxy_pid());
    for _ in 0..10 {
        assert!(world.control.health().await.is_ok());
        pace(Duration::from_millis(50)).await;
    }
    assert!(cpu_ticks(world.proxy_pid()) - cpu < 25, "half a second of waiting is not spent on trying");
    let said = world.log().matches("cannot accept").count();
    assert!(said < 20, "{said} times");
    assert!(streaming.whole().await.is_ok(), "what is under way goes on");

    limit_descriptors(&world, was);
    for mut wire in waiting {
        read_until(&mut wire, "\"status\"").await;
    }
    call_on(&mut there, None).await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
}
