//! Implements `sluice runs files`: lists the files a run has now, with the change of each.

use std::io::{self, Write};

use platform_runtime::terminal;
use runner_engine::run_files::RunFiles;
use runner_files::{ChangeForm, Changes, ListedFile, ResultForm, listing};
use serde_json::json;

use super::{
    super::{Context, Error, exit::Exit, run_reference::RunChoice, table::Table},
    IgnoredFiles, text,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs files run-19c1-5f0e
  sluice runs files run-19c1-5f0e --json | jq -r '.files[] | select(.change == \"added\").path'

Removed files are listed, too. Names are escaped where they could control a terminal.")]
pub(in super::super) struct Arguments {
    #[command(flatten)]
    choice: RunChoice,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ignored: IgnoredFiles,
}

pub(in super::super) async fn files(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { choice, json, ignored } = arguments;
    let store = context.store().await?;
    let run_id = choice.in_store(&store).await?;
    let files = RunFiles::open(&store, &context.settings.sandbox, &run_id).await?;
    let result = files.result(ignored.scope())?;
    let changes = Changes::between(&files.stage, &result)?;
    let listed = listing(&result, &changes);
    let mut out = io::stdout();
    if json {
        let line = json!({ "run_id": run_id, "files": listed, "hidden": result.hidden() }).to_string();
        writeln!(out, "{}", terminal::safe_json(&line))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["CHANGE", "SIZE", "PATH"]);
    listed.iter().for_each(|file| table.row(row(file)));
    write!(out, "{table}")?;
    text::print_notes(&changes, result.hidden())?;
    Ok(Exit::Success)
}

fn row(file: &ListedFile<'_>) -> [String; 3] {
    let change = match file.change {
        None => "-",
        Some(ChangeForm::Added) => "added",
        Some(ChangeForm::Deleted) => "deleted",
        Some(ChangeForm::Modified) => "modified",
        Some(ChangeForm::ModeChanged) => "mode",
        Some(ChangeForm::TypeChanged) => "type",
    };
    let size = match file.form {
        Some(ResultForm::File { size, .. }) => size.to_string(),
        Some(ResultForm::Link(_)) => "link".to_owned(),
        Some(ResultForm::Unreadable(_)) => "unreadable".to_owned(),
        Some(ResultForm::Directory) | None => "-".to_owned(),
    };
    [change.to_owned(), size, file.path.to_string()]
}
