//! Tests calls that do not end well: what the client receives then, and what the journal records.

use bench::upstream::{Ending, ScriptedUpstream};
use harness::{
    Answer, FaultProxy, KeepOpenUpstream, RawScriptedUpstream, World,
    agent::{Answering, body_for, chat_body},
    bridge::free_port,
    events::{events, spoken},
    eventually::PATIENCE,
    grant,
    raw::Raw,
};
use http::Method;
use platform_core::{
    grant::{CallLimits, CallTimes, RunGrant},
    limit::Millis,
    record::{ExchangeRecord, Outcome, Tokens},
    refusal::Refusal,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

async fn last_record(world: &World, count: usize) -> ExchangeRecord {
    world.records(count).await.pop().unwrap().record
}

/// Asserts that Sluicegate refused a call, that it said so in the route's own shape, and when to come again.
fn assert_refused(answer: &Answer, path: &str, (status, code): (u16, &str), retry_after: Option<&str>) {
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (status, &"application/json".parse().unwrap())
    );
    let body = answer.json();
    assert_eq!(body["error"]["code"], code, "{path}: {body}");
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{path}: {body}");
    assert_eq!(body.get("type"), (path == MESSAGES).then_some(&json!("error")), "{path}: {body}");
    let header = |name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("retry-after").as_deref(), retry_after, "{path}");
    assert_eq!(header("x-should-retry").as_deref(), retry_after.is_none().then_some("false"), "{path}");
}

/// The connection breaks after that event.
#[tokio::test]
async fn a_cut_stream_ends_with_an_error_event() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let (text, ended) = run.agent.stream("fake-cut3").await.until_break().await;
    assert_eq!(spoken(&text).concat(), "Hello from the");
    let last = events(&text).pop().unwrap().to_owned();
    let error: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(
        (events(&text).len(), error["error"]["code"].as_str()),
        (5, Some("upstream_failed")),
        "{text}"
    );
    assert!(ended.is_err(), "a client must not take the part for the whole");
    let record = last_record(&world, 1).await;
    assert_eq!((record.outcome, record.status), (Outcome::UpstreamGone, 200));
    assert_eq!(
        record.response_bytes,
        (text.len() - last.len() - 2) as u64,
        "the upstream's bytes are counted"
    );

    let (text, ended) = run.agent.stream("fake-words3").await.until_break().await;
    assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "a stream that is not cut ends cleanly");
}

#[tokio::test]
async fn a_cut_message_stream_has_its_own_error_event() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = json!({ "model": "fake-cut3", "stream": true, "max_tokens": 9, "messages": [] });
    let stream = run.agent.send(Method::POST, MESSAGES, body.to_string().into()).await.unwrap();
    let (text, ended) = stream.until_break().await;
    let last = events(&text).pop().unwrap().to_owned();
    let data = last.strip_prefix("event: error\ndata: ").unwrap_or_else(|| panic!("{last}"));
    let error: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&error["type"], &error["error"]["code"]), (&json!("error"), &json!("upstream_failed")));
    assert!(ended.is_err());
}

/// An upstream answers before it has read the request, and keeps the connection; the next call does not use that
/// connection.
#[tokio::test]
async fn a_connection_still_sending_is_not_reused() {
    let answer =
        "HTTP/1.1 413 Payload Too Large\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let hasty = harness::KeepOpenUpstream::hasty(answer).await;
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &hasty.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    let mut large = chat_body("m", Answering::Whole);
    large["messages"][0]["content"] = "x".repeat(20 << 20).into();
    assert_eq!(run.agent.post(CHAT, &large).await.status, 413);
    let next = tokio::time::timeout(PATIENCE, run.agent.chat("m")).await;
    assert_eq!(next.expect("it does not wait for the large one").status, 413);
}

#[tokio::test]
async fn a_cut_document_is_never_complete() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake-cut1", Answering::Whole).to_string();
    let stream = run.agent.send(Method::POST, CHAT, body.into()).await.unwrap();
    let length: usize = stream.headers["content-length"].to_str().unwrap().parse().unwrap();
    let (text, ended) = stream.until_break().await;
    assert!(ended.is_err() && text.len() < length);
    assert_eq!(last_record(&world, 1).await.outcome, Outcome::UpstreamGone);
}

