//! refusals tests bad calls: each gets a clear error, and nothing runs.

use platform_core::host_tools::header;
use serde_json::{Value, json};

use crate::{
    double::StoredIssue,
    world::{RawCall, World, id, raw_nest},
};

const READ: &str = "github__read_issue";

fn good() -> RawCall {
    RawCall::exec(READ, "c1", &json!({ "number": 1 }))
}

fn with_body(body: impl Into<Vec<u8>>) -> RawCall {
    RawCall { body: body.into(), ..good() }
}

fn with_args(args: &str) -> RawCall {
    with_body(format!(r#"{{"runId":"r1","callId":"c1","tool":"{READ}","args":{args}}}"#))
}

/// Bad call: its name, the call, code and outcome of the answer, and a part of the message.
type BadCall = (&'static str, RawCall, &'static str, &'static str, &'static str);

/// Returns calls that a run may not make.
fn denied() -> Vec<BadCall> {
    let body = |run: &str, tool: &str| json!({ "runId": run, "callId": "c1", "tool": tool, "args": { "number": 1 } });
    let of_run = |run: &str| with_body(body(run, READ).to_string()).with(header::RUN, run);
    let of_tool = |tool: &str| with_body(body("r1", tool).to_string());
    vec![
        (
            "unknown tool",
            of_tool("github__merge")
                .with(header::TOOL, "github__merge")
                .with(header::GRANTED, "github__merge"),
            "tool_unknown",
            "denied",
            "github__merge",
        ),
        (
            "another case",
            of_tool("GitHub__read_issue")
                .with(header::TOOL, "GitHub__read_issue")
                .with(header::GRANTED, "GitHub__read_issue"),
            "tool_unknown",
            "denied",
            "",
        ),
        (
            "unavailable",
            of_tool("core__metrics_query")
                .with(header::TOOL, "core__metrics_query")
                .with(header::GRANTED, "core__metrics_query"),
            "tool_unavailable",
            "denied",
            "tools.metrics.url",
        ),
        (
            "not granted",
            good().with(header::GRANTED, "core__get_current_time"),
            "policy_denied",
            "denied",
            READ,
        ),
        ("nothing granted", good().with(header::GRANTED, ","), "policy_denied", "denied", ""),
        ("body of another tool", of_tool("github__comment"), "tool_mismatch", "denied", "github__comment"),
        ("no tool allowed", good().with(header::TOOL, ""), "tool_mismatch", "denied", ""),
        ("body of another run", with_body(body("over", READ).to_string()), "run_mismatch", "denied", ""),
        ("unknown run", of_run("absent"), "run_unknown", "denied", "absent"),
        ("ended run", of_run("over"), "run_ended", "denied", "over"),
        ("another attempt", good().with(header::ATTEMPT, "1"), "run_ended", "denied", ""),
        ("another account", good().with(header::ACCOUNT, "acct-2"), "run_unknown", "denied", ""),
    ]
}

/// Returns calls with a wrong text.
fn invalid() -> Vec<BadCall> {
    let deep = format!("{{\"number\":{}1{}}}", "[".repeat(60), "]".repeat(60));
    let bomb = format!("{{\"number\":{}", "{\"a\":".repeat(40_000));
    vec![
        ("missing argument", with_args("{}"), "invalid_arguments", "failed", "(rule /required)"),
        ("wrong type", with_args(r#"{"number":"1"}"#), "invalid_arguments", "failed", "at /number:"),
        (
            "wrong range",
            with_args(r#"{"number":0}"#),
            "invalid_arguments",
            "failed",
            "(rule /properties/number/minimum)",
        ),
        ("fraction", with_args(r#"{"number":1.5}"#), "invalid_arguments", "failed", "at /number:"),
        (
            "path as number",
            with_args(r#"{"number":"1/../../x"}"#),
            "invalid_arguments",
            "failed",
            "at /number:",
        ),
        (
            "additional",
            with_args(r#"{"number":1,"repository":"other/secret"}"#),
            "invalid_arguments",
            "failed",
            "repository",
        ),
        ("twice", with_args(r#"{"number":1,"number":2}"#), "invalid_arguments", "failed", "occurs twice"),
        ("nest", with_args(&raw_nest(15)), "invalid_arguments", "failed", "reserved"),
        ("deep", with_args(&deep), "invalid_arguments", "failed", "deeper"),
        ("bomb", with_args(&bomb), "invalid_request", "failed", ""),
        ("no object", with_args("[1]"), "invalid_arguments", "failed", "not an object"),
        ("no JSON", with_body("number=1"), "invalid_request", "failed", ""),
        ("no UTF-8", with_body(b"{\"runId\":\"\xff\"}".to_vec()), "invalid_request", "failed", ""),
        (
            "members twice",
            with_body(format!(
                r#"{{"runId":"r1","runId":"over","callId":"c1","tool":"{READ}","args":{{}}}}"#
            )),
            "invalid_request",
            "failed",
            "duplicate",
        ),
        (
            "unknown member",
            with_body(format!(r#"{{"runId":"r1","callId":"c1","tool":"{READ}","args":{{}},"account":"x"}}"#)),
            "invalid_request",
            "failed",
            "account",
        ),
        (
            "too large",
            with_args(&format!("{{\"number\":\"{}\"}}", "1".repeat(300 << 10))),
            "request_too_large",
            "failed",
            "bytes",
        ),
        ("empty", with_body(""), "invalid_request", "failed", ""),
    ]
}

#[tokio::test]
async fn bad_calls_are_refused_and_run_nothing() {
    let world = World::start().await;
    let issue = StoredIssue { repository: "octo/hello".to_owned(), number: 1, ..StoredIssue::default() };
    world.github.add_issue(issue);
    let ended = world.run("over", "acct-1").await;
    world.end(&ended).await;
    for (name, call, code, outcome, text) in denied().into_iter().chain(invalid()) {
        let answer = world.send(call).await;
        assert_eq!(
            (answer.status, answer.code(), answer.outcome()),
            (200, code, outcome),
            "{name}: {answer:?}"
        );
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(text) && message.len() < 1000, "{name}: {message}");
        assert_eq!(answer.body["ok"], json!(false));
    }
    assert!(world.github.exchanges().is_empty(), "nothing ran");
    for run in ["r1", "over"] {
        assert_eq!(world.store.tool_calls(&id(run)).await.unwrap(), [], "{run}: nothing is stored");
    }
    let answer = world.send(good()).await;
    assert_eq!(answer.outcome(), "done", "the control: {answer:?}");
    assert!(!world.github.exchanges().is_empty());
}

#[tokio::test]
async fn a_wrong_protocol_is_no_call() {
    let world = World::start().await;
    for (name, value, status) in [
        (header::PROTOCOL, "2", 505),
        (header::PROTOCOL, "", 400),
        (header::RUN, "", 400),
        (header::RUN, "R 1", 400),
        (header::ATTEMPT, "-1", 400),
        (header::ACCOUNT, "a\"b", 400),
        (header::CALL, "", 400),
        (header::GRANTED, "a b", 400),
        (header::TOOL, "a/b", 400),
    ] {
        for path in ["/tool/exec", "/mcp"] {
            let answer = world.send(RawCall { path, ..good() }.with(name, value)).await;
            assert_eq!(answer.status, status, "{path} {name}: {answer:?}");
            assert_eq!(answer.outcome(), "", "nothing is executed");
        }
    }
    let twice = RawCall { headers: [good().headers, good().headers].concat(), ..good() };
    assert_eq!(world.send(twice).await.status, 400);
    for (method, path, status) in [("GET", "/mcp", 405), ("GET", "/tool/exec", 405), ("POST", "/", 404)] {
        let call = RawCall { method: method.parse().unwrap(), path, ..good() };
        assert_eq!(world.send(call).await.status, status, "{method} {path}");
    }
    let answer = world
        .send(RawCall::exec("core__get_current_time", "c", &Value::Object(serde_json::Map::default())))
        .await;
    assert_eq!(answer.outcome(), "done", "the control: {answer:?}");
}
