//! Implements `sluice billing reconcile`: compares receipts with the upstream's ledger, and prints what differs.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use platform_core::untrusted::JournalText;
use platform_runtime::{
    retry::{Backoff, retry_until},
    terminal,
};
use runner_audit::When;
use runner_billing::{PassBound, ReconcileError, ReconcileFrom, Reconciler, Reconciliation, UnreadablePart};
use runner_control_client::DataPlane;
use runner_model::reconciliation::Finding;
use runner_store::{LedgerDifference, LedgerReport, UnixMillis};
use runner_telemetry::metrics::Metrics;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::commands::{Context, Error, exit::Exit, table::Table, times::format_time};

/// Delay before the next try while another process reads the ledger, and time after its lease.
const RETRY_DELAY: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Calls that began at this time or later: a time (RFC 3339), a day (UTC), or a time ago (`90m`). Without it, those that no reconciliation has read; at first, those of the last day
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Most differences to list of receipts, and of rows
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    limit: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub(super) async fn reconcile(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { since, limit, json } = arguments;
    let settings = &context.settings;
    let from = match since {
        Some(time) => ReconcileFrom::Time(UnixMillis(time.unix_millis())),
        None => ReconcileFrom::Unread(None),
    };
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let lease = settings.worker.lease_duration;
    let reconciler = Reconciler::new(context.store().await?, data_plane, Arc::<Metrics>::default(), lease);
    let delay = settings.billing.ledger_delay;
    let deadline = Instant::now() + lease.duration() + GRACE;
    let is_busy = |error: &ReconcileError| matches!(error, ReconcileError::Busy);
    let reconciled = retry_until(deadline, Backoff::constant(RETRY_DELAY), is_busy, async || {
        reconciler.reconcile(from, delay, limit).await
    });
    let reconciliation = reconciled.await?;
    let mut out = io::stdout();
    if json {
        writeln!(out, "{}", terminal::safe_json(&to_json(&reconciliation).to_string()))?;
    } else {
        write_tables(&mut out, &reconciliation)?;
    }
    let Reconciliation { report, stopped, .. } = reconciliation;
    let differs = |(finding, count): (&Finding, &u64)| finding.is_difference() && *count > 0;
    let is_good = stopped.is_none() && !report.counts.iter().any(differs);
    Ok(if is_good { Exit::Success } else { Exit::Failure })
}

fn write_tables(out: &mut impl Write, reconciliation: &Reconciliation) -> io::Result<()> {
    let Reconciliation { span, report, unreadable, stopped } = reconciliation;
    let until = stopped.map_or(span.now, |_bound| span.until);
    writeln!(out, "Calls from {} to {}\n", format_time(span.from), format_time(until))?;
    let mut counts = Table::new(["OUTCOME", "COUNT"]);
    for (finding, count) in &report.counts {
        counts.row([finding.word().to_owned(), count.to_string()]);
    }
    write!(out, "{counts}")?;
    if !report.differences.is_empty() {
        write!(out, "\n{}", differences_table(report))?;
    }
    if !unreadable.is_empty() {
        write!(out, "\n{}", unreadable_table(unreadable))?;
    }
    if let Some(bound) = stopped {
        let bound = bound.words();
        writeln!(
            out,
            "\nStopped at the bound of {bound}. Run `sluice billing reconcile` again: it goes on there."
        )?;
    }
    Ok(())
}

fn differences_table(report: &LedgerReport) -> Table<6> {
    let mut table = Table::new(["OUTCOME", "BEGAN", "ACCOUNT", "MODEL", "RECEIPT OR ROW", "CALL"]);
    for difference in &report.differences {
        let LedgerDifference { finding, subject, call_id, account, model, began } = difference;
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            finding.word().to_owned(),
            format_time(*began),
            shown(account),
            shown(model),
            subject.clone(),
            shown(call_id),
        ]);
    }
    table
}

fn unreadable_table(parts: &[UnreadablePart]) -> Table<4> {
    let mut table = Table::new(["UNREADABLE", "BEGAN", "ROW", "SHA-256"]);
    for UnreadablePart { began, field, request_id, sha256 } in parts {
        let shown = |text: &Option<JournalText>| text.as_ref().map_or("-", JournalText::as_str).to_owned();
        table.row([field.to_string(), format_time(*began), shown(request_id), shown(sha256)]);
    }
    table
}

fn to_json(reconciliation: &Reconciliation) -> Value {
    let Reconciliation { span, report, unreadable, stopped } = reconciliation;
    let counts: Map<String, Value> =
        report.counts.iter().map(|(finding, count)| (finding.word().to_owned(), json!(count))).collect();
    let differences: Vec<_> = report.differences.iter().map(difference_json).collect();
    let unreadable: Vec<_> = unreadable.iter().map(unreadable_json).collect();
    let until = stopped.map_or(span.now, |_bound| span.until);
    json!({
        "from_ms": span.from, "until_ms": until, "counts": counts, "differences": differences,
        "unreadable": unreadable, "stopped": stopped.map(PassBound::words),
    })
}

fn unreadable_json(part: &UnreadablePart) -> Value {
    let UnreadablePart { began, field, request_id, sha256 } = part;
    json!({ "field": field, "request_id": request_id, "began_ms": began, "sha256": sha256 })
}

fn difference_json(difference: &LedgerDifference) -> Value {
    let LedgerDifference { finding, subject, call_id, account, model, began } = difference;
    let kind = if *finding == Finding::Missing { "source_reference" } else { "request_id" };
    json!({
        "outcome": finding.word(), kind: subject, "call_id": call_id, "account": account, "model": model,
        "began_ms": began,
    })
}
