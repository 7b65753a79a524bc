//! Tests rows of the upstream's ledger: how they are compared with receipts, and who reads them.

use platform_core::{
    id::CallId,
    limit::Millis,
    money::NanoDollars,
    record::{LedgerFigures, TokensSource},
    spend::{SpendEnd, SpendKey, SpendRow},
    untrusted::JournalText,
};
use runner_model::{receipt::ChargeReason, reconciliation::Finding};
use runner_store::{
    Adjusted, Comparison, ComparisonTerms, EarlierPass, LedgerAdvance, LedgerLease, LedgerProgress,
    LedgerReport, LedgerSpan, Store, UnixMillis, Worker,
};

use crate::{
    calls::{call, cursor},
    database::{Database, open},
};

crate::on_both!(
    a_row_is_compared_with_its_receipt,
    rows_that_are_read_again_change_nothing,
    failed_tries_of_a_call_count_with_it,
    limits_learn_of_estimated_calls_alone,
    calls_that_share_a_row_are_collapsed,
    a_call_is_missing_until_its_row_comes,
    a_row_may_come_before_its_receipt,
    a_row_of_another_account_corrects_nothing,
    one_process_at_a_time_reads_the_ledger,
    a_pass_is_resumed_where_it_was_stopped,
    a_pass_after_a_gap_covers_nothing,
    an_unconfirmed_cost_is_decided_by_the_row,
    a_stopped_pass_is_read_up_to_its_position,
);

/// Cost of each call in `calls`.
const COST: u64 = 23_000;
pub(crate) const TERMS: ComparisonTerms = ComparisonTerms { delay: Millis(0), earlier: None };
const LEASE: Millis = Millis::seconds(60);

/// Returns the row of the call `seq`.
pub(crate) fn row(seq: u64, cost: u64) -> SpendRow {
    SpendRow {
        request_id: JournalText::of(&format!("chatcmpl-{seq}")),
        call_id: Some(JournalText::of(&CallId::new(seq, 1).to_string())),
        began_ms: seq.cast_signed(),
        cost: Some(NanoDollars(cost)),
        tokens: 7,
        input: 3,
        output: 4,
        end: SpendEnd::Answered,
        model: Some(JournalText::of("small")),
        account: Some(JournalText::of("acct-1")),
        key: SpendKey::Own,
    }
}

async fn with_calls(database: &Database, count: u64) -> Store {
    let store = database.open().await;
    let calls: Vec<_> = (1..=count).map(|seq| call("r1", seq)).collect();
    store.record_calls(&calls, &cursor(count)).await.unwrap();
    store
}

pub(crate) async fn report(store: &Store) -> LedgerReport {
    let until = UnixMillis(i64::MAX / 2);
    let span = LedgerSpan { from: UnixMillis(0), until, now: until, delay: Millis(0) };
    store.ledger_report(span, 10).await.unwrap()
}

async fn counts(store: &Store) -> Vec<(&'static str, u64)> {
    let counts = report(store).await.counts.into_iter().filter(|(_, count)| *count > 0);
    counts.map(|(finding, count)| (finding.word(), count)).collect()
}

/// Compares rows and applies the corrections. Returns the comparison.
async fn reconcile(store: &Store, rows: &[SpendRow], terms: ComparisonTerms) -> Comparison {
    let comparison = store.compare_spend(rows, terms).await.unwrap();
    let adjusted = store.adjust(&comparison.corrections).await.unwrap();
    assert!(adjusted.iter().all(|effect| matches!(effect, Adjusted::Corrected(_))), "{adjusted:?}");
    comparison
}

async fn a_row_is_compared_with_its_receipt(database: Database) {
    let store = with_calls(&database, 3).await;
    let rows = [
        row(1, COST),
        row(2, COST + 1),
        // LiteLLM knows no price.
        row(3, 0),
        row(4, COST),
        SpendRow { key: SpendKey::Other, ..row(5, COST) },
        SpendRow { call_id: None, ..row(6, COST) },
    ];
    let comparison = reconcile(&store, &rows, TERMS).await;
    let [agreed, corrected, unpriced, foreign] =
        [Finding::Agreed, Finding::Corrected, Finding::Unpriced, Finding::Foreign];
    assert_eq!(comparison.new, [agreed, corrected, unpriced, foreign, foreign]);
    let [correction] = comparison.corrections.as_slice() else { panic!("{comparison:?}") };
    assert_eq!((correction.call.call_id, correction.amount), (CallId::new(2, 1), NanoDollars(COST + 1)));
    assert_eq!(counts(&store).await, [("agreed", 1), ("corrected", 1), ("unpriced", 1), ("foreign", 2)]);
    let differences = report(&store).await.differences;
    let subjects: Vec<_> = differences.iter().map(|difference| difference.subject.as_str()).collect();
    assert_eq!(subjects, ["chatcmpl-4", "chatcmpl-6"]);
}

