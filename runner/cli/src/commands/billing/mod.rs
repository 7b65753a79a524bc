//! Implements `sluice billing`: receipts of calls, their reconciliation, and the balances and statements of accounts.

mod balance;
mod credit;
mod export;
mod receipts;
mod reconcile;
mod statement;

use super::{Context, Error, exit::Exit};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List receipts of calls, those of the newest calls first
    ///
    /// Each call that was sent upstream has one receipt, moments after its end. A receipt is never changed: a correction
    /// is its own receipt, with the difference.
    #[command(after_help = "\
Examples:
  sluice billing receipts --account acct-7
  sluice billing receipts --run run-19c1-5f0e --json
  sluice billing receipts --from 2026-11-01 --to 2026-12-01 -n 10000 --json > november.json

Reasons for an amount:
  upstream_cost  the upstream told the cost
  price_table    prices of the configuration or of LiteLLM's list gave it: an estimate
  unconfirmed    upstream and prices differ by more than 5 %: the higher, until the ledger decides
  free_model     billing.free_models lists the model
  no_usage       the call used no tokens
  unpriced       the price is unknown, and the amount 0 until it is corrected
  reconciled     the upstream's ledger has another cost: the difference
In tables ~ marks an estimate.")]
    Receipts(receipts::Arguments),
    /// Compare receipts with LiteLLM's spend logs, correct them, and list what differs
    ///
    /// Reads the logs through the proxy, which holds the key. May be repeated, and goes on where it was stopped. LiteLLM
    /// needs a database, and version 1.80.10 or a later one.
    #[command(after_help = "\
Examples:
  sluice billing reconcile
  sluice billing reconcile --since 2026-11-01
  sluice billing reconcile --since 24h --json

Outcomes:
  agreed       receipt and ledger have the same amount
  corrected    they had not: an adjusting receipt has the difference
  unpriced     the ledger knows no price either, so the receipt stays
  unconfirmed  upstream and [prices] gave different costs, so the row decides
  late         the row came after its call was counted as missing
  missing      a receipt without a row
  collapsed    several calls were written to one row
  foreign      a row of no call of this installation, or of another account than the call's
  unreadable   a row that is not as LiteLLM writes it, or a second that has no end: their calls stay as they are
Exit code 1 if there are late, missing, collapsed, foreign or unreadable ones, or if it stopped at a bound. A late or
unconfirmed call has one of the other outcomes, too.")]
    Reconcile(reconcile::Arguments),
    /// Write all receipts, one a line, as NDJSON or CSV
    ///
    /// Reads them in pages: memory stays small, however many they are.
    #[command(after_help = "\
Examples:
  sluice billing export --account acct-7 --month 2026-11 --format csv > november.csv
  sluice billing export | jq 'select(.charge_reason == \"unpriced\").model'")]
    Export(export::Arguments),
    /// Give an account credits: a top-up
    ///
    /// With a key that was used before, nothing changes. Without one, each command is another top-up. A negative number
    /// takes credits back.
    #[command(after_help = "\
Examples:
  sluice billing credit --account acct-7 5000000
  sluice billing credit --account acct-7 5000000 --key invoice-1037 --note 'invoice 1037'
  sluice billing credit --account acct-7 --note 'mistyped' -- -4500000")]
    Credit(credit::Arguments),
    /// Show the balances of accounts: their top-ups less the credits of their receipts
    #[command(after_help = "\
Examples:
  sluice billing balance
  sluice billing balance --account acct-7 --json | jq .balances[0].credits")]
    Balance(balance::Arguments),
    /// Show what an account was given and used within a month
    ///
    /// A receipt belongs to the month in which it was stored. The statement of a month that has ended never changes: a
    /// later correction is in the month in which it was made.
    #[command(after_help = "\
Examples:
  sluice billing statement --account acct-7         of this month, so far
  sluice billing statement --account acct-7 --month 2026-11 --format csv > acct-7.csv
  sluice billing statement --account acct-7 --month 2026-11 --format json | jq .closing")]
    Statement(statement::Arguments),
}

pub(super) async fn billing(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Receipts(arguments) => receipts::receipts(&context.store().await?, arguments).await,
        Command::Reconcile(arguments) => reconcile::reconcile(context, arguments).await,
        Command::Export(arguments) => export::export(&context.store().await?, arguments).await,
        Command::Credit(arguments) => credit::credit(&context.serving_store().await?, arguments).await,
        Command::Balance(arguments) => balance::balance(context, arguments).await,
        Command::Statement(arguments) => statement::statement(&context.store().await?, arguments).await,
    }
}
