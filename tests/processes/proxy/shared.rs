//! Tests the listener that runs share: a call has to prove its run, by a signed token or by a correlation that control
//! registered.

use std::{
    net::SocketAddr,
    time::{Duration, UNIX_EPOCH},
};

use harness::{
    Agent, World,
    eventually::{PATIENCE, settled},
    grant,
    process::cpu_ticks,
    shared::{SECRETS, register_shared, share, token},
};
use http::Method;
use platform_core::{
    grant::{Listener, RunGrant},
    record::{Identity, Outcome},
    refusal::Refusal,
};
use serde_json::json;

const CHAT: &str = "/v1/chat/completions";
pub(crate) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub(crate) const SLOT: &str = "0123456789abcdef0123456789abcdef";

/// A world with a shared listener, and its address.
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
}

impl Shared {
    pub(crate) async fn serving(whom: &str) -> Self {
        Self::of(World::start().await, whom).await
    }

    /// Starts the world's proxy anew, with a shared listener and run r1 there.
    pub(crate) async fn of(mut world: World, whom: &str) -> Self {
        share(&mut world, whom).await;
        let address = open(&world, "r1", "acct-1").await;
        Self { world, address }
    }

    pub(crate) fn agent(&self) -> Agent {
        Agent::over_tcp(self.address).searched()
    }

    /// Returns an agent that sends `token` as X-Run-Token.
    pub(crate) fn with_token(&self, token: &str) -> Agent {
        self.agent().with_header("x-run-token", token)
    }

    pub(crate) async fn control(&self, method: Method, path: &str) -> u16 {
        self.world.control.send(method, path, String::new()).await.status.as_u16()
    }

    /// Returns the run, the identity and the refusal that are recorded for the last call.
    async fn last(&self, count: usize) -> (String, Identity, Option<Refusal>) {
        let record = self.world.records(count).await.pop().unwrap().record;
        (record.run_id.to_string(), record.identity, record.refusal)
    }
}

pub(crate) async fn open(world: &World, run: &str, account: &str) -> SocketAddr {
    register_shared(world, grant(run, account)).await
}

pub(crate) fn good(run: &str) -> String {
    token(run, 0, "new", 3600)
}

/// The token comes in its own header, or as the API key of any SDK.
#[tokio::test]
async fn a_token_attributes_a_call() {
    let shared = Shared::serving("clients").await;
    open(&shared.world, "r2", "acct-2").await;
    let bearer = format!("Bearer {}", good("r2"));
    let agents = [
        (shared.with_token(&good("r1")), "acct-1"),
        (shared.agent().with_header("authorization", &bearer), "acct-2"),
        (shared.agent().with_header("x-api-key", &good("r2")), "acct-2"),
        (shared.agent().with_header("x-goog-api-key", &good("r2")), "acct-2"),
        (shared.with_token(&good("r1")).with_header("authorization", "Bearer sandbox"), "acct-1"),
        (shared.with_token(&token("r1", 0, "old", 60)), "acct-1"),
        (shared.with_token(&token("r1", 0, "new", -20)), "acct-1"), // within the skew
    ];
    for (count, (agent, account)) in (1..).zip(agents) {
        assert_eq!(agent.chat("fake").await.status, 200);
        let seen = shared.world.upstream.ledger().last().unwrap();
        assert_eq!(seen.header("x-litellm-end-user-id"), [account]);
        for key in ["x-run-token", "x-api-key", "x-goog-api-key"] {
            assert!(seen.header(key).is_empty(), "{key}");
        }
        assert_eq!(shared.last(count).await.1, Identity::Token);
    }
    assert_eq!(shared.agent().get("/health").await.text(), r#"{"status":"ok"}"#);
}

/// Google's dialect is not a route here, and a client of Google's is told so.
#[tokio::test]
async fn a_gemini_client_is_told_of_no_such_route() {
    let shared = Shared::serving("clients").await;
    let path = "/v1beta/models/gemini-2.5-pro:generateContent";
    let body = json!({ "contents": [{ "parts": [{ "text": "Hello" }] }] });
    for (key, status, code, run) in [
        (good("r1"), 404, Refusal::RouteUnknown, "r1"),
        ("AIza-another-key".to_owned(), 401, Refusal::TokenMissing, "unattributed"),
    ] {
        let answer = shared.agent().with_header("x-goog-api-key", &key).post(path, &body).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (status, &json!(code.code())));
        let record = shared.world.records(1 + usize::from(status == 401)).await.pop().unwrap().record;
        assert_eq!((record.run_id.as_str(), record.refusal), (run, Some(code)));
    }
    assert!(shared.world.upstream.ledger().is_empty());
}

