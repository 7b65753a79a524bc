//! Tests the socket of a managed gateway. Many runs call there, and each call proves its run. The same proof is worth
//! nothing on any other listener.

use harness::{
    Agent, World,
    agent::{Answering, chat_body},
    grant,
    shared::token,
};
use http::Method;
use platform_core::{
    control::SocketDir,
    grant::{Listener, RunGrant},
    name::path::SOCKET_FILE,
    record::{Identity, Outcome},
};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::proxy::shared::{SLOT, Shared, TRACE};

const CHAT: &str = "/v1/chat/completions";
/// A trace of another run.
const OTHER: &str = "0123456789abcdef0123456789abcdef";
const DIRS: [&str; 2] = ["00000000000000000000000000000001", "00000000000000000000000000000002"];

fn traced(agent: Agent) -> Agent {
    agent.with_header("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7-01"))
}

/// Opens a gateway's listener; returns an agent on it, or the status and code of the refusal.
async fn hear(world: &World, gateway: &str, dir: &str, uid: u32) -> Result<Agent, (u16, String)> {
    let door = json!({ "peer_uid": uid, "socket_dir": dir }).to_string();
    let answer = world.control.send(Method::PUT, &format!("/v1/gateways/{gateway}"), door).await;
    if answer.status != 200 {
        let code = answer.json()["error"]["code"].as_str().unwrap().to_owned();
        return Err((answer.status.as_u16(), code));
    }
    let dir: SocketDir = serde_json::from_slice(&answer.body).unwrap();
    Ok(Agent::on(&dir.path.join(SOCKET_FILE)))
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Registers a run with calls that come from `gateway`.
async fn register(world: &World, run: &str, account: &str, gateway: &str) {
    let listener = Listener::Gateway { gateway: gateway.parse().unwrap() };
    let registered = world
        .control
        .register(&RunGrant { listener, ..grant(run, account) })
        .await
        .expect("it is registered");
    assert_eq!(registered.socket, None);
}

async fn whose(world: &World, count: usize) -> (String, Identity) {
    let record = world.records(count).await.pop().unwrap().record;
    (record.run_id.to_string(), record.identity)
}

#[tokio::test]
async fn proof_at_one_gateway_is_none_at_another() {
    let shared = Shared::serving("gateways").await;
    let world = &shared.world;
    let one = hear(world, "one", DIRS[0], our_uid()).await.unwrap();
    let two = hear(world, "two", DIRS[1], our_uid()).await.unwrap();
    register(world, "g1", "acct-1", "one").await;
    for path in [format!("/v1/runs/g1/traces/{TRACE}"), format!("/v1/runs/g1/slots/{SLOT}")] {
        assert_eq!(shared.control(Method::PUT, &path).await, 200);
    }
    let key = token("g1", 0, "new", 60);
    let (slotted, body) = (format!("/slot/{SLOT}{CHAT}"), chat_body("fake", Answering::Whole));
    // The controls: at its own gateway each of the three is the run's.
    assert_eq!(traced(one.clone()).post(CHAT, &body).await.status, 200);
    assert_eq!(whose(world, 1).await, ("g1".to_owned(), Identity::Trace));
    assert_eq!(one.post(&slotted, &body).await.status, 200);
    assert_eq!(whose(world, 2).await, ("g1".to_owned(), Identity::Slot));
    assert_eq!(one.clone().with_header("x-run-token", &key).post(CHAT, &body).await.status, 200);
    assert_eq!(whose(world, 3).await, ("g1".to_owned(), Identity::Token));
    // At another listener none of the three is accepted, and without any of them no call is, also at its own.
    for stranger in [two.clone(), shared.agent()] {
        for (agent, path) in [
            (traced(stranger.clone()), CHAT),
            (stranger.clone(), slotted.as_str()),
            (stranger.clone().with_header("x-run-token", &key), CHAT),
        ] {
            let answer = agent.post(path, &body).await;
            assert_eq!(
                (answer.status.as_u16(), answer.json()["error"]["code"].clone()),
                (400, json!("unattributed"))
            );
        }
    }
    let answer = one.post(CHAT, &body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["error"]["code"].clone()),
        (400, json!("unattributed"))
    );
    assert_eq!(one.get("/health").await.status, 200);
    // Nor does a gateway's socket accept the token of a run of the shared listener.
    let answer = one.clone().with_header("x-run-token", &token("r1", 0, "new", 60)).post(CHAT, &body).await;
    assert_eq!(answer.status, 400);
}