async fn rows_that_are_read_again_change_nothing(database: Database) {
    let store = with_calls(&database, 2).await;
    let rows = [row(1, COST), row(2, 5)];
    reconcile(&store, &rows, TERMS).await;
    let before = counts(&store).await;
    let again = reconcile(&store, &[row(2, 5), row(1, COST), row(2, 5)], TERMS).await;
    assert_eq!((again, counts(&store).await), (Comparison::default(), before));
    // A control: another figure corrects again.
    assert_eq!(reconcile(&store, &[row(2, 6)], TERMS).await.corrections.len(), 1);
}

/// Call 1 is estimated, call 2 is exact.
async fn limits_learn_of_estimated_calls_alone(database: Database) {
    let store = database.open().await;
    let mut calls = [call("r1", 1), call("r1", 2)];
    calls[0].receipt.as_mut().unwrap().tokens_source = TokensSource::Estimated;
    store.record_calls(&calls, &cursor(2)).await.unwrap();
    let estimated = async |rows: &[SpendRow]| store.compare_spend(rows, TERMS).await.unwrap().estimated;
    let known = LedgerFigures {
        call_id: CallId::new(1, 1),
        input: Some(3),
        output: Some(4),
        cost_nanodollars: Some(NanoDollars(5)),
    };
    assert_eq!(estimated(&[row(1, 5), row(2, 5)]).await, [known]);
    assert_eq!(estimated(&[row(1, 5)]).await, [known], "again, in case it was not told");
    let unpriced = LedgerFigures { cost_nanodollars: None, ..known };
    assert_eq!(estimated(&[row(1, 0)]).await, [unpriced]);
    // Another try of the call: a failed one decides nothing, and tokens of two answers are not known together.
    let other = |cost| SpendRow { request_id: JournalText::of("other"), ..row(1, cost) };
    let failed = SpendRow { end: SpendEnd::Failed, ..other(0) };
    assert_eq!(estimated(&[row(1, 5), failed]).await, [known]);
    let both = LedgerFigures { input: None, output: None, cost_nanodollars: Some(NanoDollars(12)), ..known };
    assert_eq!(estimated(&[other(7)]).await, [both]);
}

async fn failed_tries_of_a_call_count_with_it(database: Database) {
    let store = with_calls(&database, 1).await;
    let of_call_1 = |id: &str, cost| SpendRow { request_id: JournalText::of(id), ..row(1, cost) };
    let failed = SpendRow { end: SpendEnd::Failed, ..of_call_1("failed", 0) };
    reconcile(&store, &[failed], TERMS).await;
    let cached = of_call_1("first", COST / 2);
    let last = reconcile(&store, &[cached, of_call_1("second", COST - COST / 2)], TERMS).await;
    assert_eq!(last.corrections.last().unwrap().amount, NanoDollars(COST), "the sum of all rows");
}

async fn calls_that_share_a_row_are_collapsed(database: Database) {
    let store = with_calls(&database, 2).await;
    let second = SpendRow { request_id: row(1, COST).request_id, ..row(2, 5) };
    let comparison = reconcile(&store, &[row(1, COST), second], TERMS).await;
    assert_eq!(comparison.new, [Finding::Agreed, Finding::Collapsed]);
    assert_eq!(comparison.corrections, [], "the row's cost is of one of them");
    assert_eq!(counts(&store).await, [("collapsed", 2)]);
}

async fn a_call_is_missing_until_its_row_comes(database: Database) {
    let store = with_calls(&database, 2).await;
    let mut unused = call("r1", 3);
    unused.receipt.as_mut().unwrap().reason = ChargeReason::NoUsage;
    store.record_calls(&[unused], &cursor(3)).await.unwrap();
    reconcile(&store, &[row(1, COST)], TERMS).await;
    assert_eq!(counts(&store).await, [("agreed", 1), ("missing", 1)], "LiteLLM may have refused call 3");
    let difference = report(&store).await.differences.remove(0);
    assert_eq!(
        (difference.finding, difference.subject),
        (Finding::Missing, format!("r1/0/{}", CallId::new(2, 1)))
    );
    assert_eq!(store.earliest_open_call(UnixMillis(0)).await.unwrap(), Some(UnixMillis(2)));
    let earlier = EarlierPass { from: UnixMillis(0), began: UnixMillis(i64::MAX) };
    let late = reconcile(&store, &[row(2, COST)], ComparisonTerms { earlier: Some(earlier), ..TERMS }).await;
    assert_eq!(late.new, [Finding::Agreed, Finding::Late]);
    assert_eq!(counts(&store).await, [("agreed", 2), ("late", 1)]);
    assert_eq!(store.earliest_open_call(UnixMillis(0)).await.unwrap(), None);
}

