//! Calls that are refused before anything is sent: routes that do not exist, and bodies that do not pass.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use harness::{
    Agent, Bridge, Init, Raw, Run, World,
    agent::{Answering, chat_body},
    eventually, grant,
    raw::read_until,
};
use http::Method;
use platform_core::{
    grant::{CallLimits, RunGrant},
    limit::ByteSize,
    record::Outcome,
    refusal::Refusal,
    route::Route,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// Asserts that nothing was sent, and that each of `count` calls is in the journal as refused for `reason`.
async fn assert_journaled(world: &World, count: usize, reason: Refusal) {
    let records = world.records(count).await;
    assert_eq!((records.len(), world.upstream.ledger().len()), (count, 0), "{:?}", world.upstream.ledger());
    for line in records {
        assert_eq!((line.record.outcome, line.record.refusal), (Outcome::Refused, Some(reason)));
    }
}

#[tokio::test]
async fn an_unknown_route_is_404_and_journaled() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let table = [
        ("GET", "/"),
        ("POST", "/v1/models"),
        ("GET", "/v1/models/"),
        ("GET", "/v1/models/../files"),
        ("GET", "/v1/modelsx"),
        ("GET", CHAT),
        ("PUT", CHAT),
        ("DELETE", CHAT),
        ("POST", "/health"),
        ("GET", "/health/"),
        ("GET", "/health/liveliness"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "//v1/chat/completions"),
        ("POST", "/v1/./chat/completions"),
        ("POST", "/v1/files/../chat/completions"),
        ("POST", "/v1/%63hat/completions"),
        ("POST", "/V1/CHAT/COMPLETIONS"),
        ("POST", "/chat/completions"),
        ("POST", "http://other.example/v1/chat/completions"),
        ("POST", "/v1/files"),
        ("POST", "/v1/mcp/server"),
        ("POST", "/key/generate"),
        ("GET", "/spend/logs"),
        ("OPTIONS", "*"),
    ];
    for (method, target) in table {
        let answer = Raw::request(method, target).ask(&run.agent).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{method} {target}: {answer}");
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(body["error"]["code"], "route_unknown", "{method} {target}");
    }
    assert_journaled(&world, table.len(), Refusal::RouteUnknown).await;
    let routes: Vec<_> =
        world.journal().await.iter().map(|line| (line.record.route, line.record.status)).collect();
    assert_eq!(routes, vec![(Route::Unknown, 404); table.len()]);
}

/// Codex with its built-in provider opens a WebSocket first. On 426 it falls back to HTTP at once.
#[tokio::test]
async fn a_websocket_is_426_and_journaled() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let request = Raw::request("GET", "/v1/responses")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let mut wire = request.begin(&run.agent).await;
    let answer = read_until(&mut wire, "}}").await;
    assert!(answer.starts_with("HTTP/1.1 426 Upgrade Required\r\n"), "{answer}");
    let lines = answer.to_ascii_lowercase();
    assert!(
        lines.contains("\r\nupgrade: http/1.1\r\n") && lines.contains("\r\nconnection: upgrade\r\n"),
        "{answer}"
    );
    assert!(answer.contains("websocket_unsupported"), "{answer}");
    assert_journaled(&world, 1, Refusal::WebsocketUnsupported).await;
    // Control: without the header it is a route like any other that does not exist.
    assert_eq!(run.agent.get("/v1/responses").await.status, 404);
}

#[tokio::test]
async fn without_sluicegate_unknown_routes_are_served() {
    let world = World::start().await;
    let direct = Agent::over_tcp(world.upstream.address());
    assert_eq!(direct.get("/v1/models").await.json()["object"], "list");
    assert_eq!(direct.post("/chat/completions", &chat_body("fake", Answering::Whole)).await.status, 200);
}

#[tokio::test]
async fn health_names_its_run_and_is_no_call() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for path in ["/health", "/health?x=y"] {
        let answer = run.agent.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({ "status": "ok", "runId": "r1" })));
    }
    run.agent.chat("fake").await;
    assert_eq!((world.journal().await.len(), world.upstream.ledger().len()), (1, 1));
}

async fn run_with_bodies_up_to(world: &World, bytes: usize) -> Run {
    let limits = CallLimits { request_body: ByteSize(bytes as u64), ..CallLimits::default() };
    world.run_with(RunGrant { limits, ..grant("r1", "acct-1") }).await
}

/// Builds a chat request of exactly so many bytes.
fn body_of(bytes: usize) -> Bytes {
    let mut body = chat_body("fake", Answering::Whole);
    body["messages"][0]["content"] = json!("");
    let bare = body.to_string().len();
    body["messages"][0]["content"] = json!("x".repeat(bytes - bare));
    body.to_string().into()
}

#[tokio::test]
async fn only_a_body_over_the_limit_is_refused() {
    const LIMIT: usize = 1000;
    let world = World::start().await;
    let run = run_with_bodies_up_to(&world, LIMIT).await;
    let too_large = [LIMIT + 1, 2 * LIMIT, 64 << 10];
    for (path, size) in too_large.iter().flat_map(|size| [(CHAT, *size), (MESSAGES, *size)]) {
        let answer = run.agent.request(Method::POST, path, body_of(size)).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.json()["error"]["code"].as_str()),
            (413, Some("body_too_large"))
        );
        assert_eq!(answer.json().get("type").is_some(), path == MESSAGES, "{}", answer.text());
    }
    assert_journaled(&world, 2 * too_large.len(), Refusal::BodyTooLarge).await;
    assert_eq!(run.agent.request(Method::POST, CHAT, body_of(LIMIT)).await.unwrap().status, 200);
    assert_eq!(world.journal().await.pop().unwrap().record.request_bytes, LIMIT as u64);
}