/// Returns tokens that do not hold, and why, where r1 is open and "own-socket" has its own socket.
pub(crate) fn bad_tokens() -> Vec<(Option<String>, Refusal)> {
    let valid = good("r1");
    let (data, signature) = valid.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { 'B' } else { 'A' };
    vec![
        (None, Refusal::TokenMissing),
        (Some("not-a-token".to_owned()), Refusal::TokenMalformed),
        (Some(String::new()), Refusal::TokenMalformed),
        (Some(data.to_owned()), Refusal::TokenMalformed),
        (Some(format!("{data}.")), Refusal::TokenMalformed),
        (Some(format!("{valid}.{signature}")), Refusal::TokenMalformed),
        (Some(format!("{valid}=")), Refusal::TokenMalformed),
        (Some(valid.replace("r1|0", "r1|0|0")), Refusal::TokenMalformed),
        (Some(valid.replace("r1|0", "r1|-0")), Refusal::TokenMalformed),
        (Some(format!("{data}.{other}{}", &signature[1..])), Refusal::TokenInvalid),
        (Some(valid.replace("r1|0", "r2|0")), Refusal::TokenInvalid),
        (Some(token("r1", 0, "wrong", 3600)), Refusal::TokenInvalid),
        (Some(token("r1", 1, "new", 3600)), Refusal::TokenInvalid),
        (Some(token("r1", 0, "new", -60)), Refusal::TokenExpired),
        (Some(good("r9")), Refusal::RunUnknown),
        (Some(good("own-socket")), Refusal::RunUnknown),
    ]
}

#[tokio::test]
async fn a_bad_token_is_refused_and_unattributed() {
    let shared = Shared::serving("clients").await;
    shared.world.run("own-socket", "acct-3").await;
    let valid = good("r1");
    for (count, (token, reason)) in (1..).zip(bad_tokens()) {
        let agent = token.as_ref().map_or(shared.agent(), |token| shared.with_token(token));
        let answer = agent.chat("fake").await;
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status.as_u16(), code), (401, json!(reason.code())), "{token:?}");
        assert_eq!(shared.last(count).await, ("unattributed".to_owned(), Identity::None, Some(reason)));
        if reason == Refusal::TokenExpired {
            let token = token.unwrap();
            let expiry = token.rsplit_once('.').unwrap().0.rsplit_once('|').unwrap().1.parse().unwrap();
            let expiry = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(expiry));
            assert!(answer.text().contains(&format!("has run out at {expiry}")), "{}", answer.text());
        }
    }
    let twice = shared.with_token(&valid).with_header("x-run-token", &valid).chat("fake").await;
    assert_eq!(twice.json()["error"]["code"], "token_malformed");
    assert!(shared.world.upstream.ledger().is_empty());
    // Control: the token that all of these were made from.
    assert_eq!(shared.with_token(&valid).chat("fake").await.status, 200);
}

#[tokio::test]
async fn a_gateway_gets_no_status_that_locks_providers() {
    let shared = Shared::serving("gateways").await;
    let bad = [token("r1", 0, "new", -60), token("r1", 0, "wrong", 3600), good("r9"), "x".to_owned()];
    for agent in bad.iter().map(|token| shared.with_token(token)).chain([shared.agent()]) {
        let answer = agent.chat("fake").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!("unattributed")));
        assert_eq!(answer.headers["x-should-retry"], "false");
    }
    // Nor does it receive words that an agent chose.
    let body = json!({ "model": "fake", "messages": [], "unauthorized expired 401": 1 });
    let answer = shared.with_token(&good("r1")).post(CHAT, &body).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!("field_unknown")));
    assert!(!answer.text().contains("401") && !answer.text().contains("expired"), "{}", answer.text());
}

/// Starts a gateway's listener in front of an upstream that answers with exactly these bytes.
async fn gateway_before(answer: &str) -> Shared {
    let keep_open = harness::KeepOpenUpstream::answering(answer).await;
    let upstream = bench::upstream::ScriptedUpstream::start().await.unwrap();
    Shared::of(World::in_front_of(upstream, &keep_open.base_url(), "").await, "gateways").await
}

