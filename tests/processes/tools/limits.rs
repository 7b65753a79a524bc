//! Tests who may call a host tool, and how often: budgets, freezes, expiry, drain.

use std::time::{SystemTime, UNIX_EPOCH};

use harness::{Answer, Play, eventually, grant};
use http::Method;
use platform_core::{
    budget::Budget,
    grant::RunGrant,
    host_tools::{ToolLimits, ToolOutcome},
    record::{ExchangeRecord, Outcome},
    token::UnixSeconds,
};
use platform_runtime::task;

use super::{CLOCK, Tools, call, granted, message, refusal};

fn rule(record: &ExchangeRecord) -> Option<&str> {
    record.rule.as_ref().map(|rule| rule.as_str())
}

#[tokio::test]
async fn a_run_has_limits_of_its_own_for_tools() {
    let tools = Tools::start().await;
    let few = ToolLimits { calls: 2, ..ToolLimits::default() };
    let run = tools.world.run_with(RunGrant {
        budget: Budget { requests: Some(1), requests_per_minute: Some(1), ..Budget::default() },
        ..granted("r1", few)
    });
    let run = run.await;
    for _ in 0..2 {
        assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200);
    }
    let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
    assert_eq!(refusal(&answer), (400, "quota_exhausted".to_owned()));
    assert_eq!(rule(&tools.last(3).await), Some("tools.calls"));
    assert_eq!(run.agent.chat("fake").await.status, 200, "its one model call is still there");
    assert_eq!(run.agent.chat("fake").await.status, 429, "the control");
}

#[tokio::test]
async fn used_up_calls_stay_used_up_after_a_restart() {
    let mut tools = Tools::start().await;
    let run = tools.run_within("r1", ToolLimits { calls: 2, ..ToolLimits::default() }).await;
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200);
    tools.world.records(1).await;
    assert!(tools.world.stop_proxy().await);
    tools.world.start_proxy().await;
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200);
    assert_eq!(refusal(&run.agent.post("/tool/exec", &call("r1", CLOCK)).await).1, "quota_exhausted");
}

#[tokio::test]
async fn calls_are_limited_by_minute_and_in_flight() {
    let tools = Tools::start().await;
    tools.world.bound_left_calls("1h").await;
    let run = tools.run_within("r1", ToolLimits { calls_per_minute: 2, ..ToolLimits::default() }).await;
    for _ in 0..2 {
        assert_eq!(run.agent.post("/mcp", &message(CLOCK)).await.status, 200);
    }
    let answer = run.agent.post("/mcp", &message(CLOCK)).await;
    assert_eq!(refusal(&answer), (429, "rate_limited".to_owned()));
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(rule(&tools.last(3).await), Some("tools.calls_per_minute"));

    let run = tools.run_within("r2", ToolLimits { calls_in_flight: 1, ..ToolLimits::default() }).await;
    tools.socket.play(Play::Hang);
    let agent = run.agent.clone();
    let hanging = task::spawn("call", async move { agent.post("/tool/exec", &call("r2", CLOCK)).await });
    eventually("the tool works", || async { tools.socket.seen().len() }, |seen| *seen == 3).await;
    let answer = run.agent.post("/tool/exec", &call("r2", CLOCK)).await;
    assert_eq!(refusal(&answer), (429, "concurrency_limited".to_owned()));
    assert_eq!(rule(&tools.last(4).await), Some("tools.calls_in_flight"));
    assert_eq!(run.agent.chat("fake").await.status, 200);
    hanging.abort();
    let ended = tools.last(6).await;
    assert_eq!((ended.outcome, ended.tool.unwrap().outcome), (Outcome::ClientGone, ToolOutcome::Unknown));
    assert_eq!(run.agent.post("/tool/exec", &call("r2", CLOCK)).await.status, 200);
}

