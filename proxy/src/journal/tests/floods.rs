//! Calls that are refused are written one by one up to a rate, then counted.

use platform_core::{
    record::{ExchangeRecord, JournalLine, Outcome},
    refusal::Refusal,
    untrusted::JournalText,
};

use super::{lines, open, record};

fn refused(run: &str, refusal: Refusal) -> ExchangeRecord {
    ExchangeRecord { outcome: Outcome::Refused, refusal: Some(refusal), ..record(run) }
}

fn told(state: &std::path::Path) -> Vec<ExchangeRecord> {
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
    let single = told(state.path());
    assert!((101..200).contains(&single.len()), "{}", single.len());
    assert!(single.iter().all(|record| record.calls == 1));
    journal.sum_up(None);
    let all = told(state.path());
    assert_eq!(all.len(), single.len() + 2, "a line for each refusal");
    assert_eq!(all.iter().map(|record| record.calls).sum::<u64>(), 5001);
    assert_eq!(all.iter().map(|record| record.request_bytes).sum::<u64>(), 5001);
    journal.sum_up(None);
    assert_eq!(told(state.path()).len(), all.len(), "and none twice");
    let spent = journal.spent(|_| false).unwrap();
    assert_eq!(spent.by_run.values().map(|tally| tally.usage.refused).sum::<u64>(), 5001);
}

#[test]
fn calls_that_ended_differently_are_summed_up_apart() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    let ends = [Outcome::Complete, Outcome::ClientGone, Outcome::RunClosed];
    for n in 0..3000 {
        drop(journal.append(&ExchangeRecord { outcome: ends[n % 3], ..record("r1") }, None).unwrap());
    }
    journal.sum_up(None);
    let all = told(state.path());
    assert!(all.len() < 200, "{}", all.len());
    for end in ends {
        let calls: u64 = all.iter().filter(|record| record.outcome == end).map(|record| record.calls).sum();
        assert_eq!(calls, 1000, "{end}");
    }
    let spent = journal.spent(|_| false).unwrap();
    assert_eq!(
        spent.by_run.values().map(|tally| (tally.usage.calls, tally.usage.refused)).next(),
        Some((3000, 0))
    );
}

#[test]
fn words_that_agents_choose_make_no_more_lines_than_there_may_be() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    for n in 0..1000 {
        let rule = Some(JournalText::of(&format!("field:f{n}")));
        drop(journal.append(&ExchangeRecord { rule, ..refused("r1", Refusal::FieldUnknown) }, None).unwrap());
    }
    let before = told(state.path()).len();
    journal.sum_up(None);
    let all = told(state.path());
    assert!(all.len() - before <= 65, "{}", all.len() - before);
    assert_eq!(all.iter().map(|record| record.calls).sum::<u64>(), 1000);
}