#[tokio::test]
async fn a_gateway_gets_upstream_errors_reworded() {
    let error = |status: &str, message: &str| {
        let body = json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string();
        let head = "content-type: application/json\r\nretry-after: 9\r\nconnection: close\r\n";
        format!("HTTP/1.1 {status}\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
    };
    let credit = "Invalid value: your credit balance is too low, api key expired";
    for (status, message, told) in [
        ("400 Bad Request", credit, (400, "upstream_refused", None)),
        ("404 Not Found", "Invalid value: 'invalid api key'", (400, "upstream_refused", None)),
        (
            "400 Bad Request",
            "This model's maximum context length is 9 tokens",
            (400, "context_overflow", None),
        ),
        ("429 Too Many Requests", "rate limit", (503, "upstream_busy", Some("9"))),
        ("500 Internal Server Error", "trace", (503, "upstream_busy", Some("9"))),
    ] {
        let shared = gateway_before(&error(status, message)).await;
        let answer = shared.with_token(&good("r1")).chat("m").await;
        let code = answer.json()["error"]["code"].as_str().unwrap().to_owned();
        let again = answer.headers.get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!((answer.status.as_u16(), code.as_str(), again), told, "{status}");
        assert!(!answer.text().contains("credit") && !answer.text().contains("api key"), "{}", answer.text());
        let record = shared.world.records(1).await.pop().unwrap().record;
        assert_eq!(record.status.to_string(), status[..3], "the journal keeps the real status");
    }
}

#[tokio::test]
async fn registered_correlations_attribute_calls() {
    let shared = Shared::serving("gateways").await;
    open(&shared.world, "r2", "acct-2").await;
    let traced = shared.agent().with_header("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let slotted = format!("/slot/{SLOT}{CHAT}");
    let body = harness::agent::chat_body("fake", harness::agent::Answering::Whole);
    assert_eq!(traced.chat("fake").await.status, 400, "not registered yet");
    assert_eq!(shared.agent().post(&slotted, &body).await.status, 400);

    assert_eq!(shared.control(Method::PUT, &format!("/v1/runs/r1/traces/{TRACE}")).await, 200);
    assert_eq!(shared.control(Method::PUT, &format!("/v1/runs/r2/slots/{SLOT}")).await, 200);
    assert_eq!(traced.chat("fake").await.status, 200);
    assert_eq!(shared.last(3).await, ("r1".to_owned(), Identity::Trace, None));
    assert_eq!(shared.agent().post(&slotted, &body).await.status, 200);
    assert_eq!(shared.last(4).await, ("r2".to_owned(), Identity::Slot, None));

    // A trace id that is registered for no run is one of OpenClaw's own; the token counts.
    let own =
        shared.with_token(&good("r1")).with_header("traceparent", &format!("00-{SLOT}-00f067aa0ba902b7-01"));
    assert_eq!(own.chat("fake").await.status, 200);
    // Two that agree are one, two that disagree are none.
    assert_eq!(traced.clone().with_header("x-run-token", &good("r1")).chat("fake").await.status, 200);
    for agent in [traced.clone().with_header("x-run-token", &good("r2")), shared.with_token(&good("r1"))] {
        let path = if agent.has_header("traceparent") { CHAT } else { &slotted };
        assert_eq!(agent.post(path, &body).await.json()["error"]["code"], "unattributed");
    }
    assert_eq!(
        shared.last(8).await,
        ("unattributed".to_owned(), Identity::None, Some(Refusal::IdentityConflict))
    );
    // Two tokens that disagree are none, in any two places.
    let bearer = |run: &str| format!("Bearer {}", good(run));
    for agent in [
        shared.with_token(&good("r1")).with_header("authorization", &bearer("r2")),
        shared
            .agent()
            .with_header("authorization", &bearer("r1"))
            .with_header("authorization", &bearer("r2")),
        shared.agent().with_header("authorization", &bearer("r1")).with_header("x-api-key", &good("r2")),
        shared.agent().with_header("x-api-key", &good("r1")).with_header("x-goog-api-key", &good("r2")),
        traced.clone().with_header("traceparent", &format!("00-{SLOT}-00f067aa0ba902b7-01")),
    ] {
        assert_eq!(agent.chat("fake").await.json()["error"]["code"], "unattributed");
    }
    let same = shared.with_token(&good("r1")).with_header("authorization", &bearer("r1"));
    assert_eq!(same.chat("fake").await.status, 200);
    // A correlation of another run is not given away, and a bad id is refused.
    assert_eq!(shared.control(Method::PUT, &format!("/v1/runs/r2/traces/{TRACE}")).await, 409);
    assert_eq!(shared.control(Method::PUT, "/v1/runs/r2/traces/abc").await, 400);
}

#[tokio::test]
async fn a_correlation_ends_with_grace_or_run() {
    let shared = Shared::serving("gateways").await;
    let traced = shared.agent().with_header("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let path = format!("/v1/runs/r1/traces/{TRACE}");
    assert_eq!(shared.control(Method::PUT, &path).await, 200);
    assert_eq!(shared.control(Method::DELETE, &format!("{path}?grace_ms=600")).await, 200);
    assert_eq!(traced.chat("fake").await.status, 200, "within the grace");
    let asked = || async { traced.chat("fake").await.status.as_u16() };
    harness::eventually("the correlation has ended", asked, |status| *status == 400).await;
    assert_eq!(shared.control(Method::PUT, &path).await, 200);
    assert_eq!(traced.chat("fake").await.status, 200);
    shared.world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
    assert_eq!(traced.chat("fake").await.status, 400);
}

/// The quarantine outlives a restart.
#[tokio::test]
async fn an_unreturned_slot_is_quarantined() {
    let mut shared = Shared::serving("gateways").await;
    for run in ["r2", "r3"] {
        open(&shared.world, run, "acct-2").await;
    }
    let given_back = "fedcba9876543210fedcba9876543210";
    let slot = |run: &str, slot: &str| format!("/v1/runs/{run}/slots/{slot}");
    for id in [SLOT, given_back] {
        assert_eq!(shared.control(Method::PUT, &slot("r1", id)).await, 200);
    }
    assert_eq!(shared.control(Method::DELETE, &slot("r1", given_back)).await, 200);
    let free = || async { shared.control(Method::PUT, &slot("r2", given_back)).await };
    harness::eventually("the control: what was given back is free", free, |status| *status == 200).await;
    shared.world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
    for proxy in ["the same", "another"] {
        if proxy == "another" {
            shared.world.kill_proxy().await;
            shared.world.start_proxy().await;
            shared.address = open(&shared.world, "r3", "acct-2").await;
        }
        let taken = shared.control(Method::PUT, &slot("r3", SLOT)).await;
        assert_eq!(taken, 409, "{proxy}: its gateway may still call there");
        let body = harness::agent::chat_body("fake", harness::agent::Answering::Whole);
        let late = shared.agent().post(&format!("/slot/{SLOT}{CHAT}"), &body).await;
        assert_eq!((late.status.as_u16(), &late.json()["error"]["code"]), (400, &json!("unattributed")));
    }
}

/// Both runs are on the shared listener.
#[tokio::test]
async fn closing_a_run_spares_other_runs() {
    let shared = Shared::serving("clients").await;
    open(&shared.world, "r2", "acct-2").await;
    let [mut one, mut other] = [
        shared.with_token(&good("r1")).stream("fake-words40-gap50ms").await,
        shared.with_token(&good("r2")).stream("fake-words40-gap50ms").await,
    ];
    for stream in [&mut one, &mut other] {
        stream.next().await.unwrap().unwrap();
    }
    shared.world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
    assert!(one.until_break().await.1.is_err(), "cut");
    let (text, ended) = other.until_break().await;
    assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{text}");
    let records = shared.world.records(2).await;
    let outcome_of = |run: &str| {
        let of_run = |line: &&platform_core::record::JournalLine| line.record.run_id.as_str() == run;
        records.iter().find(of_run).unwrap().record.outcome
    };
    assert_eq!((outcome_of("r1"), outcome_of("r2")), (Outcome::RunClosed, Outcome::Complete));
    let late = shared.with_token(&good("r1")).chat("fake").await;
    assert_eq!(late.json()["error"]["code"], "run_closed");
}

#[tokio::test]
async fn an_unread_answer_cannot_keep_a_run_open() {
    let shared = Shared::serving("clients").await;
    for run in ["slow-1", "slow-2", "slow-3", "slow-4"] {
        open(&shared.world, run, "acct-1").await;
        let stream = shared.with_token(&good(run)).stream("fake-big48m").await;
        let in_flight = || async { shared.world.control.run(&run.parse().unwrap()).await.unwrap().in_flight };
        harness::eventually("the call is in flight", in_flight, |calls| *calls == 1).await;
        let cpu = || async { cpu_ticks(shared.world.proxy_pid()) };
        settled("all buffers are full", std::time::Duration::from_millis(100), cpu).await;
        let id = run.parse().unwrap();
        let closing = tokio::time::timeout(PATIENCE, shared.world.control.close(&id, 0));
        closing.await.expect("it closes although nobody reads").unwrap();
        drop(stream);
    }
    let records = shared.world.records(4).await;
    assert!(records.iter().all(|line| line.record.outcome == Outcome::RunClosed), "{records:?}");
}

/// Neither needs a restart; revocations outlive one.
#[tokio::test]
async fn secrets_rotate_and_revocations_persist() {
    let mut shared = Shared::serving("clients").await;
    let of = |secret| token("r1", 0, secret, 3600);
    assert_eq!(shared.with_token(&of("newer")).chat("fake").await.status, 401);
    harness::private_file(
        &shared.world.path().join("tokens"),
        "newer:canary-5d20e8b1-newer\nnew:canary-5d20e8b1-new\n",
    );
    let reloaded = shared.world.sluice().run(&["token", "reload"]).await;
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    assert_eq!(shared.with_token(&of("newer")).chat("fake").await.status, 200);
    assert_eq!(shared.with_token(&of("new")).chat("fake").await.status, 200);
    assert_eq!(shared.with_token(&of("old")).chat("fake").await.status, 401);
    // A file that cannot be used changes nothing.
    harness::private_file(&shared.world.path().join("tokens"), "short:x\n");
    assert_eq!(shared.control(Method::POST, "/v1/reload").await, 409);
    assert_eq!(shared.with_token(&of("newer")).chat("fake").await.status, 200);

    let revoked = shared.world.sluice().run(&["token", "revoke", "--run", "r1"]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let code = |answer: harness::Answer| answer.json()["error"]["code"].clone();
    assert_eq!(code(shared.with_token(&of("newer")).chat("fake").await), "token_revoked");
    harness::private_file(&shared.world.path().join("tokens"), SECRETS);
    assert!(shared.world.stop_proxy().await);
    shared.world.start_proxy().await;
    shared.address = open(&shared.world, "r1", "acct-1").await;
    open(&shared.world, "r2", "acct-2").await;
    assert_eq!(code(shared.with_token(&of("new")).chat("fake").await), "token_revoked");
    assert_eq!(shared.with_token(&good("r2")).chat("fake").await.status, 200, "another run's holds");
}

/// An operator revokes a leaked token; that cuts the streams of calls by it, and none that came another way.
#[tokio::test]
async fn revoking_tokens_cuts_their_streams() {
    let shared = Shared::serving("gateways").await;
    open(&shared.world, "r2", "acct-2").await;
    let path = format!("/v1/runs/r1/traces/{TRACE}");
    assert_eq!(shared.control(Method::PUT, &path).await, 200);
    let traceparent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let by_trace = shared.agent().with_header("traceparent", &traceparent);
    let agents = [shared.with_token(&good("r1")), by_trace, shared.with_token(&good("r2"))];
    let mut streams = Vec::new();
    for agent in &agents {
        let mut stream = agent.stream("fake-stall2").await;
        stream.next().await.unwrap();
        streams.push(stream);
    }
    let revoked = shared.world.sluice().run(&["token", "revoke", "--run", "r1"]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert!(streams.remove(0).whole().await.is_err(), "a stream that was cut must not look complete");
    let record = shared.world.records(1).await.remove(0).record;
    assert_eq!(
        (record.identity, record.outcome, record.refusal),
        (Identity::Token, Outcome::Frozen, Some(Refusal::TokenRevoked))
    );
    for run in ["r1", "r2"] {
        let view = shared.world.control.run(&run.parse().unwrap()).await.unwrap();
        assert_eq!(view.in_flight, 1, "the other streams go on: {run}");
    }
    let refused = agents[0].chat("fake").await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["error"]["code"].as_str()),
        (400, Some("unattributed"))
    );
    assert_eq!(agents[1].chat("fake").await.status, 200, "its trace id holds");
}

/// A port in use is named at the start.
#[tokio::test]
async fn a_shared_listener_must_be_configured() {
    let world = World::start().await;
    let grant = RunGrant { listener: Listener::Shared, ..grant("r1", "acct-1") };
    assert!(world.control.register(&grant).await.is_err());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    world.reconfigure("threads = 2", &format!("threads = 2\nlisten = '{address}'"));
    world.reconfigure("/run'", "/run2'");
    world.reconfigure("/state'", "/state2'");
    let complaint = world.proxy_fails_to_start().await;
    assert!(complaint.contains(&format!("proxy.listen {address}")), "{complaint}");
}
