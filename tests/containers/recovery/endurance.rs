//! Kills a proxy at random moments: no call without a record, nothing recorded twice, budgets right, no line lost to a
//! follower. The test with a thousand kills is `tests/examples/kill-proxy.rs`.

use harness::{
    endurance::{Marks, Play},
    volume::FileSystem,
};

const PLAY: Play =
    Play { seed: 1, kills: 45, threads: 2, disk: None, durability: "process", marks: Marks::Kept };

async fn endures(play: Play) {
    let findings = play.run().await;
    findings.assert_sound(play.seed);
    let of = |outcome| findings.outcomes.get(outcome).copied().unwrap_or_default();
    assert!(of("interrupted") > play.kills, "seed {}: calls were in flight: {findings:#?}", play.seed);
    for outcome in ["complete", "upstream_gone", "client_gone"] {
        assert!(of(outcome) > 0, "seed {}: {outcome}: {findings:#?}", play.seed);
    }
    assert!(findings.timed_out > 0, "seed {}: the clock passed the end of runs: {findings:#?}", play.seed);
    assert_eq!(of("timed_out"), 0, "seed {}: no call's limit goes by it: {findings:#?}", play.seed);
    assert!(findings.follower_connections > play.kills, "seed {}: {findings:#?}", play.seed);
}

#[tokio::test]
async fn repeated_kills_lose_no_call() {
    endures(PLAY).await;
}

#[tokio::test]
async fn repeated_kills_lose_no_call_with_disk_sync() {
    endures(Play { seed: 0x5eed, durability: "disk", ..PLAY }).await;
}

#[tokio::test]
async fn repeated_kills_lose_no_call_on_a_full_disk() {
    endures(Play { seed: 3, disk: Some((FileSystem::Tmpfs, 24)), ..PLAY }).await;
}

#[tokio::test]
async fn without_the_marks_calls_are_missing() {
    let play = Play { seed: 1, kills: 4, marks: Marks::Removed, ..PLAY };
    let findings = play.run().await;
    assert!(findings.unrecorded.len() > 4, "{findings:#?}");
    assert_eq!(
        (&findings.replayed, &findings.faults),
        (&vec![], &vec![]),
        "nothing else is wrong: {findings:#?}"
    );
}
