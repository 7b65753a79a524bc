//! Tests the file of marks in any order of steps: whole marks are found, torn ones are not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use platform_core::record::ExchangeRecord;
use proptest::prelude::*;

use super::record;
use crate::journal::in_flight::{InFlightLog, LogSlot, MarkBatch};

fn named(n: u64) -> ExchangeRecord {
    ExchangeRecord { request_bytes: n, ..record(&format!("r{n}")) }
}

/// Marks call `n`, after line `after`.
fn mark_after(marks: &InFlightLog, after: u64, n: u64) -> LogSlot {
    let mut batch = MarkBatch::default();
    let slot = marks.mark(&mut batch, after, &named(n)).unwrap();
    marks.write(&batch).unwrap();
    slot
}

fn mark(marks: &InFlightLog, n: u64) -> LogSlot {
    mark_after(marks, n * 10, n)
}

/// Returns line and call of each mark that is found.
fn found(path: &std::path::Path) -> BTreeMap<u64, u64> {
    let (_marks, found) = InFlightLog::open(path).unwrap();
    found.into_iter().map(|mark| (mark.record.request_bytes, mark.after)).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Mark,
    Release(usize),
    Clear,
    /// The process ends, and the next one goes on with what it finds.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Mark),
        3 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Clear),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn marks_in_flight_are_found_and_cleared_are_not(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let mut marks = InFlightLog::open(&path).unwrap().0;
        // `stale` are those that may be found, until a slot is used again or cleared.
        let (mut held, mut expected, mut stale) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let check = |expected: &BTreeMap<u64, u64>, stale: &BTreeSet<u64>| {
            let mut found = found(&path);
            found.retain(|n, _| !stale.contains(n));
            assert_eq!(&found, expected);
        };
        for (n, step) in (0..).zip(steps) {
            match step {
                Step::Mark => {
                    held.push((n, mark(&marks, n)));
                    expected.insert(n, n * 10);
                }
                Step::Release(at) if !held.is_empty() => {
                    let (n, slot) = held.swap_remove(at % held.len());
                    marks.release(slot);
                    expected.remove(&n);
                    stale.insert(n);
                }
                Step::Release(_) => {}
                Step::Clear => {
                    marks.clear_stale();
                    stale.clear();
                    check(&expected, &stale);
                }
                Step::Restart => {
                    check(&expected, &stale);
                    marks.clear_all().unwrap();
                    (held, expected, stale) = Default::default();
                    marks = InFlightLog::open(&path).unwrap().0;
                }
            }
        }
        check(&expected, &stale);
    }

    #[test]
    fn a_mark_with_a_wrong_byte_is_ignored(at in 0_usize..640, bits in 1_u8..) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let marks = InFlightLog::open(&path).unwrap().0;
        mark_after(&marks, 7, 1);
        prop_assert_eq!(found(&path), BTreeMap::from([(1, 7)]));
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= bits;
        fs::write(&path, bytes).unwrap();
        prop_assert_eq!(found(&path), BTreeMap::new());
    }

    #[test]
    fn a_mark_that_was_written_in_part_is_ignored(length in 1_usize..640) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let marks = InFlightLog::open(&path).unwrap().0;
        mark_after(&marks, 7, 1);
        let mut bytes = fs::read(&path).unwrap();
        bytes[length..4096].fill(0);
        fs::write(&path, bytes).unwrap();
        prop_assert_eq!(found(&path), BTreeMap::new());
    }
}