/// The connection breaks before a byte of the answer: an SDK sends the call again, and the proxy itself does not.
#[tokio::test]
async fn a_client_may_retry_after_a_reset() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (count, path) in [(1, CHAT), (2, MESSAGES), (3, "/v1/responses")] {
        let answer = run.agent.post(path, &body_for(path, "fake-cut0", Answering::Streamed)).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.headers["x-should-retry"]),
            (502, &"true".parse().unwrap())
        );
        assert_eq!(answer.json()["error"]["code"], "upstream_reset", "{path}");
        let record = last_record(&world, count).await;
        assert_eq!((record.outcome, record.refusal), (Outcome::UpstreamGone, Some(Refusal::UpstreamReset)));
        assert_eq!((record.status, world.upstream.ledger().len()), (502, count));
    }
}

#[tokio::test]
async fn one_byte_of_an_answer_makes_it_final() {
    let scripted = RawScriptedUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &scripted.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
    for bytes in [1, 20, head.len() - 1] {
        scripted.say(&[&head[..bytes]]);
        for path in [CHAT, MESSAGES] {
            let answer = run.agent.post(path, &body_for(path, "m", Answering::Streamed)).await;
            assert_refused(&answer, path, (502, "upstream_failed"), None);
        }
        // Control: the same connection without that byte.
        scripted.say(&[]);
        let answer = run.agent.post(CHAT, &body_for(CHAT, "m", Answering::Streamed)).await;
        assert_eq!(answer.json()["error"]["code"], "upstream_reset", "{bytes}");
    }
}

#[tokio::test]
async fn a_mid_stream_error_passes_and_is_recorded() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (count, path) in [(1, CHAT), (2, MESSAGES), (3, "/v1/responses"), (4, "/v1/completions")] {
        let answer = run.agent.post(path, &body_for(path, "fake-errmid3", Answering::Streamed)).await;
        assert!(events(&answer.text()).pop().unwrap().contains("in the middle"), "{path}: {}", answer.text());
        let record = last_record(&world, count).await;
        assert_eq!((record.outcome, record.status), (Outcome::StreamError, 200), "{path}");
    }
}

#[tokio::test]
async fn errors_about_the_upstream_key_stay_inside() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (n, status) in [401, 402, 403].into_iter().enumerate() {
        for (path, count) in [(CHAT, 2 * n + 1), (MESSAGES, 2 * n + 2)] {
            let answer = run
                .agent
                .post(path, &body_for(path, &format!("fake-status{status}"), Answering::Whole))
                .await;
            assert_refused(&answer, path, (502, "upstream_auth"), None);
            assert!(!answer.text().contains("The script"), "{}", answer.text());
            let record = last_record(&world, count).await;
            assert_eq!((record.status, record.refusal), (status, Some(Refusal::UpstreamAuth)));
        }
    }
}

#[tokio::test]
async fn other_errors_of_the_upstream_pass_as_they_are() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (n, status) in [400, 404, 422, 429, 500, 503, 529].into_iter().enumerate() {
        let answer = run.agent.chat(&format!("fake-status{status}")).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.json()["error"]["message"], "The script wants this status.");
        assert_eq!(answer.headers.contains_key("retry-after"), status == 429);
        let record = last_record(&world, n + 1).await;
        assert_eq!((record.status, record.outcome, record.refusal), (status, Outcome::Complete, None));
    }
}

#[tokio::test]
async fn an_upstream_that_is_down_is_worth_another_try() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &format!("http://{}", free_port()), "").await;
    let run = world.run("r1", "acct-1").await;
    for (count, path) in [(1, CHAT), (2, MESSAGES)] {
        let answer = run.agent.post(path, &body_for(path, "fake", Answering::Whole)).await;
        assert_refused(&answer, path, (503, "upstream_unreachable"), Some("1"));
        let record = last_record(&world, count).await;
        assert_eq!((record.outcome, record.status), (Outcome::UpstreamGone, 503));
    }
}

