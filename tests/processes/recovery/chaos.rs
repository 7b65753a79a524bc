//! Tests limits under everything at once: calls, cuts, closed runs, changed limits, a proxy that is killed.

use harness::chaos::{Chaos, Findings, Found, Limits, RUNS};

const OPERATIONS: u64 = 1000;

/// Returns the tokens beyond the most that was ever allowed; `calls` is the size of the calls that may have been
/// answered for too long.
fn excess(found: &Found, calls: u64) -> u64 {
    found.tokens.saturating_sub(found.allowed + calls)
}

fn accounted(seed: u64, findings: &Findings) {
    for (whom, found) in findings.runs.iter().chain(&findings.accounts) {
        assert_eq!(found.reserved, 0, "seed {seed}: something of {whom} stays reserved: {found:?}");
        if let Some(told) = found.told {
            assert_eq!(told, (found.tokens, found.calls), "seed {seed}: {whom} is told what is recorded");
        }
    }
}

/// Calls are cut, limits are changed, runs are closed and proxies are killed meanwhile.
#[tokio::test]
async fn limits_are_exceeded_by_one_answer_at_most() {
    for seed in [1, 0x5eed] {
        let findings = Chaos::play(seed, OPERATIONS, Limits::Hold).await;
        accounted(seed, &findings);
        for (run, found) in &findings.runs {
            assert_eq!(excess(found, findings.largest_call), 0, "seed {seed}: {run}: {found:?}");
        }
        // Each of its runs may have one such answer on its way.
        let calls = findings.largest_call * RUNS as u64;
        for (account, found) in &findings.accounts {
            assert_eq!(excess(found, calls), 0, "seed {seed}: {account}: {found:?}");
        }
        assert!(findings.outcomes["refused"] > 50, "seed {seed}: limits were reached: {findings:?}");
        assert!(findings.operations["kill"] > 0, "seed {seed}: {:?}", findings.operations);
    }
}

#[tokio::test]
async fn without_limits_the_same_play_uses_more() {
    let findings = Chaos::play(1, OPERATIONS, Limits::Off).await;
    accounted(1, &findings);
    let over = findings.runs.values().filter(|found| excess(found, findings.largest_call) > 0).count();
    assert!(over >= 3, "{findings:?}");
}
