//! Tests final refusals of a real gateway's turn: each costs one call, has one name, and locks no other tenant out.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use harness::{
    Outcome,
    eventually::eventually_within,
    sessions::{Sessions, answer},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Cause of a refusal and its expected result.
struct Row {
    /// Short name, part of the run's and the account's id.
    name: &'static str,
    /// Further arguments of the run.
    more: &'static [&'static str],
    /// Expected error code.
    code: &'static str,
    /// Number of calls that the gateway makes, and number of calls that reach the models.
    calls: (usize, usize),
}

const fn row(
    name: &'static str,
    more: &'static [&'static str],
    code: &'static str,
    calls: (usize, usize),
) -> Row {
    Row { name, more, code, calls }
}

const FINAL: [Row; 9] = [
    row("401", &["--model", "fake-status401"], "model_refused", (1, 1)),
    row("402", &["--model", "fake-status402"], "model_refused", (1, 1)),
    row("403", &["--model", "fake-status403"], "model_refused", (1, 1)),
    row("400", &["--model", "fake-status400"], "model_refused", (1, 1)),
    row("422", &["--model", "fake-status422"], "model_refused", (1, 1)),
    row("overflow", &["--model", "fake-toolong"], "context_overflow", (1, 1)),
    // The gateway repeats a call with an empty answer once.
    row("empty", &["--model", "fake-words0"], "no_answer", (2, 2)),
    row("used-up", &["--total-tokens", "10"], "quota_exhausted", (1, 0)),
    row("frozen", &["--model", "fake-words3"], "model_refused", (1, 0)),
];

/// Passing failures: the gateway repeats the call until its run times out.
const PASSING: [&str; 4] = ["fake-status429", "fake-status500", "fake-cut0", "fake-cut2"];
const HASTY: &str = "[agents.'claw:hasty']\nmode = 'gateway'\ngateways = ['real']\nmodel = 'fake-words5'\nrun_timeout = '12s'\n";

fn code(outcome: &Outcome) -> String {
    let result = outcome.result();
    result["error"]["code"].as_str().unwrap_or_else(|| panic!("{outcome:?}")).to_owned()
}

/// The run has one error code, and the next tenant is served.
#[tokio::test]
async fn a_final_refusal_is_one_call() {
    let mut models = vec!["fake-words5"];
    models.extend(PASSING);
    models.extend(FINAL.iter().filter(|row| row.more[0] == "--model").map(|row| row.more[1]));
    let sessions = Sessions::of(&models, |setup| setup).await;
    sessions.configure(HASTY);
    let frozen = sessions.world.sluice().run(&["freeze", "--model", "fake-words3"]).await;
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    is_served(&sessions, "nothing").await;
    for row in &FINAL {
        is_final(&sessions, row).await;
        is_served(&sessions, row.name).await;
    }
    tokio::join!(join_all(PASSING.map(|model| is_tried_again(&sessions, model))), async {
        // Another tenant is served even while the gateway retries.
        eventually_within(
            PATIENCE,
            "all fail",
            async || calls_of(&sessions, "acct-passing").await,
            |calls| *calls >= 6,
        )
        .await;
        is_served(&sessions, "passing-begin").await;
    },);
    is_served(&sessions, "passing").await;
    sessions.gateway.stop().await;
}

/// Returns the number of an account's calls in the journal, with any outcome.
async fn calls_of(sessions: &Sessions, account: &str) -> usize {
    let journal = sessions.world.journal().await;
    journal.iter().filter(|line| line.record.account.as_str() == account).count()
}

async fn is_final(sessions: &Sessions, row: &Row) {
    let before = sessions.world.upstream.ledger().len();
    let (run, account) = (format!("r-{}", row.name), format!("acct-{}", row.name));
    let outcome = sessions.run((&run, &account), row.more, "Say something.").await;
    assert_eq!((outcome.code, code(&outcome).as_str()), (Some(1), row.code), "{}: {outcome:?}", row.name);
    let calls = (calls_of(sessions, &account).await, sessions.world.upstream.ledger().len() - before);
    assert_eq!(calls, row.calls, "{}", row.name);
}

/// Checks that it ends by the run's timeout, with the error code of the timeout or of the failure.
async fn is_tried_again(sessions: &Sessions, model: &str) {
    let run = format!("r-{}", model.trim_start_matches("fake-"));
    let arguments = [
        "run",
        "--json",
        "--agent",
        "claw:hasty",
        "--account",
        "acct-passing",
        "--model",
        model,
        "--run-id",
        &run,
    ];
    let began = Instant::now();
    let outcome = sessions.world.sluice().run(&[&arguments[..], &["Say something."]].concat()).await;
    let names = ["timeout", "model_busy", "model_unavailable"];
    assert!(names.contains(&code(&outcome).as_str()), "{model}: {outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(50), "{model}: {:?}", began.elapsed());
}

/// Checks that a run of another account has an answer at its first call.
async fn is_served(sessions: &Sessions, after: &str) {
    let (run, account) = (format!("after-{after}"), format!("acct-after-{after}"));
    let outcome = sessions.run((&run, &account), &[], "Say something.").await;
    assert_eq!(outcome.code, Some(0), "after {after}: {outcome:?}");
    assert_eq!(answer(&outcome).split_whitespace().count(), 5);
    assert_eq!(calls_of(sessions, &account).await, 1, "after {after}");
}
