//! Tests the requests of the control plane: opening, watching and closing runs, and the journal.

use bench::upstream::Ending;
use harness::{
    Agent, Lines, Raw, Run, World,
    agent::{Answering, chat_body},
    events::spoken,
    eventually,
    eventually::PATIENCE,
    foreign_uid_client::{Reply, ask_as, open_to_all_uids},
    grant,
    raw::read_until,
};
use http::Method;
use platform_core::{
    control::{InexactCalls, RunState, RunView, Usage},
    grant::RunGrant,
    id::{AccountId, RunId},
    money::NanoDollars,
    record::{Outcome, Tokens},
};
use platform_runtime::task;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
};

fn id(run: &str) -> RunId {
    RunId::parse(run).unwrap()
}

#[tokio::test]
async fn registering_a_run_is_idempotent() {
    let world = World::start().await;
    let granted = grant("r1", "acct-1");
    let first = world.control.register(&granted).await.unwrap();
    assert_eq!(world.control.register(&granted).await.unwrap(), first);

    let other = RunGrant { account: AccountId::parse("acct-2").unwrap(), ..granted.clone() };
    assert_eq!(world.control.register(&other).await.unwrap_err().error.code, "run_conflict");
    let agent = Agent::on(&first.socket.unwrap().path.join("llm.sock"));
    assert_eq!(agent.chat("fake").await.status, 200, "the run that is open is not harmed");
    assert_eq!(world.upstream.ledger().last().unwrap().header("x-litellm-end-user-id"), ["acct-1"]);

    world.control.close(&id("r1"), 0).await.unwrap();
    for again in [granted, other] {
        assert_eq!(world.control.register(&again).await.unwrap_err().error.code, "run_closed");
    }
}

#[tokio::test]
async fn requests_that_make_no_sense_are_told_why() {
    let world = World::start().await;
    let open = world.run("r1", "acct-1").await;
    let registration = |grant: serde_json::Value| json!({ "grant": grant }).to_string();
    let (mine, misspelt) =
        (json!(open.grant), json!({ "run_id": "r2", "account": "a", "graph": "s:a", "tapp": 1 }));
    let table = [
        (Method::GET, "/v1/runs/unknown", String::new(), 404, "run_unknown"),
        (Method::DELETE, "/v1/runs/unknown", String::new(), 404, "run_unknown"),
        (Method::GET, "/v1/runs/unknown/tap", String::new(), 404, "run_unknown"),
        (Method::GET, "/v1/runs/r1/tap", String::new(), 409, "no_tap"),
        (Method::GET, "/v1/runs/NOT-AN-ID", String::new(), 400, "invalid_request"),
        (Method::PUT, "/v1/runs/r2", registration(mine), 400, "invalid_request"),
        (Method::PUT, "/v1/runs/r2", registration(misspelt), 400, "invalid_request"),
        (Method::PUT, "/v1/runs/r2", "{".to_owned(), 400, "invalid_request"),
        (Method::PUT, "/v1/runs/r2", " ".repeat(100_000), 400, "invalid_request"),
        (Method::DELETE, "/v1/runs/r1?drain_ms=soon", String::new(), 400, "invalid_request"),
        (Method::GET, "/v1/journal?after=yesterday", String::new(), 400, "invalid_request"),
        (Method::GET, "/v1/nothing", String::new(), 404, "not_found"),
        (Method::POST, "/v1/health", String::new(), 404, "not_found"),
    ];
    for (method, path, body, status, code) in table {
        let answer = world.control.send(method.clone(), path, body).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &problem["error"]["code"]),
            (status, &json!(code)),
            "{method} {path}"
        );
        assert!(problem["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{problem}");
    }
}

#[tokio::test]
async fn another_protocol_version_is_refused() {
    let world = World::start().await;
    let silent = Agent::on(&world.path().join("run/control/control.sock"));
    for (agent, said) in [
        (silent.clone(), "has no header x-sluice-protocol"),
        (silent.with_header("x-sluice-protocol", "2"), "header x-sluice-protocol is 2"),
    ] {
        let answer = agent.get("/v1/health").await;
        let problem = answer.json();
        let message = problem["error"]["message"].as_str().unwrap();
        assert_eq!((answer.status.as_u16(), &problem["error"]["code"]), (400, &json!("protocol_mismatch")));
        assert!(message.contains("send `x-sluice-protocol: 1`") && message.contains(said), "{message}");
    }
}

#[tokio::test]
async fn only_listed_uids_may_use_control() {
    let mut world = World::start().await;
    let socket = world.path().join("run/control/control.sock");
    let health = || Raw::request("GET", "/v1/health").header("x-sluice-protocol", "1");
    assert_eq!(
        ask_as(1001, &socket, health()).await,
        Reply::NoConnection,
        "the file system is the first guard"
    );
    open_to_all_uids(&socket);
    assert_eq!(ask_as(1001, &socket, health()).await, Reply::NoAnswer);
    assert_eq!(ask_as(0, &socket, health()).await, Reply::Status(200));

    assert!(world.stop_proxy().await);
    world.reconfigure("threads = 2", "threads = 2\ncontrol_uids = [1001]");
    world.start_proxy().await;
    open_to_all_uids(&socket);
    assert_eq!(ask_as(1001, &socket, health()).await, Reply::Status(200));
    assert_eq!(ask_as(1002, &socket, health()).await, Reply::NoAnswer);
}