/// Their runs and traces return, too.
#[tokio::test]
async fn gateway_sockets_return_with_the_next_proxy() {
    let mut world = World::start().await;
    let gateway = hear(&world, "one", DIRS[0], our_uid()).await.unwrap();
    register(&world, "g1", "acct-1", "one").await;
    let path = format!("/v1/runs/g1/traces/{TRACE}");
    assert_eq!(world.control.send(Method::PUT, &path, String::new()).await.status, 200);
    let body = chat_body("fake", Answering::Whole);
    for _ in 0..2 {
        assert_eq!(traced(gateway.clone()).post(CHAT, &body).await.status, 200);
        world.kill_proxy().await;
        world.start_proxy().await;
    }
    assert_eq!(traced(gateway.clone()).post(CHAT, &body).await.status, 200);
    // Its directory goes with it, and is not had before.
    let socket = format!("/v1/sockets/{}", DIRS[0]);
    let remove =
        async |path: &str| world.control.send(Method::DELETE, path, String::new()).await.status.as_u16();
    assert_eq!(remove(&socket).await, 409);
    assert_eq!(remove("/v1/gateways/one").await, 200);
    assert!(gateway.connect().await.is_err());
    assert_eq!((remove("/v1/gateways/one").await, remove(&socket).await), (200, 200));
    world.kill_proxy().await;
    world.start_proxy().await;
    assert!(gateway.connect().await.is_err(), "it does not come back");
}

#[tokio::test]
async fn a_gateway_has_one_socket_for_its_own_uid() {
    let world = World::start().await;
    let gateway = hear(&world, "one", DIRS[0], our_uid()).await.unwrap();
    // Said twice it is the same, said differently it is refused.
    hear(&world, "one", DIRS[0], our_uid()).await.unwrap();
    let refused = hear(&world, "one", DIRS[1], our_uid()).await.unwrap_err();
    assert_eq!(refused, (409, "gateway_conflict".to_owned()));
    assert_eq!(hear(&world, "One", DIRS[1], 0).await.unwrap_err().0, 400);
    assert_eq!(gateway.get("/health").await.status, 200);
    let other = hear(&world, "other", DIRS[1], our_uid() + 1).await.unwrap();
    assert!(
        other.request(Method::GET, "/health", Default::default()).await.is_err(),
        "we are not of its uid"
    );
}

/// A stream that does not end by itself.
const HANGS: &str = "fake-stall2";

#[tokio::test]
async fn a_removed_gateway_keeps_no_connection() {
    let world = World::start().await;
    let gateway = hear(&world, "one", DIRS[0], our_uid()).await.unwrap();
    let other = hear(&world, "two", DIRS[1], our_uid()).await.unwrap();
    for (run, gateway, trace) in [("g1", "one", TRACE), ("g2", "two", OTHER)] {
        register(&world, run, "acct-1", gateway).await;
        let path = format!("/v1/runs/{run}/traces/{trace}");
        assert_eq!(world.control.send(Method::PUT, &path, String::new()).await.status, 200);
    }
    let by = |agent: &Agent, trace: &str| {
        agent.clone().with_header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"))
    };
    let mut idle = gateway.connect().await.unwrap();
    let mut cut = by(&gateway, TRACE).stream(HANGS).await;
    let mut goes_on = by(&other, OTHER).stream(HANGS).await;
    cut.next().await.unwrap();
    goes_on.next().await.unwrap();

    let closed = world.control.send(Method::DELETE, "/v1/gateways/one", String::new()).await;
    assert_eq!(closed.status, 200);
    // By then it is recorded: there is nothing to wait for.
    let record = world.journal().await.pop().unwrap().record;
    assert_eq!((record.run_id.as_str(), record.outcome), ("g1", Outcome::RunClosed));
    assert!(cut.whole().await.is_err(), "a stream that was cut must not look complete");
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0, "who waits between two calls is let go, too");
    // The controls: the run is still open, and a client that calls from elsewhere goes on.
    for (run, in_flight) in [("g1", 0), ("g2", 1)] {
        assert_eq!(world.control.run(&run.parse().unwrap()).await.unwrap().in_flight, in_flight, "{run}");
    }
    drop(goes_on);
}
