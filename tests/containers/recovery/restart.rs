//! Tests that a proxy that comes after another one opens by itself what was open: same paths, same grants, same limits,
//! same spending.

use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use harness::{
    Agent, Run, Up, World, eventually, grant, pace,
    shared::{register_shared, share, token},
};
use http::Method;
use platform_core::{budget::Budget, grant::RunGrant, record::Outcome, token::UnixSeconds};
use platform_runtime::task;
use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::shell_agent;

/// Ends the proxy as a machine that fails would, and starts another one.
async fn again(world: &mut World) {
    world.kill_proxy().await;
    world.start_proxy().await;
}

fn limited(run: &str, requests: u64) -> RunGrant {
    RunGrant { budget: Budget { requests: Some(requests), ..Budget::default() }, ..grant(run, "acct-1") }
}

async fn code(run: &Run) -> String {
    let answer = run.agent.chat("fake").await;
    if answer.status == 200 {
        "ok".to_owned()
    } else {
        answer.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// Closed runs do not return.
#[tokio::test]
async fn open_runs_return_with_their_spending() {
    let mut world = World::start().await;
    let (open, closed) = (world.run_with(limited("r1", 3)).await, world.run("r2", "acct-1").await);
    for run in [&open, &closed] {
        assert_eq!(code(run).await, "ok");
    }
    world.control.close(&closed.grant.run_id, 0).await.unwrap();
    again(&mut world).await;
    assert_eq!(world.control.health().await.unwrap().runs, 1);
    assert_eq!(code(&open).await, "ok");
    again(&mut world).await;
    assert_eq!([code(&open).await, code(&open).await], ["ok", "quota_exhausted"]);
    assert!(closed.agent.connect().await.is_err());
    let problem = world.control.register(&closed.grant).await.unwrap_err();
    assert_eq!(problem.error.code, "run_closed");

    let registered = world.control.register(&open.grant).await.unwrap();
    assert_eq!(registered.socket.unwrap().path.join("llm.sock"), open.socket, "asking again changes nothing");
    world.control.close(&open.grant.run_id, 0).await.unwrap();
    assert_eq!(fs::read_dir(world.path().join("run/kept")).unwrap().count(), 0);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_expired_meanwhile_is_closed() {
    let mut world = World::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let run = world.run_with(RunGrant { expires: Some(UnixSeconds(now + 2)), ..grant("r1", "acct-1") }).await;
    world.kill_proxy().await;
    let passed = || async { SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() };
    eventually("its time is over", passed, |second| *second >= now + 2).await;
    world.start_proxy().await;
    assert_eq!(world.control.health().await.unwrap().runs, 0);
    assert!(run.agent.connect().await.is_err());
    assert_eq!(world.control.register(&run.grant).await.unwrap_err().error.code, "run_closed");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn limits_that_were_changed_stay_changed() {
    let mut world = World::start().await;
    let run = world.run_with(limited("r1", 100)).await;
    let changed = world.sluice().run(&["limit", "--run", "r1", "--requests", "1"]).await;
    assert_eq!(changed.code, Some(0), "{changed:?}");
    again(&mut world).await;
    assert_eq!([code(&run).await, code(&run).await], ["ok", "quota_exhausted"]);
    world.control.register(&run.grant).await.expect("it is the grant that is compared");
}

#[tokio::test]
async fn sessions_of_gateways_are_known_again() {
    let mut world = World::start().await;
    share(&mut world, "gateways").await;
    register_shared(&world, grant("r1", "acct-1")).await;
    let id = |digit: &str| digit.repeat(32);
    for path in [format!("slots/{}", id("a")), format!("slots/{}", id("b")), format!("traces/{}", id("c"))] {
        assert_eq!(
            world.control.send(Method::PUT, &format!("/v1/runs/r1/{path}"), String::new()).await.status,
            200
        );
    }
    // Withdrawn with a grace, which ends with the proxy.
    let withdraw = format!("/v1/runs/r1/slots/{}?grace_ms=60000", id("b"));
    world.control.send(Method::DELETE, &withdraw, String::new()).await;
    again(&mut world).await;
    // It listens at another port, because the world lets it choose.
    let address = register_shared(&world, grant("r1", "acct-1")).await;
    let agent = Agent::over_tcp(address);
    let ask = async |agent: &Agent, slot: &str| {
        agent
            .post(
                &format!("{slot}/v1/chat/completions"),
                &harness::agent::chat_body("fake", harness::agent::Answering::Whole),
            )
            .await
            .status
    };
    assert_eq!(ask(&agent, &format!("/slot/{}", id("a"))).await, 200);
    assert_eq!(ask(&agent, &format!("/slot/{}", id("b"))).await, 400);
    let traced = agent.clone().with_header("traceparent", &format!("00-{}-00f067aa0ba902b7-01", id("c")));
    assert_eq!(ask(&traced, "").await, 200);
    let with_token = agent.clone().with_header("x-run-token", &token("r1", 0, "new", 3600));
    assert_eq!(ask(&with_token, "").await, 200);
}

/// Script that makes calls one after the other, each tried again as by `curl --retry 2`, and says how each ended.
const CALLS: &str = r#"
for call in $(seq 12); do
  curl --silent --retry 2 --retry-all-errors --output /dev/null --write-out '%{http_code} %{num_retries}\n' \
    --header 'content-type: application/json' \
    --data '{"model":"fake-gap100ms","messages":[{"role":"user","content":"hi"}]}' \
    http://localhost:8080/v1/chat/completions || echo "failed $?"
done"#;

#[tokio::test]
async fn an_agent_survives_killed_proxies() {
    let mut world = World::with(&shell_agent(CALLS, "run_timeout = '60s'")).await;
    assert!(world.stop_proxy().await);
    let mut up = Up::start(world.sluice()).await;
    let sluice = world.sluice();
    let running = task::spawn("run", async move {
        sluice.run(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]).await
    });
    for calls in [2, 6] {
        let made = || async { world.upstream.ledger().len() };
        eventually("the agent makes calls", made, |made| *made >= calls).await;
        let killed = up.proxy_pid;
        kill_process(Pid::from_raw(killed.cast_signed()).unwrap(), Signal::KILL).unwrap();
        let pid = || async { world.control.health().await.map_or(killed, |health| health.pid) };
        let began = std::time::Instant::now();
        up.proxy_pid = eventually("another proxy answers", pid, |pid| *pid != killed).await;
        eprintln!("gap until the next proxy answered: {:?}", began.elapsed());
    }
    let outcome = running.await.unwrap();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let said = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    let ok = said.lines().filter(|line| line.starts_with("200 ")).count();
    assert_eq!(ok, 12, "each call succeeded, with curl's own retries at most: {said}");
    assert!(said.lines().any(|line| line != "200 0"), "a restart was noticed by nobody: {said}");
    world.assert_nothing_left().await;
    let interrupted =
        world.journal().await.into_iter().filter(|line| line.record.outcome != Outcome::Complete).count();
    eprintln!("calls that the journal has as not complete: {interrupted}");
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}

/// Longest time that a restart may take for a sandbox. It is generous: the measured time is printed, not asserted.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_socket_is_gone_only_during_the_restart() {
    let world = {
        let mut world = World::start().await;
        assert!(world.stop_proxy().await);
        world
    };
    let mut up = Up::start(world.sluice()).await;
    let run = world.run("r1", "acct-1").await;
    let killed = up.proxy_pid;
    kill_process(Pid::from_raw(killed.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let began = std::time::Instant::now();
    while run.agent.send(Method::GET, "/health", bytes::Bytes::new()).await.is_err() {
        assert!(began.elapsed() < PATIENCE);
        pace(Duration::from_millis(1)).await;
    }
    let gap = began.elapsed();
    eprintln!("gap seen on the run's socket: {gap:?}");
    let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/restart-gap.json");
    fs::write(kept, serde_json::json!({ "gap_ms": gap.as_millis() }).to_string()).unwrap();
    up.proxy_pid = world.control.health().await.unwrap().pid;
    assert_ne!(up.proxy_pid, killed);
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}
