//! An operator stops an account, a model or everything: new calls are refused, those in flight are cut, others go on.

use harness::{
    Run, World,
    agent::{Answering, chat_body},
    eventually,
};
use http::Method;
use platform_core::{
    record::{ExchangeRecord, Outcome},
    refusal::Refusal,
};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
/// A call that is never answered.
const NEVER: &str = "fake-hang";
/// A stream that does not end by itself.
const HANGS: &str = "fake-stall2";

async fn sluice(world: &World, arguments: &[&str]) -> Value {
    let outcome = world.sluice().run(arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| json!(outcome.stdout))
}

async fn code_of(run: &Run, model: &str) -> Option<String> {
    let answer = run.agent.chat(model).await;
    match answer.status.as_u16() {
        200 => None,
        400 => Some(answer.json()["error"]["code"].as_str().unwrap().to_owned()),
        other => panic!("{other}: {}", answer.text()),
    }
}

async fn record_of(world: &World, run: &Run) -> ExchangeRecord {
    let find = || async {
        let lines = world.journal().await.into_iter().map(|line| line.record);
        lines.filter(|record| record.run_id == run.grant.run_id).last()
    };
    eventually("the call is recorded", find, Option::is_some).await.unwrap()
}

#[tokio::test]
async fn a_freeze_cuts_and_refuses_only_its_target() {
    let mut world = World::start().await;
    let (frozen, other) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    let mut cut = frozen.agent.stream(HANGS).await;
    let mut goes_on = other.agent.stream(HANGS).await;
    cut.next().await.unwrap();
    goes_on.next().await.unwrap();

    let listed = sluice(&world, &["freeze", "--account", "acct-1", "--json"]).await;
    assert_eq!(listed, json!({ "frozen": [{ "kind": "account", "name": "acct-1" }], "unknown": [] }));
    assert!(cut.whole().await.is_err(), "a stream that was cut must not look complete");
    let record = record_of(&world, &frozen).await;
    assert_eq!((record.outcome, record.refusal), (Outcome::Frozen, Some(Refusal::Frozen)));
    assert_eq!(code_of(&frozen, "fake").await.as_deref(), Some("frozen"));
    assert_eq!(code_of(&other, "fake").await, None);
    assert_eq!(
        world.control.run(&other.grant.run_id).await.unwrap().in_flight,
        1,
        "the other's call goes on"
    );
    drop(goes_on);

    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let frozen = world.run("r3", "acct-1").await;
    assert_eq!(code_of(&frozen, "fake").await.as_deref(), Some("frozen"), "a restart thaws nothing");
    let shown = sluice(&world, &["thaw", "--account", "acct-1"]).await;
    assert_eq!(shown, json!("nothing is stopped\n"));
    assert_eq!(code_of(&frozen, "fake").await, None);
}

/// A thaw may come before the call that the freeze cuts is recorded.
#[tokio::test]
async fn a_freeze_lifted_at_once_is_recorded() {
    let world = World::start().await;
    for number in 0..20 {
        let run = world.run(&format!("r{number}"), "acct-1").await;
        let mut cut = run.agent.stream(HANGS).await;
        cut.next().await.unwrap();
        let account = json!([{ "kind": "account", "name": "acct-1" }]).to_string();
        for path in ["/v1/freeze", "/v1/thaw"] {
            let changed = world.control.send(Method::POST, path, account.clone()).await;
            assert_eq!(changed.status, 200, "{}", changed.text());
        }
        let in_flight = async || world.control.run(&run.grant.run_id).await.unwrap().in_flight;
        if in_flight().await == 1 {
            // The thread saw neither change, or is about to cut the call.
            drop(world.control.send(Method::POST, "/v1/freeze", account.clone()).await);
        }
        let record = record_of(&world, &run).await;
        assert_eq!(
            (record.outcome, record.refusal),
            (Outcome::Frozen, Some(Refusal::Frozen)),
            "call {number}"
        );
        assert_eq!(world.control.send(Method::POST, "/v1/thaw", account).await.status, 200);
    }
}

