//! Tests the attribution of calls: nothing that an agent says about itself reaches the upstream.

use std::collections::BTreeSet;

use bench::upstream::Entry;
use harness::{
    Agent, CANARY_KEY, OriginalProxy, Raw, World,
    agent::{Answering, chat_body},
    grant,
};
use http::Method;
use platform_core::{
    grant::{Correlation, RunGrant},
    id::ExternalId,
};
use serde_json::{Value, json};

/// Headers that could tell LiteLLM, a tracing system or Sluicegate itself who is calling, or make it treat the call
/// otherwise.
const SPOOFED: [&str; 17] = [
    "authorization",
    "x-litellm-end-user-id",
    "x-litellm-customer-id",
    "x-litellm-api-key",
    "x-api-key",
    "api-key",
    "x-litellm-call-id",
    "x-litellm-tags",
    "x-litellm-spend-logs-metadata",
    "x-cogni-run-id",
    "x-run-token",
    "x-litellm-trace-id",
    "x-litellm-session-id",
    "x-litellm-num-retries",
    "x-litellm-timeout",
    "cookie",
    "traceparent",
];
/// Headers that the predecessor's template overwrites. It passes on all others.
const OVERWRITTEN_BY_TEMPLATE: [&str; 3] =
    ["authorization", "x-litellm-end-user-id", "x-litellm-spend-logs-metadata"];
/// All that the upstream may see of a request that brings nothing but its body's type.
pub(crate) const OURS: [&str; 12] = [
    "accept-encoding",
    "authorization",
    "content-length",
    "content-type",
    "host",
    "x-cogni-run-id",
    "x-litellm-call-id",
    "x-litellm-customer-id",
    "x-litellm-end-user-id",
    "x-litellm-session-id",
    "x-litellm-spend-logs-metadata",
    "x-litellm-timeout",
];

/// A request that claims to be the victim by some headers, each of them so many times.
pub(crate) struct Spoof {
    claimed: &'static [&'static str],
    times: usize,
    request: Raw,
}

/// Returns requests with each header twice, in three spellings, then with all of them at once.
pub(crate) fn spoofs() -> Vec<Spoof> {
    let request = Raw::post("/v1/chat/completions", &chat_body("fake", Answering::Whole));
    let claim = |request: Raw, name: &str| request.header(name, "victim");
    let mut spoofs = Vec::new();
    for claimed in SPOOFED.chunks(1) {
        for spelling in [claimed[0].to_owned(), claimed[0].to_uppercase(), odd_case(claimed[0])] {
            let request = claim(claim(request.clone(), &spelling), &spelling);
            spoofs.push(Spoof { claimed, times: 2, request });
        }
    }
    let all = SPOOFED.iter().fold(request, |request, name| claim(request, name));
    spoofs.push(Spoof { claimed: &SPOOFED, times: 1, request: all });
    spoofs
}

fn odd_case(name: &str) -> String {
    let odd = |(at, c): (usize, char)| if at % 2 == 0 { c } else { c.to_ascii_uppercase() };
    name.chars().enumerate().map(odd).collect()
}

#[tokio::test]
async fn a_claimed_identity_is_replaced() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for Spoof { claimed, request, .. } in spoofs() {
        let answer = request.ask(&run.agent).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{claimed:?}: {answer}");
        assert_only_ours(&world.upstream.ledger().last().unwrap(), claimed);
    }
    let journaled: BTreeSet<_> =
        world.journal().await.iter().map(|line| line.record.litellm_call_id.to_string()).collect();
    let seen: BTreeSet<_> = world
        .upstream
        .ledger()
        .all()
        .iter()
        .map(|entry| entry.header("x-litellm-call-id")[0].to_owned())
        .collect();
    assert_eq!((journaled.len(), &journaled), (spoofs().len(), &seen));
}

fn assert_only_ours(entry: &Entry, claimed: &[&str]) {
    let mut names: Vec<_> = entry.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, OURS, "{claimed:?}");
    for (name, value) in &entry.headers {
        assert!(!value.contains("victim"), "{claimed:?}: {name}: {value}");
    }
    let expected = [
        ("authorization", format!("Bearer {CANARY_KEY}")),
        ("x-litellm-end-user-id", "acct-1".to_owned()),
        ("x-litellm-customer-id", "acct-1".to_owned()),
        ("x-litellm-session-id", "r1".to_owned()),
        ("x-cogni-run-id", "r1".to_owned()),
        ("x-litellm-timeout", "3600".to_owned()),
        ("accept-encoding", "identity".to_owned()),
    ];
    for (name, value) in expected {
        assert_eq!(entry.header(name), [value], "{claimed:?}: {name}");
    }
    assert_eq!(entry.header("x-litellm-call-id"), [metadata(entry)["call_id"].as_str().unwrap()]);
}

