//! Implements `sluice runs diff`: shows what a run changed in the files it received.

use std::io::{self, Write};

use platform_core::id::RunId;
use platform_runtime::terminal;
use runner_files::{
    Change, Changes, DiffFigures, DiffReader, FileFigures, HiddenEntries, ResultTree, Stage, UnreadableEntry,
    stat_text,
};
use serde::Serialize;

use super::{
    super::{Context, Error, exit::Exit, palette::Palette},
    IgnoredFiles, RunFiles,
    run_and_paths::{ChosenFiles, RunAndPaths},
    text,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs diff run-19c1-5f0e                       show all changes
  sluice runs diff run-19c1-5f0e --stat                count changed lines by file
  sluice runs diff run-19c1-5f0e src | git apply       take the changes of one directory
  sluice runs diff run-19c1-5f0e --json | jq '.files[].path'

On a terminal, characters that could control it or cannot be seen are shown as escapes in inverse video. A pipe
gets the bytes as they are.")]
pub(in super::super) struct Arguments {
    #[command(flatten)]
    choice: RunAndPaths,
    /// Count changed lines instead of showing them
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Print JSON instead of text, with the difference as one text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ignored: IgnoredFiles,
}

/// Differences of a run, for programs.
#[derive(Serialize)]
struct DiffJson<'d> {
    run_id: &'d RunId,
    files: Vec<FileJson<'d>>,
    insertions: u64,
    deletions: u64,
    unreadable: &'d [UnreadableEntry],
    hidden: &'d HiddenEntries,
    diff: String,
}

/// Difference of a file, for programs.
#[derive(Serialize)]
struct FileJson<'d> {
    #[serde(flatten)]
    change: &'d Change,
    figures: &'d DiffFigures,
}

/// Differences with their figures.
pub(super) struct Differences {
    pub(super) text: Vec<u8>,
    pub(super) figures: Vec<FileFigures>,
}

impl Differences {
    /// Reads the differences of all `changes`.
    pub(super) fn read(stage: &Stage, result: &ResultTree, changes: &Changes) -> Result<Self, Error> {
        let reader = DiffReader { stage, result };
        let mut differences = Self { text: Vec::new(), figures: Vec::new() };
        for change in changes.all() {
            let diff = reader.diff(change)?;
            differences.text.extend(diff.text);
            differences.figures.push(FileFigures { path: change.path.clone(), figures: diff.figures });
        }
        Ok(differences)
    }

    fn sum(&self, count: fn(&DiffFigures) -> u64) -> u64 {
        self.figures.iter().map(|file| count(&file.figures)).sum()
    }
}

pub(in super::super) async fn diff(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { choice, stat, json, ignored } = arguments;
    let store = context.store().await?;
    let ChosenFiles { run_id, paths } = choice.in_store(&store).await?;
    let files = RunFiles::open(context, &store, &run_id).await?;
    let result = files.result(ignored.scope())?;
    let changes = Changes::between(&files.stage, &result)?.within(&paths);
    let differences = Differences::read(&files.stage, &result, &changes)?;
    if json {
        print_json(&run_id, &changes, &result, &differences)?;
        return Ok(Exit::Success);
    }
    if stat {
        io::stdout().write_all(stat_text(&differences.figures).as_bytes())?;
    } else {
        text::print_diff(&differences.text, Palette::of(&io::stdout(), &context.sources.environment))?;
    }
    text::print_notes(&changes, result.hidden())?;
    Ok(Exit::Success)
}

fn print_json(
    run_id: &RunId,
    changes: &Changes,
    result: &ResultTree,
    differences: &Differences,
) -> Result<(), Error> {
    let both = changes.all().iter().zip(&differences.figures);
    let json = DiffJson {
        run_id,
        files: both.map(|(change, file)| FileJson { change, figures: &file.figures }).collect(),
        insertions: differences.sum(DiffFigures::insertions),
        deletions: differences.sum(DiffFigures::deletions),
        unreadable: changes.unreadable(),
        hidden: result.hidden(),
        diff: String::from_utf8_lossy(&differences.text).into_owned(),
    };
    writeln!(io::stdout(), "{}", terminal::safe_json(&serde_json::to_string(&json)?))?;
    Ok(())
}
