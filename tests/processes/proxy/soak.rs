//! Tests that the resources a proxy holds do not grow with its work. The test with a million calls is
//! `tests/examples/soak.rs`.

use harness::soak::{Leak, Soak, grown};

/// Some of the clients leave before the end.
#[tokio::test]
async fn calls_leak_no_memory_descriptors_or_marks() {
    let soak = Soak { calls: 20_000, cuts: 400, bouts: 25, leak: Leak::None };
    let samples = soak.run("").await;
    assert_eq!(samples.last().unwrap().lines, soak.calls + soak.cuts, "each has its record");
    assert_eq!(grown(&samples), Vec::<String>::new(), "{samples:#?}");
}

#[tokio::test]
async fn clients_that_stay_are_noticed() {
    let soak = Soak { calls: 2000, cuts: 30, bouts: 25, leak: Leak::Clients };
    let samples = soak.run("").await;
    let grown = grown(&samples);
    assert!(grown.iter().any(|what| what.starts_with("descriptors")), "{grown:?} {samples:#?}");
}
