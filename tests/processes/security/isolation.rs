//! Tests that runs are apart: what one says is never taken for another's, and its socket serves no other client.

use std::collections::BTreeSet;

use bench::upstream::Entry;
use harness::{
    Agent, Raw, Run, World,
    agent::{Answering, chat_body},
    foreign_uid_client::{Reply, ask_as, open_to_all_uids},
    grant,
};
use platform_core::{
    grant::{Correlation, Listener, RunGrant},
    id::ExternalId,
};
use platform_runtime::task;
use serde_json::{Value, json};

#[tokio::test]
async fn two_runs_at_once_never_mix() {
    let world = World::start().await;
    let runs = [named_run(&world, "r1").await, named_run(&world, "r2").await];
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let (run, answering) = (&runs[n % 2], [Answering::Whole, Answering::Streamed][n / 2 % 2]);
            let (agent, run) = (run.agent.clone(), run.grant.run_id.to_string());
            task::spawn("call", async move { assert!(say(&agent, &run, answering).await.contains(&run)) })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let seen = world.upstream.ledger().all();
    assert_eq!((seen.len(), mixed(&seen).len()), (100, 0), "{:#?}", mixed(&seen));
    for line in world.records(100).await {
        let record = line.record;
        let id = record.litellm_call_id.to_string();
        let call = seen.iter().find(|entry| entry.header("x-litellm-call-id") == [id.as_str()]).unwrap();
        let named = BTreeSet::from([record.run_id.to_string()]);
        assert_eq!(
            (runs_named(call), record.account.to_string()),
            (named, format!("acct-{}", record.run_id))
        );
    }
    // The search for mixing does find it: here the second run's words leave by the first one's socket.
    say(&runs[0].agent, "r2", Answering::Whole).await;
    assert_eq!(mixed(&world.upstream.ledger().all()).len(), 1);
}

/// Registers a run with its name in every id it has.
async fn named_run(world: &World, run: &str) -> Run {
    let session = ExternalId::parse(&format!("session-{run}")).ok();
    let correlation = Correlation { session, ..Correlation::default() };
    world.run_with(RunGrant { correlation, ..grant(run, &format!("acct-{run}")) }).await
}

async fn say(agent: &Agent, text: &str, answering: Answering) -> String {
    let mut body = chat_body("fake-echo-gap1ms", answering);
    body["messages"][0]["content"] = json!(text);
    agent.post("/v1/chat/completions", &body).await.text()
}

/// Returns every run that one request names, in its message or in what stands for its identity.
fn runs_named(entry: &Entry) -> BTreeSet<String> {
    let metadata: Value = serde_json::from_str(entry.header("x-litellm-spend-logs-metadata")[0]).unwrap();
    let body = entry.json().unwrap();
    let headers =
        ["x-litellm-session-id", "x-cogni-run-id", "x-litellm-end-user-id", "x-litellm-customer-id"];
    let named = headers.iter().flat_map(|name| entry.header(name));
    let named = named.chain(
        [&metadata["run_id"], &metadata["session_id"], &body["messages"][0]["content"]]
            .map(|value| value.as_str().unwrap()),
    );
    named.map(|id| id.rsplit('-').next().unwrap().to_owned()).collect()
}

fn mixed(seen: &[Entry]) -> Vec<BTreeSet<String>> {
    seen.iter().map(runs_named).filter(|runs| runs.len() != 1).collect()
}

#[tokio::test]
async fn another_uid_gets_no_answer_on_a_runs_socket() {
    let world = World::start().await;
    for (granted, caller, expected) in [
        (1001, 1001, Reply::Status(200)),
        (1001, 1002, Reply::NoAnswer),
        (1001, 0, Reply::NoAnswer),
        (0, 1001, Reply::NoAnswer),
        (0, 0, Reply::Status(200)),
    ] {
        let (listener, name) = (Listener::Unix { peer_uid: granted }, format!("r-{granted}-{caller}"));
        let run = world.run_with(RunGrant { listener, ..grant(&name, "acct-1") }).await;
        open_to_all_uids(&run.socket);
        let got = ask_as(caller, &run.socket, Raw::request("GET", "/health")).await;
        assert_eq!(got, expected, "uid {caller}, the grant names {granted}");
    }
}
