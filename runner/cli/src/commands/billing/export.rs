//! Implements `sluice billing export`.

use std::io::{self, BufWriter, Write};

use platform_core::{
    id::{AccountId, ExternalId},
    untrusted::JournalText,
};
use runner_audit::{When, csv};
use runner_model::receipt::Receipt;
use runner_store::{Month, ReceiptFilter, Store, StoredReceipt, UnixMillis};

use super::receipts::receipt_json;
use crate::commands::{Error, exit::Exit, times::format_time};

/// Receipts of a page: the memory that an export needs.
const PAGE: u32 = 1000;
const HEADER: &str = "called,created,source_system,source_reference,receipt_kind,account,user,run_id,attempt,call_id,\
                      graph,executor_type,model,input_tokens,output_tokens,tokens_source,nanodollars,credits,markup,\
                      credits_per_dollar,charge_reason,corrects\r\n";

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Only receipts of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Only receipts that were stored in this month (UTC), as in its statement
    #[arg(long, value_name = "YYYY-MM")]
    month: Option<Month>,
    /// Only calls that began at this time or later: a time (RFC 3339), a day (UTC), or a time ago (`90m`)
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// Only calls that began before this time
    #[arg(long, value_name = "TIME")]
    to: Option<When>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Ndjson)]
    format: ExportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// JSON objects, one a line
    Ndjson,
    /// Header line and a line per receipt (RFC 4180), safe to open in a spreadsheet
    Csv,
}

pub(super) async fn export(store: &Store, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { account, month, from, to, format } = arguments;
    let time = |when: Option<When>| when.map(|when| UnixMillis(when.unix_millis()));
    let mut filter =
        ReceiptFilter { account, month, from: time(from), until: time(to), ..ReceiptFilter::default() };
    let mut out = BufWriter::new(io::stdout());
    if format == ExportFormat::Csv {
        out.write_all(HEADER.as_bytes())?;
    }
    loop {
        let page = store.receipts(&filter, PAGE).await?;
        for receipt in &page {
            match format {
                ExportFormat::Ndjson => writeln!(out, "{}", receipt_json(receipt))?,
                ExportFormat::Csv => out.write_all(row(receipt).as_bytes())?,
            }
        }
        let Some(last) = page.last() else { break };
        filter.before = Some(last.place());
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Returns a receipt as a line of CSV.
fn row(StoredReceipt { receipt, created }: &StoredReceipt) -> String {
    let Receipt { source, reference, kind, account, user, agent, executor, model, tokens, .. } = receipt;
    let call = &reference.call;
    csv::format_line(&[
        format_time(UnixMillis(receipt.called_ms)).into(),
        format_time(*created).into(),
        source.word().into(),
        reference.to_string().into(),
        kind.word().into(),
        account.as_str().into(),
        user.as_ref().map(ExternalId::as_str).into(),
        call.run_id.as_str().into(),
        u64::from(call.attempt).into(),
        call.call_id.to_string().into(),
        agent.as_str().into(),
        executor.word().into(),
        model.as_ref().map(JournalText::as_str).into(),
        tokens.input.into(),
        tokens.output.into(),
        receipt.tokens_source.word().into(),
        receipt.amount.0.into(),
        receipt.credits.0.into(),
        receipt.rate.markup.to_string().into(),
        u64::from(receipt.rate.credits_per_dollar.get()).into(),
        receipt.reason.word().into(),
        receipt.corrects().map(ToString::to_string).into(),
    ])
}
