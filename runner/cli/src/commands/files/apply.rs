//! Implements `sluice runs apply`: writes the changes of a run into the directory its files came from.

use std::{
    io::{self, BufRead, IsTerminal, Read, Write},
    path::PathBuf,
};

use platform_runtime::terminal;
use runner_engine::run_files::RunFiles;
use runner_files::{Applicable, ApplyRules, Changes, Patterns, stat_text};
use serde_json::json;

use super::{
    super::{
        Context, Error,
        error::{Misused, NotEnded},
        exit::Exit,
        palette::Palette,
    },
    IgnoredFiles, diff,
    run_and_paths::{ChosenFiles, RunAndPaths},
    text,
};
use crate::plural::counted;

/// Longest answer to the question that is read.
const MAX_REPLY_LEN: u64 = 64;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs apply run-19c1-5f0e                         show the changes, ask, and write them
  sluice runs apply run-19c1-5f0e --dry-run               only check that they can be written
  sluice runs apply run-19c1-5f0e src --yes               write the changes of one directory
  sluice runs apply run-19c1-5f0e --allow '.github/**'    also change workflows

A file that was changed in the directory since the run began stops everything before anything is written. Links,
`.git` and files outside the directory are never written. Files that hooks, shells, editors, agents or
continuous integration run by themselves need --allow.")]
pub(in super::super) struct Arguments {
    #[command(flatten)]
    choice: RunAndPaths,
    /// Directory to write into [default: the one the files came from]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Also change files with this pattern that programs run by themselves; may be repeated
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    #[command(flatten)]
    consent: Consent,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ignored: IgnoredFiles,
}

/// Consent to write.
#[derive(clap::Args)]
struct Consent {
    /// Check the changes, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write without a question; required without a terminal
    #[arg(short, long)]
    yes: bool,
}

pub(in super::super) async fn apply(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { choice, to, allow, consent, json, ignored } = arguments;
    let allow = Patterns::parse(&allow).map_err(|error| Misused(error.to_string()))?;
    let asks = !consent.yes && !consent.dry_run;
    if asks && (json || !io::stdin().is_terminal()) {
        return Err(Misused(
            "`sluice runs apply` asks on a terminal: give --yes or --dry-run without one, and with --json"
                .to_owned(),
        )
        .into());
    }
    let store = context.store().await?;
    let ChosenFiles { run_id, paths } = choice.in_store(&store).await?;
    let files = RunFiles::open(&store, &context.settings.sandbox, &run_id).await?;
    if !files.state.is_final() {
        return Err(NotEnded { run_id, state: files.state }.into());
    }
    let result = files.result(ignored.scope())?;
    let changes = Changes::between(&files.stage, &result)?.within(&paths);
    if !json {
        let palette = Palette::of(&io::stdout(), &context.sources.environment);
        let mut print = |text: &[u8]| if asks { text::print_diff(text, palette) } else { Ok(()) };
        let figures = diff::each(&files, &result, &changes, &mut print)?;
        io::stdout().write_all(stat_text(&figures).as_bytes())?;
        text::print_notes(&changes, result.hidden())?;
    }
    let target = to.unwrap_or_else(|| files.stage.manifest().source_dir().to_owned());
    let rules = ApplyRules { allow, bounds: files.bounds };
    let judged = Applicable::judge(&result, &changes, &target, &rules)?;
    if consent.dry_run {
        let text = if json { dry_run_json(&judged) } else { dry_run_text(&judged) };
        writeln!(io::stdout(), "{text}")?;
        return Ok(Exit::Success);
    }
    if asks && !is_confirmed(&judged)? {
        return Ok(Exit::Cancelled);
    }
    let applied = judged.write()?;
    if json {
        writeln!(io::stdout(), "{}", terminal::safe_json(&serde_json::to_string(&applied)?))?;
    } else {
        let count = counted(applied.applied.len(), "file");
        writeln!(io::stdout(), "{count} changed in {}", applied.target.display())?;
    }
    Ok(Exit::Success)
}

fn dry_run_json(judged: &Applicable<'_>) -> String {
    let paths: Vec<_> = judged.paths().collect();
    let target = judged.target().display().to_string();
    terminal::safe_json(&json!({ "target": target, "would_apply": paths }).to_string())
}

fn dry_run_text(judged: &Applicable<'_>) -> String {
    format!("{} would change in {}", counted(judged.paths().count(), "file"), judged.target().display())
}

/// Asks the person at the terminal.
fn is_confirmed(judged: &Applicable<'_>) -> io::Result<bool> {
    let count = counted(judged.paths().count(), "file");
    write!(io::stderr(), "Change {count} in {}? [y/N] ", judged.target().display())?;
    let mut reply = String::new();
    io::stdin().lock().take(MAX_REPLY_LEN).read_line(&mut reply)?;
    Ok(matches!(reply.trim().to_lowercase().as_str(), "y" | "yes"))
}
