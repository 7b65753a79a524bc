//! Tests many clients of one account at once: each is told of an answer, although some of them do not read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use harness::{
    gateway::{GatewayClient, Step},
    process::status_of,
};
use serde_json::{Value, json};

use super::{PATIENCE, Scene, last_event, send};

const SESSION: &str = "agent:main:main";
/// Clients in all, of each principal, and of those the ones that do not read.
const CLIENTS: usize = 200;
const OF_PRINCIPAL: usize = 25;
const SLOW: usize = 5;
/// Most memory of `sluice up`, in KiB.
const MAX_MEMORY: u64 = 400 << 10;

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Reads until the end of the answer; returns how long each piece of it took from the store to this client.
async fn delays(mut client: GatewayClient) -> Vec<u64> {
    let mut delays = Vec::new();
    loop {
        let frame = client.until(|frame| frame["event"] == "chat").await;
        let at = frame["payload"]["message"]["timestamp"].as_u64();
        delays.extend(at.map(|at| now().saturating_sub(at)));
        if frame["payload"]["state"] == "final" {
            return delays;
        }
    }
}

#[tokio::test]
async fn two_hundred_clients_are_told() {
    let scene = Scene::start().await;
    let mut clients = Vec::new();
    let mut slow = Vec::new();
    for principal in 0..CLIENTS / OF_PRINCIPAL {
        let token = scene.token(&format!("p{principal}"), "acct-1", "member").await;
        for at in 0..OF_PRINCIPAL {
            let client = scene.client("own", &token).await;
            if at < SLOW { slow.push(client) } else { clients.push(client) }
        }
    }
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut first = scene.client("own", &ann).await;
    let pieces =
        (0..100).flat_map(|at| [Step::say(&format!("piece {at} ")), Step::Pause(Duration::from_millis(40))]);
    scene.own.always(pieces.collect());
    let run = send(&mut first, SESSION, "Speak", "key-1").await;
    let told = join_all(clients.into_iter().map(delays));
    let mut delays: Vec<_> = tokio::time::timeout(PATIENCE, told).await.expect("all are told").concat();
    last_event(&mut first, &run).await;
    delays.sort_unstable();
    let p99 = delays[delays.len() * 99 / 100];
    let memory = status_of(scene.up.child.id().unwrap(), "VmRSS:").unwrap_or_default();
    let listed = scene.api(&ann).get("/api/v1/runs").await;
    println!("{} events, p50 {} ms, p99 {p99} ms; {memory} KiB", delays.len(), delays[delays.len() / 2]);
    assert_eq!(listed.status, 200);
    assert!(memory < MAX_MEMORY, "{memory} KiB");
    let answer: Value = first.call("health", json!({})).await;
    assert_eq!(answer["ok"], true, "{answer}");
    drop(slow);
    scene.end().await;
}
