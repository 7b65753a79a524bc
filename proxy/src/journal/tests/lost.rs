//! Tests files that are moved away, deleted or cut short behind the proxy's back.

use std::{fs, path::Path};

use platform_core::record::{JournalLine, Lost, hash};

use super::{Thread, append, first_file, lines, open_small, record};
use crate::journal::{
    end::MAX_UNSUMMED,
    segments::{self, Segment},
};

const LINES: u64 = 20;

/// Ends a journal's work, as a proxy does that stops.
fn stop(journal: &Thread) {
    journal.clear_stale_marks();
    journal.make_checkpoint(&|_, _| false).unwrap();
}

/// Leaves a journal of many files, as a proxy does that was stopped.
fn stopped(state: &Path) -> Vec<Segment> {
    let journal = open_small(state);
    for _ in 0..LINES {
        append(&journal, &record("r1"));
    }
    journal.usage_totals(|_, _| false).unwrap();
    stop(&journal);
    segments::list(&state.join("journal")).unwrap()
}

fn calls(journal: &Thread) -> u64 {
    journal.usage_totals(|_, _| false).unwrap().by_account.values().map(|usage| usage.calls).sum()
}

/// Returns all lines, as a client reads them that asks for everything.
fn read(journal: &Thread) -> Vec<String> {
    let mut follower = journal.follow(None, None).unwrap();
    let mut read = Vec::new();
    loop {
        let batch = follower.batch().unwrap();
        if batch.is_empty() {
            return read;
        }
        read.extend(std::str::from_utf8(&batch).unwrap().lines().map(str::to_owned));
    }
}

type Lose = fn(&[Segment]) -> &[Segment];

const LOSSES: [(&str, Lose); 5] = [
    ("the first", |all| &all[..1]),
    ("the first three", |all| &all[..3]),
    ("one in the middle", |all| &all[3..4]),
    ("the last", |all| &all[all.len() - 1..]),
    ("all", |all| all),
];

/// If any one file is gone, that is reported, no number is used twice, no sum is lost, and the rest is read.
#[test]
fn a_lost_file_takes_no_sum_and_no_number_along() {
    for (name, lose) in LOSSES {
        let state = tempfile::tempdir().unwrap();
        let files = stopped(state.path());
        let gone = lose(&files);
        gone.iter().for_each(|segment| fs::remove_file(&segment.path).unwrap());
        let mut last = LINES;
        for start in 0..3 {
            let journal = open_small(state.path());
            let lost = journal.lost().to_vec();
            assert_eq!(lost.iter().map(|lost| lost.from).collect::<Vec<_>>(), [gone[0].first], "{name}");
            assert_eq!(calls(&journal), LINES + 2 * start, "{name}");
            let before = read(&journal);
            assert_eq!(before, lines(state.path()), "{name}: what is left is read");
            let seq = append(&journal, &record("r1"));
            assert!(seq > last, "{name}: {seq} after {last}");
            let line: JournalLine = serde_json::from_str(read(&journal).last().unwrap()).unwrap();
            assert_eq!((line.seq, line.lost), (seq, lost), "{name}: the next line reports it");
            last = append(&journal, &record("r1"));
            assert!(!read(&journal).last().unwrap().contains("lost"), "{name}: and only that");
            stop(&journal);
        }
    }
}

/// A start that brings no call leaves numbers as they were.
#[test]
fn starts_after_a_loss_do_not_eat_numbers() {
    let state = tempfile::tempdir().unwrap();
    for segment in stopped(state.path()) {
        fs::remove_file(&segment.path).unwrap();
    }
    for _ in 0..3 {
        let journal = open_small(state.path());
        assert_eq!((calls(&journal), journal.last_seq()), (LINES, LINES + MAX_UNSUMMED));
        assert_eq!(journal.lost(), [Lost { from: 1, to: LINES + MAX_UNSUMMED }]);
        stop(&journal);
    }
}

#[test]
fn a_file_that_is_restored_is_lost_no_more() {
    let state = tempfile::tempdir().unwrap();
    let files = stopped(state.path());
    let away = state.path().join("away");
    fs::rename(&files[2].path, &away).unwrap();
    let journal = open_small(state.path());
    let (from, to) = (files[2].first, files[3].first - 1);
    assert_eq!(journal.lost(), [Lost { from, to }]);
    let before = lines(state.path());
    let line_before = usize::try_from(from).unwrap() - 2;
    assert_eq!(journal.hash_of(from - 1).unwrap(), Some(hash(before[line_before].as_bytes())));
    assert_eq!(journal.hash_of(from).unwrap(), None, "a lost line cannot be acknowledged");
    drop(journal);
    fs::rename(&away, &files[2].path).unwrap();
    let journal = open_small(state.path());
    assert_eq!((journal.lost(), calls(&journal)), (&[][..], LINES));
}

/// A file that was cut short, or emptied, has lost lines like one that is gone.
#[test]
fn a_file_that_is_cut_short_has_lost_lines() {
    let state = tempfile::tempdir().unwrap();
    let files = stopped(state.path());
    fs::write(first_file(state.path()), "").unwrap();
    let text = fs::read_to_string(&files[2].path).unwrap();
    let first = text.find('\n').unwrap() + 1;
    fs::write(&files[2].path, &text[..first + 100]).unwrap();
    let journal = open_small(state.path());
    let lost =
        [Lost { from: 1, to: files[1].first - 1 }, Lost { from: files[2].first + 1, to: files[3].first - 1 }];
    assert_eq!((journal.lost(), calls(&journal)), (&lost[..], LINES));
    let read = read(&journal);
    fs::write(&files[2].path, &text[..first]).unwrap();
    assert_eq!(read, lines(state.path()), "the piece of a line is read over");
}

/// The control: without the checkpoint nothing is known of what is gone.
#[test]
fn without_a_checkpoint_a_journal_begins_anew() {
    let state = tempfile::tempdir().unwrap();
    for segment in stopped(state.path()) {
        fs::remove_file(&segment.path).unwrap();
    }
    fs::remove_file(state.path().join("journal/sums")).unwrap();
    let journal = open_small(state.path());
    assert_eq!((journal.lost(), calls(&journal)), (&[][..], 0));
    assert_eq!(append(&journal, &record("r1")), 1);
}
