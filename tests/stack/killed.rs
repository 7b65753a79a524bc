//! Cuts off a real gateway, the way to it and the proxy while runs are its sessions. Each run has one clear end, and is
//! billed to its account or not at all. The journal matches the calls that the models received.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use harness::{
    Outcome,
    eventually::eventually_within,
    sessions::{Sessions, answer, words},
};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// Runs that are going on when something is lost.
const RUNS: usize = 3;

/// Runs of one story with their accounts, and the text that occurs only in their conversations.
struct Story {
    runs: Vec<(String, String)>,
}

impl Story {
    fn of(name: &str) -> Self {
        Self { runs: (0..RUNS).map(|n| (format!("{name}-{n}"), format!("acct-{n}"))).collect() }
    }

    fn mark(&self, run: &str) -> String {
        format!("of-{run}.")
    }

    /// Executes its runs, awaits `lost` while each of them has a tool at work, and returns the names of their ends.
    async fn with(&self, there: &mut Sessions, lost: impl AsyncFnOnce(&mut Sessions)) -> Vec<Option<String>> {
        let all = join_all(self.runs.iter().map(|(run, account)| {
            let (sluice, mark) = (there.world.sluice().within(Duration::from_secs(110)), self.mark(run));
            let step = |n: &str| format!("call: exec {{\"command\":\"sleep 1; echo {n}-{mark}\"}}\n");
            let told = format!("Do this:\n{}{}{}say: done-{mark}", step("one"), step("two"), step("three"));
            async move { sluice.run(&[&words((run, account))[..], &[&told]].concat()).await }
        }));
        let lost = async {
            let ledger = there.world.upstream.ledger().clone();
            let marks: Vec<_> = self.runs.iter().map(|(run, _)| self.mark(run)).collect();
            let begun = || async {
                let calls = ledger.all();
                let bodies: Vec<_> = calls.iter().map(|call| String::from_utf8_lossy(&call.body)).collect();
                let calls = |mark: &String| bodies.iter().filter(|body| body.contains(mark)).count();
                marks.iter().filter(|mark| calls(mark) >= 2).count()
            };
            eventually_within(PATIENCE, "each is in its second step", begun, |count| *count == RUNS).await;
            lost(there).await;
        };
        let (outcomes, ()) = tokio::join!(all, lost);
        let ends = self.runs.iter().zip(&outcomes).map(|((run, _), outcome)| {
            let end = end(outcome);
            if end.is_none() {
                assert!(answer(outcome).contains(&format!("done-{}", self.mark(run))), "{outcome:?}");
            }
            end
        });
        ends.collect()
    }
}

/// The name of what went wrong; none if nothing did.
fn end(outcome: &Outcome) -> Option<String> {
    let is_end = |event: &Value| ["assistant_final", "error"].iter().any(|kind| event["type"] == *kind);
    let ends: Vec<_> = outcome.events().into_iter().filter(is_end).collect();
    assert_eq!(ends.len(), 1, "a run has one end: {outcome:?}");
    ends[0]["code"].as_str().map(str::to_owned)
}

/// Each call keeps its owner.
#[tokio::test]
async fn kills_leave_each_run_one_end() {
    let mut there = Sessions::of(&["fake-steps"], |setup| setup).await;
    let (way, proxy, gateway) = (Story::of("way"), Story::of("proxy"), Story::of("gateway"));

    // Runs connect again and hear the rest.
    let ends = way.with(&mut there, async |there| there.way.cut()).await;
    assert_eq!(ends, [const { None }; RUNS]);

    let ends = proxy
        .with(&mut there, async |there| {
            there.world.kill_proxy().await;
            there.world.start_proxy().await;
        })
        .await;
    // A gateway asks again for what it had no answer to; should it give up, the run says why.
    assert!(ends.iter().flatten().all(|name| name == "model_unavailable"), "{ends:?}");

    let ends = gateway
        .with(&mut there, async |there| {
            there.gateway.kill().await;
            there.gateway.start_again().await;
        })
        .await;
    // The next one does not know of them.
    assert_eq!(ends, [const { Some("session_lost") }; RUNS].map(|name| name.map(str::to_owned)));
    let next =
        there.run(("next", "acct-9"), &[], "Do this:\ncall: exec {\"command\":\"echo of-next.\"}").await;
    assert_eq!(end(&next), None, "{next:?}");
    balances(&there, &[&way, &proxy, &gateway]).await;
    there.gateway.stop().await;
}

/// Checks that the journal has each run's model calls under its own account, and that LiteLLM has billed none to
/// another.
async fn balances(there: &Sessions, stories: &[&Story]) {
    let runs: Vec<_> =
        stories.iter().flat_map(|story| story.runs.iter().map(move |run| (story, run))).collect();
    let marks: Vec<_> = runs.iter().map(|(story, (run, _))| story.mark(run)).collect();
    let marks: Vec<_> = marks.iter().map(String::as_str).chain(["of-next."]).collect();
    let asked = there.asked(&marks);
    let mut accounts = BTreeMap::new();
    for (story, (run, account)) in runs {
        accounts.insert(run.as_str(), account.as_str());
        let records = there.world.journal().await.into_iter().map(|line| line.record);
        let own: Vec<_> = records.filter(|record| record.run_id.as_str() == run).collect();
        assert!(own.iter().all(|record| record.account.as_str() == account), "{own:?}");
        let went_on = own.iter().filter(|record| record.refusal.is_none()).count();
        let had = asked[story.mark(run).as_str()].len();
        assert_eq!(went_on, had, "{run}: {own:?}");
    }
    for ((account, run), _) in there.billed() {
        assert_eq!(accounts.get(run.as_str()).copied().unwrap_or("acct-9"), account, "{run}");
    }
}
