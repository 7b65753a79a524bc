//! Tests an upstream that is down, comes back, or closes connections that are in use.

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use harness::{
    FaultProxy, KeepOpenUpstream, KeyRejectingUpstream, RawScriptedUpstream, World, eventually,
    idle_soak::Soak, metrics::Scrape,
};
use http::Method;
use platform_core::{
    control::{UpstreamHealth, UpstreamState},
    record::{Outcome, Timeout},
    refusal::Refusal,
};
use tokio::net::TcpSocket;

async fn state(world: &World) -> UpstreamState {
    world.control.health().await.unwrap().upstream_state
}

async fn scraped(world: &World) -> Scrape {
    Scrape::of(world.control.send(Method::GET, "/v1/metrics", String::new()).await.text())
}

/// Returns an address at which no process listens for now.
fn vacant() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Every call fails for the same reason.
#[tokio::test]
async fn a_refused_key_is_logged_once_a_minute() {
    let rejecting = KeyRejectingUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    for _ in 0..3 {
        assert_eq!(run.agent.chat("fake").await.json()["error"]["code"], "upstream_auth");
    }
    let log = world.log();
    assert_eq!(log.matches("check upstream.key_file").count(), 1, "{log}");
}

/// Calls and the proxy's own questions go below the path, the last of them that for LiteLLM's health. A `/v1` at its end is
/// not sent twice.
#[tokio::test]
async fn an_upstream_below_a_path_answers() {
    let below = RawScriptedUpstream::start().await;
    below.say(&[
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"data\":[]}",
    ]);
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &format!("{}/openai/v1", below.base_url()), "").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    assert!(below.heard().starts_with("POST /openai/v1/chat/completions HTTP/1.1\r\n"), "{}", below.heard());
    world.control.send(Method::GET, "/v1/upstream", String::new()).await;
    assert!(below.heard().starts_with("GET /openai/health/readiness HTTP/1.1\r\n"), "{}", below.heard());
}

#[tokio::test]
async fn an_upstream_down_is_left_to_probes() {
    let (upstream, address) = (ScriptedUpstream::start().await.unwrap(), vacant());
    let target = upstream.address();
    let world = World::in_front_of(upstream, &format!("http://{address}"), "").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(state(&world).await, UpstreamState::Up, "nobody has tried yet");
    for _ in 0..5 {
        let answer = run.agent.chat("fake").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (503, &"upstream_unreachable".into())
        );
    }
    let answer = run.agent.chat("fake").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["code"]),
        (503, &"upstream_unavailable".into())
    );
    assert_eq!(answer.headers["retry-after"], "1");
    assert_ne!(state(&world).await, UpstreamState::Up);
    assert_eq!(scraped(&world).await.sum("sluicegate_upstream_state", &[("state", "up")]), 0.0);
    let record = world.records(6).await.pop().unwrap().record;
    assert_eq!((record.outcome, record.refusal), (Outcome::Refused, Some(Refusal::UpstreamUnavailable)));
    let view = world.control.run(&run.grant.run_id).await.unwrap();
    assert_eq!((view.usage.refused, view.usage.tokens.output), (1, 0));
    assert!(view.limits.iter().all(|limit| limit.reserved == 0), "{:?}", view.limits);

    let _back = FaultProxy::at(address, target).await;
    eventually("a probe finds it", || state(&world), |state| *state == UpstreamState::Up).await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    assert_eq!(scraped(&world).await.sum("sluicegate_upstream_state", &[("state", "up")]), 1.0);
}

/// An upstream's machine is off and answers nothing at all; that is found out once, not by every call.
#[tokio::test]
async fn a_silent_upstream_delays_few_calls() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, _never_accepts) = (socket.local_addr().unwrap(), socket.listen(1).unwrap());
    let full = || tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(address));
    let mut queue = Vec::new();
    while let Ok(stream) = full().await {
        queue.push(stream);
    }
    let settings = format!("base_url = 'http://{address}'\nconnect_timeout = '300ms'");
    let world = World::reaching(ScriptedUpstream::start().await.unwrap(), &settings, "").await;
    let run = world.run("r1", "acct-1").await;
    let calls = futures_util::future::join_all((0..5).map(|_| run.agent.chat("fake"))).await;
    assert!(calls.iter().all(|answer| answer.json()["error"]["code"] == "upstream_unreachable"));
    for line in world.records(5).await {
        assert_eq!(line.record.timeout, Some(Timeout::Connect));
    }
    for _ in 0..20 {
        assert_eq!(run.agent.chat("fake").await.json()["error"]["code"], "upstream_unavailable");
    }
}

