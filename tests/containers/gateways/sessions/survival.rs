//! Tests that sessions survive the worker that executes them, and a loss of their gateway's connection. One
//! conversation has one turn at a time.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{
    Up,
    eventually::eventually_within,
    gateway::{Cue, Dialect, Step},
};
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};

use super::{AGENT, Sessions, answer, code};
use crate::recovery::survival::{PATIENCE, ended, state};

pub(super) async fn order(there: &Sessions, run: &str, more: &[&str]) {
    let arguments = [&["run", "--detach", "--run-id", run, "--agent", AGENT], more, &[run]].concat();
    let outcome = there.world.sluice().run(&arguments).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), run), "{outcome:?}");
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).ok();
}

/// No turn is lost, and none is sent twice.
#[tokio::test]
async fn turns_survive_a_worker_death_at_any_point() {
    join_all(Dialect::ALL.map(survive_any_point)).await;
}

async fn survive_any_point(dialect: Dialect) {
    let mut there = Sessions::of(dialect, "slot", "").await;
    assert!(there.world.stop_proxy().await);
    there.gateway.always(vec![Step::Ask("fake-echo"), Step::Pause(Duration::from_millis(300))]);
    for point in Point::SESSION {
        let run = format!("r-{}", point.name());
        let armed = there.world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
        let mut up = Up::start(armed).await;
        provide(&there, &format!("at-{run}")).await;
        order(&there, &run, &[]).await;
        assert_eq!(up.death().await, Some(9), "{} was reached", point.name());
        let next = Up::start(there.world.sluice()).await;
        let record = ended(&there.world, &run).await;
        assert_eq!(record["state"], "succeeded", "{dialect:?} {}: {record:#}", point.name());
        let answer = record["answer"].as_str().unwrap();
        assert!(answer.ends_with(&run), "{dialect:?} {}: {answer}", point.name());
        next.stop(Signal::TERM).await;
        up.kill_proxy().await;
    }
    let billed = there.world.upstream.ledger().all().len();
    assert_eq!(billed, Point::SESSION.len(), "{dialect:?}: one call of each run");
}

/// Sends the gateway the proxy's present address.
pub(super) async fn provide(there: &Sessions, as_run: &str) {
    let address = harness::shared::register_shared(&there.world, harness::grant(as_run, "nobody")).await;
    there.gateway.set(|options| {
        for (at, slot) in super::slots().enumerate() {
            let url = format!("http://{address}/slot/{slot}");
            options.providers.insert(format!("cogni-s{at}"), harness::gateway::Provider::Url(url));
        }
    });
}

#[tokio::test]
async fn a_broken_connection_costs_no_turn() {
    for step in [Step::Cut, Step::Close(1012, "service restart"), Step::Close(1006, "")] {
        let there = Sessions::of(Dialect::Four, "trace", "").await;
        there.gateway.always(vec![
            Step::Ask("fake-echo"),
            step.clone(),
            Step::Pause(Duration::from_millis(500)),
        ]);
        let outcome = there.run("r1", "acct-1", "still here").await;
        assert_eq!(answer(&outcome), "still here", "{step:?}");
        assert_eq!(there.world.upstream.ledger().all().len(), 1);
    }
}

/// The turn fails as `session_lost`; the next one succeeds.
#[tokio::test]
async fn a_gateway_restart_fails_its_turn_only() {
    let there = Sessions::of(Dialect::Four, "trace", "run_timeout = '20s'").await;
    there.gateway.always(vec![Step::Ask("fake-echo"), Step::Restart]);
    let outcome = there.run("r1", "acct-1", "gone").await;
    assert_eq!(code(&outcome), "session_lost", "{outcome:?}");
    there.gateway.always(vec![Step::Ask("fake-echo")]);
    assert_eq!(answer(&there.run("r2", "acct-1", "back").await), "back");
}

