//! Implements `sluice billing receipts`.

use std::io::{self, Write};

use platform_core::{id::AccountId, record::TokensSource};
use platform_runtime::terminal;
use runner_audit::When;
use runner_model::receipt::{ChargeReason, Receipt};
use runner_store::{ReceiptFilter, Store, StoredReceipt, UnixMillis};
use serde_json::{Value, json};

use crate::commands::{Error, exit::Exit, run_reference::RunReference, table::Table, times::format_time};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Only receipts of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Only receipts of this run: its id, or at least 4 characters of its beginning or end
    #[arg(long, value_name = "RUN")]
    run: Option<RunReference>,
    /// Only calls that began at this time or later: a time (RFC 3339), a day (UTC), or a time ago (`90m`)
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// Only calls that began before this time
    #[arg(long, value_name = "TIME")]
    to: Option<When>,
    /// Most receipts to list
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn receipts(store: &Store, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { account, run, from, to, limit, json } = arguments;
    let run_id = match run {
        Some(reference) => Some(reference.in_store(store).await?),
        None => None,
    };
    let time = |when: Option<When>| when.map(|when| UnixMillis(when.unix_millis()));
    let filter =
        ReceiptFilter { account, run_id, from: time(from), until: time(to), ..ReceiptFilter::default() };
    let receipts = store.receipts(&filter, limit).await?;
    let mut out = io::stdout();
    if json {
        let receipts: Vec<_> = receipts.iter().map(receipt_json).collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "receipts": receipts }).to_string()))?;
    } else {
        write!(out, "{}", table(&receipts))?;
    }
    Ok(Exit::Success)
}

fn table(receipts: &[StoredReceipt]) -> Table<9> {
    let mut table =
        Table::new(["CALLED", "ACCOUNT", "RUN", "MODEL", "INPUT", "OUTPUT", "AMOUNT", "CREDITS", "REASON"]);
    for StoredReceipt { receipt, .. } in receipts {
        let tokens = |count: u64| match receipt.tokens_source {
            TokensSource::Exact | TokensSource::None => count.to_string(),
            TokensSource::Partial | TokensSource::Estimated => format!("~{count}"),
        };
        table.row([
            format_time(UnixMillis(receipt.called_ms)),
            receipt.account.to_string(),
            receipt.reference.call.run_id.to_string(),
            receipt.model.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            tokens(receipt.tokens.input),
            tokens(receipt.tokens.output),
            amount(receipt),
            receipt.credits.to_string(),
            receipt.reason.word().to_owned(),
        ]);
    }
    table
}

fn amount(receipt: &Receipt) -> String {
    match receipt.reason {
        ChargeReason::Unpriced => "?".to_owned(),
        ChargeReason::PriceTable | ChargeReason::Unconfirmed => format!("~{}", receipt.amount),
        ChargeReason::UpstreamCost
        | ChargeReason::FreeModel
        | ChargeReason::NoUsage
        | ChargeReason::Reconciled => receipt.amount.to_string(),
    }
}

/// Returns a receipt as JSON.
pub(super) fn receipt_json(StoredReceipt { receipt, created }: &StoredReceipt) -> Value {
    let call = &receipt.reference.call;
    json!({
        "source_system": receipt.source.word(),
        "source_reference": receipt.reference.to_string(),
        "receipt_kind": receipt.kind.word(),
        "account": receipt.account,
        "user": receipt.user,
        "run_id": call.run_id,
        "attempt": call.attempt,
        "call_id": call.call_id,
        "graph": receipt.agent,
        "executor_type": receipt.executor.word(),
        "model": receipt.model,
        "tokens": receipt.tokens,
        "tokens_source": receipt.tokens_source,
        "nanodollars": receipt.amount,
        "credits": receipt.credits,
        "markup": receipt.rate.markup.to_string(),
        "credits_per_dollar": receipt.rate.credits_per_dollar,
        "charge_reason": receipt.reason.word(),
        "called_ms": receipt.called_ms,
        "corrects": receipt.corrects().map(ToString::to_string),
        "created_ms": created,
    })
}
