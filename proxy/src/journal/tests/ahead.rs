//! Tests what is prepared ahead of the journal's end: space, and the next file.

use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use super::{Thread, append, assert_chained, first_file, open, open_small, record};
use crate::journal::{
    SpaceReservation, segments,
    space::{MAX_LINE, Space, SpacePool},
};

/// More than a file system needs for a few lines.
const MUCH: u64 = 2 << 20;

/// Returns the allocated bytes of the file at `path`.
fn allocated(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

fn fill_two_files(journal: &Thread) {
    for n in 1..=5 {
        append(journal, &record(&format!("r{n}")));
    }
}

/// Calls reserve space until the demand for more is raised.
fn reserve_until_low(journal: &Thread) -> Vec<SpaceReservation> {
    let mut reservations = Vec::new();
    while !journal.space.demand().is_raised() {
        reservations.push(journal.reserve_space().unwrap());
    }
    reservations
}

#[test]
fn more_space_is_wanted_before_it_is_used_up() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    journal.prepare();
    let before = allocated(&first_file(state.path()));
    assert!(before > MUCH && !journal.space.demand().is_raised());
    let reservations = reserve_until_low(&journal);
    assert!(reservations.len() > 100, "{}", reservations.len());
    assert_eq!(allocated(&first_file(state.path())), before, "no call has allocated any");
    journal.prepare();
    assert!(allocated(&first_file(state.path())) > before);
    let more = reserve_until_low(&journal);
    assert!(more.len() > 100, "the demand is raised once each time: {}", more.len());
}

#[test]
fn lines_go_on_in_the_prepared_file() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_small(state.path());
    journal.prepare();
    let next = state.path().join("journal/next");
    let prepared = fs::metadata(&next).unwrap();
    assert!(prepared.blocks() * 512 > MUCH && prepared.len() == 0);
    fill_two_files(&journal);
    let second = &segments::list(&state.path().join("journal")).unwrap()[1];
    assert_eq!(fs::metadata(&second.path).unwrap().ino(), prepared.ino());
    assert!(journal.space.demand().is_raised() && !next.exists());
    assert_eq!(assert_chained(state.path(), 1), 5);
}

/// Many calls began after the next file was prepared. It covers them all before a line goes there.
#[test]
fn a_prepared_file_covers_later_reservations() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_small(state.path());
    journal.prepare();
    let reservations: Vec<_> = (0..1000).map(|_| journal.reserve_space().unwrap()).collect();
    fill_two_files(&journal);
    let second = &segments::list(&state.path().join("journal")).unwrap()[1];
    assert!(allocated(&second.path) >= 1000 * (8 << 10));
    drop(reservations);
}

#[test]
fn the_space_behind_a_full_file_goes_back() {
    for moment in ["in maintenance", "at a stop", "after a crash"] {
        let state = tempfile::tempdir().unwrap();
        let journal = open_small(state.path());
        journal.prepare();
        fill_two_files(&journal);
        assert!(allocated(&first_file(state.path())) > MUCH, "no call shortens it");
        match moment {
            "in maintenance" => journal.prepare(),
            "at a stop" => journal.end_preparation(),
            _ => {
                drop(journal);
                drop(open_small(state.path()));
            }
        }
        assert!(allocated(&first_file(state.path())) < MUCH, "{moment}");
        assert_eq!(assert_chained(state.path(), 1), 5);
    }
}

#[test]
fn a_stop_leaves_no_prepared_file() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    journal.prepare();
    assert!(state.path().join("journal/next").exists());
    journal.end_preparation();
    assert!(!state.path().join("journal/next").exists());
    append(&journal, &record("r1"));
}

/// A call is under way while others end, one after the other. Each uses up some of the space.
#[test]
fn ended_calls_use_no_space_of_one_in_flight() {
    let space = Arc::new(Space::default());
    space.set_allocated(64 * MAX_LINE);
    let pool = Arc::new(SpacePool::new(Arc::clone(&space)));
    let in_flight = pool.reserve().unwrap();
    let mut ended = 0;
    while let Ok(reservation) = pool.reserve() {
        space.note_written(1000);
        drop(reservation);
        ended += 1;
        assert!(space.allocated() >= MAX_LINE, "the space of the call in flight is gone after {ended} calls");
    }
    assert!(ended > 100, "{ended}");
    drop(in_flight);
}
