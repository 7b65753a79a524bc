//! Tests sums that outlive segments, and when segments are removed.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    control::{Cursor, JournalState},
    id::CallId,
    limit::{ByteSize, Millis},
    money::NanoDollars,
    record::{ExchangeRecord, Outcome, hash},
    untrusted::JournalText,
};
use platform_runtime::settings;

use super::{Committer, Thread, append, assert_chained, lines, open, open_small, record};
use crate::{
    clock,
    journal::{AcknowledgeError, Error, segments},
    output_rates::LEAST_RATE,
};

fn paid(run: &str) -> ExchangeRecord {
    ExchangeRecord { cost_nanodollars: Some(NanoDollars(1)), ..record(run) }
}

fn filled(state: &Path, settings: settings::Journal) -> Thread {
    let settings = settings::Journal { segment_size: ByteSize(1500), ..settings };
    let journal = Thread::open(state, settings).unwrap();
    for n in 1..=40 {
        append(&journal, &paid(if n % 2 == 0 { "even" } else { "odd" }));
    }
    journal
}

/// Runs one round of maintenance.
fn run_maintenance(journal: &Thread, now: SystemTime) {
    journal.end_old_segment(now).unwrap();
    let summed = journal.make_checkpoint(&|run_id, _| run_id.as_str() == "odd").unwrap();
    journal.remove_old(summed, now).unwrap();
}

fn cursor(journal: &Thread, state: &Path, seq: usize) -> Cursor {
    let oldest = usize::try_from(journal.oldest().unwrap()).unwrap();
    let hash = String::from_utf8(hash(lines(state)[seq - oldest].as_bytes()).to_vec()).unwrap();
    Cursor { journal: journal.id().to_owned(), seq: seq as u64, hash }
}

#[test]
fn usage_outlives_its_lines() {
    let state = tempfile::tempdir().unwrap();
    let journal = filled(
        state.path(),
        settings::Journal { disk_budget: ByteSize(4000), ..settings::Journal::default() },
    );
    let before = journal.usage_totals(|_, _| false).unwrap();
    run_maintenance(&journal, SystemTime::now());
    assert!(journal.oldest().unwrap() > 20, "{:?}", journal.oldest());
    append(&journal, &paid("even"));
    let after = journal.usage_totals(|run_id, _| run_id.as_str() == "odd").unwrap();
    let cost = |usage: &platform_core::control::Usage| usage.cost_nanodollars.0;
    assert_eq!(before.by_account.values().map(cost).sum::<u64>(), 40);
    assert_eq!(after.by_account.values().map(cost).sum::<u64>(), 41);
    assert_eq!(
        after.by_run.iter().map(|(run, tally)| (run.as_str(), cost(&tally.usage))).collect::<Vec<_>>(),
        [("even", 21)]
    );
    let oldest = journal.oldest().unwrap();
    assert_chained(state.path(), oldest);
    assert!(
        matches!(journal.follow(Some(3), None), Err(Error::Removed { oldest: reported }) if reported == oldest)
    );
    drop(journal);
    let journal = open_small(state.path());
    assert_eq!(
        journal.usage_totals(|_, _| true).unwrap().by_account.values().map(cost).sum::<u64>(),
        41,
        "after a restart"
    );
    // The control: without the sums, removed lines are missed.
    fs::remove_file(state.path().join("journal/sums")).unwrap();
    assert!(matches!(journal.usage_totals(|_, _| true), Err(Error::Missing { seq: 1 })));
}

#[test]
fn a_mark_is_cleared_before_its_record_goes() {
    let state = tempfile::tempdir().unwrap();
    let settings = settings::Journal {
        segment_size: ByteSize(1500),
        disk_budget: ByteSize(4000),
        ..settings::Journal::default()
    };
    let journal = Thread::open(state.path(), settings).unwrap();
    // All of them at once, so that each has its own slot.
    let calls: Vec<_> = (1..=40)
        .map(|n| {
            let call = ExchangeRecord { litellm_call_id: CallId::new(1, n), ..paid("r1") };
            let mut space = journal.reserve_space().unwrap();
            drop(journal.mark(&mut space, &call).unwrap());
            (call, space)
        })
        .collect();
    for (call, space) in calls {
        drop(journal.append(&call, Some(space)).unwrap());
    }
    let marks = state.path().join("journal/marks");
    let left = fs::read(&marks).unwrap();
    assert!(left.chunks(4096).take(40).all(|slot| slot[..8] != [0; 8]), "marks stay when their calls end");
    run_maintenance(&journal, SystemTime::now());
    let oldest = journal.oldest().unwrap();
    assert!(oldest > 20, "{oldest}");
    drop(journal);
    assert_eq!(open_small(state.path()).last_seq(), 40, "nothing was in flight");
    // The control: with the earlier marks, calls with removed records are taken for interrupted.
    fs::write(&marks, left).unwrap();
    assert_eq!(open_small(state.path()).last_seq(), 40 + oldest - 1);
}

