//! Tests balances of accounts: they equal the top-ups less the credits of the receipts, whatever happened.

use std::slice::from_ref;

use platform_core::{
    credits::{CreditRate, Credits},
    id::{AccountId, ExternalId},
    money::{NanoDollars, SignedNanoDollars},
    record::Tokens,
};
use runner_model::receipt::{ChargeReason, Correction, Receipt, ReceiptKind, ReceiptSource};
use runner_store::{
    Adjusted, Error, JournalCall, Month, NewTopUp, ReceiptFilter, Store, TopUpAdded, UnixMillis,
};

use crate::{
    calls::{call, cursor},
    database::Database,
    queue::Random,
};

crate::on_both!(
    a_correction_is_a_receipt_of_its_own,
    a_repeated_correction_changes_nothing,
    a_call_without_a_receipt_is_not_corrected,
    a_correction_keeps_the_rate_of_the_call,
    concurrent_corrections_count_once,
    pages_separate_receipts_of_one_call,
    a_top_up_counts_once,
    a_balance_equals_its_sums,
    statements_chain_from_month_to_month,
);

/// Returns a top-up of account `acct-1`.
pub(crate) fn top_up(key: &str, credits: i64) -> NewTopUp {
    NewTopUp {
        key: ExternalId::parse(key).unwrap(),
        account: account("acct-1"),
        credits: Credits(credits),
        note: Some("invoice 7".parse().unwrap()),
        author: ExternalId::parse("ann").unwrap(),
    }
}

fn account(account: &str) -> AccountId {
    AccountId::parse(account).unwrap()
}

/// Returns a correction of `call` by LiteLLM's ledger.
fn correction(call: &JournalCall, nanodollars: u64) -> Correction {
    Correction {
        source: ReceiptSource::LiteLlm,
        call: call.receipt.as_ref().unwrap().reference.call.clone(),
        amount: NanoDollars(nanodollars),
    }
}

async fn adjust(store: &Store, correction: &Correction) -> Receipt {
    match store.adjust(from_ref(correction)).await.unwrap().remove(0) {
        Adjusted::Corrected(receipt) => *receipt,
        other => panic!("{other:?}"),
    }
}

async fn receipts(store: &Store) -> Vec<Receipt> {
    let found = store.receipts(&ReceiptFilter::default(), 10_000).await.unwrap();
    found.into_iter().map(|stored| stored.receipt).collect()
}

async fn balance(store: &Store, account: &AccountId) -> Credits {
    let found = store.balances(Some(account)).await.unwrap();
    found.first().map_or(Credits(0), |balance| balance.credits)
}

async fn a_correction_is_a_receipt_of_its_own(database: Database) {
    let store = database.open().await;
    let first = call("r1", 1);
    store.record_calls(from_ref(&first), &cursor(1)).await.unwrap();
    let lowered = adjust(&store, &correction(&first, 20_000)).await;
    assert_eq!((lowered.amount, lowered.credits), (SignedNanoDollars(-3000), Credits(-30)));
    let reference = lowered.reference.to_string();
    assert_eq!(lowered.corrects().unwrap().to_string(), reference);
    let raised = adjust(&store, &correction(&first, 20_050)).await;
    assert_eq!((raised.amount, raised.credits), (SignedNanoDollars(50), Credits(1)), "200.5 is rounded up");
    assert_eq!(raised.reference.to_string(), format!("{reference}#2"));
    assert_eq!((raised.kind, raised.reason), (ReceiptKind::Adjustment, ChargeReason::Reconciled));
    assert_eq!((raised.tokens, raised.source), (Tokens::default(), ReceiptSource::LiteLlm));
    let stored = receipts(&store).await;
    assert_eq!(stored, [raised, first.receipt.unwrap(), lowered], "the first one is unchanged");
    assert_eq!(balance(&store, &account("acct-1")).await, Credits(-201));
}

async fn a_repeated_correction_changes_nothing(database: Database) {
    let store = database.open().await;
    let first = call("r1", 1);
    store.record_calls(from_ref(&first), &cursor(1)).await.unwrap();
    assert_eq!(store.adjust(&[correction(&first, 23_000)]).await.unwrap(), [Adjusted::Agrees]);
    adjust(&store, &correction(&first, 0)).await;
    let before = receipts(&store).await;
    assert_eq!(store.adjust(&[correction(&first, 0)]).await.unwrap(), [Adjusted::Agrees]);
    assert_eq!(receipts(&store).await, before);
    assert_eq!(balance(&store, &account("acct-1")).await, Credits(0));
}

