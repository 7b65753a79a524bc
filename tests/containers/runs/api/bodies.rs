//! Tests the form of request bodies: an array of its values replaces no object.

use harness::served::Served;
use http::Method;

use super::orders::{ended, order_text};

const RUNS: &str = "/api/v1/runs";
const CHAT: &str = "/api/v1/ai/chat";
const COMPLETIONS: &str = "/v1/chat/completions";

/// Bodies with an array of the fields in place of an object: the whole body, and each object in it.
const ARRAYS: [(&str, &str, &str); 12] = [
    ("POST", RUNS, r#"["q","test:sh","fake",[],null,"normal",null,{},false]"#),
    ("PUT", "/api/v1/runs/r2", r#"["q","test:sh","fake",[],null,"normal",null,{},false]"#),
    ("POST", RUNS, r#"{"input":"q","agentId":"test:sh","model":"fake","limits":[1000,null]}"#),
    ("POST", RUNS, r#"{"input":"q","agentId":"test:sh","model":"fake","messages":[["user","m"]]}"#),
    ("POST", "/api/v1/runs/r1/again", "[1]"),
    ("PUT", "/api/v1/accounts/acct-7/limits", r#"[1,1,1,1,1,1,"1"]"#),
    ("POST", CHAT, r#"[null,[],"q","submit-message",null,"test:sh","fake","s",null]"#),
    ("POST", CHAT, r#"{"graphName":"test:sh","model":"fake","messages":[["m1","user",[],"q"]]}"#),
    ("POST", CHAT, r#"{"graphName":"test:sh","model":"fake","message":["m1","user",[],"q"]}"#),
    ("POST", COMPLETIONS, r#"["test:sh",[{"role":"user","content":"q"}],false,null]"#),
    ("POST", COMPLETIONS, r#"{"model":"test:sh","messages":[["user","q"]]}"#),
    (
        "POST",
        COMPLETIONS,
        r#"{"model":"test:sh","messages":[{"role":"user","content":"q"}],"stream_options":[true]}"#,
    ),
];

#[tokio::test]
async fn an_array_replaces_no_object_of_a_body() {
    let there = Served::with("").await;
    let operator = there.of_role("operator", "acct-7", "operator").await;
    let send = async |method: &str, path: &str, body: String| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        operator.request(method, path, body.into()).await.unwrap()
    };
    assert_eq!(send("PUT", "/api/v1/runs/r1", order_text("test:sh")).await.status, 201, "control");
    ended(&operator, "r1").await;
    for (method, path, body) in ARRAYS {
        let answer = send(method, path, body.to_owned()).await;
        assert_eq!(answer.status, 400, "{method} {path} {body}: {}", answer.text());
    }
    let runs = operator.get(RUNS).await.json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 1, "none of them ordered a run");
    there.end().await;
}
