//! Tests the overview: its figures are those of the receipts and the runs, and no account sees those of another.

use harness::{Served, eventually::eventually_within};
use http::Method;
use serde_json::{Value, json};

use super::orders::{assert_problem, ended, order_text};
use crate::recovery::survival::PATIENCE;

/// Agent that calls a model twice, and a route that does not exist.
const SCRIPT: &str = r#"
    ask() { curl --silent --output /dev/null http://localhost:8080/v1/chat/completions \
        --json '{ "model": "fake", "messages": [{ "role": "user", "content": "whispered" }] }'; }
    ask; curl --silent --output /dev/null http://localhost:8080/v1/secret; ask; echo it is done"#;
const RANGES: [(&str, usize); 5] = [("1h", 12), ("24h", 24), ("7d", 7), ("30d", 30), ("90d", 90)];

fn sum(rows: &Value, field: &str) -> u64 {
    let number = |row: &Value| row[field].as_u64().unwrap_or_else(|| panic!("{field}: {row}"));
    rows.as_array().unwrap().iter().map(number).sum()
}

#[tokio::test]
async fn an_overview_equals_receipts_and_runs() {
    let there = Served::of("", SCRIPT).await;
    let owner = there.of_role("owner", "acct-7", "member").await;
    let stranger = there.of_role("stranger", "acct-8", "member").await;
    let operator = there.of_role("operator", "acct-9", "operator").await;
    for run in ["r1", "r2"] {
        let path = format!("/api/v1/runs/{run}");
        let ordered = owner.request(Method::PUT, &path, order_text("test:sh").into()).await.unwrap();
        assert_eq!(ordered.status, 201, "{}", ordered.text());
        ended(&owner, run).await;
    }
    let look = || async { owner.get("/api/v1/ai/overview?range=24h").await.json() };
    let all_there = |seen: &Value| {
        seen["total"]["calls"] == 4 && seen["refusals"] == json!([{ "code": "route_unknown", "count": 2 }])
    };
    let overview = eventually_within(PATIENCE, "all calls are summed up", look, all_there).await;

    // The figures are the sums of the receipts, which the account can read one by one.
    let receipts = owner.get("/api/v1/accounts/acct-7/receipts").await.json()["receipts"].clone();
    let tokens = |kind: &str| -> u64 {
        let of = |receipt: &Value| receipt["tokens"][kind].as_u64().unwrap();
        receipts.as_array().unwrap().iter().map(of).sum()
    };
    let statement = statement(&owner, &overview).await;
    let total = &overview["total"];
    assert!(tokens("input") > 0, "control: {receipts}");
    assert_eq!(
        (&total["inputTokens"], &total["outputTokens"]),
        (&json!(tokens("input")), &json!(tokens("output")))
    );
    assert_eq!((&total["cost"], &total["credits"]), (&statement["lines"][0]["cost"], &statement["charged"]));
    assert_eq!(
        (sum(&overview["byTime"], "calls"), sum(&overview["byTime"], "inputTokens")),
        (4, tokens("input"))
    );
    let row = |name: &str, key: &str| {
        let rows = &overview[name];
        (rows.as_array().unwrap().len(), rows[0][key].clone(), rows[0]["cost"].clone())
    };
    assert_eq!(row("byAccount", "account"), (1, json!("acct-7"), total["cost"].clone()));
    assert_eq!(row("byModel", "model"), (1, json!("fake"), total["cost"].clone()));
    assert_eq!((sum(&overview["runs"], "succeeded"), sum(&overview["runs"], "failed")), (2, 0));
    assert_eq!((sum(&overview["waits"]["groups"], "runs"), &overview["failures"]), (2, &json!([])));
    assert_eq!(overview["approvals"], json!({ "waiting": 0, "oldestAt": null }));

    // Each range has these figures, in its own spans.
    for (range, spans) in RANGES {
        let seen = owner.get(&format!("/api/v1/ai/overview?range={range}")).await.json();
        let rows = [&seen["byTime"], &seen["runs"]].map(|rows| rows.as_array().unwrap().len());
        assert_eq!((rows, &seen["total"]), ([spans; 2], total), "{range}");
    }
    let all = operator.get("/api/v1/ai/overview").await.json();
    assert_eq!((&all["total"], &all["byAccount"][0]["account"]), (total, &json!("acct-7")), "control");
    let others = stranger.get("/api/v1/ai/overview").await.json();
    for field in ["byAccount", "byModel", "failures", "refusals"] {
        assert_eq!(others[field], json!([]), "{field}");
    }
    assert_eq!((&others["total"]["calls"], sum(&others["runs"], "succeeded")), (&json!(0), 0));
    assert!(!others.to_string().contains("acct-7"), "{others}");
    for wrong in ["range=2h", "range=", "account=acct-7"] {
        assert_problem(&stranger.get(&format!("/api/v1/ai/overview?{wrong}")).await, 400, "invalid_request");
    }
    there.end().await;
}

/// Returns the statement of the account of `owner` for the month of the overview.
async fn statement(owner: &harness::Agent, overview: &Value) -> Value {
    let month = &overview["until"].as_str().unwrap()[..7];
    owner.get(&format!("/api/v1/accounts/acct-7/statement?month={month}")).await.json()
}
