//! Measures how many receipts a second the store takes, with their calls, balances and cursor: for the record.
//!
//! usage: receipt-rate URL RECEIPTS BATCH

use std::{
    io::{self, Write},
    time::Instant,
};

use platform_core::{
    control::Cursor,
    credits::CreditRate,
    id::{AccountId, AgentId, CallId, InstallationId, RunId},
    money::NanoDollars,
    record::{ExchangeRecord, Identity},
};
use runner_model::receipt::{
    CallReference, ChargeReason, ExecutorType, Receipt, ReceiptKind, ReceiptReference, ReceiptSource,
};
use runner_store::{Address, CallPlace, JournalCall, Store, UnixMillis};
use serde_json::json;

/// Accounts that share the calls.
const ACCOUNTS: u64 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [url, receipts, batch] = arguments.as_slice() else {
        return Err("usage: receipt-rate URL RECEIPTS BATCH".into());
    };
    let store = Store::open(&Address::parse(url, None)?, InstallationId::parse("here")?).await?;
    let calls = (1..=receipts.parse::<u64>()?).map(call).collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    for calls in calls.chunks(batch.parse()?) {
        let seq = calls.last().map_or(0, |call| call.place.seq);
        let end = Cursor { journal: "j".to_owned(), seq, hash: "h".to_owned() };
        store.record_calls(calls, &end).await?;
    }
    let took = began.elapsed();
    let mut out = io::stdout();
    let rate = calls.len() as u128 * 1000 / took.as_millis().max(1);
    writeln!(out, "{} receipts in batches of {batch}: {took:.1?}, {rate} a second", calls.len())?;
    for balance in store.balances(None).await? {
        writeln!(out, "{} {}", balance.account, balance.credits)?;
    }
    Ok(())
}

/// Returns the line `seq` of the journal.
fn call(seq: u64) -> Result<JournalCall, Box<dyn std::error::Error>> {
    let account = format!("acct-{}", seq % ACCOUNTS);
    let record: ExchangeRecord = serde_json::from_value(json!({
        "ts": "2026-11-21T08:30:00.000000Z", "run_id": format!("run-{}", seq / 20), "attempt": 0, "account": account,
        "user": "u-1", "graph": "sandbox:agent", "identity": "socket", "route": "chat_completions",
        "model_asked": "small", "model_answered": "small-2", "finish_reason": "stop", "stream": true, "status": 200,
        "outcome": "complete", "refusal": null, "rule": null, "timeout": null, "request_bytes": 1,
        "response_bytes": 2, "ttfb_us": 3, "duration_us": 4,
        "tokens": { "input": 1200, "output": 340, "cached": 0, "reasoning": 0 }, "tokens_source": "exact",
        "cost_nanodollars": 23_000, "cost_source": "upstream", "litellm_call_id": CallId::new(seq, 1),
        "tools": ["sh"], "kind": "model", "calls": 1, "tap": "off",
    }))?;
    let rate = CreditRate::default();
    let cost = NanoDollars(23_000);
    let receipt = Receipt {
        source: ReceiptSource::Journal,
        reference: ReceiptReference::first(CallReference {
            run_id: RunId::parse(record.run_id.as_str())?,
            attempt: 0,
            call_id: record.litellm_call_id,
        }),
        kind: ReceiptKind::ModelCall,
        account: AccountId::parse(&account)?,
        user: record.user.clone(),
        agent: AgentId::parse("sandbox:agent")?,
        executor: ExecutorType::of(Identity::Socket),
        model: record.model_asked.clone(),
        tokens: record.tokens,
        tokens_source: record.tokens_source,
        amount: cost.into(),
        credits: rate.credits(cost),
        rate,
        reason: ChargeReason::UpstreamCost,
        called_ms: seq.cast_signed(),
    };
    Ok(JournalCall {
        place: CallPlace { journal: "j".to_owned(), seq },
        began: UnixMillis(seq.cast_signed()),
        record,
        receipt: Some(receipt),
    })
}