/// Calls are cut before their answer begins, too.
#[tokio::test]
async fn a_frozen_model_is_frozen_for_all_runs() {
    let world = World::start().await;
    let (run, other) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    let body = chat_body(NEVER, Answering::Whole).to_string();
    let freezing = async {
        let asked = || async { world.upstream.ledger().len() };
        eventually("the call is upstream", asked, |count| *count == 1).await;
        sluice(&world, &["freeze", "--model", NEVER, "--json"]).await
    };
    let (waiting, _) = tokio::join!(run.agent.request(Method::POST, CHAT, body.into()), freezing);
    assert!(waiting.is_err());
    assert_eq!(record_of(&world, &run).await.outcome, Outcome::Frozen);
    for run in [&run, &other] {
        assert_eq!(code_of(run, NEVER).await.as_deref(), Some("frozen"));
        assert_eq!(code_of(run, "fake").await, None);
    }
    let calls = world.upstream.ledger().all().into_iter().filter(|asked| asked.path == CHAT).count();
    assert_eq!(calls, 3, "what is refused is not sent");

    let listed = sluice(&world, &["freeze", "--all", "--json"]).await;
    let frozen = json!([{ "kind": "all" }, { "kind": "model", "name": NEVER }]);
    assert_eq!(listed, json!({ "frozen": frozen, "unknown": [] }));
    assert_eq!(code_of(&other, "fake").await.as_deref(), Some("frozen"));
    assert_eq!(other.agent.get("/v1/models").await.status, 400, "nor are models told");
    assert_eq!(other.agent.get("/health").await.status, 200, "the socket works");
}

#[tokio::test]
async fn thaw_needs_a_target() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["thaw"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("--account"), "{outcome:?}");
}

/// An operator freezes a mistyped name. The name is frozen, because a freeze is never refused, and the command warns
/// that it is unknown.
#[tokio::test]
async fn freezing_an_unknown_name_warns() {
    let world = World::with(
        "[prices.priced]\ninput = '1'\noutput = '1'\n[agents.'sandbox:agent']\nmodels = ['listed']",
    )
    .await;
    let _run = world.run("r1", "local").await;
    let typo = world.sluice().run(&["freeze", "--account", "lcoal", "--model", "gtp", "--json"]).await;
    let told: Value = serde_json::from_str(&typo.stdout).unwrap();
    let named = json!([{ "kind": "account", "name": "lcoal" }, { "kind": "model", "name": "gtp" }]);
    assert_eq!((typo.code, &told), (Some(0), &json!({ "frozen": named, "unknown": named })), "{typo:?}");
    for words in ["of account lcoal is known", "sluice thaw --account lcoal", "names model gtp"] {
        assert!(typo.stderr.contains(words), "{words}: {typo:?}");
    }
    // The control: names of a run, a price, an agent's list, the default and the upstream's list are known.
    for named in [
        ["--account", "local"],
        ["--model", "priced"],
        ["--model", "listed"],
        ["--model", "fake"],
        ["--all", "--json"],
    ] {
        let known = world.sluice().run(&[&["freeze"], named.as_slice()].concat()).await;
        assert_eq!((known.code, known.stderr.as_str()), (Some(0), ""), "{named:?}");
    }
}

/// `sluice thaw --all` lifts the freeze of everything. Names that were frozen stay so, and the command says how to thaw
/// each of them.
#[tokio::test]
async fn thaw_says_what_stays_frozen() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let thaw = async |named: &[&str]| world.sluice().run(&[&["thaw"], named].concat()).await;
    sluice(&world, &["freeze", "--all", "--model", "fake", "--account", "acct-2"]).await;
    let all = thaw(&["--all"]).await;
    assert_eq!(all.code, Some(1), "{all:?}");
    assert!(all.stderr.contains("sluice thaw --account acct-2 --model fake"), "{all:?}");
    assert_eq!(code_of(&run, "fake").await.as_deref(), Some("frozen"));

    let mistyped = thaw(&["--model", "fkae", "--json"]).await;
    let told: Value = serde_json::from_str(&mistyped.stdout).unwrap();
    assert_eq!(
        (mistyped.code, &told["not_frozen"]),
        (Some(1), &json!([{ "kind": "model", "name": "fkae" }]))
    );
    assert!(mistyped.stderr.contains("model fkae was not frozen"), "{mistyped:?}");

    let right = thaw(&["--account", "acct-2", "--model", "fake"]).await;
    assert_eq!((right.code, right.stderr.as_str()), (Some(0), ""), "the control: {right:?}");
    assert_eq!(code_of(&run, "fake").await, None);
    assert_eq!(thaw(&["--all"]).await.code, Some(1), "nothing was stopped any more");
}

/// An operator revokes a token of an unknown run; that is never refused either, because a token may be older than its
/// run.
#[tokio::test]
async fn revoking_an_unknown_run_warns() {
    let world = World::start().await;
    let _run = world.run("r1", "acct-1").await;
    let revoke = async |run: &str| world.sluice().run(&["token", "revoke", "--run", run]).await;
    let unknown = revoke("nope").await;
    assert_eq!(unknown.code, Some(0), "{unknown:?}");
    assert!(unknown.stderr.contains("the proxy knows no run nope"), "{unknown:?}");
    assert_eq!(revoke("r1").await.stderr, "", "the control");
    world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
    assert_eq!(revoke("r1").await.stderr, "", "one that was closed is known");
}
