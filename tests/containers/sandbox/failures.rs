//! Tests the error of a run with a failed agent: that of its last call, if that call failed, else its own. The error
//! does not depend on which process worked on the run then.

use std::fs;

use harness::{Outcome, Up, World, eventually, eventually::eventually_within};
use platform_core::{record::Outcome as Called, refusal::Refusal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{shell_agent, world_with};
use crate::recovery::survival::{LEASE, PATIENCE, ended, order};

/// A call of a shell agent. `-f`: it fails if the call does.
fn asks(model: &str) -> String {
    format!(
        r#"curl -sf -o /dev/null http://localhost:8080/v1/chat/completions -d '{{"model":"{model}","messages":[]}}'"#
    )
}

fn error(outcome: &Outcome) -> (Option<i32>, String) {
    (outcome.code, outcome.result()["error"]["code"].as_str().unwrap_or("none").to_owned())
}

/// The same names as in runs of a gateway.
#[tokio::test]
async fn model_failures_have_one_name_in_a_container() {
    let world = World::start().await;
    for (n, (model, expected, why)) in [
        ("fake-status401", "model_refused", "upstream_auth"),
        ("fake-status402", "model_refused", "upstream_auth"),
        ("fake-status403", "model_refused", "upstream_auth"),
        ("fake-status400", "model_refused", "status 400"),
        ("fake-toolong", "context_overflow", "too long for the model"),
        ("fake-status429", "model_busy", "status 429"),
        ("fake-status500", "model_busy", "status 500"),
        ("fake-cut0", "model_unavailable", "upstream_reset"),
        ("fake-cut2", "model_unavailable", "upstream_gone"),
        ("fake-errmid2", "model_unavailable", "stream_error"),
    ]
    .into_iter()
    .enumerate()
    {
        let outcome = world.sluice().run(&["run", "--json", "--model", model, "q"]).await;
        assert_eq!(error(&outcome), (Some(1), expected.to_owned()), "{model}: {outcome:?}");
        let result = outcome.result();
        assert_eq!(result["exit_code"], 1, "{model}: {result}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(why) && message.contains("; the agent said: "), "{model}: {message}");
        assert_eq!(world.upstream.ledger().all().len(), n + 1, "{model}: a failure costs one call");
    }
    let overflow = world
        .records(10)
        .await
        .into_iter()
        .find(|line| line.record.refusal == Some(Refusal::ContextOverflow));
    let record = overflow.expect("the journal says so").record;
    assert_eq!((record.outcome, record.status), (Called::Complete, 400), "{record:?}");
    world.assert_nothing_left().await;
}

/// An agent that answers has not failed, whatever its calls did.
#[tokio::test]
async fn an_agent_fails_by_its_last_call_or_itself() {
    let (good, bad) = (asks("fake"), asks("fake-status401"));
    for (script, expected) in [
        (format!("{good}; exit 7"), (Some(1), "container_failed")),
        (format!("{bad}; {good}; exit 7"), (Some(1), "container_failed")),
        ("exit 7".to_owned(), (Some(1), "container_failed")),
        (format!("{bad}; echo an answer"), (Some(0), "none")),
        (format!("{bad}; kill -KILL $$"), (Some(1), "model_refused")),
        (format!("{good}; {bad}; exit 7"), (Some(1), "model_refused")),
    ] {
        let world = world_with(&script).await;
        let outcome = super::run(&world).await;
        assert_eq!(error(&outcome), (expected.0, expected.1.to_owned()), "{script}: {outcome:?}");
    }
}

#[tokio::test]
async fn refusals_of_the_proxy_have_their_own_codes() {
    let world = World::with(
        &(shell_agent(&format!("{}; {} || exit 7", asks("fake"), asks("fake")), "requests = 1")
            + "[agents.'test:one']\nimage = 'sluicegate/sandbox-runtime:latest'\nmodels = ['fake']\nmodel = 'fake'\nprotocol = 'text'\n"
            + &format!(
                "argv = ['bash', '-c', {}]\n",
                super::toml_argument(&format!("{} || exit 7", asks("fake-echo")))
            )),
    )
    .await;
    assert_eq!(error(&super::run(&world).await).1, "quota_exhausted");
    let outcome = world.sluice().run(&["run", "--agent", "test:one", "--json", "q"]).await;
    assert_eq!(error(&outcome).1, "model_refused", "{outcome:?}");
    assert!(outcome.result()["error"]["message"].as_str().unwrap().contains("model_not_granted"));
    assert_eq!(world.upstream.ledger().all().len(), 1);
}

#[tokio::test]
async fn a_timeout_or_cancel_outranks_failed_calls() {
    let script = format!("{}; sleep 60", asks("fake-status401"));
    let world = World::with(&shell_agent(&script, "run_timeout = '8s'")).await;
    assert_eq!(error(&super::run(&world).await), (Some(124), "timeout".to_owned()));
    let running = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r2", "--json", "q"]);
    world.records(2).await;
    harness::sluice::interrupt(&running);
    let output = running.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stdout).contains("cancelled"), "{output:?}");
}

/// The outcome survives a kill of the proxy, too.
#[tokio::test]
async fn the_last_calls_outcome_survives_a_takeover() {
    let script = format!("{}; until [ -e go ]; do sleep 0.1; done; exit 7", asks("fake-status401"));
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(&script, "run_timeout = '60s'"))).await;
    assert!(world.stop_proxy().await);
    let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", "ended:kill")).await;
    order(&world, "r1", "test:sh").await;
    world.records(1).await;
    let killed = up.proxy_pid;
    kill(killed);
    let pid = || async { world.control.health().await.map_or(killed, |health| health.pid) };
    let proxy = eventually("another proxy answers", pid, |pid| *pid != killed).await;
    fs::write(world.workspace("r1").await.join("go"), "").unwrap();
    up.child.wait().await.unwrap();
    let next = Up::start(world.sluice()).await;
    let record: Value = ended(&world, "r1").await;
    assert_eq!(record["epoch"], 2, "{record:#}");
    assert_eq!(
        (&record["error"]["code"], &record["exit_code"]),
        (&json!("model_refused"), &json!(7)),
        "{record:#}"
    );
    eventually_within(PATIENCE, "nothing is left", || world.left(), Vec::is_empty).await;
    next.stop(Signal::TERM).await;
    kill(proxy);
}

fn kill(pid: u32) {
    // It may be gone already, which is as good.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).ok();
}