/// Turns of other conversations do not wait.
#[tokio::test]
async fn turns_of_one_conversation_are_serialized() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    let go = Cue::default();
    there.gateway.always(vec![Step::Ask("fake-echo"), Step::Until(go.clone())]);
    let first = there.world.sluice().spawn(&[
        "run",
        "--json",
        "--agent",
        AGENT,
        "--run-id",
        "r1",
        "--state-key",
        "Chat",
        "r1",
    ]);
    let told = || async { there.gateway.requests("agent").len() };
    eventually_within(PATIENCE, "it is at work", told, |told| *told == 1).await;
    // A client that wants to watch at once receives an answer to wait.
    let busy = there.run_with(&["--run-id", "r0", "--state-key", "Chat"], "r0").await;
    assert_eq!(busy.code, Some(75), "{busy:?}");
    assert!(busy.stderr.contains("run r1 is active in this session"), "{busy:?}");
    let up = Up::start(there.world.sluice()).await;
    order(&there, "r2", &["--state-key", "Chat"]).await;
    order(&there, "r3", &["--state-key", "chat"]).await;
    order(&there, "r4", &[]).await;
    for other in ["r3", "r4"] {
        eventually_within(
            PATIENCE,
            "another conversation",
            || state(&there.world, other),
            |state| state == "running",
        )
        .await;
    }
    assert_eq!(state(&there.world, "r2").await, "queued");
    go.give();
    let output = first.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(ended(&there.world, "r2").await["state"], "succeeded");
    let keys: Vec<_> = there
        .gateway
        .requests("agent")
        .iter()
        .map(|frame| frame["params"]["sessionKey"].to_string())
        .collect();
    assert_eq!(
        keys.iter().filter(|key| **key == keys[0]).count(),
        2,
        "r1 and r2 are one conversation: {keys:?}"
    );
    assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{keys:?}");
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_stopped_service_leaves_its_turn_to_the_next() {
    for dialect in Dialect::ALL {
        let mut there = Sessions::of(dialect, "slot", "").await;
        assert!(there.world.stop_proxy().await);
        let go = Cue::default();
        there.gateway.always(vec![Step::Ask("fake-echo"), Step::Until(go.clone())]);
        let up = Up::start(there.world.sluice()).await;
        provide(&there, "at-first").await;
        order(&there, "r1", &[]).await;
        let asked = || async { there.gateway.calls().len() };
        eventually_within(PATIENCE, "it has asked", asked, |calls| *calls == 1).await;
        eventually_within(PATIENCE, "it is taken", || state(&there.world, "r1"), |state| state == "running")
            .await;
        // The proxy goes with its worker, and the next one brings another.
        up.stop(Signal::TERM).await;
        let next = Up::start(there.world.sluice()).await;
        eventually_within(
            PATIENCE,
            "somebody has it",
            || state(&there.world, "r1"),
            |state| state == "running",
        )
        .await;
        go.give();
        let record = ended(&there.world, "r1").await;
        assert_eq!(record["state"], "succeeded", "{dialect:?} {record:#}");
        let answer = record["answer"].as_str().unwrap();
        assert!(answer.ends_with("r1"), "{dialect:?} {answer}");
        assert!(there.gateway.requests("chat.abort").is_empty(), "{dialect:?}: nobody has ended it");
        next.stop(Signal::TERM).await;
    }
}

#[tokio::test]
async fn a_cancel_outlives_its_worker() {
    let mut there = Sessions::of(Dialect::Four, "trace", "").await;
    assert!(there.world.stop_proxy().await);
    there.gateway.always(vec![Step::Never]);
    let mut up = Up::start(there.world.sluice().env("SLUICE_FAILPOINT", "ended:kill")).await;
    order(&there, "r1", &[]).await;
    let told = || async { there.gateway.requests("agent").len() };
    eventually_within(PATIENCE, "it is told", told, |told| *told == 1).await;
    let mut cancel = there.world.sluice().spawn(&["runs", "cancel", "r1"]);
    up.child.wait().await.unwrap();
    cancel.kill().await.unwrap();
    let next = Up::start(there.world.sluice()).await;
    assert_eq!(ended(&there.world, "r1").await["state"], "cancelled");
    next.stop(Signal::TERM).await;
    kill(up.proxy_pid);
}

/// The gateway restarts while no worker holds the run.
#[tokio::test]
async fn no_turn_is_sent_twice_over_a_gateway_restart() {
    for dialect in Dialect::ALL {
        // Taken, or about to be sent: no process knows whether the gateway received it.
        for point in [Point::TurnTaken, Point::Started] {
            let mut there = Sessions::of(dialect, "slot", "run_timeout = '60s'").await;
            assert!(there.world.stop_proxy().await);
            there.gateway.always(vec![Step::Never]);
            let armed = there.world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
            let mut up = Up::start(armed).await;
            order(&there, "r1", &[]).await;
            up.child.wait().await.unwrap();
            let told = there.gateway.turns();
            assert!(told == 1 || point == Point::Started, "{dialect:?}");
            there.gateway.restart();
            let next = Up::start(there.world.sluice()).await;
            let record = ended(&there.world, "r1").await;
            assert_eq!(record["error"]["code"], "session_lost", "{dialect:?} {point:?}: {record:#}");
            assert_eq!(there.gateway.turns(), told, "{dialect:?} {point:?}");
            next.stop(Signal::TERM).await;
            kill(up.proxy_pid);
        }
    }
}
