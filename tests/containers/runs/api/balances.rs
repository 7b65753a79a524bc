//! Tests balances over the HTTP API: who sees and who credits them, and what an empty one refuses.

use harness::Served;
use http::Method;
use serde_json::{Value, json};

use super::orders::{assert_problem, ended, order_text};

const FLOOR: &str = "[billing]\nfloor = 0\nfree_models = ['fake-free']\n";

#[tokio::test]
async fn operators_credit_and_owners_read() {
    let there = Served::with(FLOOR).await;
    let owner = there.of_role("owner", "acct-1", "viewer").await;
    let stranger = there.of_role("stranger", "acct-2", "member").await;
    let operator = there.of_role("operator", "acct-3", "operator").await;
    let balance = "/api/v1/accounts/acct-1/balance";
    let unused = json!({ "account": "acct-1", "credits": 0, "floor": 0, "exhausted": false });
    assert_eq!(owner.get(balance).await.json(), unused);
    let credits = "/api/v1/accounts/acct-1/credits";
    let body = json!({ "credits": 500, "note": "invoice 7" });
    assert_problem(&operator.post(credits, &body).await, 400, "invalid_request");
    let keyed = operator.clone().with_header("idempotency-key", "k1");
    for (wrong, said) in [
        (json!({ "credits": 0 }), "`credits`"),
        (json!({ "credits": 1.5 }), "invalid type"),
        (json!({ "credits": 1, "to": "me" }), "unknown field"),
        (json!({ "credits": 9_007_199_254_740_993_u64 }), "`credits`"),
    ] {
        let refused = keyed.post(credits, &wrong).await;
        assert_problem(&refused, 400, "invalid_request");
        assert!(refused.text().contains(said), "{said}: {}", refused.text());
    }
    let made = keyed.post(credits, &body).await;
    let again = keyed.post(credits, &body).await;
    assert_eq!((made.status.as_u16(), again.status.as_u16()), (201, 200), "{}", made.text());
    assert_eq!(made.json(), again.json(), "it counts once");
    assert_eq!(
        (&made.json()["balance"]["credits"], &made.json()["topUp"]["author"]),
        (&json!(500), &json!("principal/operator"))
    );
    assert_problem(&keyed.post(credits, &json!({ "credits": 501 })).await, 409, "idempotency_key_taken");

    assert_eq!(owner.get(balance).await.json()["credits"], 500);
    let month = made.json()["topUp"]["createdAt"].as_str().unwrap()[..7].to_owned();
    let statement = owner.get(&format!("/api/v1/accounts/acct-1/statement?month={month}")).await.json();
    assert_eq!((&statement["opening"], &statement["closing"]), (&json!(0), &json!(500)));
    assert_eq!((&statement["topUps"][0]["note"], &statement["lines"]), (&json!("invoice 7"), &json!([])));
    let owners = owner.clone().with_header("idempotency-key", "k2");
    assert_problem(&owners.post(credits, &body).await, 403, "forbidden");
    for path in
        [balance, "/api/v1/accounts/acct-1/statement?month=2026-11", "/api/v1/accounts/acct-1/receipts"]
    {
        assert_problem(&stranger.get(path).await, 404, "not_found");
        assert_eq!(owner.get(path).await.status, 200, "control");
    }
    for path in
        ["statement", "statement?month=2026-13", "receipts?cursor=x", "receipts?limit=0", "balance?all=1"]
    {
        let refused = owner.get(&format!("/api/v1/accounts/acct-1/{path}")).await;
        assert_problem(&refused, 400, "invalid_request");
    }
    there.end().await;
}

#[tokio::test]
async fn an_account_below_its_floor_orders_nothing() {
    let there = Served::with(FLOOR).await;
    let member = there.of_role("member", "acct-1", "member").await;
    let other = there.of_role("other", "acct-2", "member").await;
    let operator = there.of_role("operator", "acct-3", "operator").await;
    let credit = async |key: &str, credits: i64| {
        let keyed = operator.clone().with_header("idempotency-key", key);
        let credited = keyed.post("/api/v1/accounts/acct-1/credits", &json!({ "credits": credits })).await;
        assert_eq!(credited.status, 201, "{}", credited.text());
    };
    let order = async |model: &str| {
        let body: Value = serde_json::from_str(&order_text("test:sh")).unwrap();
        let mut body = body.as_object().unwrap().clone();
        body.insert("model".to_owned(), json!(model));
        member.post("/api/v1/runs", &json!(body)).await
    };
    let before = order("fake").await;
    assert_eq!(before.status, 201, "{}", before.text());
    ended(&member, before.json()["runId"].as_str().unwrap()).await;
    credit("k1", -5).await;
    let refused = order("fake").await;
    assert_problem(&refused, 402, "balance_exhausted");
    assert!(refused.text().contains("-5 credits, below its floor of 0"), "{}", refused.text());
    let again = format!("/api/v1/runs/{}/again", before.json()["runId"].as_str().unwrap());
    assert_problem(&member.post(&again, &json!({})).await, 402, "balance_exhausted");
    assert_eq!(member.get("/api/v1/accounts/acct-1/balance").await.json()["exhausted"], true);
    let free = order("fake-free").await;
    assert_eq!(free.status, 201, "a free model: {}", free.text());
    ended(&member, free.json()["runId"].as_str().unwrap()).await;
    let put = other.request(Method::PUT, "/api/v1/runs/r2", order_text("test:sh").into()).await.unwrap();
    assert_eq!(put.status, 201, "another account: {}", put.text());
    ended(&other, "r2").await;
    credit("k2", 5).await;
    let topped_up = order("fake").await;
    assert_eq!(topped_up.status, 201, "{}", topped_up.text());
    ended(&member, topped_up.json()["runId"].as_str().unwrap()).await;
    there.end().await;
}
