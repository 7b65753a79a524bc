//! Tests how sessions end: each failure has one name, and a session spends nothing after an end is requested.

use std::time::Duration;

use harness::{
    eventually::eventually_within,
    gateway::{Abort, Dialect, Step},
    pace, private_file,
    process::is_suspended,
    sluice::{interrupt, resume},
    store_lock::StoreLock,
};
use runner_model::failpoint::Point;
use tokio::time::timeout;

use super::{AGENT, Sessions, answer, code};

const PATIENCE: Duration = Duration::from_secs(60);
/// Model that answers for longer than any test: what ends before was stopped.
const LONG: &str = "fake-words4000-gap50ms";

/// Each failure has the same name in both protocol versions, and costs one call.
#[tokio::test]
async fn model_failures_have_one_name_per_version() {
    for dialect in Dialect::ALL {
        let there = Sessions::of(dialect, "slot", "").await;
        for (asks, expected) in [
            ("fake-status401", "model_refused"),
            ("fake-status402", "model_refused"),
            ("fake-status403", "model_refused"),
            ("fake-status400", "model_refused"),
            ("fake-status429", "model_busy"),
            ("fake-status500", "model_busy"),
            ("fake-cut0", "model_unavailable"),
            ("fake-cut2", "model_unavailable"),
        ] {
            there.gateway.always(vec![Step::Ask(asks)]);
            let run = format!("r-{}", asks.trim_start_matches("fake-"));
            let before = there.world.upstream.ledger().all().len();
            let outcome = there.run(&run, "acct-1", "q").await;
            assert_eq!(
                (code(&outcome).as_str(), outcome.code),
                (expected, Some(1)),
                "{dialect:?} {asks} {outcome:?}"
            );
            let calls = there.world.upstream.ledger().all().len() - before;
            assert_eq!(calls, 1, "{asks}: a failure costs one call");
        }
        // Control: the next tenant is not locked out.
        there.gateway.always(vec![Step::Ask("fake-echo")]);
        assert_eq!(answer(&there.run("r-next", "acct-2", "still open").await), "still open");
    }
}

#[tokio::test]
async fn an_end_without_answer_has_a_code() {
    for dialect in Dialect::ALL {
        let there = Sessions::of(dialect, "slot", "").await;
        for (ends, expected) in [("empty", "no_answer"), ("timeout", "timeout")] {
            there.gateway.always(vec![Step::Recorded(ends)]);
            let outcome = there.run(&format!("r-{ends}"), "acct-1", "q").await;
            assert_eq!(code(&outcome), expected, "{dialect:?} {ends} {outcome:?}");
        }
    }
}

/// The gateway may only pretend to stop it.
#[tokio::test]
async fn a_turn_over_its_time_spends_nothing_more() {
    let there = Sessions::of(Dialect::Four, "trace", "run_timeout = '4s'").await;
    // The gateway receives the stop, says that it has, and goes on asking.
    there.gateway.set(|options| options.abort = Abort::Pretended);
    let asks = [Step::Ask("fake-echo"), Step::Pause(Duration::from_millis(400))];
    there.gateway.always(asks.into_iter().cycle().take(40).collect());
    let outcome = there.run("r1", "acct-1", "q").await;
    assert_eq!((code(&outcome).as_str(), outcome.code), ("timeout", Some(124)), "{outcome:?}");
    let billed = there.world.upstream.ledger().all().len();
    assert!((1..=11).contains(&billed), "{billed} calls in four seconds");
    // The control: it did try.
    let refused = || async { there.gateway.calls().iter().filter(|call| call.status == Some(400)).count() };
    eventually_within(PATIENCE, "it goes on", refused, |count| *count > 0).await;
    assert_eq!(there.world.upstream.ledger().all().len(), billed);
    assert!(!there.gateway.requests("chat.abort").is_empty());
}

#[tokio::test]
async fn cancelling_a_run_ends_its_turn_and_calls() {
    for dialect in Dialect::ALL {
        let there = Sessions::of(dialect, "slot", "").await;
        there.gateway.always(vec![Step::Ask(LONG), Step::Ask("fake-echo")]);
        let running = there.world.sluice().spawn(&["run", "--json", "--agent", AGENT, "--run-id", "r1", "q"]);
        let billed = || async { there.world.upstream.ledger().all().len() };
        eventually_within(PATIENCE, "it asks", billed, |calls| *calls == 1).await;
        interrupt(&running);
        let output = timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert!(!there.gateway.requests("chat.abort").is_empty(), "{dialect:?}");
        let call = there.world.records(1).await.pop().unwrap().record;
        assert_eq!(call.run_id.as_str(), "r1");
        assert_eq!(there.world.upstream.ledger().all().len(), 1, "no call began after that");
    }
}

/// The acceptance holds the only connection to the store, and the cancel needs it.
#[tokio::test]
async fn a_cancel_may_meet_an_acceptance_being_stored() {
    let there = Sessions::of(Dialect::Four, "slot", "").await;
    there.gateway.always(vec![Step::Ask(LONG)]);
    let armed = format!("{}:stop", Point::Started.name());
    let sluice = there.world.sluice().env("SLUICE_FAILPOINT", &armed);
    let running = sluice.spawn(&["run", "--json", "--agent", AGENT, "--run-id", "r1", "q"]);
    let suspended = || async { is_suspended(running.id().unwrap()) };
    eventually_within(PATIENCE, "the turn is sent", suspended, |suspended| *suspended).await;
    let lock = StoreLock::take(&there.world).await;
    resume(&running);
    let billed = || async { there.world.upstream.ledger().all().len() };
    eventually_within(PATIENCE, "the turn is accepted", billed, |calls| *calls == 1).await;
    // It may be on its way to the store or wait there already: the run ends in the same way.
    pace(Duration::from_millis(300)).await;
    interrupt(&running);
    eventually_within(
        PATIENCE,
        "it is stopped",
        || async { there.gateway.requests("chat.abort").len() },
        |aborts| *aborts > 0,
    )
    .await;
    lock.release().await;
    let output = timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}

/// Operators see the reason. Once the gateway can be used, runs succeed.
#[tokio::test]
async fn an_unusable_gateway_fails_runs_with_a_reason() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    private_file(&there.world.path().join("gateway.token"), "another-token");
    let outcome = there.run("r1", "acct-1", "q").await;
    assert_eq!((code(&outcome).as_str(), outcome.code), ("gateway_failed", Some(70)), "{outcome:?}");
    let shown = there.world.sluice().run(&["runs", "show", "r1"]).await.stdout;
    assert!(shown.contains("token"), "{shown}");
    // Once that is fixed it is used again.
    private_file(&there.world.path().join("gateway.token"), harness::gateway::TOKEN);
    there.gateway.always(vec![Step::Ask("fake-echo")]);
    assert_eq!(answer(&there.run("r2", "acct-1", "now").await), "now");
}

#[tokio::test]
async fn a_gateway_of_one_account_serves_no_other() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    there.world.reconfigure("attribution = 'trace'", "attribution = 'trace'\naccount = 'acct-1'");
    there.gateway.always(vec![Step::Ask("fake-echo")]);
    let refused = there.run("r2", "acct-2", "q").await;
    assert_eq!(code(&refused), "gateway_failed");
    assert!(refused.stdout.contains("none of the agent's gateways serves account acct-2"), "{refused:?}");
    assert!(there.gateway.requests("agent").is_empty());
    assert_eq!(answer(&there.run("r1", "acct-1", "mine").await), "mine");
}
