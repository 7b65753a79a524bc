//! Tests that limits follow the upstream's ledger: a call that was cut counts with the ledger's figures once they come.

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use harness::{
    Run, World,
    agent::{Answering, chat_body},
    eventually, grant,
    raw::{Raw, read_until},
    raw_scripted_upstream::RawScriptedUpstream,
};
use http::Method;
use platform_core::{
    budget::{Budget, Limit},
    grant::RunGrant,
    id::CallId,
    record::{ExchangeRecord, Figures, Kind, TokensSource},
};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

/// Budget that one call of unknown end uses up.
fn budget() -> Budget {
    Budget { total_tokens: Some(9000), ..Budget::default() }
}

/// Leaves a call that is never answered. Returns its record: it is booked at the most that it could have used.
async fn leave(world: &World, run: &Run) -> ExchangeRecord {
    let body = chat_body("fake-hang", Answering::Whole).to_string();
    let asked = run.agent.send(Method::POST, CHAT, body.into());
    let sent = eventually("it is upstream", || async { world.upstream.ledger().len() }, |calls| *calls == 1);
    tokio::select! {
        _ = asked => panic!("it is never answered"),
        _ = sent => {}
    }
    let record = world.records(1).await.pop().unwrap().record;
    assert!(record.tokens_source == TokensSource::Estimated && record.tokens.output > 7000, "{record:?}");
    record
}

/// Tells the proxy what the ledger says of a call. Returns the effect.
async fn tell(world: &World, call: CallId, input: u64, output: u64) -> Value {
    let figures = json!([{ "call_id": call, "input": input, "output": output, "cost_nanodollars": null }]);
    let told = world.control.send(Method::POST, "/v1/corrections", figures.to_string()).await;
    assert_eq!(told.status, 200, "{}", told.text());
    told.json()[0].clone()
}

/// Returns the tokens used by the run, and by all accounts.
async fn used(world: &World, run: &Run) -> [u64; 2] {
    let of = |limits: &Value| {
        let total = limits.as_array().unwrap().iter().find(|view| view["limit"] == json!(Limit::TotalTokens));
        total.unwrap()["used"].as_u64().unwrap()
    };
    let view = world.control.run(&run.grant.run_id).await.unwrap();
    let accounts = world.control.send(Method::GET, "/v1/accounts", String::new()).await.json();
    let by_account = accounts.as_array().unwrap().iter().map(|account| of(&account["limits"])).sum();
    let by_run = of(&json!(view.limits));
    assert_eq!(by_run, view.usage.tokens.input + view.usage.tokens.output);
    [by_run, by_account]
}

#[tokio::test]
async fn a_limit_follows_the_ledger() {
    let mut world = World::start().await;
    let run = world.run_with(RunGrant { budget: budget(), ..grant("r1", "acct-1") }).await;
    let left = leave(&world, &run).await;
    assert_eq!(run.agent.chat("fake").await.status, 400, "nothing is left");
    let call = left.litellm_call_id;
    let input = left.seen.unwrap().input + 1;
    assert_eq!(tell(&world, call, input, 6).await, "corrected");
    assert_eq!(used(&world, &run).await, [input + 6; 2]);
    assert_eq!(tell(&world, call, input, 6).await, "unchanged", "once");
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let counted = used(&world, &run).await;
    world.kill_proxy().await;
    world.start_proxy().await;
    let run = world.run_with(run.grant.clone()).await;
    assert_eq!(used(&world, &run).await, counted, "a restart honours it");
    assert_eq!(tell(&world, call, input, 6).await, "unchanged", "once, whatever restarts");
    let whole = world.journal().await.pop().unwrap().record;
    assert_eq!((whole.kind, whole.tokens_source), (Kind::Model, TokensSource::Exact));
    assert_eq!(tell(&world, whole.litellm_call_id, 0, 0).await, "not_open", "an exact call stays as it is");
    assert_eq!(used(&world, &run).await, counted);
    let verified = world.sluice().run(&["audit", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let stats = world.sluice().run(&["audit", "stats", "--by", "account", "--json"]).await.result();
    let row = &stats["rows"][0];
    let tokens = ["input", "output"].map(|name| row["tokens"][name].as_u64().unwrap());
    assert_eq!(tokens.iter().sum::<u64>(), counted[1], "{stats}");
    let shown = world.sluice().run(&["audit", "show", &call.to_string()]).await;
    assert!(shown.stdout.contains("estimated"), "{shown:?}");
}

#[tokio::test]
async fn no_ledger_hides_what_was_seen() {
    let scripted = RawScriptedUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &scripted.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    scripted.delay(Duration::from_secs(5));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let said = r#"data: {"choices":[{"index":0,"delta":{"content":"several words are seen"}}]}"#;
    scripted.say(&[format!("{head}{said}\n\n").as_bytes(), b": behind\n\n"]);
    let mut wire = Raw::post(CHAT, &chat_body("m", Answering::Streamed)).begin(&run.agent).await;
    read_until(&mut wire, "seen").await;
    drop(wire);
    let left = world.records(1).await.pop().unwrap().record;
    let Figures { input, output, .. } = *left.seen.unwrap();
    assert!(input > 0 && output == 7 && left.tokens.output >= 22, "{:?}, the control", left.tokens);
    assert_eq!(tell(&world, left.litellm_call_id, 0, 0).await, "corrected");
    assert_eq!(used(&world, &run).await, [input + output; 2]);
}
