//! Tests the figures of an overview: they equal what they sum up, and an account sees its own alone.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    slice::from_ref,
    time::{SystemTime, UNIX_EPOCH},
};

use platform_core::{
    credits::Credits,
    id::AccountId,
    money::{NanoDollars, SignedNanoDollars},
    record::ExchangeRecord,
    refusal::Refusal,
    untrusted::JournalText,
};
use runner_model::receipt::{ChargeReason, Correction, ReceiptSource};
use runner_store::{
    AccountScope, JournalCall, Onto, ReceiptFilter, Store, SumSpan, TimeGrid, UnixMillis, UsageSums,
};
use sha2::{Digest, Sha256};

use crate::{
    calls::{call, cursor},
    database::Database,
};

crate::on_both!(
    sums_equal_the_receipts_of_their_time,
    a_correction_counts_at_the_time_of_its_call,
    an_overview_shows_one_account_its_own,
    refused_calls_count_once_by_reason,
    calls_without_a_price_are_counted,
    older_schemas_are_summed_up,
    short_sums_go_and_those_of_days_stay,
);

/// A grid that reaches from the epoch into the time of no test.
const FIRST_DAY: TimeGrid = TimeGrid { span: SumSpan::Day, from: UnixMillis(0), spans: 1 };

pub(crate) fn account(account: &str) -> AccountId {
    AccountId::parse(account).unwrap()
}

/// Returns a call of `account` for `model` at `time`; its figures are all its own.
fn called(seq: u64, account: &str, model: &str, time: i64) -> JournalCall {
    let mut call = call("r1", seq);
    call.began = UnixMillis(time);
    call.record.account = self::account(account);
    let receipt = call.receipt.as_mut().unwrap();
    receipt.account = call.record.account.clone();
    receipt.model = Some(JournalText::of(model));
    receipt.amount = SignedNanoDollars(1000 + seq.cast_signed());
    receipt.credits = Credits(10 + seq.cast_signed());
    receipt.tokens.input = 100 + seq;
    receipt.called_ms = time;
    call
}

/// Returns the sums of the stored receipts from `from` until `until`, by a key.
async fn summed<K: Ord>(
    store: &Store,
    grid: &TimeGrid,
    key: impl Fn(&runner_model::receipt::Receipt) -> K,
) -> BTreeMap<K, UsageSums> {
    let filter =
        ReceiptFilter { from: Some(grid.from), until: Some(grid.until()), ..ReceiptFilter::default() };
    let mut sums = BTreeMap::<K, UsageSums>::new();
    for stored in store.receipts(&filter, 10_000).await.unwrap() {
        let sum = sums.entry(key(&stored.receipt)).or_default();
        sum.calls += u64::from(stored.receipt.corrects().is_none());
        sum.unpriced += u64::from(stored.receipt.reason == ChargeReason::Unpriced);
        sum.input_tokens += stored.receipt.tokens.input;
        sum.output_tokens += stored.receipt.tokens.output;
        sum.cost = sum.cost + stored.receipt.amount;
        sum.credits = sum.credits + stored.receipt.credits;
    }
    sums
}

async fn sums_equal_the_receipts_of_their_time(database: Database) {
    let store = database.open().await;
    let hour = SumSpan::Hour.length();
    let calls: Vec<_> = (1..=40_u64)
        .map(|seq| {
            let account = if seq % 3 == 0 { "acct-2" } else { "acct-1" };
            let model = ["small", "large", "free"][usize::try_from(seq).unwrap() % 3];
            called(seq, account, model, seq.cast_signed() * hour / 4)
        })
        .collect();
    for batch in calls.chunks(7) {
        store.record_calls(batch, &cursor(batch.last().unwrap().place.seq)).await.unwrap();
    }
    // Lines that are read twice change nothing.
    store.record_calls(&calls[30..], &cursor(40)).await.unwrap();
    let all = AccountScope::All;
    for grid in [FIRST_DAY, TimeGrid { span: SumSpan::Hour, from: UnixMillis(3 * hour), spans: 4 }] {
        let by_time = store.usage_by_time(&grid, &all).await.unwrap().into_iter().collect::<BTreeMap<_, _>>();
        let of_span =
            |receipt: &runner_model::receipt::Receipt| grid.span.begin_of(UnixMillis(receipt.called_ms));
        assert_eq!(by_time, summed(&store, &grid, of_span).await);
        assert!(by_time.len() == grid.spans as usize, "{by_time:?}");
        let by_account = store.usage_by_account(&grid, &all, 10).await.unwrap();
        assert!(by_account[0].1.cost >= by_account[1].1.cost, "the dearest first");
        let expected = summed(&store, &grid, |receipt| receipt.account.clone()).await;
        assert_eq!(by_account.into_iter().collect::<BTreeMap<_, _>>(), expected);
        let by_model = store.usage_by_model(&grid, &all, 10).await.unwrap();
        let expected = summed(&store, &grid, |receipt| receipt.model.as_ref().unwrap().to_string()).await;
        assert_eq!(by_model.into_iter().collect::<BTreeMap<_, _>>(), expected);
        assert_eq!(store.usage_by_model(&grid, &all, 1).await.unwrap().len(), 1);
    }
}