async fn a_call_without_a_receipt_is_not_corrected(database: Database) {
    let store = database.open().await;
    assert_eq!(store.adjust(&[correction(&call("r1", 1), 5)]).await.unwrap(), [Adjusted::NoReceipt]);
    assert_eq!(receipts(&store).await, []);
    assert_eq!(store.balances(None).await.unwrap(), []);
}

async fn a_correction_keeps_the_rate_of_the_call(database: Database) {
    let store = database.open().await;
    let mut first = call("r1", 1);
    let rate = CreditRate { markup: "1.25".parse().unwrap(), ..CreditRate::default() };
    let receipt = first.receipt.as_mut().unwrap();
    (receipt.rate, receipt.credits) = (rate, Credits(288));
    store.record_calls(from_ref(&first), &cursor(1)).await.unwrap();
    let raised = adjust(&store, &correction(&first, 46_000)).await;
    assert_eq!((raised.rate, raised.credits), (rate, Credits(287)), "as if 46,000 had been charged at once");
    assert_eq!(receipts(&store).await.iter().map(|receipt| receipt.credits).sum::<Credits>(), Credits(575));
}

async fn concurrent_corrections_count_once(database: Database) {
    let store = database.open().await;
    let other = database.open().await;
    let calls: Vec<_> = (1..=20).map(|seq| call("r1", seq)).collect();
    store.record_calls(&calls, &cursor(20)).await.unwrap();
    let forward: Vec<_> = calls.iter().map(|call| correction(call, 1000)).collect();
    let backward: Vec<_> = forward.iter().rev().cloned().collect();
    let effects = tokio::join!(store.adjust(&forward), other.adjust(&backward));
    let effects = [effects.0.unwrap(), effects.1.unwrap()].concat();
    let corrected = effects.iter().filter(|effect| **effect != Adjusted::Agrees).count();
    assert_eq!((effects.len(), corrected, receipts(&store).await.len()), (40, 20, 40));
    assert_eq!(balance(&store, &account("acct-1")).await, Credits(-200));
}

/// A receipt and its correction have the same time and reference: a page may end between them.
async fn pages_separate_receipts_of_one_call(database: Database) {
    let store = database.open().await;
    let first = call("r1", 1);
    store.record_calls(from_ref(&first), &cursor(1)).await.unwrap();
    adjust(&store, &correction(&first, 1000)).await;
    let mut filter = ReceiptFilter::default();
    let mut sources = Vec::new();
    while let [stored] = store.receipts(&filter, 1).await.unwrap().as_slice() {
        sources.push(stored.receipt.source);
        filter.before = Some(stored.place());
    }
    assert_eq!(sources, [ReceiptSource::Journal, ReceiptSource::LiteLlm]);
}

async fn a_top_up_counts_once(database: Database) {
    let store = database.open().await;
    let TopUpAdded::New(stored) = store.add_top_up(&top_up("k1", 500)).await.unwrap() else { panic!() };
    assert_eq!(stored.top_up, top_up("k1", 500));
    let again = NewTopUp { note: None, ..top_up("k1", 500) };
    assert_eq!(store.add_top_up(&again).await.unwrap(), TopUpAdded::Before(stored));
    let elsewhere = NewTopUp { account: account("acct-2"), ..top_up("k1", 500) };
    for other in [top_up("k1", 501), elsewhere] {
        let refused = store.add_top_up(&other).await.unwrap_err();
        assert!(matches!(refused, Error::TopUpExists { credits: Credits(500), .. }), "{refused:?}");
    }
    store.add_top_up(&top_up("k2", -200)).await.unwrap();
    assert_eq!(balance(&store, &account("acct-1")).await, Credits(300));
    let mine = database.open_of("other").await;
    assert_eq!(mine.balances(None).await.unwrap(), [], "an installation has its own");
    assert!(matches!(mine.add_top_up(&top_up("k1", 7)).await.unwrap(), TopUpAdded::New(_)));
}