#[tokio::test]
async fn a_freeze_stops_tools_and_cuts_them() {
    let tools = Tools::start().await;
    let run = tools.run("r1").await;
    tools.socket.play(Play::Hang);
    let agent = run.agent.clone();
    let hanging = task::spawn("call", async move {
        agent.request(Method::POST, "/tool/exec", call("r1", CLOCK).to_string().into()).await
    });
    eventually("the tool works", || async { tools.socket.seen().len() }, |seen| *seen == 1).await;
    assert_eq!(tools.world.sluice().run(&["freeze", "--account", "acct-1"]).await.code, Some(0));
    drop(hanging.await.unwrap().unwrap_err());
    let cut = tools.last(1).await;
    assert_eq!((cut.outcome, cut.tool.unwrap().outcome), (Outcome::Frozen, ToolOutcome::Unknown));
    eventually("the control plane is told", || async { tools.socket.ended() }, |ended| *ended == 1).await;
    assert_eq!(refusal(&run.agent.post("/tool/exec", &call("r1", CLOCK)).await), (400, "frozen".to_owned()));
    assert_eq!(refusal(&run.agent.post("/mcp", &message(CLOCK)).await).1, "frozen");
    assert_eq!(tools.world.sluice().run(&["thaw", "--account", "acct-1"]).await.code, Some(0));
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200);
    // A frozen model stops no tool.
    assert_eq!(tools.world.sluice().run(&["freeze", "--model", "fake"]).await.code, Some(0));
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200);
}

#[tokio::test]
async fn an_expired_run_calls_no_tools() {
    let tools = Tools::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let limits = ToolLimits { calls: 1_000_000, calls_per_minute: 1_000_000, ..ToolLimits::default() };
    let grant = RunGrant { expires: Some(UnixSeconds(now + 2)), ..granted("r1", limits) };
    let run = tools.world.run_with(grant).await;
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200, "the control");
    let ask = || async {
        let body = call("r1", CLOCK).to_string();
        run.agent.request(Method::POST, "/tool/exec", body.into()).await
    };
    let is_done = |answer: &Answer| answer.status == 200;
    let over = eventually("the run is over", ask, |asked| !asked.as_ref().is_ok_and(is_done)).await;
    // Soon after, its socket is closed.
    if let Ok(answer) = &over {
        assert_eq!(refusal(answer), (400, "run_deadline_exceeded".to_owned()));
    }
    let sent = tools.socket.seen().len();
    let again = ask().await;
    assert!(!again.as_ref().is_ok_and(is_done), "{again:?}");
    assert_eq!(tools.socket.seen().len(), sent);
}

/// A call in flight may end, and new ones are told to wait.
#[tokio::test]
async fn a_stopping_proxy_drains_tool_calls() {
    let mut tools = Tools::start().await;
    let run = tools.run_within("r1", ToolLimits::default()).await;
    tools.socket.play(Play::Hang);
    let agent = run.agent.clone();
    let hanging = task::spawn("call", async move {
        agent.request(Method::POST, "/tool/exec", call("r1", CLOCK).to_string().into()).await
    });
    eventually("the tool works", || async { tools.socket.seen().len() }, |seen| *seen == 1).await;
    tools.world.signal_proxy(rustix::process::Signal::TERM);
    let refused = || async {
        let body = call("r1", CLOCK).to_string();
        let answer = run.agent.request(Method::POST, "/tool/exec", body.into()).await;
        answer.map(|answer| answer.text()).unwrap_or_default()
    };
    eventually("new calls are told to wait", refused, |text| text.contains("\"draining\"")).await;
    assert!(tools.world.stop_proxy().await, "told a second time");
    drop(hanging.await.unwrap().unwrap_err());
    tools.world.start_proxy().await;
    let records = tools.world.records(2).await;
    let cut: Vec<_> = records
        .iter()
        .filter(|line| line.record.outcome == Outcome::Interrupted)
        .map(|line| &line.record)
        .collect();
    assert_eq!(cut.len(), 1);
    assert_eq!(cut[0].tool.as_ref().unwrap().outcome, ToolOutcome::Unknown);
}

#[tokio::test]
async fn a_run_without_tools_is_denied_all() {
    let tools = Tools::start().await;
    let run = tools.world.run_with(grant("r1", "acct-1")).await;
    let list = serde_json::json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" });
    let answer = run.agent.post("/mcp", &list).await;
    assert_eq!(refusal(&answer), (403, "policy_denied".to_owned()));
    assert_eq!(answer.json()["id"], "a");
    assert_eq!(rule(&tools.last(1).await), Some("tools"));
    for (number, path, body) in [(2, "/tool/exec", call("r1", CLOCK)), (3, "/mcp", message(CLOCK))] {
        assert_eq!(refusal(&run.agent.post(path, &body).await), (403, "policy_denied".to_owned()));
        let record = tools.last(number).await;
        assert_eq!(rule(&record), Some(&*format!("tool:{CLOCK}")));
        assert_eq!((record.outcome, record.tool.unwrap().outcome), (Outcome::Refused, ToolOutcome::Denied));
    }
    assert_eq!(tools.socket.seen().len(), 0);
}