#[tokio::test]
async fn a_run_counts_what_it_uses() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let view = || async { world.control.run(&id("r1")).await.unwrap() };
    assert_eq!((view().await.usage, view().await.state), (Usage::default(), RunState::Open));

    // Ten bytes of prompt and ten words of answer, three tokens and ten, at one and two millionths of a dollar.
    for _ in 0..2 {
        run.agent.chat("fake-cost").await;
    }
    run.agent.chat("fake-status429").await;
    run.agent.get("/v1/files").await;
    let stalled = run.agent.stream("fake-stall1").await;
    let usage = Usage {
        calls: 3,
        refused: 1,
        tokens: Tokens { input: 6, output: 20, reasoning: 4, ..Tokens::default() },
        cost_nanodollars: NanoDollars(46_000),
        inexact: InexactCalls::default(),
        tool_calls: 0,
    };
    assert_eq!((view().await.usage, view().await.in_flight, view().await.state), (usage, 1, RunState::Open));
    drop(stalled);
    // The call is billed for its prompt, two tokens for seven bytes and one for each digit, for each byte of the one word
    // of the answer, and for the tokens that a model can have thought in silence.
    let body = chat_body("fake-stall1", Answering::Streamed).to_string();
    let digits = body.bytes().filter(u8::is_ascii_digit).count();
    let asked = ((body.len() - digits) * 2).div_ceil(7) + digits;
    let last = eventually("the client that left is counted", view, |view| {
        view.usage.calls == 4 && view.in_flight == 0
    })
    .await
    .usage;
    let output = last.tokens.output;
    assert!((25..100).contains(&output), "{output}");
    let tokens = Tokens { input: 6 + asked as u64, output, ..usage.tokens };
    let inexact = InexactCalls { unpriced: 1, estimated: 1 };
    assert_eq!(last, Usage { calls: 4, tokens, inexact, ..usage });
    let closed = world.control.close(&id("r1"), 0).await.unwrap();
    assert_eq!((closed.usage, closed.state, &closed.grant), (last, RunState::Closed, &run.grant));
    assert_eq!(view().await, closed, "and it is remembered");
}

/// Starts closing a run and returns once no client can connect to it any more.
async fn begin_close(world: &World, run: &Run, drain_ms: u64) -> JoinHandle<RunView> {
    let control = world.control.clone();
    let closing = task::spawn("close", async move { control.close(&id("r1"), drain_ms).await.unwrap() });
    eventually("the socket is gone", || async { run.agent.connect().await.map(drop) }, Result::is_err)
        .await
        .unwrap_err();
    closing
}

#[tokio::test]
async fn a_drained_run_finishes_its_answer_only() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut idle = Raw::request("GET", "/health").begin(&run.agent).await;
    read_until(&mut idle, "\"r1\"").await;
    let request = Raw::post("/v1/chat/completions", &json!({ "model": "fake" })).bytes();
    let (begun, rest) = request.split_at(20);
    let mut late = run.agent.connect().await.unwrap();
    late.write_all(begun).await.unwrap();
    let stream = run.agent.stream("fake-words10-gap50ms").await;
    let closing = begin_close(&world, &run, 5000).await;

    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0, "a connection without a call ends");
    late.write_all(rest).await.unwrap();
    let refused = read_until(&mut late, "run_closed").await;
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("x-should-retry: false"), "{refused}");
    let (text, ended) = stream.until_break().await;
    assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(spoken(&text).len(), 10);
    let view = closing.await.unwrap();
    assert_eq!((view.state, view.usage.calls, view.usage.refused), (RunState::Closed, 1, 1));
    assert!(!run.socket.parent().unwrap().exists(), "the directory is gone");
}

#[tokio::test]
async fn a_run_that_is_closed_without_a_drain_is_cut() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut waiting =
        Raw::post("/v1/chat/completions", &json!({ "model": "fake-hang" })).begin(&run.agent).await;
    world.upstream.ledger().wait_for(1, PATIENCE).await.unwrap();
    let stream = run.agent.stream("fake-stall3").await;
    let view = world.control.close(&id("r1"), 0).await.unwrap();
    assert_eq!((view.state, view.in_flight, view.usage.calls), (RunState::Closed, 0, 2));
    assert!(!run.socket.parent().unwrap().exists(), "the directory is gone");

    let (text, ended) = stream.until_break().await;
    assert!(
        ended.is_err() && !text.contains("[DONE]"),
        "a client must not take the part for the whole: {text}"
    );
    let mut answer = Vec::new();
    drop(waiting.read_to_end(&mut answer).await);
    assert!(answer.is_empty(), "{answer:?}");
    let outcomes: Vec<_> = world.journal().await.iter().map(|line| line.record.outcome).collect();
    assert_eq!(outcomes, [Outcome::RunClosed, Outcome::RunClosed]);
    for seq in [1, 2] {
        let call = world.upstream.ledger().wait_for_ending(seq, PATIENCE).await.unwrap();
        assert!(matches!(call.ending, Ending::ClientGone { .. }), "{:?}", call.ending);
    }
}

#[tokio::test]
async fn the_journal_is_followed_from_a_cursor() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for _ in 0..3 {
        run.agent.chat("fake").await;
    }
    let mut behind = Lines::of(world.control.follow("/v1/journal?after=1&follow").await);
    let mut ahead = Lines::of(world.control.follow("/v1/journal?after=4&follow").await);
    for seq in [2, 3] {
        assert_eq!(behind.next().await.unwrap()["seq"], seq);
    }
    for _ in 0..2 {
        run.agent.chat("fake").await;
    }
    for seq in [4, 5] {
        assert_eq!(behind.next().await.unwrap()["seq"], seq);
    }
    assert_eq!(ahead.next().await.unwrap()["seq"], 5);
    let seen: Vec<_> = world.control.journal(3).await.into_iter().map(|line| line.seq).collect();
    assert_eq!(seen, [4, 5], "without `follow` it ends");
}
