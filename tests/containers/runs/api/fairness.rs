//! Tests that the orders of one account do not delay those of another.

use std::time::Duration;

use futures_util::FutureExt;
use harness::{Agent, Answer, eventually::eventually_within};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::orders::{Served, ended};
use crate::recovery::survival::PATIENCE;

/// More orders than are read at a time.
const SLOW_ORDERS: usize = 12;

#[tokio::test]
async fn slow_orders_delay_no_other_account() {
    let there = Served::with("").await;
    let token = there.token(&["slow", "--account", "acct-1"]).await;
    let slow = there.authorized(&token);
    let other = there.principal(&["other", "--account", "acct-2"]).await;
    let mut wires = Vec::new();
    for _ in 0..SLOW_ORDERS {
        let mut wire = there.api.connect().await.unwrap();
        let head = format!(
            "POST /api/v1/runs HTTP/1.1\r\nhost: localhost:8080\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
        );
        wire.write_all(head.as_bytes()).await.unwrap();
        wires.push(wire);
    }
    // An order without a question is refused as soon as it is read.
    let own = || async { timeout(Duration::from_millis(500), post(&slow, json!({}))).await.ok() };
    eventually_within(PATIENCE, "orders of the same account wait", own, Option::is_none).await;
    let ordered = post(&other, json!({ "agentId": "test:sh", "model": "fake", "input": "q" })).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    for wire in &mut wires {
        let answered = wire.read_u8().now_or_never();
        assert!(answered.is_none(), "control: the slow ones wait still");
    }
    ended(&other, ordered.json()["runId"].as_str().unwrap()).await;
    drop(wires);
    eventually_within(PATIENCE, "given up orders wait no longer", own, Option::is_some).await;
    there.end().await;
}

async fn post(api: &Agent, body: Value) -> Answer {
    api.post("/api/v1/runs", &body).await
}
