//! Kills workers, proxy and sandboxes at random moments: nothing is left, no run is harmed, no agent starts twice. The
//! number of rounds is free in `tests/examples/chaos-runner.rs`.

use harness::runner_chaos::Stage;

#[tokio::test]
async fn runs_survive_whatever_is_killed_around_them() {
    const SEED: u64 = 1;
    let mut stage = Stage::set(SEED).await;
    for number in 0..2 {
        let round = stage.round(number).await;
        assert_eq!(round.faults, Vec::<String>::new(), "seed {SEED}: {round:#?}");
        assert!(round.runs.values().sum::<u64>() > 5 && round.take_overs > 0, "seed {SEED}: {round:#?}");
    }
    stage.end().await;
}
