//! Tests streams of a run's events over the HTTP API.

use std::time::Duration;

use harness::{Agent, Up, eventually::eventually_within};
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::orders::{Served, ended, order_text};
use crate::recovery::survival::PATIENCE;

const PATH: &str = "/api/v1/runs/r1/events";

/// Event of a stream, with its id.
type Received = (Option<u64>, Value);

async fn put(api: &Agent, agent: &str) {
    let body = order_text(agent).into();
    assert_eq!(api.request(Method::PUT, "/api/v1/runs/r1", body).await.unwrap().status, 201);
}

/// Reads a stream of server-sent events to its end.
async fn received(api: &Agent, path: &str) -> Vec<Received> {
    let answer = api.clone().with_header("accept", "text/event-stream").get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    parse(&answer.text())
}

fn parse(text: &str) -> Vec<Received> {
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    let field = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let event = |block: &str| {
        let id = field(block, "id:").map(|id| id.parse().unwrap());
        (id, serde_json::from_str(&field(block, "data:").unwrap()).unwrap())
    };
    blocks.map(event).collect()
}

fn stored(events: &[Received]) -> Vec<Received> {
    events.iter().filter(|(id, _)| id.is_some()).cloned().collect()
}

#[tokio::test]
async fn followers_get_each_event_once() {
    let script = "for n in 1 2 3; do echo line $n >&2; sleep 0.3; done; echo it is done";
    let there = Served::of("anonymous_account = 'local'", script).await;
    put(&there.api, "test:sh").await;
    let state = || async { there.api.get("/api/v1/runs/r1").await.json()["state"].clone() };
    eventually_within(PATIENCE, "it runs", state, |state| state == "running").await;
    let (one, other, late) = tokio::join!(
        received(&there.api, PATH),
        received(&there.api, PATH),
        received(&there.api, "/api/v1/runs/r1/events?after=2"),
    );
    let events = stored(&one);
    let numbers: Vec<_> =
        events.iter().map(|(id, event)| (id.unwrap(), event["seq"].as_u64().unwrap())).collect();
    assert_eq!(numbers, (1..=events.len() as u64).map(|seq| (seq, seq)).collect::<Vec<_>>());
    let kinds: Vec<_> = events.iter().map(|(_, event)| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.last(), Some(&"done"), "{kinds:?}");
    assert!(kinds.contains(&"log") && kinds.contains(&"assistant_final"), "{kinds:?}");
    assert!(events[0].1["at"].as_str().unwrap().ends_with('Z'), "{events:?}");
    assert_eq!(stored(&other), events);
    assert_eq!(stored(&late), events[2..]);
    // A client that reconnects gets the rest, and one that has all of it learns that nothing more comes.
    let last = |id: usize| there.api.clone().with_header("last-event-id", &id.to_string());
    assert_eq!(received(&last(3), PATH).await, events[3..]);
    assert_eq!(last(events.len()).get(PATH).await.status, 204);
    there.end().await;
}

#[tokio::test]
async fn programs_read_events_as_lines() {
    let there = Served::with("anonymous_account = 'local'").await;
    put(&there.api, "test:sh").await;
    ended(&there.api, "r1").await;
    let answer = there.api.get(PATH).await;
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    let lines: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let streamed: Vec<_> = received(&there.api, PATH).await.into_iter().map(|(_, event)| event).collect();
    assert_eq!(lines, streamed);
    for (path, header, code) in
        [("?after=x", None, 400), ("?before=1", None, 400), ("", Some("x"), 400), ("", Some("-1"), 400)]
    {
        let api = header.iter().fold(there.api.clone(), |api, id| api.with_header("last-event-id", id));
        let refused = api.get(&format!("{PATH}{path}")).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (code, &json!("invalid_request")));
    }
    there.end().await;
}

#[tokio::test]
async fn a_caller_holds_so_many_streams() {
    let there = Served::with("anonymous_account = 'local'").await;
    put(&there.api, "test:long").await;
    let follow = async |api: &Agent| api.send(Method::GET, PATH, "".into()).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..32 {
        let stream = follow(&there.api).await;
        assert_eq!(stream.status, 200);
        open.push(stream);
    }
    let refused = follow(&there.api).await.whole().await.unwrap();
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (429, &json!("too_many_streams")));
    // Another caller has its own streams.
    let operator = there.principal(&["op", "--account", "acct-1", "--role", "operator"]).await;
    assert_eq!(follow(&operator).await.status, 200);
    drop(open.pop());
    let again = || async { follow(&there.api).await.status };
    eventually_within(PATIENCE, "a closed stream counts no more", again, |status| *status == 200).await;
    assert_eq!(there.api.post("/api/v1/runs/r1/cancel", &Value::Null).await.status, 202);
    // Streams end with the run, each with its last event.
    for stream in open {
        let text = stream.whole().await.unwrap().text();
        assert!(text.lines().last().unwrap().contains(r#""type":"error""#), "{text}");
    }
    there.end().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token_or_the_stop() {
    let there = Served::with("anonymous_account = 'local'").await;
    put(&there.api, "test:long").await;
    let app = there.principal(&["app", "--account", "local"]).await;
    let follow = async |api: &Agent| api.send(Method::GET, PATH, "".into()).await.unwrap();
    let of_app = follow(&app).await;
    let anonymous = follow(&there.api).await;
    assert_eq!(there.world.sluice().run(&["principals", "revoke", "app"]).await.code, Some(0));
    // Cut off, not broken off: the answer is whole.
    let cut = tokio::time::timeout(Duration::from_secs(30), of_app.whole()).await;
    assert!(!cut.expect("it ends").unwrap().text().contains("\"type\":\"error\""));
    let ahead = there.api.get(&format!("{PATH}?after=1000000")).await;
    assert_eq!((ahead.status.as_u16(), &ahead.json()["code"]), (400, &json!("invalid_request")));
    there.up.stop(Signal::TERM).await;
    let rest = anonymous.whole().await.unwrap().text();
    assert!(rest.contains(r#""phase":"running""#) && !rest.contains(r#""type":"error""#), "{rest}");
    // The next `sluice up` has the rest.
    let up = Up::start(there.world.sluice()).await;
    assert_eq!(there.world.sluice().run(&["runs", "cancel", "r1"]).await.code, Some(0));
    up.stop(Signal::TERM).await;
    there.world.assert_nothing_left().await;
}
