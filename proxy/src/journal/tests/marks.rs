//! The file of marks: what is marked is found, what is torn is not, whatever is done in whatever order.

use std::{collections::BTreeMap, fs};

use platform_core::record::ExchangeRecord;
use proptest::prelude::*;

use super::record;
use crate::journal::marks::Marks;

fn named(n: u64) -> ExchangeRecord {
    ExchangeRecord { request_bytes: n, ..record(&format!("r{n}")) }
}

/// What is found: line and call of each mark.
fn found(path: &std::path::Path) -> BTreeMap<u64, u64> {
    let (_marks, found) = Marks::open(path).unwrap();
    found.into_iter().map(|mark| (mark.record.request_bytes, mark.after)).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Mark,
    Clear(usize),
    /// The process ends, and the next one goes on with what it finds.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Mark),
        3 => any::<usize>().prop_map(Step::Clear),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_marked_and_not_cleared_is_found(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let mut marks = Marks::open(&path).unwrap().0;
        let (mut held, mut expected) = (Vec::new(), BTreeMap::new());
        for (n, step) in (0..).zip(steps) {
            match step {
                Step::Mark => {
                    held.push((n, marks.mark(n * 10, &named(n)).unwrap()));
                    expected.insert(n, n * 10);
                }
                Step::Clear(at) if !held.is_empty() => {
                    let (n, slot) = held.swap_remove(at % held.len());
                    marks.clear(slot);
                    expected.remove(&n);
                }
                Step::Clear(_) => {}
                Step::Restart => {
                    prop_assert_eq!(found(&path), std::mem::take(&mut expected));
                    marks.clear_all().unwrap();
                    held.clear();
                    marks = Marks::open(&path).unwrap().0;
                }
            }
        }
        prop_assert_eq!(found(&path), expected);
    }

    #[test]
    fn a_mark_of_which_any_byte_is_wrong_is_not_believed(at in 0_usize..640, bits in 1_u8..) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let marks = Marks::open(&path).unwrap().0;
        drop(marks.mark(7, &named(1)).unwrap());
        prop_assert_eq!(found(&path), BTreeMap::from([(1, 7)]));
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= bits;
        fs::write(&path, bytes).unwrap();
        prop_assert_eq!(found(&path), BTreeMap::new());
    }

    #[test]
    fn a_mark_of_which_only_a_part_was_written_is_not_believed(length in 1_usize..640) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let marks = Marks::open(&path).unwrap().0;
        drop(marks.mark(7, &named(1)).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        bytes[length..4096].fill(0);
        fs::write(&path, bytes).unwrap();
        prop_assert_eq!(found(&path), BTreeMap::new());
    }
}
