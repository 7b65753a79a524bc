//! Tests `sluice audit show`. For each family of refusals, made for real, it shows the rule that decided and what would
//! change the decision.

use harness::{
    Raw, Run, World,
    agent::{Answering, chat_body},
    eventually, grant,
    raw::read_until,
};
use platform_core::{
    budget::Budget,
    grant::RunGrant,
    record::{ExchangeRecord, Outcome},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{json_of, said};

const CHAT: &str = "/v1/chat/completions";

/// Returns the record of a run's last call, once it has so many.
async fn record_of(world: &World, run: &Run, calls: usize) -> ExchangeRecord {
    let find = || async {
        let lines = world.journal().await.into_iter().map(|line| line.record);
        lines.filter(|record| record.run_id == run.grant.run_id).collect::<Vec<_>>()
    };
    eventually("the call is recorded", find, |records| records.len() >= calls).await.pop().unwrap()
}

/// Returns the display of a run's last call: as text, and as JSON.
async fn shown(world: &World, run: &Run, calls: usize) -> (String, Value) {
    let call = record_of(world, run, calls).await.litellm_call_id.to_string();
    (said(world, &["show", &call]).await, json_of(world, &["show", &call]).await)
}

#[track_caller]
fn decided(told: &(String, Value), rule: Option<&str>, words: &[&str]) {
    let (text, json) = told;
    assert_eq!(json["record"]["rule"], json!(rule), "{text}");
    for word in words {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    assert!(json["advice"]["why"].is_string(), "{json}");
}

#[tokio::test]
async fn a_call_that_went_well_is_shown_whole() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.stream("fake-tools-cost").await.whole().await.unwrap();
    let (text, json) = shown(&world, &run, 1).await;
    for words in [
        "run r1, attempt 0, of account acct-1",
        "known by the run's own socket",
        "chat_completions, model fake-tools-cost, streamed",
        "complete: the answer reached its end",
        "; exact",
        "(upstream)",
        "get_weather",
        "record    1 of the journal",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert_eq!((&json["record"]["seq"], &json["advice"]), (&json!(1), &Value::Null));
    // The end of an id, as the table shows it, finds the same record.
    let table = world.sluice().on_terminal(&["audit", "tail"]).await.text();
    let end = table.lines().last().unwrap().split_whitespace().nth(1).unwrap();
    assert_eq!(said(&world, &["show", end]).await, text);
}

/// Tells which run or account has the limit, and the command and setting that change it.
#[tokio::test]
async fn a_limit_refusal_says_how_to_raise_the_limit() {
    let world =
        World::with("[accounts.'acct-7']\ncost = '0.00001'\n[prices.'*']\ninput = '1'\noutput = '2'").await;
    let budget = Budget { total_tokens: Some(5), requests_per_minute: Some(1), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    run.agent.chat("fake").await;
    let told = shown(&world, &run, 1).await;
    decided(
        &told,
        Some("run.total_tokens"),
        &[
            "run r1 has used its limit of total tokens",
            "sluice limit --run r1 --total-tokens N",
            "[agents.\"sandbox:agent\"] total_tokens",
        ],
    );
    run.agent.chat("fake").await;
    let told = shown(&world, &run, 2).await;
    decided(
        &told,
        Some("run.requests_per_minute"),
        &["calls faster than its limit", "--requests-per-minute N"],
    );

    let run = world.run("r2", "acct-7").await;
    run.agent.chat("fake-words50").await;
    run.agent.chat("fake-words50").await;
    let told = shown(&world, &run, 2).await;
    decided(
        &told,
        Some("account.cost"),
        &[
            "account acct-7 has used its limit of money",
            "sluice limit --account acct-7 --cost DOLLARS",
            "[accounts.\"acct-7\"] cost",
        ],
    );
    // It is true: with another limit the call passes.
    let outcome = world.sluice().run(&["limit", "--account", "acct-7", "--cost", "5"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(run.agent.chat("fake").await.status, 200);
}

/// A closed run takes no new limit, so `sluice limit` is advised only while it would be obeyed.
#[tokio::test]
async fn advice_for_a_closed_run_can_be_followed() {
    let world = World::start().await;
    let budget = Budget { total_tokens: Some(5), requests_per_minute: Some(2), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    run.agent.chat("fake").await;
    let raise = "sluice limit --run r1 --total-tokens N";
    decided(&shown(&world, &run, 1).await, Some("run.total_tokens"), &[raise]);
    let outcome = world.sluice().run(&["limit", "--run", "r1", "--total-tokens", "6"]).await;
    assert_eq!(outcome.code, Some(0), "control: the open run takes it: {outcome:?}");

    world.control.close(&run.grant.run_id, 0).await.unwrap();
    let told = shown(&world, &run, 1).await;
    let another = "sluice run --agent sandbox:agent --account acct-1 --total-tokens N QUESTION";
    let words =
        ["run r1 has used its limit of total tokens", "the run has ended, and its limit stays", another];
    decided(&told, Some("run.total_tokens"), &words);
    assert!(!told.0.contains(raise), "{}", told.0);
    let outcome = world.sluice().run(&["limit", "--run", "r1", "--total-tokens", "7"]).await;
    assert_eq!(outcome.code, Some(1), "it could not be followed: {outcome:?}");
}

/// An upstream's words may repeat a prompt, so the journal has its status alone: the advice leads to the words.
#[tokio::test]
async fn an_upstreams_error_leads_to_its_words() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake-status400").await.status, 400);
    let told = shown(&world, &run, 1).await;
    let words =
        ["upstream_error", "the upstream answered 400: it does not take the request", "sluice runs logs r1"];
    decided(&told, None, &words);
    run.agent.chat("fake").await;
    let (text, json) = shown(&world, &run, 2).await;
    assert!(json["advice"].is_null() && !text.contains("upstream_error"), "control: it answered: {text}");
}

/// The client has received a part of the answer, so no refusal is recorded.
#[tokio::test]
async fn an_answer_that_broke_off_is_explained() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    drop(run.agent.stream("fake-cut3").await.until_break().await);
    let told = shown(&world, &run, 1).await;
    decided(&told, None, &["upstream_gone\n", "the upstream broke off in its answer", "sluice doctor"]);
    drop(run.agent.stream("fake-words3").await.whole().await);
    let (text, json) = shown(&world, &run, 2).await;
    assert!(json["advice"].is_null(), "control: it came whole: {text}");
}

#[tokio::test]
async fn fields_models_and_capabilities_are_named() {
    let world = World::start().await;
    let models = Some(vec!["fake".parse().unwrap()]);
    let run = world.run_with(RunGrant { models, ..grant("r1", "acct-1") }).await;
    let mut body = chat_body("fake", Answering::Whole);
    body["colour"] = json!("red");
    body["web_search_options"] = json!({});
    run.agent.post(CHAT, &body).await;
    let told = shown(&world, &run, 1).await;
    decided(
        &told,
        Some("field:colour"),
        &[
            "the field colour",
            "[proxy] extra_body_fields = […, \"colour\"]",
            "the proxy's log at level debug their rules",
        ],
    );
    let log = world.log();
    assert!(log.contains("field:colour, capability:web_search"), "{log}");

    run.agent.chat("gpt-4o").await;
    let told = shown(&world, &run, 2).await;
    decided(
        &told,
        Some("model:gpt-4o"),
        &["was not granted the model gpt-4o", "[agents.\"sandbox:agent\"] models"],
    );

    let mut body = chat_body("fake", Answering::Whole);
    body["tools"] = json!([{ "type": "mcp", "server_url": "http://elsewhere", "server_label": "x" }]);
    run.agent.post(CHAT, &body).await;
    let told = shown(&world, &run, 3).await;
    decided(&told, Some("capability:mcp"), &["needs the capability mcp", "capabilities = […, \"mcp\"]"]);

    // No setting lets a control of LiteLLM through, so none is named.
    let mut body = chat_body("fake", Answering::Whole);
    body["api_base"] = json!("http://elsewhere");
    run.agent.post(CHAT, &body).await;
    let (text, json) = shown(&world, &run, 4).await;
    assert_eq!(json["record"]["rule"], "field:api_base");
    assert!(text.contains("it never passes") && !text.contains("extra_body_fields"), "{text}");

    // The command shows no operator what an agent writes.
    let mut body = chat_body("fake", Answering::Whole);
    body["the password is hunter2"] = json!(1);
    run.agent.post(CHAT, &body).await;
    let (text, json) = shown(&world, &run, 5).await;
    assert!(!text.contains("hunter2") && !world.log().contains("hunter2"), "{text}");
    assert!(json["record"]["rule"].as_str().unwrap().starts_with('<'), "{json}");
}

#[tokio::test]
async fn a_freeze_refusal_says_how_to_thaw() {
    let world = World::start().await;
    let run = world.run("r1", "acct-7").await;
    let cases: [(&[&str], &str, &str); 3] = [
        (&["--account", "acct-7"], "account", "sluice thaw --account acct-7"),
        (&["--model", "fake"], "model", "sluice thaw --model fake"),
        (&["--all"], "all", "sluice thaw --all"),
    ];
    for (at, (named, rule, thaw)) in cases.into_iter().enumerate() {
        let sluice = async |command| world.sluice().run(&[&[command], named].concat()).await.code;
        assert_eq!(sluice("freeze").await, Some(0));
        run.agent.chat("fake").await;
        decided(&shown(&world, &run, at + 1).await, Some(rule), &[thaw]);
        assert_eq!(sluice("thaw").await, Some(0));
    }
    // The same of a call that was cut.
    let mut held = run.agent.stream("fake-stall1").await;
    held.next().await.unwrap();
    assert_eq!(world.sluice().run(&["freeze", "--account", "acct-7"]).await.code, Some(0));
    assert_eq!(record_of(&world, &run, 4).await.outcome, Outcome::Frozen);
    decided(
        &shown(&world, &run, 4).await,
        Some("account"),
        &["an operator stopped it", "sluice thaw --account acct-7"],
    );
}

#[tokio::test]
async fn a_call_after_close_says_the_run_was_closed() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let request = Raw::post(CHAT, &json!({ "model": "fake" })).bytes();
    let (begun, rest) = request.split_at(20);
    let mut late = run.agent.connect().await.unwrap();
    late.write_all(begun).await.unwrap();
    let mut stream = run.agent.stream("fake-words10-gap50ms").await;
    stream.next().await.unwrap();
    let (control, id) = (world.control.clone(), run.grant.run_id.clone());
    let closing = async { control.close(&id, 5000).await.unwrap() };
    let calling = async {
        let closing = || async { world.control.run(&run.grant.run_id).await.unwrap().state };
        eventually("it closes", closing, |state| *state == platform_core::control::RunState::Closing).await;
        late.write_all(rest).await.unwrap();
        read_until(&mut late, "run_closed").await;
        drop(stream.until_break().await);
    };
    tokio::join!(closing, calling);
    let call = {
        let records = world.records(2).await;
        let refused = records.into_iter().find(|line| line.record.outcome == Outcome::Refused).unwrap();
        refused.record.litellm_call_id.to_string()
    };
    let text = said(&world, &["show", &call]).await;
    assert!(text.contains("run r1 was closed before the call came"), "{text}");
}

/// An unknown call is a failure; a text that is not a call id is misuse.
#[tokio::test]
async fn show_tells_an_unknown_call_from_a_bad_id() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["audit", "show", "00000000-0001-7000-8000-000000000002"]).await;
    assert!(outcome.code == Some(1) && outcome.stderr.contains("has no call"), "{outcome:?}");
    assert_eq!(world.sluice().run(&["audit", "show", "no-call"]).await.code, Some(2));
}
