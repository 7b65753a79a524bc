//! Tests that a tool in a session of a real gateway gains nothing by the proofs of other runs, or by invented ones.

use std::fs;

use harness::{
    World, grant,
    sessions::Sessions,
    shared::{register_shared, token},
};
use http::Method;
use platform_core::{
    grant::{Listener, RunGrant},
    refusal::Refusal,
};
use serde_json::{Value, json};

const OPEN: &str = "0af7651916cd43dd8448eb211c80319c";
const OWN: &str = "4af7651916cd43dd8448eb211c80319c";
const CLOSED: &str = "1af7651916cd43dd8448eb211c80319c";
const MADE_UP: &str = "2af7651916cd43dd8448eb211c80319c";
const DIR: &str = "00000000000000000000000000000009";

/// Call with a proof of a run: a slot in the path, and headers.
struct Attempt {
    slot: Option<&'static str>,
    headers: Vec<String>,
}

fn with(slot: Option<&'static str>, headers: &[String]) -> Attempt {
    Attempt { slot, headers: headers.to_vec() }
}

fn traced(trace: &str) -> String {
    format!("traceparent: 00-{trace}-00f067aa0ba902b7-01")
}

/// Registers `run` on the listener, or at another gateway, with a trace and a slot of the same digits.
async fn register(world: &World, run: &str, listener: Listener, digits: &str) {
    let grant = RunGrant { listener, ..grant(run, "acct-victim") };
    match grant.listener {
        Listener::Shared => drop(register_shared(world, grant).await),
        _ => drop(world.control.register(&grant).await.unwrap()),
    }
    for known in ["traces", "slots"] {
        let path = format!("/v1/runs/{run}/{known}/{digits}");
        assert_eq!(world.control.send(Method::PUT, &path, String::new()).await.status, 200);
    }
}

/// Returns status and code of each attempt from the text of a session's answer.
fn answers(text: &str) -> Vec<(u64, String)> {
    let lines: Vec<_> = text.lines().collect();
    let answer = |pair: &[&str]| {
        let body: Value = serde_json::from_str(pair[0]).unwrap();
        (pair[1].parse().unwrap(), body["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    lines.chunks(2).map(answer).collect()
}

/// Makes `attempts` with a session's tool, and returns their results.
async fn attempt_all(sessions: &Sessions, run: &str, attempts: &[Attempt]) -> Vec<(u64, String)> {
    let body = json!({ "model": "fake", "messages": [{ "role": "user", "content": "mine" }] });
    let call = |attempt: &Attempt| {
        let slot = attempt.slot.map(|slot| format!("/slot/{slot}")).unwrap_or_default();
        let headers: String = attempt.headers.iter().map(|header| format!(" -H '{header}'")).collect();
        let url = format!("http://{}{slot}/v1/chat/completions", sessions.address);
        format!(
            "curl -s -H 'content-type: application/json'{headers} -d '{body}' -w '\\n%{{http_code}}\\n' {url}\n"
        )
    };
    let workspace = sessions.gateway.workspace();
    fs::write(workspace.join("replay.sh"), attempts.iter().map(call).collect::<String>()).unwrap();
    let message = "Do this:\ncall: exec {\"command\":\"sh replay.sh > answers\"}";
    let outcome = sessions.run((run, "acct-9"), &[], message).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}\n{}", sessions.gateway.log());
    answers(&fs::read_to_string(workspace.join("answers")).unwrap())
}

/// Checks all proofs at a gateway that has served other runs.
pub(crate) async fn get_nothing(sessions: &Sessions) {
    let world = &sessions.world;
    let listener = json!({ "peer_uid": rustix::process::geteuid().as_raw(), "socket_dir": DIR }).to_string();
    assert_eq!(world.control.send(Method::PUT, "/v1/gateways/other", listener).await.status, 200);
    register(world, "open", Listener::Shared, OPEN).await;
    register(world, "own", Listener::Shared, OWN).await;
    register(world, "closed", Listener::Shared, CLOSED).await;
    world.control.close(&"closed".parse().unwrap(), 0).await.unwrap();
    let elsewhere = "3af7651916cd43dd8448eb211c80319c";
    register(world, "elsewhere", Listener::Gateway { gateway: "other".parse().unwrap() }, elsewhere).await;

    let identity =
        ["x-litellm-end-user-id: acct-victim", "x-litellm-customer-id: acct-victim"].map(str::to_owned);
    let token_of = |run: &str, secret: &str| format!("x-run-token: {}", token(run, 0, secret, 60));
    let attempts = [
        with(None, &[]),
        with(None, &identity),
        with(None, &["x-cogni-run-id: open".to_owned(), "x-litellm-session-id: open".to_owned()]),
        with(None, &["x-run-token: open|0|99999999999.AAAA".to_owned()]),
        with(None, &[token_of("open", "stranger")]),
        with(None, &[traced(CLOSED)]),
        with(None, &[traced(MADE_UP)]),
        with(None, &[traced(elsewhere)]),
        with(Some(CLOSED), &[]),
        with(Some(MADE_UP), &[]),
        with(Some(elsewhere), &[]),
        // Another run's proof is not valid together with the run's own.
        with(Some(OPEN), &[traced(OWN)]),
        with(Some(elsewhere), &[traced(OWN)]),
        with(Some(CLOSED), &[traced(OWN)]),
        with(None, &[token_of("open", "new"), traced(OWN)]),
    ];
    let before = sessions.world.upstream.ledger().len();
    let known = sessions.journaled().await;
    let refused = attempt_all(sessions, "replaying", &attempts).await;
    assert_eq!(refused, vec![(400, "unattributed".to_owned()); attempts.len()]);
    // A token still names its run after the run's close.
    let closed = attempt_all(sessions, "replaying-more", &[with(None, &[token_of("closed", "new")])]).await;
    assert_eq!(closed, [(400, "run_closed".to_owned())]);
    // Each session made two calls, one for the tool and one with its result. No attempt reached the upstream or has an
    // account.
    assert_eq!(sessions.world.upstream.ledger().len() - before, 4);
    let mut journal = sessions.journaled().await;
    for run in ["replaying", "replaying-more"] {
        let own = ("acct-9".to_owned(), run.to_owned());
        assert_eq!(journal.remove(&own).map(|calls| calls.len()), Some(2), "{run}");
    }
    assert_eq!(journal, known);
    let records = world.journal().await.into_iter().map(|line| line.record);
    let unattributed = records.filter(|record| record.refusal == Some(Refusal::Unattributed)).count();
    assert!(unattributed > 0, "they are recorded, as nobody's");

    // The control: with the proof of an open run the same call passes, and is recorded for that run.
    let passed = attempt_all(sessions, "with-proof", &[with(None, &[traced(OPEN)])]).await;
    assert_eq!(passed, [(200, String::new())]);
    let journal = sessions.journaled().await;
    let victim = ("acct-victim".to_owned(), "open".to_owned());
    assert_eq!(journal.get(&victim).map(Vec::len), Some(1), "{journal:?}");
    for run in ["open", "own", "elsewhere"] {
        world.control.close(&run.parse().unwrap(), 0).await.unwrap();
    }
}
