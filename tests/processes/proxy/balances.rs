//! Tests the balances of accounts at the proxy: below its floor, an account's calls are refused, except free ones.

use harness::{Answer, Run, World};
use http::Method;
use platform_core::{record::Outcome, refusal::Refusal};
use serde_json::{Value, json};

/// A stream that does not end by itself.
const HANGS: &str = "fake-stall2";

async fn set_exhausted(world: &World, accounts: &[&str]) -> Value {
    let lists = json!({ "accounts": accounts, "free_models": ["fake-free"] });
    let answer = world.control.send(Method::PUT, "/v1/exhausted", lists.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn call(run: &Run, model: &str) -> Answer {
    run.agent.chat(model).await
}

#[tokio::test]
async fn an_account_below_its_floor_is_refused() {
    let mut world = World::start().await;
    let (poor, other) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    assert_eq!(call(&poor, "fake").await.status, 200, "control");
    let mut goes_on = poor.agent.stream(HANGS).await;
    goes_on.next().await.unwrap();
    set_exhausted(&world, &["acct-1"]).await;
    let sent = world.upstream.ledger().len();
    let refused = call(&poor, "fake").await;
    assert_eq!(
        (refused.status.as_u16(), &refused.headers["x-should-retry"]),
        (400, &"false".parse().unwrap())
    );
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "balance_exhausted");
    assert_eq!(error["message"], "the balance of this account is below its floor");
    assert_eq!(world.upstream.ledger().len(), sent, "what is refused is not sent");
    assert_eq!(call(&poor, "fake-free").await.status, 200, "a free model");
    assert_eq!(call(&other, "fake").await.status, 200, "another account");
    let in_flight = world.control.run(&poor.grant.run_id).await.unwrap().in_flight;
    assert_eq!(in_flight, 1, "a call in flight goes on");
    drop(goes_on);
    let records = world.journal().await;
    let record = records.iter().find(|line| line.record.outcome == Outcome::Refused).unwrap();
    assert_eq!(record.record.refusal, Some(Refusal::BalanceExhausted));

    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let poor = world.run("r3", "acct-1").await;
    assert_eq!(call(&poor, "fake").await.status, 400, "no restart fills a balance");
    assert_eq!(call(&poor, "fake-free").await.status, 200);
    assert_eq!(set_exhausted(&world, &[]).await["accounts"], json!([]));
    assert_eq!(call(&poor, "fake").await.status, 200, "it was topped up");
}

#[tokio::test]
async fn lists_that_cannot_be_read_change_nothing() {
    let world = World::start().await;
    set_exhausted(&world, &["acct-1"]).await;
    for body in ["[]", r#"{"accounts":["a b"],"free_models":[]}"#, r#"{"accounts":[]}"#] {
        let refused = world.control.send(Method::PUT, "/v1/exhausted", body.to_owned()).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
    }
    let lists = world.control.send(Method::GET, "/v1/exhausted", String::new()).await.json();
    assert_eq!(lists, json!({ "accounts": ["acct-1"], "free_models": ["fake-free"] }));
}