/// Stores random calls, corrections and top-ups, each perhaps twice and through two clients, and compares the balances
/// with the sums.
async fn a_balance_equals_its_sums(database: Database) {
    let clients = [database.open().await, database.open().await];
    let mut random = Random(0x5eed);
    let accounts = ["acct-1", "acct-2", "acct-3"].map(account);
    let mut calls: Vec<JournalCall> = Vec::new();
    let mut paid = [Credits(0); 3];
    for step in 1..=60_u64 {
        let store = &clients[random.below(2)];
        let payer = random.below(3);
        match random.below(3) {
            0 => {
                let mut new = call("r1", step);
                let receipt = new.receipt.as_mut().unwrap();
                let cost = NanoDollars(random.below(100_000) as u64);
                receipt.account = accounts[payer].clone();
                receipt.rate.markup = ["1", "1.3", "0"][random.below(3)].parse().unwrap();
                (receipt.amount, receipt.credits) = (cost.into(), receipt.rate.credits(cost));
                for client in [store, &clients[0]] {
                    client.record_calls(from_ref(&new), &cursor(step)).await.unwrap();
                }
                calls.push(new);
            }
            1 if !calls.is_empty() => {
                let correction = correction(&calls[random.below(calls.len())], random.below(100_000) as u64);
                store.adjust(&[correction]).await.unwrap();
            }
            _ => {
                let credits = i64::try_from(random.below(1000)).unwrap() - 300;
                let account = accounts[payer].clone();
                let top_up = NewTopUp { account, ..top_up(&format!("k{step}"), credits) };
                for client in [store, &clients[1]] {
                    client.add_top_up(&top_up).await.unwrap();
                }
                paid[payer] = paid[payer] + Credits(credits);
            }
        }
    }
    let all = receipts(&clients[0]).await;
    for (account, paid) in accounts.iter().zip(paid) {
        let used =
            all.iter().filter(|receipt| receipt.account == *account).map(|receipt| receipt.credits).sum();
        assert_eq!(balance(&clients[1], account).await, paid - used, "{account}");
    }
    for first in &calls {
        let reference = &first.receipt.as_ref().unwrap().reference.call;
        let of_call: Vec<_> = all.iter().filter(|receipt| receipt.reference.call == *reference).collect();
        let cost: SignedNanoDollars = of_call.iter().map(|receipt| receipt.amount).sum();
        let credits: Credits = of_call.iter().map(|receipt| receipt.credits).sum();
        let cost = NanoDollars(cost.0.try_into().unwrap());
        assert_eq!(of_call[0].rate.credits(cost), credits, "as if priced right at once");
    }
    assert!(all.len() > calls.len() && calls.len() > 10, "the history has corrections and calls");
}

/// A receipt of October, its correction and a top-up of November, and a receipt of December.
async fn statements_chain_from_month_to_month(database: Database) {
    let store = database.open().await;
    let calls = [call("r1", 1), call("r1", 2)];
    store.record_calls(&calls, &cursor(2)).await.unwrap();
    adjust(&store, &correction(&calls[0], 50_000)).await;
    store.add_top_up(&top_up("paid", 1000)).await.unwrap();
    let [october, november, december] =
        ["2026-10", "2026-11", "2026-12"].map(|month| month.parse::<Month>().unwrap());
    let UnixMillis(begin) = november.begin();
    let UnixMillis(end) = november.end();
    database
        .behind_its_back(&format!(
            "UPDATE receipts SET created = {} WHERE corrects IS NULL AND called = 1;
             UPDATE receipts SET created = {begin} WHERE corrects IS NOT NULL;
             UPDATE top_ups SET created = {};
             UPDATE receipts SET created = {end} WHERE called = 2",
            begin - 1,
            end - 1,
        ))
        .await;
    let payer = account("acct-1");
    let months = [october, november, december];
    let [october, november, december] =
        months.map(async |month| store.statement(&payer, month).await.unwrap());
    let (october, november, december) = tokio::join!(october, november, december);
    assert_eq!((october.opening, october.closing()), (Credits(0), Credits(-230)));
    assert_eq!((november.opening, november.closing()), (Credits(-230), Credits(500)));
    assert_eq!((november.paid_in(), november.charged()), (Credits(1000), Credits(270)));
    let [line] = november.lines.as_slice() else { panic!("{november:?}") };
    assert_eq!((line.kind, line.receipts, line.tokens), (ReceiptKind::Adjustment, 1, Tokens::default()));
    assert_eq!(line.cost, SignedNanoDollars(27_000));
    assert_eq!((december.opening, december.closing()), (Credits(500), Credits(270)));
    assert_eq!(december.lines[0].tokens, calls[1].record.tokens);
    assert_eq!(balance(&store, &payer).await, december.closing());
    let listed = ReceiptFilter { month: Some(november.month), ..ReceiptFilter::default() };
    assert_eq!(store.receipts(&listed, 10).await.unwrap().len(), 1);
    let other = store.statement(&account("acct-2"), december.month).await.unwrap();
    assert_eq!((other.closing(), other.lines), (Credits(0), vec![]));
}