/// Sends a request to its last byte and only then looks for an answer, as most clients do.
async fn send_then_look(agent: &Agent, path: &str) -> String {
    let request = Raw::post(path, &json!({ "model": "x".repeat(4 << 20) })).header("connection", "close");
    let (mut wire, mut answer) = (agent.connect().await.unwrap(), Vec::new());
    let sent = wire.write_all(&request.bytes()).await;
    let seen = wire.read_to_end(&mut answer).await;
    format!("{} (sent: {sent:?}, seen: {seen:?})", String::from_utf8_lossy(&answer))
}

/// An agent sends too much and receives a refusal on every kind of connection. An SDK that sees no answer would take
/// that for a bad connection and send it all again.
#[tokio::test]
async fn an_oversized_body_is_answered_on_any_path() {
    let world = World::start().await;
    let run = run_with_bodies_up_to(&world, 1000).await;
    let (socat, init) = (Bridge::to(&run.socket).await, Init::to(&run.socket).await);
    let mut untold = Vec::new();
    // Several times, because of a race: between the answer and the notice that the reader has closed.
    for (path, code) in [(CHAT, "body_too_large"), ("/v1/files", "route_unknown")].repeat(4) {
        for (way, agent) in [("socket", &run.agent), ("socat", &socat.agent), ("init", &init.agent)] {
            let answer = send_then_look(agent, path).await;
            if !answer.contains(code) {
                untold.push(format!("{path} by {way}: {answer:?}"));
            }
        }
    }
    assert!(untold.is_empty(), "{untold:#?}");
}

#[tokio::test]
async fn a_refused_slow_sender_is_cut_in_time() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let slow = Raw::request("POST", "/v1/files").header("content-length", "10000000");
    let asking = slow.clone().header("expect", "100-continue");
    // A client that sends a body may take some seconds over it; a client that asks whether to send one is answered at
    // once.
    for (request, patience) in [(slow, Duration::from_secs(30)), (asking, Duration::from_secs(3))] {
        let mut wire = request.begin(&run.agent).await;
        let answer = tokio::time::timeout(patience, read_until(&mut wire, "route_unknown")).await;
        assert!(answer.expect("it is answered").starts_with("HTTP/1.1 404 "));
    }
    assert_journaled(&world, 2, Refusal::RouteUnknown).await;
}

#[tokio::test]
async fn a_chunked_body_is_bounded_too() {
    let world = World::start().await;
    let run = run_with_bodies_up_to(&world, 1000).await;
    let piece = |length: usize| format!("{length:x}\r\n{}\r\n", " ".repeat(length));
    let chunked =
        Raw::request("POST", CHAT).header("transfer-encoding", "chunked").header("connection", "close");
    let mut wire = chunked.begin(&run.agent).await;
    let pieces = piece(500) + &piece(500) + &piece(1);
    wire.write_all(pieces.as_bytes()).await.unwrap();
    let answer = read_until(&mut wire, "body_too_large").await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_journaled(&world, 1, Refusal::BodyTooLarge).await;
}

#[tokio::test]
async fn a_partial_request_is_not_sent() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let whole = Raw::post(CHAT, &chat_body("fake", Answering::Whole)).bytes();
    let mut wire = run.agent.connect().await.unwrap();
    wire.write_all(&whole[..whole.len() - 1]).await.unwrap();
    eventually(
        "the call is in flight",
        || world.control.health(),
        |health| health.as_ref().unwrap().in_flight == 1,
    )
    .await
    .unwrap();
    drop(wire);
    let records = world.records(1).await;
    assert!(matches!(records[0].record.outcome, Outcome::ClientGone | Outcome::Refused), "{records:?}");
    assert_eq!((records.len(), world.upstream.ledger().len()), (1, 0));
}

#[tokio::test]
async fn a_body_that_is_not_one_json_object_is_refused() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let table = [
        "",
        "{",
        "hello",
        "null",
        "7",
        "\"model\"",
        "[]",
        "[\"fake\", false]",
        "[{\"model\":\"fake\",\"messages\":[]}]",
        "{\"model\":\"fake\"} {\"model\":\"fake\"}",
        "{\"model\":7}",
        "{\"model\":[\"fake\"]}",
        "{\"model\":\"fake\",\"stream\":\"yes\"}",
        "{\"model\":\"fake\",\"model\":\"fake-cost\"}",
        "{\"model\":\"fake\",\"stream\":false,\"stream\":true}",
        "model=fake",
    ];
    let mut passed = BTreeSet::new();
    for (path, body) in table.iter().flat_map(|body| [(CHAT, *body), (MESSAGES, *body)]) {
        let answer = run.agent.request(Method::POST, path, body.into()).await.unwrap();
        let refused = answer.status == 400 && answer.text().contains("body_invalid");
        if !refused {
            passed.insert(format!("{path} {body}: {} {}", answer.status, answer.text()));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
    assert_journaled(&world, 2 * table.len(), Refusal::BodyInvalid).await;
}
