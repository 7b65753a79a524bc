//! Implements `sluice billing statement`.

use std::{
    io::{self, Write},
    time::SystemTime,
};

use platform_core::{credits::Credits, id::AccountId, money::SignedNanoDollars, untrusted::JournalText};
use platform_runtime::terminal;
use runner_audit::csv::{self, Cell};
use runner_model::receipt::ReceiptKind;
use runner_store::{Month, Statement, Store, TopUp};
use serde_json::{Value, json};

use crate::commands::{Error, exit::Exit, table::Table, times::format_time};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// The account
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountId,
    /// The month, in UTC [default: this month]
    #[arg(long, value_name = "YYYY-MM")]
    month: Option<Month>,
    /// Output format
    #[arg(long, value_enum, default_value_t = StatementFormat::Table)]
    format: StatementFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatementFormat {
    /// Table for a terminal
    Table,
    /// Header line and the lines of the table (RFC 4180), safe to open in a spreadsheet
    Csv,
    /// JSON object
    Json,
}

pub(super) async fn statement(store: &Store, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { account, month, format } = arguments;
    let month = month.unwrap_or_else(|| Month::of(SystemTime::now()));
    let statement = store.statement(&account, month).await?;
    let mut out = io::stdout();
    match format {
        StatementFormat::Table => write!(out, "{}", table(&statement))?,
        StatementFormat::Csv => {
            out.write_all(b"entry,subject,receipts,input_tokens,output_tokens,nanodollars,credits\r\n")?;
            for entry in entries(&statement) {
                out.write_all(entry.csv().as_bytes())?;
            }
        }
        StatementFormat::Json => {
            writeln!(out, "{}", terminal::safe_json(&statement_json(&statement).to_string()))?
        }
    }
    Ok(Exit::Success)
}

/// Line of a statement.
struct StatementEntry {
    kind: &'static str,
    subject: String,
    usage: Option<EntryUsage>,
    /// Change of the balance; for the first and last entry, the balance.
    credits: Credits,
}

/// Usage that an entry charges.
struct EntryUsage {
    receipts: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost: SignedNanoDollars,
}

impl StatementEntry {
    const fn balance(kind: &'static str, credits: Credits) -> Self {
        Self { kind, subject: String::new(), usage: None, credits }
    }

    fn top_up(TopUp { top_up, created }: &TopUp) -> Self {
        let note = top_up.note.as_ref().map_or_else(|| top_up.key.to_string(), ToString::to_string);
        let subject = format!("{} {note}", format_time(*created));
        Self { kind: "top-up", subject, usage: None, credits: top_up.credits }
    }

    fn csv(&self) -> String {
        let usage = self.usage.as_ref();
        let count = |count: fn(&EntryUsage) -> u64| Cell::from(usage.map(count));
        csv::format_line(&[
            self.kind.into(),
            self.subject.clone().into(),
            count(|usage| usage.receipts),
            count(|usage| usage.input_tokens),
            count(|usage| usage.output_tokens),
            usage.map(|usage| usage.cost.0).into(),
            self.credits.0.into(),
        ])
    }
}

/// Returns the lines of a statement. The credits of the lines between the balances add up to their difference.
fn entries(statement: &Statement) -> Vec<StatementEntry> {
    let charges = statement.lines.iter().map(|line| StatementEntry {
        kind: match line.kind {
            ReceiptKind::ModelCall => "usage",
            ReceiptKind::Adjustment => "adjustment",
        },
        subject: line.model.as_ref().map_or("-", JournalText::as_str).to_owned(),
        usage: Some(EntryUsage {
            receipts: line.receipts,
            input_tokens: line.tokens.input,
            output_tokens: line.tokens.output,
            cost: line.cost,
        }),
        credits: -line.credits,
    });
    let mut entries = vec![StatementEntry::balance("opening", statement.opening)];
    entries.extend(statement.top_ups.iter().map(StatementEntry::top_up));
    entries.extend(charges);
    entries.push(StatementEntry::balance("closing", statement.closing()));
    entries
}

fn table(statement: &Statement) -> Table<7> {
    let mut table = Table::new(["ENTRY", "SUBJECT", "RECEIPTS", "INPUT", "OUTPUT", "COST", "CREDITS"]);
    for StatementEntry { kind, subject, usage, credits } in entries(statement) {
        let cells = usage.map(|usage| {
            [
                usage.receipts.to_string(),
                usage.input_tokens.to_string(),
                usage.output_tokens.to_string(),
                usage.cost.to_string(),
            ]
        });
        let [receipts, input, output, cost] = cells.unwrap_or_default();
        table.row([kind.to_owned(), subject, receipts, input, output, cost, credits.to_string()]);
    }
    table
}

fn statement_json(statement: &Statement) -> Value {
    let lines = statement.lines.iter().map(|line| {
        json!({
            "receipt_kind": line.kind.word(),
            "model": line.model,
            "receipts": line.receipts,
            "tokens": line.tokens,
            "nanodollars": line.cost,
            "credits": line.credits,
        })
    });
    json!({
        "account": statement.account,
        "month": statement.month,
        "opening": statement.opening,
        "top_ups": statement.top_ups,
        "paid_in": statement.paid_in(),
        "lines": lines.collect::<Vec<_>>(),
        "charged": statement.charged(),
        "closing": statement.closing(),
    })
}
