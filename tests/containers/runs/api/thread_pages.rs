//! Tests that a long thread is shown in pages, which are bounded in bytes.

use harness::Agent;
use serde_json::{Value, json};

use super::{
    chat::{CHAT, chunks, says},
    orders::{Served, assert_problem},
};

/// Answer of 200,000 bytes: six are more than a page has.
const LONG_ANSWER: &str = "head -c 200000 /dev/zero | tr '\\0' a";
const TURNS: usize = 6;

/// Returns a page of the thread `t1`: its questions, the sum of its answers' lengths, and its cursor.
async fn page(api: &Agent, cursor: Option<&str>) -> (Vec<String>, usize, Option<String>) {
    let query = cursor.map(|cursor| format!("?cursor={cursor}")).unwrap_or_default();
    let answer = api.get(&format!("/api/v1/threads/t1{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().len() < (1 << 20) + 1000, "{} bytes", answer.text().len());
    let shown = answer.json();
    let text = |message: &Value| message["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    let messages = shown["messages"].as_array().unwrap();
    let of_role =
        |role: &'static str| messages.iter().filter(move |message| message["role"] == role).map(text);
    let answers = of_role("assistant").map(|text| text.len()).sum();
    (of_role("user").collect(), answers, shown["nextCursor"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn a_long_thread_is_shown_in_pages() {
    let there = Served::of("", LONG_ANSWER).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let other = there.principal(&["other", "--account", "acct-8"]).await;
    for turn in 1..=TURNS {
        let answer = app.post(CHAT, &says("t1", &format!("m{turn}"), &format!("question {turn}"))).await;
        assert_eq!(chunks(&answer).last().unwrap()["type"], "finish");
    }
    let (newest, bytes, cursor) = page(&app, None).await;
    assert_eq!(newest, (2..=TURNS).map(|turn| format!("question {turn}")).collect::<Vec<_>>());
    assert_eq!(bytes, 5 * 200_000, "answers are whole");
    let cursor = cursor.expect("there are older ones");
    let (oldest, bytes, end) = page(&app, Some(&cursor)).await;
    assert_eq!((oldest, bytes, end), (vec!["question 1".to_owned()], 200_000, None));
    // A page is of this thread of this account.
    assert_problem(&app.get("/api/v1/threads/t1?cursor=other-run").await, 400, "invalid_request");
    assert_problem(&app.get("/api/v1/threads/t1?cursor=X").await, 400, "invalid_request");
    assert_problem(&other.get(&format!("/api/v1/threads/t1?cursor={cursor}")).await, 404, "not_found");
    other.post(CHAT, &says("t1", "m1", "own")).await;
    assert_problem(&other.get(&format!("/api/v1/threads/t1?cursor={cursor}")).await, 400, "invalid_request");
    assert_eq!(json!(page(&other, None).await.2), Value::Null);
    there.end().await;
}