/// A client sends the same claims through the predecessor's template, and they arrive. It is the control of the test
/// above.
#[tokio::test]
async fn the_template_passes_the_same_claims() {
    let world = World::start().await;
    let nginx = OriginalProxy::start(world.upstream.address(), &grant("r1", "acct-1"), CANARY_KEY).await;
    for Spoof { claimed, times, request } in spoofs() {
        let answer = request.ask(&nginx.agent).await;
        if claimed == ["authorization"] {
            assert!(answer.starts_with("HTTP/1.1 400"), "nginx itself refuses a second one: {answer}");
            continue;
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{claimed:?}: {answer}");
        let seen = world.upstream.ledger().last().unwrap();
        for name in claimed {
            let arrived = seen.header(name);
            if OVERWRITTEN_BY_TEMPLATE.contains(name) {
                assert!(arrived.len() == 1 && !arrived[0].contains("victim"), "{name}: {arrived:?}");
            } else {
                assert_eq!(arrived.join(" ").matches("victim").count(), times, "{name}: {arrived:?}");
            }
        }
    }
}

#[tokio::test]
async fn headers_of_official_sdks_pass_and_no_others() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let passed = [
        ("accept", "application/json"),
        ("user-agent", "OpenAI/Python 2.0"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "tools"),
        ("openai-beta", "assistants=v2"),
        ("x-stainless-lang", "python"),
    ];
    let dropped =
        ["x-forwarded-for", "forwarded", "openai-organization", "x-vendor-session-id", "baggage", "te"];
    let agent = passed.iter().fold(run.agent.clone(), |agent, (name, value)| agent.with_header(name, value));
    let agent = dropped.iter().fold(agent, |agent, name| agent.with_header(name, "victim"));
    assert_eq!(agent.chat("fake").await.status, 200);
    let seen = world.upstream.ledger().last().unwrap();
    for (name, value) in passed {
        assert_eq!(seen.header(name), [value], "{name}");
    }
    for name in dropped {
        assert_eq!(seen.header(name), Vec::<&str>::new(), "{name}");
    }
}

fn metadata(entry: &Entry) -> Value {
    let headers = entry.header("x-litellm-spend-logs-metadata");
    assert!(headers.len() == 1 && headers[0].is_ascii(), "{headers:?}");
    serde_json::from_str(headers[0]).unwrap()
}

#[tokio::test]
async fn metadata_has_exactly_the_granted_keys() {
    let id = |text: &str| Some(ExternalId::parse(text).unwrap());
    let all = Correlation {
        user: id("Zoë \"}{\\ 👋"),
        session: id("session"),
        existing_trace: id("trace"),
        trace_user: id("trace-user"),
    };
    let table = [
        ("r1", Correlation::default(), json!({})),
        ("r2", Correlation { user: id("u"), ..Correlation::default() }, json!({ "user_id": "u" })),
        (
            "r3",
            all,
            json!({ "user_id": "Zoë \"}{\\ 👋", "session_id": "session", "existing_trace_id": "trace",
                "trace_user_id": "trace-user" }),
        ),
    ];
    let world = World::start().await;
    for (run, correlation, mut expected) in table {
        let run = world.run_with(RunGrant { attempt: 3, correlation, ..grant(run, "acct-1") }).await;
        run.agent.chat("fake").await;
        let seen = world.upstream.ledger().last().unwrap();
        expected["run_id"] = json!(run.grant.run_id);
        expected["attempt"] = json!(3);
        expected["graph_id"] = json!("sandbox:agent");
        expected["call_id"] = json!(seen.header("x-litellm-call-id")[0]);
        assert_eq!(metadata(&seen), expected);
    }
}

#[tokio::test]
async fn a_query_string_goes_nowhere() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake", Answering::Whole).to_string();
    let path = "/v1/chat/completions?model=fake-cost&user=victim";
    assert_eq!(run.agent.request(Method::POST, path, body.clone().into()).await.unwrap().status, 200);
    assert_eq!(world.upstream.ledger().last().unwrap().path, "/v1/chat/completions");
    // Without Sluicegate it arrives, and LiteLLM would act on it.
    Agent::over_tcp(world.upstream.address()).request(Method::POST, path, body.into()).await.unwrap();
    assert_eq!(world.upstream.ledger().last().unwrap().path, path);
}
