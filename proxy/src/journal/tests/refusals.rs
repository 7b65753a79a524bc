//! Tests that refused calls are written one by one up to a rate, then counted.

use platform_core::{
    record::{ExchangeRecord, JournalLine, Outcome},
    refusal::Refusal,
    untrusted::JournalText,
};

use platform_core::limit::ByteSize;
use platform_runtime::settings;

use super::{Thread, append, lines, open, record};
use crate::journal::refusals::Flush;

fn refused(run: &str, refusal: Refusal) -> ExchangeRecord {
    ExchangeRecord { outcome: Outcome::Refused, refusal: Some(refusal), ..record(run) }
}

fn records(state: &std::path::Path) -> Vec<ExchangeRecord> {
    lines(state).iter().map(|text| serde_json::from_str::<JournalLine>(text).unwrap().record).collect()
}

#[test]
fn a_flood_is_summed_up_and_no_call_is_lost() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    for n in 0..5000 {
        let refusal = if n % 2 == 0 { Refusal::BodyInvalid } else { Refusal::RouteUnknown };
        drop(journal.append(&refused("r1", refusal), None).unwrap());
    }
    drop(journal.append(&refused("r2", Refusal::BodyInvalid), None).unwrap());
    let single = records(state.path());
    assert!((101..200).contains(&single.len()), "{}", single.len());
    assert!(single.iter().all(|record| record.calls == 1));
    journal.flush_refusals(Flush::Due);
    let all = records(state.path());
    assert_eq!(all.len(), single.len() + 2, "a line for each refusal");
    assert_eq!(all.iter().map(|record| record.calls).sum::<u64>(), 5001);
    assert_eq!(all.iter().map(|record| record.request_bytes).sum::<u64>(), 5001);
    journal.flush_refusals(Flush::Due);
    assert_eq!(records(state.path()).len(), all.len(), "and none twice");
    let totals = journal.usage_totals(|_, _| false).unwrap();
    assert_eq!(totals.by_run.values().map(|tally| tally.usage.refused).sum::<u64>(), 5001);
}

#[test]
fn calls_that_ended_differently_have_own_sums() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    let ends = [Outcome::Complete, Outcome::ClientGone, Outcome::RunClosed];
    for n in 0..3000 {
        drop(journal.append(&ExchangeRecord { outcome: ends[n % 3], ..record("r1") }, None).unwrap());
    }
    journal.flush_refusals(Flush::Due);
    let all = records(state.path());
    assert!(all.len() < 200, "{}", all.len());
    for end in ends {
        let calls: u64 = all.iter().filter(|record| record.outcome == end).map(|record| record.calls).sum();
        assert_eq!(calls, 1000, "{end}");
    }
    let totals = journal.usage_totals(|_, _| false).unwrap();
    assert_eq!(
        totals.by_run.values().map(|tally| (tally.usage.calls, tally.usage.refused)).next(),
        Some((3000, 0))
    );
}

#[test]
fn words_of_agents_make_a_bounded_number_of_sums() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    for n in 0..1000 {
        let rule = Some(JournalText::of(&format!("field:f{n}")));
        drop(journal.append(&ExchangeRecord { rule, ..refused("r1", Refusal::FieldUnknown) }, None).unwrap());
    }
    let before = records(state.path()).len();
    journal.flush_refusals(Flush::Due);
    let all = records(state.path());
    assert!(all.len() - before <= 65, "{}", all.len() - before);
    assert_eq!(all.iter().map(|record| record.calls).sum::<u64>(), 1000);
}

/// Opens a journal of one megabyte, of which lines of refused calls may have a sixteenth.
fn open_with_share(state: &std::path::Path) -> Thread {
    let (disk_budget, segment_size) = (ByteSize::mib(1), ByteSize::kib(64));
    Thread::open(state, settings::Journal { disk_budget, segment_size, ..settings::Journal::default() })
        .unwrap()
}

fn refuse(journal: &Thread, run: &str, calls: usize) {
    for _ in 0..calls {
        drop(journal.append(&refused(run, Refusal::RouteUnknown), None).unwrap());
    }
}

/// Sixty runs that flood would write two megabytes without a common bound.
#[test]
fn floods_push_no_sent_call_out_of_the_journal() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_with_share(state.path());
    (0..300).for_each(|_| assert!(append(&journal, &record("sent")) > 0));
    let sent = lines(state.path()).concat().len();
    for flood in 0..60 {
        refuse(&journal, &format!("flood-{flood}"), 200);
    }
    journal.flush_refusals(Flush::Due);
    journal.flush_refusals(Flush::Due);
    let refused = lines(state.path()).concat().len() - sent;
    assert!(refused < 96 << 10, "{refused} bytes of lines of refused calls");
    journal.flush_refusals(Flush::All);
    let last = journal.make_checkpoint(&|_, _| false).unwrap();
    journal.remove_old(last, std::time::SystemTime::now()).unwrap();
    let kept = records(state.path());
    assert_eq!(kept.iter().filter(|record| record.run_id.as_str() == "sent").count(), 300);
    let refused: u64 =
        kept.iter().filter(|record| record.outcome == Outcome::Refused).map(|record| record.calls).sum();
    assert_eq!(refused, 60 * 200, "each is counted");
}

#[test]
fn a_flood_leaves_a_share_to_each_other_run() {
    let state = tempfile::tempdir().unwrap();
    let journal = open_with_share(state.path());
    let runs = ["r1", "r2", "r3", "r4"];
    runs.iter().for_each(|run| refuse(&journal, run, 200));
    let single =
        |run: &str| records(state.path()).iter().filter(|record| record.run_id.as_str() == run).count();
    let counts = runs.map(single);
    assert!(counts.is_sorted_by(|one, next| one > next) && counts[3] > 0, "{counts:?}");
    refuse(&journal, "other", 1);
    assert_eq!(single("other"), 1);
    // Calls that are sent bring some of it back.
    let before = journal.refusals.used();
    (0..100).for_each(|_| assert!(append(&journal, &record("sent")) > 0));
    journal.flush_refusals(Flush::Due);
    assert!(journal.refusals.used() < before + (4 << 10), "their sums and what came back");
    // A restart does not.
    journal.make_checkpoint(&|_, _| false).unwrap();
    let used = journal.refusals.used();
    drop(journal);
    assert_eq!(open_with_share(state.path()).refusals.used(), used);
}
