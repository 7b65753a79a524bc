//! Tests calls of runs, their receipts, and the cursor that moves with them.

use platform_core::{
    control::Cursor,
    credits::{CreditRate, Credits},
    id::{AccountId, CallId},
    limit::Millis,
    money::SignedNanoDollars,
    record::{ExchangeRecord, Identity, Tokens},
};
use runner_model::receipt::{
    CallReference, ChargeReason, ExecutorType, Receipt, ReceiptKind, ReceiptReference, ReceiptSource,
};
use runner_store::{
    CALLS_CONSUMER, CallPlace, Error, JournalCall, ReceiptFilter, Store, StoredReceipt, UnixMillis,
};
use serde_json::json;

use crate::database::{Database, id};

crate::on_both!(
    calls_are_stored_with_their_receipts,
    lines_that_are_read_twice_change_nothing,
    a_batch_behind_the_cursor_stores_nothing,
    calls_of_a_run_come_in_pages,
    receipts_are_found_by_account_run_and_time,
    receipts_of_an_installation_are_its_own,
    old_calls_go_and_their_receipts_stay,
);

fn record(run: &str, seq: u64) -> ExchangeRecord {
    let record = json!({
        "ts": "2026-11-21T08:30:00.000000Z", "run_id": run, "attempt": 0, "account": "acct-1", "user": "u-1",
        "graph": "sandbox:agent", "identity": "socket", "route": "chat_completions", "model_asked": "small",
        "model_answered": "small-2", "finish_reason": "stop", "stream": true, "status": 200, "outcome": "complete",
        "refusal": null, "rule": null, "timeout": null, "request_bytes": 1, "response_bytes": 2, "ttfb_us": 3,
        "duration_us": 4, "tokens": Tokens { input: 3, output: 4, ..Tokens::default() }, "tokens_source": "exact",
        "cost_nanodollars": 23_000, "cost_source": "upstream", "litellm_call_id": CallId::new(seq, 1),
        "tools": ["sh"], "kind": "model", "calls": 1, "tap": "off",
    });
    serde_json::from_value(record).unwrap()
}

/// Returns the line `seq` of the journal `j`; its call began `seq` milliseconds after the epoch.
pub(crate) fn call(run: &str, seq: u64) -> JournalCall {
    let record = record(run, seq);
    let receipt = Receipt {
        source: ReceiptSource::Journal,
        reference: ReceiptReference::first(CallReference {
            run_id: id(run),
            attempt: 0,
            call_id: record.litellm_call_id,
        }),
        kind: ReceiptKind::ModelCall,
        account: record.account.clone(),
        user: record.user.clone(),
        agent: record.graph.clone(),
        executor: ExecutorType::of(Identity::Socket),
        model: record.model_asked.clone(),
        tokens: record.tokens,
        tokens_source: record.tokens_source,
        amount: SignedNanoDollars(23_000),
        credits: Credits(230),
        rate: CreditRate::default(),
        reason: ChargeReason::UpstreamCost,
        called_ms: seq.cast_signed(),
    };
    JournalCall { place: place(seq), began: UnixMillis(seq.cast_signed()), record, receipt: Some(receipt) }
}

fn place(seq: u64) -> CallPlace {
    CallPlace { journal: "j".to_owned(), seq }
}

pub(crate) fn cursor(seq: u64) -> Cursor {
    Cursor { journal: "j".to_owned(), seq, hash: "h".to_owned() }
}

async fn receipts(store: &Store, filter: &ReceiptFilter) -> Vec<String> {
    let found = store.receipts(filter, 100).await.unwrap();
    found.iter().map(|stored| stored.receipt.reference.to_string()).collect()
}

fn reference(call: &JournalCall) -> String {
    call.receipt.as_ref().unwrap().reference.to_string()
}

async fn calls_are_stored_with_their_receipts(database: Database) {
    let store = database.open().await;
    let refused = JournalCall { receipt: None, ..call("r1", 2) };
    let calls = [call("r1", 1), refused, call("r2", 3)];
    let added = store.record_calls(&calls, &cursor(3)).await.unwrap();
    assert_eq!(added, [ChargeReason::UpstreamCost; 2]);
    let stored = store.calls(&id("r1"), None, 10).await.unwrap();
    let read: Vec<_> = stored.into_iter().map(|call| (call.place, call.record)).collect();
    assert_eq!(read, [(place(1), record("r1", 1)), (place(2), record("r1", 2))]);
    let all = store.receipts(&ReceiptFilter::default(), 10).await.unwrap();
    let read: Vec<_> = all.into_iter().map(|stored| Some(stored.receipt)).collect();
    assert_eq!(read, [call("r2", 3).receipt, call("r1", 1).receipt], "the newest first");
    assert_eq!(store.cursors(CALLS_CONSUMER).await.unwrap()[0].cursor, cursor(3));
}