async fn a_row_may_come_before_its_receipt(database: Database) {
    let store = with_calls(&database, 1).await;
    let patient = ComparisonTerms { delay: Millis(i64::MAX.unsigned_abs()), ..TERMS };
    assert_eq!(reconcile(&store, &[row(2, COST)], patient).await, Comparison::default());
    assert_eq!(reconcile(&store, &[row(2, COST)], TERMS).await.new, [Finding::Foreign]);
    store.record_calls(&[call("r1", 2)], &cursor(2)).await.unwrap();
    reconcile(&store, &[row(1, COST)], TERMS).await;
    let open = store.earliest_open_call(UnixMillis(0)).await.unwrap();
    assert_eq!(open, Some(UnixMillis(2)), "the row is read again");
    reconcile(&store, &[row(1, COST), row(2, COST)], TERMS).await;
    assert_eq!(counts(&store).await, [("agreed", 2)]);
}

async fn a_row_of_another_account_corrects_nothing(database: Database) {
    let store = with_calls(&database, 2).await;
    let of = |id: &str, account: Option<&str>, seq| SpendRow {
        request_id: JournalText::of(id),
        account: account.map(JournalText::of),
        ..row(seq, 5)
    };
    for key in [SpendKey::Own, SpendKey::Other] {
        let forged = SpendRow { key, ..of("forged", Some("acct-2"), 1) };
        let comparison = reconcile(&store, &[forged], TERMS).await;
        assert_eq!(comparison.corrections, [], "{key:?}");
    }
    assert_eq!(counts(&store).await, [("missing", 2), ("foreign", 1)]);
    // The controls: a key of the run, and an account that LiteLLM does not know. The forged row adds nothing.
    let rows = [SpendRow { key: SpendKey::Other, ..of("a", Some("acct-1"), 1) }, of("b", None, 2)];
    let amounts = reconcile(&store, &rows, TERMS).await.corrections;
    let amounts: Vec<_> = amounts.iter().map(|correction| correction.amount).collect();
    assert_eq!(amounts, [NanoDollars(5), NanoDollars(5)]);
    assert_eq!(counts(&store).await, [("corrected", 2), ("foreign", 1)]);
}

async fn one_process_at_a_time_reads_the_ledger(database: Database) {
    let store = database.open().await;
    let [one, two] = ["one", "two"].map(Worker::named);
    let took = |lease| matches!(lease, LedgerLease::Taken(_));
    assert!(took(store.lease_ledger(&one, LEASE).await.unwrap()));
    assert!(!took(store.lease_ledger(&two, LEASE).await.unwrap()));
    assert!(took(store.lease_ledger(&one, LEASE).await.unwrap()), "its own lease is not an obstacle");
    let position = UnixMillis(5);
    assert_eq!(store.advance_ledger_pass(&two, position, LEASE).await.unwrap(), LedgerAdvance::Lost);
    store.release_ledger(&two).await.unwrap();
    assert!(!took(store.lease_ledger(&two, LEASE).await.unwrap()));
    store.release_ledger(&one).await.unwrap();
    assert!(took(store.lease_ledger(&two, LEASE).await.unwrap()));
    assert_eq!(store.advance_ledger_pass(&one, position, LEASE).await.unwrap(), LedgerAdvance::Lost);
}

/// Returns the progress of the ledger that `worker` leases.
async fn progress(store: &Store, worker: &Worker) -> LedgerProgress {
    match store.lease_ledger(worker, LEASE).await.unwrap() {
        LedgerLease::Taken(progress) => progress,
        LedgerLease::Busy => panic!("another process has the lease"),
    }
}

/// Reads the ledger from a time until another, where the calls from `unread` on are unread. Returns the time that is
/// covered then.
async fn pass(store: &Store, from: i64, until: i64, unread: i64) -> (Option<i64>, Option<i64>) {
    let worker = Worker::named("one");
    progress(store, &worker).await;
    store.begin_ledger_pass(&worker, UnixMillis(from)).await.unwrap();
    store.advance_ledger_pass(&worker, UnixMillis(until), LEASE).await.unwrap();
    store.end_ledger_pass(&worker, UnixMillis(unread)).await.unwrap();
    let ended = progress(store, &worker).await;
    assert_eq!(ended.unfinished, None);
    (ended.earlier.map(|earlier| earlier.from.0), ended.covered_until.map(|until| until.0))
}

