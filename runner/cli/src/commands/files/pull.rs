//! Implements `sluice runs pull`: copies the files of a run to a new directory.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use platform_runtime::terminal;
use runner_engine::run_files::RunFiles;
use serde_json::json;

use super::{
    super::{Context, Error, error::Misused, exit::Exit},
    IgnoredFiles,
    run_and_paths::{ChosenFiles, RunAndPaths},
};
use crate::plural::counted;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs pull run-19c1-5f0e                      copy all files to ./run-19c1-5f0e-files
  sluice runs pull run-19c1-5f0e dist --to /tmp/dist  copy one directory
  sluice runs pull run-19c1-5f0e --json | jq .skipped

Only plain files and directories are copied, and nothing is overwritten. Do not run anything among them before
you have read it: an untrusted agent wrote it.")]
pub(in super::super) struct Arguments {
    #[command(flatten)]
    choice: RunAndPaths,
    /// New or empty directory for the copy [default: ./RUN-files]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ignored: IgnoredFiles,
}

pub(in super::super) async fn pull(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { choice, to, json, ignored } = arguments;
    let store = context.store().await?;
    let ChosenFiles { run_id, paths } = choice.in_store(&store).await?;
    if paths.len() > 1 {
        return Err(Misused("a pull copies one path: name the directory that they are in".to_owned()).into());
    }
    let files = RunFiles::open(&store, &context.settings.sandbox, &run_id).await?;
    let to = to.unwrap_or_else(|| PathBuf::from(format!("{run_id}-files")));
    let pulled = files.result(ignored.scope())?.pull(paths.first(), &to, &files.bounds)?;
    let mut out = io::stdout();
    if json {
        let mut line = json!(pulled);
        line["run_id"] = json!(run_id);
        line["to"] = json!(to.display().to_string());
        writeln!(out, "{}", terminal::safe_json(&line.to_string()))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "{} copied to {}", counted(pulled.files, "file"), to.display())?;
    for entry in &pulled.skipped {
        writeln!(io::stderr(), "not copied: {} {}", entry.path, terminal::safe(&entry.why))?;
    }
    Ok(Exit::Success)
}