#[test]
fn sums_that_do_not_fit_are_not_believed() {
    let state = tempfile::tempdir().unwrap();
    let journal = filled(state.path(), settings::Journal::default());
    run_maintenance(&journal, SystemTime::now());
    let path = state.path().join("journal/sums");
    let text = fs::read_to_string(&path).unwrap();
    for spoilt in [
        text.replace(journal.id(), "other"),
        text.replacen("\"hash\":\"", "\"hash\":\"0", 1),
        text[..60].to_owned(),
    ] {
        fs::write(&path, spoilt).unwrap();
        let totals = journal.usage_totals(|_, _| false).unwrap();
        assert_eq!(totals.by_account.values().map(|usage| usage.calls).sum::<u64>(), 40);
    }
}

#[test]
fn unacknowledged_segments_are_not_removed() {
    let state = tempfile::tempdir().unwrap();
    let keep = Millis::seconds(1000);
    let journal = filled(state.path(), settings::Journal { retention: keep, ..settings::Journal::default() });
    let later = SystemTime::now() + Duration::from_secs(2000);
    journal.acknowledge("billing", cursor(&journal, state.path(), 10)).unwrap();
    journal.acknowledge("audit", cursor(&journal, state.path(), 30)).unwrap();
    run_maintenance(&journal, SystemTime::now());
    assert_eq!(journal.oldest().unwrap(), 1, "nothing is old yet");
    run_maintenance(&journal, later);
    let oldest = journal.oldest().unwrap();
    assert!((8..=11).contains(&oldest), "{oldest}");
    assert_eq!(journal.lag(), (2, 30));
    assert!(journal.forget("billing").unwrap());
    run_maintenance(&journal, later);
    assert!((28..=31).contains(&journal.oldest().unwrap()), "{:?}", journal.oldest());
    journal.forget("audit").unwrap();
    run_maintenance(&journal, later);
    assert_eq!(segments::list(&state.path().join("journal")).unwrap().len(), 1, "that lines go to stays");
    assert_eq!(append(&journal, &paid("even")), 41);
    assert_chained(state.path(), journal.oldest().unwrap());
}

#[test]
fn a_forgotten_consumer_does_not_fill_the_disk() {
    let state = tempfile::tempdir().unwrap();
    let disk_budget = ByteSize(30_000);
    let journal = filled(state.path(), settings::Journal { disk_budget, ..settings::Journal::default() });
    journal.acknowledge("gone", cursor(&journal, state.path(), 1)).unwrap();
    let now = SystemTime::now();
    let mut states = vec![];
    // These calls were let through before: their records are written whatever happens.
    let let_through = || {
        let mut space = journal.reserve_space().unwrap();
        drop(journal.mark(&mut space, &paid("even")).unwrap());
        space
    };
    let reservations: Vec<_> = (0..20).map(|_| let_through()).collect();
    for space in reservations {
        run_maintenance(&journal, now);
        let state = journal.state();
        states.extend((states.last() != Some(&state)).then_some(state));
        assert_eq!(journal.reserve_space().is_some(), state.is_open());
        drop(journal.append(&paid("even"), Some(space)).unwrap());
    }
    assert_eq!(states, [JournalState::Open, JournalState::OverBudget, JournalState::Closed]);
    journal.acknowledge("gone", cursor(&journal, state.path(), 60)).unwrap();
    run_maintenance(&journal, now);
    assert_eq!(journal.state(), JournalState::Open);
    assert!(journal.reserve_space().is_some(), "admission comes back by itself");
}