async fn a_pass_is_resumed_where_it_was_stopped(database: Database) {
    let store = database.open().await;
    let worker = Worker::named("one");
    let first = progress(&store, &worker).await;
    assert_eq!((first.earlier, first.covered_until, first.unfinished), (None, None, None));
    store.begin_ledger_pass(&worker, UnixMillis(100)).await.unwrap();
    store.advance_ledger_pass(&worker, UnixMillis(250), LEASE).await.unwrap();
    store.close().await;
    let store = open(&database.address()).await.unwrap();
    let pass = progress(&store, &worker).await.unfinished.unwrap();
    assert_eq!((pass.from, pass.position), (UnixMillis(100), UnixMillis(250)));
    store.end_ledger_pass(&worker, UnixMillis(100)).await.unwrap();
    let ended = progress(&store, &worker).await;
    assert_eq!((ended.covered_until, ended.unfinished), (Some(UnixMillis(250)), None));
    assert_eq!(ended.earlier, Some(EarlierPass { from: UnixMillis(100), began: pass.began }));
    let last = store.last_ledger_pass().await.unwrap().unwrap();
    assert_eq!(last.at, pass.began);
    assert!(last.age <= LEASE, "{last:?}");
}

async fn a_pass_after_a_gap_covers_nothing(database: Database) {
    let store = database.open().await;
    // Calls from 100 on are unread, so the first pass leaves a gap before it.
    assert_eq!(pass(&store, 200, 300, 100).await, (None, None));
    assert_eq!(store.last_ledger_pass().await.unwrap(), None);
    assert_eq!(pass(&store, 100, 300, 100).await, (Some(100), Some(300)));
    // One after a gap leaves its calls to the next.
    assert_eq!(pass(&store, 400, 500, 300).await, (Some(100), Some(300)));
    assert_eq!(pass(&store, 300, 500, 300).await, (Some(100), Some(500)));
    // Older calls may be read again, and further back.
    assert_eq!(pass(&store, 200, 600, 500).await, (Some(100), Some(600)));
    assert_eq!(pass(&store, 50, 600, 600).await, (Some(50), Some(600)));
}

async fn a_stopped_pass_is_read_up_to_its_position(database: Database) {
    let store = database.open().await;
    let worker = Worker::named("one");
    let stop = async |from, until, unread| {
        progress(&store, &worker).await;
        store.begin_ledger_pass(&worker, UnixMillis(from)).await.unwrap();
        store.advance_ledger_pass(&worker, UnixMillis(until), LEASE).await.unwrap();
        store.stop_ledger_pass(&worker, UnixMillis(unread)).await.unwrap();
        progress(&store, &worker).await
    };
    let stopped = stop(100, 250, 100).await;
    assert_eq!((stopped.earlier, stopped.covered_until), (None, Some(UnixMillis(250))));
    assert_eq!(stopped.unfinished.map(|pass| pass.position), Some(UnixMillis(250)));
    assert_eq!(store.last_ledger_pass().await.unwrap(), None, "it is not a success");
    // One after a gap leaves its calls to the next.
    assert_eq!(stop(400, 500, 250).await.covered_until, Some(UnixMillis(250)));
    assert_eq!(pass(&store, 250, 500, 250).await, (Some(250), Some(500)), "the control");
}

async fn an_unconfirmed_cost_is_decided_by_the_row(database: Database) {
    let store = with_calls(&database, 1).await;
    let mut disputed = call("r1", 2);
    disputed.receipt.as_mut().unwrap().reason = ChargeReason::Unconfirmed;
    store.record_calls(&[disputed], &cursor(2)).await.unwrap();
    assert_eq!(counts(&store).await, [("unconfirmed", 1), ("missing", 2)]);
    let comparison = reconcile(&store, &[row(1, COST), row(2, 5)], TERMS).await;
    assert_eq!(comparison.new, [Finding::Agreed, Finding::Corrected, Finding::Unconfirmed]);
    let [correction] = comparison.corrections.as_slice() else { panic!("{comparison:?}") };
    assert_eq!((correction.call.call_id, correction.amount), (CallId::new(2, 1), NanoDollars(5)));
    assert_eq!(counts(&store).await, [("agreed", 1), ("corrected", 1), ("unconfirmed", 1)]);
}
