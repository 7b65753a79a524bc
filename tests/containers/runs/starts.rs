//! Tests many starts, several at a time: none fails, and nothing of them is left.

use harness::starts::Starts;

/// Most memory that a worker may gain from the sixth run to the sixtieth.
const MEMORY: u64 = 8 << 20;
/// Most descriptors that it may gain: connections that are kept.
const DESCRIPTORS: usize = 16;

#[tokio::test]
async fn sixty_starts_succeed_and_leave_nothing() {
    let starts = Starts { count: 60, at_a_time: 8, warm: 0 };
    let found = starts.run().await;
    assert_eq!((found.succeeded, &found.failures), (60, &vec![]), "{found:#?}");
    for used in [&found.up, &found.proxy] {
        assert!(used.late.rss <= used.early.rss + MEMORY, "{found:#?}");
        assert!(used.late.descriptors <= used.early.descriptors + DESCRIPTORS, "{found:#?}");
    }
}
