//! A proxy that accounts share: one that is at its limits takes nothing from another.

use futures_util::future::join_all;
use harness::{Answer, World, eventually, grant};
use platform_core::{budget::Budget, grant::RunGrant};

/// Limit of the greedy account's calls in flight.
const HELD: usize = 4;
const ACCOUNTS: &str = "[accounts.'greedy']\ncalls_in_flight = 4";
/// Calls of the greedy one at a time, and how often it comes again.
const FLOOD: usize = 80;
const WAVES: usize = 4;
/// Calls of the modest one meanwhile, per wave.
const CALLS: usize = 20;

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_exhausted_account_does_not_block_another() {
    let world = World::with(ACCOUNTS).await;
    let greedy = world.run("r1", "greedy").await;
    let budget = Budget { requests: Some(0), ..Budget::default() };
    let used_up = world.run_with(RunGrant { budget, ..grant("r2", "greedy") }).await;
    let modest = world.run("r3", "modest").await;
    let mut held = Vec::new();
    for _ in 0..HELD {
        let mut stream = greedy.agent.stream("fake-stall1").await;
        stream.next().await.unwrap();
        held.push(stream);
    }
    for wave in 0..WAVES {
        let flood = async {
            let calls = (0..FLOOD).map(|n| [&greedy, &used_up][n % 2].agent.chat("fake"));
            join_all(calls).await
        };
        let served = async {
            let mut answers = Vec::new();
            for _ in 0..CALLS {
                answers.push(modest.agent.chat("fake").await);
            }
            answers
        };
        let (flood, served) = tokio::join!(flood, served);
        assert!(served.iter().all(|answer| answer.status == 200), "wave {wave}: {served:?}");
        for (n, answer) in flood.iter().enumerate() {
            let expected = [(429, "concurrency_limited"), (400, "quota_exhausted")][n % 2];
            assert_eq!(code(answer), (expected.0, expected.1.to_owned()), "wave {wave}, call {n}");
        }
    }
    let of_modest = world.control.run(&modest.grant.run_id).await.unwrap().usage;
    assert_eq!((of_modest.calls, of_modest.refused), ((WAVES * CALLS) as u64, 0));
    assert_eq!(world.control.run(&greedy.grant.run_id).await.unwrap().in_flight, HELD as u64, "they go on");
    // Control: it was the limit of calls in flight that kept the greedy one waiting.
    drop(held);
    eventually("it is served again", || greedy.agent.chat("fake"), |answer| answer.status == 200).await;
}