#[tokio::test]
async fn an_upstream_check_is_current() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let (target, address) = (upstream.address(), vacant());
    let world = World::in_front_of(upstream, &format!("http://{address}"), "").await;
    let run = world.run("r1", "acct-1").await;
    while run.agent.chat("fake").await.json()["error"]["code"] != "upstream_unavailable" {}
    let ask = || async {
        let answer = world.control.send(Method::GET, "/v1/upstream", String::new()).await;
        serde_json::from_slice::<UpstreamHealth>(&answer.body).unwrap()
    };
    let UpstreamHealth::Unreachable { reason } = ask().await else { panic!("{:?}", ask().await) };
    assert!(reason.contains(&address.to_string()), "{reason}");
    let _back = FaultProxy::at(address, target).await;
    assert!(matches!(ask().await, UpstreamHealth::Ready { .. }));
    assert_eq!(state(&world).await, UpstreamState::Up, "and calls need not wait for a probe then");
}

#[tokio::test]
async fn a_probe_with_a_path_needs_a_success() {
    let (upstream, address) = (ScriptedUpstream::start().await.unwrap(), vacant());
    let settings = format!("base_url = 'http://{address}'\nprobe_path = '/health/liveliness'");
    let world = World::reaching(upstream, &settings, "").await;
    let run = world.run("r1", "acct-1").await;
    while run.agent.chat("fake").await.json()["error"]["code"] != "upstream_unavailable" {}
    let ill = KeepOpenUpstream::answering("HTTP/1.1 503 Starting\r\ncontent-length: 0\r\n\r\n").await;
    let ill = FaultProxy::at(address, ill.base_url().trim_start_matches("http://").parse().unwrap()).await;
    let told =
        |state: &UpstreamState| matches!(state, UpstreamState::Down { reason, .. } if reason.contains("503"));
    eventually("the probe is not content", || state(&world), told).await;
    assert!(ill.connections() > 0);
}

/// An upstream closes idle connections after a second, and an agent's calls are a second apart: none fails, and none is
/// sent twice.
#[tokio::test]
async fn calls_spaced_like_the_idle_timeout_succeed() {
    let soak = Soak {
        callers: 100,
        rounds: 4,
        upstream_idle_ms: 1000,
        pool_idle_ms: 500,
        gap_ms: 1000,
        hold_ms: 100,
    };
    let found = soak.play().await;
    assert!(found.failures.is_empty(), "{found:?}");
    assert_eq!((found.calls, found.upstream.calls.len(), found.heard_twice), (400, 400, 0));
    let often = Soak { gap_ms: 100, ..soak };
    let found = often.play().await;
    assert!(
        found.failures.is_empty() && found.upstream.used_again > 200,
        "connections are used again: {found:?}"
    );
}

/// An upstream closes a connection when the call has been written; the call may have arrived, so the proxy does not
/// repeat it.
#[tokio::test]
async fn a_call_that_may_have_arrived_is_not_resent() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let slow = FaultProxy::to(upstream.address()).await;
    let world = World::in_front_of(upstream, &slow.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let call = run.agent.chat("fake-hang");
    let cut = async {
        eventually("it has arrived", || async { world.upstream.ledger().all().len() }, |calls| *calls == 2)
            .await;
        slow.close_connections().await;
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (502, &"upstream_reset".into()));
    assert_eq!(answer.headers["x-should-retry"], "true", "the client may");
    assert_eq!(world.upstream.ledger().all().len(), 2);
    assert_eq!(state(&world).await, UpstreamState::Up, "one call that breaks closes the upstream to nobody");
}
