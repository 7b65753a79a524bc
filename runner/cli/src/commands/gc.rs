//! Implements `sluice runs gc`: removes leftover resources of ended runs, and explains why others stay.

use std::io::{self, Write};

use platform_runtime::terminal;
use runner_engine::reaper::{GcMode, GcOutcome, GcReport, Leftovers, Mode, Reaper};

use super::{Context, Error, exit::Exit, table::Table};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    on_request: OnRequest,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Resources that are removed only on request.
#[derive(clap::Args)]
struct OnRequest {
    /// Also remove resources unknown to this store: containers with this installation's label and name, grants at its
    /// proxy, workspaces in its directory. Do not use it where others share these
    #[arg(long)]
    unknown: bool,
    /// Also remove workspaces that were kept on purpose when their runs ended, those of threads included
    #[arg(long)]
    kept: bool,
}

pub(super) async fn gc(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { dry_run, on_request, json } = arguments;
    let remove_if = |requested| if requested { Leftovers::Remove } else { Leftovers::Leave };
    let gc_mode = if dry_run { GcMode::DryRun } else { GcMode::Apply };
    let mode =
        Mode { act: gc_mode, unknown: remove_if(on_request.unknown), kept: remove_if(on_request.kept) };
    let report = Reaper::of(&context.settings, context.serving_store().await?).pass(mode).await;
    let mut out = io::stdout();
    if json {
        writeln!(out, "{}", terminal::safe_json(&serde_json::to_string(&report)?))?;
    } else {
        print_report(&mut out, &report)?;
    }
    Ok(exit_code(&report))
}

/// Returns the exit code for a pass with this `report`.
pub(super) fn exit_code(report: &GcReport) -> Exit {
    let failed = |outcome: &GcOutcome| matches!(outcome, GcOutcome::Failed { .. });
    if !report.unreadable.is_empty() {
        Exit::Unavailable
    } else if report.entries.iter().any(|entry| failed(&entry.outcome)) {
        Exit::Failure
    } else {
        Exit::Success
    }
}

/// Prints a report for people.
pub(super) fn print_report(out: &mut impl Write, report: &GcReport) -> io::Result<()> {
    for unreadable in &report.unreadable {
        let error = terminal::safe(&unreadable.error).replace('\n', " ");
        writeln!(out, "{} was not looked at: {error}", unreadable.part)?;
    }
    let mut table = Table::new(["RESOURCE", "NAME", "RUN", "OUTCOME", "REASON"]);
    for entry in &report.entries {
        let run = entry.run_id.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let why = match &entry.outcome {
            GcOutcome::Failed { error } => format!("{}; {error}", entry.why),
            _ => entry.why.clone(),
        };
        let kind = entry.kind.name().to_owned();
        let outcome = entry.outcome.name().to_owned();
        table.row([kind, entry.name.clone(), run, outcome, why]);
    }
    if !report.entries.is_empty() {
        write!(out, "{table}")?;
    }
    let names = ["removed", "was gone", "would be removed", "failed", "unknown", "kept"];
    let counts: Vec<_> = names
        .into_iter()
        .map(|name| (name, report.count(name)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    writeln!(out, "{}", if counts.is_empty() { "nothing is left".to_owned() } else { counts.join(", ") })
}
