//! Tests what the next proxy makes of the files when one dies between any two writes.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

use platform_core::{
    id::CallId,
    record::{ExchangeRecord, JournalLine, Outcome},
};
use platform_runtime::settings::{self, Durability};

use super::{Thread, append, assert_chained, first_file, lines, open, open_small, record};
use crate::journal::{Committer, Error, SpaceReservation, segments};

fn call(n: u128) -> ExchangeRecord {
    ExchangeRecord { litellm_call_id: CallId::new(1, n), ..record("r1") }
}

/// Marks a call.
fn mark(journal: &Thread, n: u128) -> SpaceReservation {
    let mut space = journal.reserve_space().unwrap();
    let marked = ExchangeRecord { outcome: Outcome::Interrupted, ..call(n) };
    drop(journal.mark(&mut space, &marked).unwrap());
    space
}

/// Marks a call and dies.
fn begin(journal: &Thread, n: u128) {
    drop(mark(journal, n));
}

/// Marks a call and appends its record, but does not free its slot.
fn end_half(journal: &Thread, n: u128) {
    begin(journal, n);
    append(journal, &call(n));
}

/// Returns call and outcome of each line.
fn outcomes(state: &Path) -> Vec<(CallId, Outcome)> {
    let line = |text: &String| {
        let line: JournalLine = serde_json::from_str(text).unwrap();
        (line.record.litellm_call_id, line.record.outcome)
    };
    lines(state).iter().map(line).collect()
}

const fn id(n: u128) -> CallId {
    CallId::new(1, n)
}

/// Moment of a crash, and the lines that the journal then has.
type Crash = (&'static str, fn(&Path, Thread), &'static [(u128, Outcome)]);

const CRASHES: [Crash; 10] = [
    ("before anything was marked", |_, _| {}, &[]),
    ("after a mark", |_, journal| begin(&journal, 1), &[(1, Outcome::Interrupted)]),
    (
        "between a record and the end of its mark",
        |_, journal| end_half(&journal, 1),
        &[(1, Outcome::Complete)],
    ),
    (
        "in the middle of a record",
        |state, journal| {
            begin(&journal, 1);
            drop(journal);
            fs::write(first_file(state), r#"{"v":2,"seq":1,"ts":"20"#).unwrap();
        },
        &[(1, Outcome::Interrupted)],
    ),
    (
        "in the middle of a mark",
        |state, journal| {
            begin(&journal, 1);
            drop(journal);
            let marks = OpenOptions::new().write(true).open(state.join("journal/marks")).unwrap();
            marks.write_all_at(&[0; 100], 300).unwrap();
        },
        &[],
    ),
    (
        "among many",
        |_, journal| {
            append(&journal, &call(1));
            begin(&journal, 2);
            end_half(&journal, 3);
            append(&journal, &call(4));
            begin(&journal, 5);
        },
        &[
            (1, Outcome::Complete),
            (3, Outcome::Complete),
            (4, Outcome::Complete),
            (2, Outcome::Interrupted),
            (5, Outcome::Interrupted),
        ],
    ),
    (
        "before the first line of a new file",
        |state, journal| {
            append(&journal, &call(1));
            begin(&journal, 2);
            drop(journal);
            fs::write(state.join("journal/00000000000000000002.ndjson"), "").unwrap();
        },
        &[(1, Outcome::Complete), (2, Outcome::Interrupted)],
    ),
    (
        "with the next file prepared",
        |_, journal| {
            append(&journal, &call(1));
            journal.prepare();
            begin(&journal, 2);
        },
        &[(1, Outcome::Complete), (2, Outcome::Interrupted)],
    ),
    (
        "before the first line of a prepared file",
        |state, journal| {
            append(&journal, &call(1));
            begin(&journal, 2);
            journal.prepare();
            let next = state.join("journal/next");
            fs::rename(next, state.join("journal/00000000000000000002.ndjson")).unwrap();
        },
        &[(1, Outcome::Complete), (2, Outcome::Interrupted)],
    ),
    (
        "before a full file was shortened",
        |state, journal| {
            append(&journal, &call(1));
            begin(&journal, 2);
            drop(journal);
            let full = OpenOptions::new().write(true).open(first_file(state)).unwrap();
            full.set_len(full.metadata().unwrap().len() + (3 << 20)).unwrap();
            fs::write(state.join("journal/00000000000000000002.ndjson"), "").unwrap();
        },
        &[(1, Outcome::Complete), (2, Outcome::Interrupted)],
    ),
];

fn assert_outcomes(state: &Path, case: &str, expected: &[(u128, Outcome)]) {
    let mut all = outcomes(state);
    let (ended, lost): (Vec<_>, Vec<_>) =
        all.drain(..).partition(|(_, outcome)| *outcome == Outcome::Complete);
    let mut lost = lost;
    lost.sort_by_key(|(call, _)| *call);
    let expected: Vec<_> = expected.iter().map(|(n, outcome)| (id(*n), *outcome)).collect();
    assert_eq!([ended, lost].concat(), expected, "{case}");
    assert_chained(state, 1);
}

#[test]
fn each_sent_call_has_one_record_after_any_crash() {
    for (case, crash, expected) in CRASHES {
        let state = tempfile::tempdir().unwrap();
        crash(state.path(), open(state.path()).unwrap());
        for again in ["", ", again", ", and again"] {
            drop(open(state.path()).unwrap());
            assert_outcomes(state.path(), &format!("{case}{again}"), expected);
        }
    }
}

#[test]
fn recovery_may_die_at_any_of_its_own_writes() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    (1..=4).for_each(|n| begin(&journal, n));
    drop(journal);
    let marks = fs::read(state.path().join("journal/marks")).unwrap();
    drop(open(state.path()).unwrap());
    let recovered = fs::read(first_file(state.path())).unwrap();
    let expected: Vec<_> = (1..=4).map(|n| (n, Outcome::Interrupted)).collect();
    // Records first, byte by byte; then marks, one by one.
    let cuts = (0..=recovered.len()).step_by(97).chain([recovered.len()]);
    for (cut, cleared) in cuts.map(|cut| (cut, 0)).chain((0..=4).map(|slots| (recovered.len(), slots))) {
        let mut left = marks.clone();
        (0..cleared).for_each(|slot| left[slot * 4096..slot * 4096 + 8].fill(0));
        fs::write(first_file(state.path()), &recovered[..cut]).unwrap();
        fs::write(state.path().join("journal/marks"), left).unwrap();
        drop(open(state.path()).unwrap());
        assert_outcomes(state.path(), &format!("{cut} bytes, {cleared} marks cleared"), &expected);
    }
    // The control: without its mark, and without its record, a call is lost.
    fs::write(first_file(state.path()), "").unwrap();
    fs::write(state.path().join("journal/marks"), vec![0; marks.len()]).unwrap();
    drop(open(state.path()).unwrap());
    assert!(outcomes(state.path()).is_empty());
}