#[tokio::test]
async fn a_late_upstream_is_cancelled() {
    let world = World::start().await;
    let limits = CallLimits {
        times: CallTimes { first_byte_ms: Millis(200), ..CallTimes::default() },
        ..CallLimits::default()
    };
    let run = world.run_with(RunGrant { limits, ..grant("r1", "acct-1") }).await;
    let answer = run.agent.chat("fake-hang").await;
    assert_refused(&answer, CHAT, (504, "upstream_timeout"), None);
    let seen = world.upstream.ledger().wait_for_ending(1, PATIENCE).await.unwrap();
    assert!(matches!(seen.ending, Ending::ClientGone { .. }), "{:?}", seen.ending);
    assert_eq!(seen.header("x-litellm-timeout"), ["1"], "the upstream is told, in whole seconds");
    let record = last_record(&world, 1).await;
    assert_eq!((record.outcome, record.refusal), (Outcome::TimedOut, Some(Refusal::UpstreamTimeout)));
}

#[tokio::test]
async fn a_stale_connection_costs_no_call() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let fault_proxy = FaultProxy::to(upstream.address()).await;
    let world = World::in_front_of(upstream, &fault_proxy.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    for model in ["fake", "fake-words3", "fake-status400"] {
        run.agent.chat(model).await;
    }
    assert_eq!(fault_proxy.connections(), 1, "calls one after the other share a connection");
    for calls in 2..30 {
        fault_proxy.close_connections().await;
        assert_eq!(run.agent.chat("fake").await.status, 200, "call {calls}");
        assert_eq!(fault_proxy.connections(), calls);
    }
}

/// A server in front of the model gives answers that no model does: without a body, a redirect, or no HTTP at all. Each
/// has its status and outcome.
#[tokio::test]
async fn answers_without_body_are_complete() {
    let table = [
        ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", 503, Outcome::Complete),
        (
            "HTTP/1.1 500 Internal Server Error\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            500,
            Outcome::Complete,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, Outcome::Complete),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
            200,
            Outcome::Complete,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            200,
            Outcome::StreamError,
        ),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://litellm:4000/\r\ncontent-length: 0\r\n\r\n",
            502,
            Outcome::Complete,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            400,
            Outcome::Complete,
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", 502, Outcome::UpstreamGone),
    ];
    let mut wrong = Vec::new();
    for (answer, status, outcome) in table {
        let upstream = KeepOpenUpstream::answering(answer).await;
        let world =
            World::in_front_of(ScriptedUpstream::start().await.unwrap(), &upstream.base_url(), "").await;
        let run = world.run("r1", "acct-1").await;
        let got = run.agent.chat("fake").await;
        let record = last_record(&world, 1).await;
        if (got.status.as_u16(), record.outcome) != (status, outcome) || got.headers.contains_key("location")
        {
            wrong.push(format!("{answer:?}: {} {:?} {:?}", got.status, got.headers, record.outcome));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A client that half-closes its connection behind the request has left; that costs nothing. A pooled connection to the
/// upstream could otherwise send the call, and bill all that it could use, before the proxy notices.
#[tokio::test]
async fn a_half_close_before_sending_costs_nothing() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let call = Raw::post("/v1/chat/completions", &chat_body("fake", Answering::Whole));
    let mut count = 0;
    for leaves in [true, false] {
        assert_eq!(run.agent.chat("fake").await.status, 200, "a connection is at hand");
        // Held, so that request and half-close are there at once when it looks.
        world.hold_proxy().await;
        let mut wire = call.begin(&run.agent).await;
        if leaves {
            wire.shutdown().await.unwrap();
        }
        world.signal_proxy(Signal::CONT);
        count += 2;
        let record = world.records(count).await.pop().unwrap().record;
        if leaves {
            assert_eq!((record.outcome, record.tokens), (Outcome::ClientGone, Tokens::default()));
            assert_eq!(world.upstream.ledger().len(), 1, "it was not sent");
        } else {
            // Control: the same call, by a client that stays.
            assert_eq!(record.outcome, Outcome::Complete);
            assert_eq!(world.upstream.ledger().len(), 3);
        }
    }
}