async fn a_correction_counts_at_the_time_of_its_call(database: Database) {
    let store = database.open().await;
    let first = called(1, "acct-1", "small", 7);
    store.record_calls(from_ref(&first), &cursor(1)).await.unwrap();
    let correction = Correction {
        source: ReceiptSource::LiteLlm,
        call: first.receipt.as_ref().unwrap().reference.call.clone(),
        amount: NanoDollars(5000),
    };
    store.adjust(from_ref(&correction)).await.unwrap();
    let sums = store.usage_by_time(&FIRST_DAY, &AccountScope::All).await.unwrap();
    let expected = summed(&store, &FIRST_DAY, |_| UnixMillis(0)).await;
    assert_eq!(sums, expected.into_iter().collect::<Vec<_>>());
    assert_eq!((sums[0].1.calls, sums[0].1.cost), (1, SignedNanoDollars(5000)));
}

/// A call has no price until a correction tells it.
async fn calls_without_a_price_are_counted(database: Database) {
    let store = database.open().await;
    let [mut first, mut second] = [called(1, "acct-1", "small", 7), called(2, "acct-1", "small", 8)];
    for call in [&mut first, &mut second] {
        let receipt = call.receipt.as_mut().unwrap();
        (receipt.reason, receipt.amount) = (ChargeReason::Unpriced, SignedNanoDollars(0));
    }
    let calls = [first, second, called(3, "acct-1", "small", 9)];
    store.record_calls(&calls, &cursor(3)).await.unwrap();
    let sums = async || store.usage_by_model(&FIRST_DAY, &AccountScope::All, 10).await.unwrap()[0].1;
    assert_eq!((sums().await.calls, sums().await.unpriced), (3, 2));
    for amount in [5000, 6000] {
        let correction = Correction {
            source: ReceiptSource::LiteLlm,
            call: calls[0].receipt.as_ref().unwrap().reference.call.clone(),
            amount: NanoDollars(amount),
        };
        store.adjust(from_ref(&correction)).await.unwrap();
        assert_eq!((sums().await.calls, sums().await.unpriced), (3, 1), "{amount}");
    }
}

async fn an_overview_shows_one_account_its_own(database: Database) {
    let store = database.open().await;
    let mut refused = called(3, "acct-2", "small", 3);
    refused.receipt = None;
    refused.record.refusal = Some(Refusal::RateLimited);
    let calls = [called(1, "acct-1", "small", 1), called(2, "acct-2", "secret", 2), refused];
    store.record_calls(&calls, &cursor(3)).await.unwrap();
    let scope = AccountScope::Only(account("acct-1"));
    let models = async |scope| {
        let found = store.usage_by_model(&FIRST_DAY, scope, 10).await.unwrap();
        found.into_iter().map(|(model, _)| model).collect::<Vec<_>>()
    };
    assert_eq!(models(&scope).await, ["small"]);
    assert_eq!(store.usage_by_account(&FIRST_DAY, &scope, 10).await.unwrap().len(), 1);
    assert_eq!(store.usage_by_time(&FIRST_DAY, &scope).await.unwrap()[0].1.calls, 1);
    assert_eq!(store.refusals_by_reason(&FIRST_DAY, &scope, 10).await.unwrap(), []);
    // Controls: the figures are there, for those who see all accounts of this installation.
    assert_eq!(models(&AccountScope::All).await, ["secret", "small"]);
    let refusals = store.refusals_by_reason(&FIRST_DAY, &AccountScope::All, 10).await.unwrap();
    assert_eq!(refusals, [("rate_limited".to_owned(), 1)]);
    let elsewhere = database.open_of("other").await;
    assert_eq!(elsewhere.usage_by_time(&FIRST_DAY, &AccountScope::All).await.unwrap(), []);
}

