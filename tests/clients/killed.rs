//! Kills a real gateway, the connections to it and the proxy while runs are its sessions. Each run has one clear end,
//! and is billed to its account or not at all. The journal matches the calls that the models received.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use harness::{
    Outcome,
    eventually::eventually_within,
    sessions::{Sessions, answer, arguments},
};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// Active runs at the moment of the failure.
const RUNS: usize = 3;

/// Runs of one case, with their accounts.
struct Case {
    runs: Vec<(String, String)>,
}

impl Case {
    fn of(name: &str) -> Self {
        Self { runs: (0..RUNS).map(|n| (format!("{name}-{n}"), format!("acct-{n}"))).collect() }
    }

    /// Returns the text that occurs only in the conversation of `run`.
    fn mark(&self, run: &str) -> String {
        format!("of-{run}.")
    }

    /// Executes its runs, awaits `failure` while each of them uses a tool, and returns their error codes.
    async fn with(
        &self,
        sessions: &mut Sessions,
        failure: impl AsyncFnOnce(&mut Sessions),
    ) -> Vec<Option<String>> {
        let all = join_all(self.runs.iter().map(|(run, account)| {
            let (sluice, mark) = (sessions.world.sluice().within(Duration::from_secs(110)), self.mark(run));
            let step = |n: &str| format!("call: exec {{\"command\":\"sleep 1; echo {n}-{mark}\"}}\n");
            let message =
                format!("Do this:\n{}{}{}say: done-{mark}", step("one"), step("two"), step("three"));
            async move { sluice.run(&[&arguments((run, account))[..], &[&message]].concat()).await }
        }));
        let failure = async {
            let ledger = sessions.world.upstream.ledger().clone();
            let marks: Vec<_> = self.runs.iter().map(|(run, _)| self.mark(run)).collect();
            let begun = || async {
                let calls = ledger.all();
                let bodies: Vec<_> = calls.iter().map(|call| String::from_utf8_lossy(&call.body)).collect();
                let calls = |mark: &String| bodies.iter().filter(|body| body.contains(mark)).count();
                marks.iter().filter(|mark| calls(mark) >= 2).count()
            };
            eventually_within(PATIENCE, "each is in its second step", begun, |count| *count == RUNS).await;
            failure(sessions).await;
        };
        let (outcomes, ()) = tokio::join!(all, failure);
        let ends = self.runs.iter().zip(&outcomes).map(|((run, _), outcome)| {
            let code = error_code(outcome);
            if code.is_none() {
                assert!(answer(outcome).contains(&format!("done-{}", self.mark(run))), "{outcome:?}");
            }
            code
        });
        ends.collect()
    }
}

/// Returns the run's error code; `None` if it succeeded.
fn error_code(outcome: &Outcome) -> Option<String> {
    let is_end = |event: &Value| ["assistant_final", "error"].iter().any(|kind| event["type"] == *kind);
    let ends: Vec<_> = outcome.events().into_iter().filter(is_end).collect();
    assert_eq!(ends.len(), 1, "a run has one end: {outcome:?}");
    ends[0]["code"].as_str().map(str::to_owned)
}

/// Each call keeps its owner.
#[tokio::test]
async fn kills_leave_each_run_one_end() {
    let mut sessions = Sessions::of(&["fake-steps"], |setup| setup).await;
    let (relay, proxy, gateway) = (Case::of("way"), Case::of("proxy"), Case::of("gateway"));

    // The workers connect again and receive the rest.
    let ends = relay.with(&mut sessions, async |sessions| sessions.relay.cut()).await;
    assert_eq!(ends, [const { None }; RUNS]);

    let ends = proxy
        .with(&mut sessions, async |sessions| {
            sessions.world.kill_proxy().await;
            sessions.world.start_proxy().await;
        })
        .await;
    // The gateway repeats unanswered calls; if it gives up, the run has the reason as its code.
    assert!(ends.iter().flatten().all(|name| name == "model_unavailable"), "{ends:?}");

    let ends = gateway
        .with(&mut sessions, async |sessions| {
            sessions.gateway.kill().await;
            sessions.gateway.start_again().await;
        })
        .await;
    // The restarted gateway does not know the turns.
    assert_eq!(ends, [const { Some("session_lost") }; RUNS].map(|name| name.map(str::to_owned)));
    let next =
        sessions.run(("next", "acct-9"), &[], "Do this:\ncall: exec {\"command\":\"echo of-next.\"}").await;
    assert_eq!(error_code(&next), None, "{next:?}");
    balances(&sessions, &[&relay, &proxy, &gateway]).await;
    sessions.gateway.stop().await;
}

/// Checks that the journal has each run's model calls under its own account, and that LiteLLM has billed none to
/// another.
async fn balances(sessions: &Sessions, cases: &[&Case]) {
    let runs: Vec<_> = cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run))).collect();
    let marks: Vec<_> = runs.iter().map(|(case, (run, _))| case.mark(run)).collect();
    let marks: Vec<_> = marks.iter().map(String::as_str).chain(["of-next."]).collect();
    let received = sessions.calls_by_mark(&marks);
    let mut accounts = BTreeMap::new();
    for (case, (run, account)) in runs {
        accounts.insert(run.as_str(), account.as_str());
        let records = sessions.world.journal().await.into_iter().map(|line| line.record);
        let own: Vec<_> = records.filter(|record| record.run_id.as_str() == run).collect();
        assert!(own.iter().all(|record| record.account.as_str() == account), "{own:?}");
        let sent = own.iter().filter(|record| record.refusal.is_none()).count();
        let count = received[case.mark(run).as_str()].len();
        assert_eq!(sent, count, "{run}: {own:?}");
    }
    for ((account, run), _) in sessions.billed() {
        assert_eq!(accounts.get(run.as_str()).copied().unwrap_or("acct-9"), account, "{run}");
    }
}
