//! The overview: what people see equals what the API says, and that equals what runs did.

use harness::{Dashboard, shell_agents::shell_agent};
use serde_json::{Value, json};

const CASES: [&str; 4] = ["ordered", "operator", "member", "ranges"];
/// Script of an agent that calls its model once, and a route that does not exist.
const SCRIPT: &str = "curl -s --output /dev/null http://localhost:8080/v1/chat/completions -H 'content-type: application/json' \
     -d '{\"model\":\"fake\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}'; \
     curl -s --output /dev/null http://localhost:8080/v1/secret; echo done";

/// Returns the sum of the numbers in a column of a table.
fn sum(table: &Value, column: usize) -> u64 {
    let number = |row: &Value| row[column].as_str().unwrap().replace(',', "").parse::<u64>().unwrap();
    table.as_array().unwrap().iter().map(number).sum()
}

/// The page has the figures of the API, and those are of `runs` runs that each made one call.
fn assert_figures(case: &Value, runs: u64) {
    let (tables, told, tiles) = (&case["tables"], &case["api"], &case["tiles"]);
    assert_eq!(told["total"]["calls"], runs, "{case:#}");
    assert_eq!(tiles["Runs ended"], runs.to_string(), "{case:#}");
    assert_eq!(tiles["Refused calls"], runs.to_string(), "{case:#}");
    let tokens =
        told["total"]["inputTokens"].as_u64().unwrap() + told["total"]["outputTokens"].as_u64().unwrap();
    assert!(tokens > 0, "control: {told:#}");
    assert_eq!(sum(&tables["Tokens"], 1) + sum(&tables["Tokens"], 2), tokens, "{case:#}");
    assert_eq!(sum(&tables["Runs by outcome"], 1), runs, "{case:#}");
    assert_eq!(sum(&tables["Waiting times"], 1), runs, "{case:#}");
    assert_eq!((sum(&tables["Models"], 2), sum(&tables["Models"], 3)), (tokens, runs), "{case:#}");
    assert_eq!(tables["Refusals"], json!([["route unknown", runs.to_string()]]), "{case:#}");
    assert_eq!(tables["Spending"].as_array().unwrap().len(), told["byTime"].as_array().unwrap().len());
    let cost = told["total"]["cost"].as_str().unwrap();
    if told["total"]["unpriced"] == told["total"]["calls"] {
        assert_eq!(tiles["Spent"], "no price", "{case:#}");
        return;
    }
    let spent = tiles["Spent"].as_str().unwrap().trim_start_matches('$').parse::<f64>().unwrap();
    assert!((spent - cost.parse::<f64>().unwrap()).abs() < 1e-12, "{spent} is {cost}");
}

#[tokio::test]
async fn an_overview_shows_what_the_api_tells() {
    let dashboard = Dashboard::start("", &shell_agent(SCRIPT, "name = 'Asks once'")).await;
    let cases = dashboard.suite("overview", json!({}), &CASES).await;
    assert_eq!(cases.of("ordered")["ends"], json!(["succeeded", "succeeded", "succeeded"]));
    let operator = cases.of("operator");
    assert_figures(operator, 3);
    assert!(operator["first"].as_str().unwrap().ends_with('/'), "it is the first page: {operator:#}");
    assert_eq!(operator["navigation"][0], "Overview");
    assert_eq!(operator["tables"]["Accounts"].as_array().unwrap().len(), 2, "{operator:#}");
    assert!(operator["tiles"]["Health"].is_string(), "{operator:#}");
    let member = cases.of("member");
    assert_figures(member, 2);
    assert!(!member["text"].as_str().unwrap().contains("acct-8"), "{member:#}");
    assert_eq!((&member["tables"]["Accounts"], &member["tiles"]["Health"]), (&json!([]), &Value::Null));
    let ranges = cases.of("ranges");
    assert_eq!((&ranges["pressed"], &ranges["hour"]), (&json!(["90 days"]), &json!(12)), "{ranges:#}");
    for what in ["errors", "crashes", "violations"] {
        assert_eq!(ranges[what], json!([]), "{ranges:#}");
    }
    dashboard.end().await;
}