fn refused(seq: u64, refusal: Refusal, calls: u64) -> JournalCall {
    let call = call("r1", seq);
    let record = ExchangeRecord { refusal: Some(refusal), calls, ..call.record.clone() };
    JournalCall { record, receipt: None, ..call }
}

async fn refused_calls_count_once_by_reason(database: Database) {
    let store = database.open().await;
    let flood = refused(2, Refusal::RateLimited, 500);
    let calls =
        [call("r1", 1), flood, refused(3, Refusal::NotGranted, 1), refused(4, Refusal::NotGranted, 1)];
    for _ in 0..2 {
        store.record_calls(&calls, &cursor(4)).await.unwrap();
    }
    let found = store.refusals_by_reason(&FIRST_DAY, &AccountScope::All, 10).await.unwrap();
    assert_eq!(found, [("rate_limited".to_owned(), 500), ("not_granted".to_owned(), 2)]);
}

pub(crate) fn golden(schema: usize) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/store/golden/schema-{schema}.ndjson"))
}

/// Backups of the schemas before the sums have a receipt of the first day, which their migration sums up.
async fn older_schemas_are_summed_up(database: Database) {
    let store = database.open().await;
    for schema in [23, 24] {
        store.restore(&golden(schema), Onto::Anything).await.unwrap();
        let sums = store.usage_by_time(&FIRST_DAY, &AccountScope::All).await.unwrap();
        let expected = summed(&store, &FIRST_DAY, |_| UnixMillis(0)).await;
        assert_eq!(sums, expected.into_iter().collect::<Vec<_>>(), "{schema}");
        assert_eq!((sums[0].1.calls, sums[0].1.input_tokens), (1, 3), "{schema}");
    }
    // The same store, with a refused call.
    let refused = fs::read_to_string(golden(23)).unwrap();
    let refused = refused.replace(r#"\"refusal\":null"#, r#"\"refusal\":\"rate_limited\""#);
    let (rows, end) = refused.trim_end().rsplit_once('\n').unwrap();
    let mut end: serde_json::Value = serde_json::from_str(end).unwrap();
    let hash = Sha256::digest(format!("{rows}\n"));
    end["sha256"] = hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
    let backup = database.path().join("refused.ndjson");
    fs::write(&backup, format!("{rows}\n{end}\n")).unwrap();
    store.restore(&backup, Onto::Anything).await.unwrap();
    let found = store.refusals_by_reason(&FIRST_DAY, &AccountScope::All, 10).await.unwrap();
    assert_eq!(found, [("rate_limited".to_owned(), 1)]);
}

async fn short_sums_go_and_those_of_days_stay(database: Database) {
    let store = database.open().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let now = i64::try_from(now).unwrap();
    let old = now - 9 * SumSpan::Day.length();
    let calls = [called(1, "acct-1", "small", old), called(2, "acct-1", "small", now)];
    store.record_calls(&calls, &cursor(2)).await.unwrap();
    assert_eq!(store.remove_old_sums().await.unwrap(), 2);
    assert_eq!(store.remove_old_sums().await.unwrap(), 0);
    let calls_in = async |span: SumSpan, time| {
        let grid = TimeGrid::up_to(UnixMillis(time), span, 1);
        let sums = store.usage_by_time(&grid, &AccountScope::All).await.unwrap();
        sums.first().map_or(0, |(_, sums)| sums.calls)
    };
    for span in SumSpan::ALL {
        assert_eq!(calls_in(span, now).await, 1, "{span:?}");
    }
    assert_eq!((calls_in(SumSpan::Hour, old).await, calls_in(SumSpan::Day, old).await), (0, 1));
}