async fn lines_that_are_read_twice_change_nothing(database: Database) {
    let store = database.open().await;
    store.record_calls(&[call("r1", 1), call("r1", 2)], &cursor(2)).await.unwrap();
    let before = store.receipts(&ReceiptFilter::default(), 10).await.unwrap();
    // Another process reads the same lines, or this one again after a restart.
    let mut dearer = call("r1", 2);
    dearer.receipt.as_mut().unwrap().amount = SignedNanoDollars(1);
    let added = store.record_calls(&[call("r1", 1), dearer], &cursor(2)).await.unwrap();
    assert_eq!(added, []);
    assert_eq!(store.receipts(&ReceiptFilter::default(), 10).await.unwrap(), before);
    assert_eq!(store.calls(&id("r1"), None, 10).await.unwrap().len(), 2);
}

async fn a_batch_behind_the_cursor_stores_nothing(database: Database) {
    let store = database.open().await;
    store.record_calls(&[call("r1", 5)], &cursor(5)).await.unwrap();
    let behind = store.record_calls(&[call("r1", 4)], &cursor(4)).await.unwrap_err();
    assert!(matches!(behind, Error::Backwards { acknowledged: 5, given: 4, .. }), "{behind:?}");
    assert_eq!(receipts(&store, &ReceiptFilter::default()).await, [reference(&call("r1", 5))]);
}

async fn calls_of_a_run_come_in_pages(database: Database) {
    let store = database.open().await;
    let calls: Vec<_> = (1..=9).map(|seq| call(if seq % 2 == 0 { "even" } else { "odd" }, seq)).collect();
    store.record_calls(&calls, &cursor(9)).await.unwrap();
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = store.calls(&id("odd"), after.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.place.clone());
        pages.push(page.iter().map(|call| call.place.seq).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec![1, 3], vec![5, 7], vec![9]]);
}

async fn receipts_are_found_by_account_run_and_time(database: Database) {
    let store = database.open().await;
    let mut other = call("r3", 3);
    other.receipt.as_mut().unwrap().account = AccountId::parse("acct-2").unwrap();
    let calls = [call("r1", 1), call("r2", 2), other.clone(), call("r1", 4)];
    store.record_calls(&calls, &cursor(4)).await.unwrap();
    let [one, two, three, four] = calls.each_ref().map(reference);
    let any = ReceiptFilter::default;
    let account = ReceiptFilter { account: AccountId::parse("acct-2").ok(), ..any() };
    assert_eq!(receipts(&store, &account).await.join(" "), three);
    let run = ReceiptFilter { run_id: Some(id("r1")), ..any() };
    assert_eq!(receipts(&store, &run).await, [four.clone(), one]);
    let time = ReceiptFilter { from: Some(UnixMillis(2)), until: Some(UnixMillis(4)), ..any() };
    assert_eq!(receipts(&store, &time).await, [three.clone(), two]);
    let first = store.receipts(&any(), 1).await.unwrap();
    let before = first.first().map(StoredReceipt::place);
    assert_eq!(receipts(&store, &ReceiptFilter { before, ..any() }).await[0], three);
}

async fn receipts_of_an_installation_are_its_own(database: Database) {
    let store = database.open().await;
    store.record_calls(&[call("r1", 1)], &cursor(1)).await.unwrap();
    let other = database.open_of("other").await;
    assert_eq!(receipts(&other, &ReceiptFilter::default()).await, [""; 0]);
}

async fn old_calls_go_and_their_receipts_stay(database: Database) {
    let store = database.open().await;
    let young = JournalCall { began: UnixMillis(i64::MAX), ..call("r1", 2) };
    store.record_calls(&[call("r1", 1), young], &cursor(2)).await.unwrap();
    assert_eq!(store.remove_old_calls(Millis::seconds(60)).await.unwrap(), 1);
    let left = store.calls(&id("r1"), None, 10).await.unwrap();
    assert_eq!(left.iter().map(|call| call.place.seq).collect::<Vec<_>>(), [2]);
    assert_eq!(receipts(&store, &ReceiptFilter::default()).await.len(), 2);
}