#[test]
fn a_call_that_spans_files_is_recorded_once() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_small(state.path());
    let mut space = journal.reserve_space().unwrap();
    drop(journal.mark(&mut space, &call(100)).unwrap());
    for n in 1..=20 {
        append(&journal, &call(n));
    }
    append(&journal, &call(100));
    drop((space, journal));
    drop(open_small(state.path()));
    assert_eq!(outcomes(state.path()).len(), 21);
}

#[test]
fn corruption_is_reported_with_file_and_byte() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_small(state.path());
    for n in 1..=9 {
        append(&journal, &call(n));
    }
    drop(journal);
    let text = fs::read_to_string(first_file(state.path())).unwrap();
    let second = text.find('\n').unwrap() + 1;
    fs::write(first_file(state.path()), text.replacen("\"seq\":2", "\"seq\",2", 1)).unwrap();
    let journal = open_small(state.path());
    match journal.usage_totals(|_, _| false) {
        Err(Error::Corrupt { path, offset }) => {
            assert_eq!((path, offset), (first_file(state.path()), second as u64));
        }
        other => panic!("{other:?}"),
    }
    drop(journal);
    fs::remove_file(first_file(state.path())).unwrap();
    assert!(matches!(open_small(state.path()).usage_totals(|_, _| false), Err(Error::Missing { seq: 1 })));
}

#[test]
fn power_loss_may_cost_the_last_lines_only() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_small(state.path());
    for n in 1..=9 {
        append(&journal, &call(n));
    }
    drop(journal);
    // The last file's name was kept without its content, and the one before it without its end.
    let mut files = segments::list(&state.path().join("journal")).unwrap();
    let (last, before) = (files.pop().unwrap(), files.pop().unwrap());
    fs::write(&last.path, "").unwrap();
    let text = fs::read(&before.path).unwrap();
    fs::write(&before.path, &text[..text.len() - 10]).unwrap();
    let journal = open_small(state.path());
    let kept = assert_chained(state.path(), 1);
    assert!((1..9).contains(&kept), "{kept}");
    append(&journal, &call(10));
    assert_eq!(
        (assert_chained(state.path(), 1), outcomes(state.path()).last().unwrap().0),
        (kept + 1, id(10))
    );
    assert!(journal.usage_totals(|_, _| false).is_ok());
}

#[tokio::test]
async fn a_slot_is_freed_after_its_record_is_on_disk() {
    let state = tempfile::tempdir().unwrap();
    let settings = settings::Journal { durability: Durability::Disk, ..settings::Journal::default() };
    let journal = Thread::open(state.path(), settings).unwrap();
    let marks = || fs::read(state.path().join("journal/marks")).unwrap()[0];
    let mut space = journal.reserve_space().unwrap();
    journal.mark(&mut space, &call(1)).unwrap().await.unwrap();
    journal.clear_stale_marks();
    assert_ne!(marks(), 0, "it is in flight");
    journal.append(&call(1), Some(space)).unwrap().await.unwrap();
    assert_ne!(marks(), 0, "it is not cleared yet");
    journal.clear_stale_marks();
    assert_eq!(marks(), 0);
}

/// Each thread has its own file of marks; all of them are swept.
#[test]
fn stale_marks_of_all_threads_are_cleared() {
    let state = tempfile::tempdir().unwrap();
    let first = open(state.path()).unwrap();
    let second = Thread(Committer::new(Arc::clone(&first.0.journal), 1).unwrap());
    let marked = || {
        ["marks", "marks-1"].map(|name| {
            let marks = fs::read(state.path().join("journal").join(name)).unwrap();
            marks.chunks(4096).filter(|slot| slot[..8] != [0; 8]).count()
        })
    };
    for (thread, at) in [(&first, 0), (&second, 100)] {
        let marked: Vec<_> = (at..at + 9).map(|n| (n, mark(thread, n))).collect();
        // One call of each thread, in the middle, is still in flight.
        for (n, space) in marked.into_iter().filter(|(n, _)| n % 100 != 4) {
            drop(thread.append(&call(n), Some(space)).unwrap());
        }
    }
    assert_eq!(marked(), [9, 9]);
    first.clear_stale_marks();
    assert_eq!(marked(), [1, 1]);
    drop((first, second));
    drop(open(state.path()).unwrap());
    let interrupted = outcomes(state.path()).into_iter().filter(|(_, outcome)| *outcome != Outcome::Complete);
    assert_eq!(interrupted.map(|(call, _)| call).collect::<Vec<_>>(), [id(4), id(104)]);
}