#[test]
fn cursors_need_the_hash_and_never_go_back() {
    let state = tempfile::tempdir().unwrap();
    let journal = filled(state.path(), settings::Journal::default());
    let at = |seq| cursor(&journal, state.path(), seq);
    assert_eq!(journal.acknowledge("a", at(20)).unwrap().lag, 20);
    assert_eq!(journal.acknowledge("a", at(20)).unwrap().lag, 20, "saying it twice is harmless");
    assert!(matches!(journal.acknowledge("a", at(19)), Err(AcknowledgeError::Backwards { seq: 20, .. })));
    let forged = Cursor { seq: 21, ..at(20) };
    assert!(matches!(journal.acknowledge("a", forged), Err(AcknowledgeError::Rewritten { seq: 21 })));
    let ahead = Cursor { seq: 41, ..at(20) };
    assert!(matches!(journal.acknowledge("a", ahead), Err(AcknowledgeError::Rewritten { seq: 41 })));
    let other = Cursor { journal: "other".to_owned(), ..at(30) };
    assert!(matches!(journal.acknowledge("a", other), Err(AcknowledgeError::Journal(Error::Changed { .. }))));
    for name in ["", "A", "a/b", &"a".repeat(65)] {
        assert!(matches!(journal.acknowledge(name, at(30)), Err(AcknowledgeError::Name(_))), "{name}");
    }
    let beginning = Cursor { seq: 0, hash: "0".repeat(64), ..at(1) };
    journal.acknowledge("b", beginning).unwrap();
    let consumers = journal.consumers();
    drop(journal);
    assert_eq!(open_small(state.path()).consumers(), consumers, "also after a restart");
}

#[test]
fn a_segment_ends_when_it_is_old() {
    let state = tempfile::tempdir().unwrap();
    let journal = Thread::open(state.path(), settings::Journal::default()).unwrap();
    append(&journal, &paid("r1"));
    let count = || segments::list(&state.path().join("journal")).unwrap().len();
    journal.end_old_segment(SystemTime::now()).unwrap();
    append(&journal, &paid("r1"));
    assert_eq!(count(), 1);
    journal.end_old_segment(SystemTime::now() + Duration::from_secs(90_000)).unwrap();
    append(&journal, &paid("r1"));
    append(&journal, &paid("r1"));
    assert_eq!(count(), 2);
}

/// The calls of a gateway's run end on several threads; the newest line decides which was the last.
#[test]
fn the_last_call_of_a_run_is_the_newest_line() {
    let ended = |outcome| ExchangeRecord { outcome, ..record("r1") };
    for order in [[0, 1], [1, 0]] {
        let state = tempfile::tempdir().unwrap();
        let first = open(state.path()).unwrap();
        let second = Thread(Committer::new(Arc::clone(&first.0.journal), 1).unwrap());
        first.usage_totals(|_, _| false).unwrap();
        let threads = [&first, &second];
        for (at, outcome) in order.into_iter().zip([Outcome::ClientGone, Outcome::Complete]) {
            append(threads[at], &ended(outcome));
        }
        first.make_checkpoint(&|_, _| false).unwrap();
        drop((first, second));
        let totals = open(state.path()).unwrap().usage_totals(|_, _| false).unwrap();
        let run_usage = totals.by_run.values().next().unwrap();
        assert_eq!((run_usage.usage.calls, run_usage.last.unwrap().outcome), (2, Outcome::Complete));
    }
}

/// Killed, a proxy has rates only in records; behind a checkpoint, the next one has them only there.
#[test]
fn learned_rates_outlive_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let began = clock::now();
    let fast = ExchangeRecord {
        ts: humantime::format_rfc3339_micros(UNIX_EPOCH + began).to_string(),
        model_asked: Some(JournalText::of("m")),
        output_rate: Some(900),
        ..record("r1")
    };
    append(&open(state.path()).unwrap(), &fast);
    for _restart in 0..3 {
        let journal = open(state.path()).unwrap();
        assert_eq!(journal.output_rates().of("m", began), LEAST_RATE, "the control: nothing is read yet");
        journal.usage_totals(|_, _| false).unwrap();
        assert_eq!(["m", "other"].map(|model| journal.output_rates().of(model, began)), [900, LEAST_RATE]);
        journal.make_checkpoint(&|_, _| false).unwrap();
    }
}
