//! Implements `sluice billing`: lists the receipts of calls.

use std::io::{self, Write};

use platform_core::{id::AccountId, record::TokensSource};
use platform_runtime::terminal;
use runner_audit::When;
use runner_model::receipt::{ChargeReason, Receipt};
use runner_store::{ReceiptFilter, Store, StoredReceipt, UnixMillis};
use serde_json::{Value, json};

use super::{Context, Error, exit::Exit, run_reference::RunReference, runs::format_time, table::Table};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List receipts of calls, those of the newest calls first
    ///
    /// Each call that was sent upstream has one receipt, moments after its end. A receipt is never changed.
    #[command(after_help = "\
Examples:
  sluice billing receipts --account acct-7
  sluice billing receipts --run run-19c1-5f0e --json
  sluice billing receipts --from 2026-11-01 --to 2026-12-01 -n 10000 --json > november.json

Reasons for an amount:
  upstream_cost  the upstream told the cost
  price_table    the prices of the configuration gave it: an estimate
  free_model     billing.free_models lists the model
  no_usage       the call used no tokens
  unpriced       the price is unknown, and the amount 0 until it is corrected
  reconciled     the upstream's ledger has another cost: the difference
In tables ~ marks an estimate.")]
    Receipts(ReceiptsArguments),
}

#[derive(clap::Args)]
pub(super) struct ReceiptsArguments {
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

pub(super) async fn billing(context: &Context, command: Command) -> Result<Exit, Error> {
    let Command::Receipts(arguments) = command;
    receipts(&context.store().await?, arguments).await
}

async fn receipts(store: &Store, arguments: ReceiptsArguments) -> Result<Exit, Error> {
    let ReceiptsArguments { account, run, from, to, limit, json } = arguments;
    let run_id = match run {
        Some(reference) => Some(reference.in_store(store).await?),
        None => None,
    };
    let time = |when: Option<When>| when.map(|when| UnixMillis(when.unix_millis()));
    let filter = ReceiptFilter { account, run_id, from: time(from), until: time(to), before: None };
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

fn table(receipts: &[StoredReceipt]) -> Table<8> {
    let mut table = Table::new(["CALLED", "ACCOUNT", "RUN", "MODEL", "INPUT", "OUTPUT", "AMOUNT", "REASON"]);
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
            receipt.reason.word().to_owned(),
        ]);
    }
    table
}

fn amount(receipt: &Receipt) -> String {
    match receipt.reason {
        ChargeReason::Unpriced => "?".to_owned(),
        ChargeReason::PriceTable => format!("~{}", receipt.amount),
        ChargeReason::UpstreamCost
        | ChargeReason::FreeModel
        | ChargeReason::NoUsage
        | ChargeReason::Reconciled => receipt.amount.to_string(),
    }
}

fn receipt_json(StoredReceipt { receipt, created }: &StoredReceipt) -> Value {
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
