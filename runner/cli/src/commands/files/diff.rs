//! Implements `sluice runs diff`: shows what a run changed in the files it received.

use std::io::{self, Write};

use platform_core::id::RunId;
use platform_runtime::terminal;
use runner_engine::{
    relay::CommitSummary,
    run_files::{RunFiles, RunFilesError},
};
use runner_files::{
    Change, Changes, DiffFigures, DiffReader, FileFigures, HiddenEntries, ResultTree, UnreadableEntry,
    stat_text,
};
use serde::Serialize;

use super::{
    super::{Context, Error, exit::Exit, git, palette::Palette},
    IgnoredFiles,
    run_and_paths::{ChosenFiles, RunAndPaths},
    text,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs diff run-19c1-5f0e                       show all changes
  sluice runs diff run-19c1-5f0e --stat                count changed lines by file
  sluice runs diff run-19c1-5f0e src                   show the changes of one directory
  sluice runs diff run-19c1-5f0e --json | jq '.files[].path'

Of a run on a repository, its commits come first.
On a terminal, characters that could control it or cannot be seen are shown as escapes in inverse
video. A pipe gets the bytes as they are. Do not pipe them into `git apply`: it checks none of the
files that git, shells and editors run by themselves, and cannot take binary files.
`sluice runs apply` does both.")]
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

/// Run, with its commits as far as they are listed.
#[derive(Clone, Copy)]
struct KnownRun<'r> {
    run_id: &'r RunId,
    commits: &'r [CommitSummary],
}

/// Differences of a run, for programs.
#[derive(Serialize)]
struct DiffJson<'d> {
    run_id: &'d RunId,
    commits: &'d [CommitSummary],
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

/// Takes the difference of one change at a time, so that all of them never are in memory.
pub(super) fn each(
    files: &RunFiles,
    result: &ResultTree,
    changes: &Changes,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Vec<FileFigures>, Error> {
    let reader = DiffReader { stage: &files.stage, result };
    let mut figures = Vec::new();
    for change in changes.all() {
        let diff = reader.diff(change)?;
        take(&diff.text)?;
        figures.push(FileFigures { path: change.path.clone(), figures: diff.figures });
    }
    Ok(figures)
}

pub(in super::super) async fn diff(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { choice, stat, json, ignored } = arguments;
    let store = context.store().await?;
    let ChosenFiles { run_id, paths } = choice.in_store(&store).await?;
    let relay = git::known(&store, &run_id).await?;
    let commits = relay.as_ref().map_or(&[][..], |record| &record.commits);
    let lines = relay.as_ref().map(git::commit_lines).unwrap_or_default();
    let files = match RunFiles::open(&store, &context.settings.sandbox, &run_id).await {
        // The commits outlive the workspace.
        Err(error @ (RunFilesError::NoLongerKept { .. } | RunFilesError::Files(_)))
            if !commits.is_empty() =>
        {
            if json {
                let commits = serde_json::json!({ "run_id": run_id, "commits": commits });
                writeln!(io::stdout(), "{}", terminal::safe_json(&commits.to_string()))?;
            } else {
                io::stdout().write_all(lines.as_bytes())?;
            }
            writeln!(io::stderr(), "no files: {error}")?;
            return Ok(Exit::Success);
        }
        files => files?,
    };
    let result = files.result(ignored.scope())?;
    let changes = Changes::between(&files.stage, &result)?.within(&paths);
    if json {
        let known = KnownRun { run_id: &run_id, commits };
        print_json(known, &files, &changes, &result)?;
        return Ok(Exit::Success);
    }
    io::stdout().write_all(lines.as_bytes())?;
    let palette = Palette::of(&io::stdout(), &context.sources.environment);
    let mut print = |text: &[u8]| if stat { Ok(()) } else { text::print_diff(text, palette) };
    let figures = each(&files, &result, &changes, &mut print)?;
    if stat {
        io::stdout().write_all(stat_text(&figures).as_bytes())?;
    }
    text::print_notes(&changes, result.hidden())?;
    Ok(Exit::Success)
}

fn print_json(
    known: KnownRun<'_>,
    files: &RunFiles,
    changes: &Changes,
    result: &ResultTree,
) -> Result<(), Error> {
    let mut text = Vec::new();
    let figures = each(files, result, changes, &mut |diff| {
        text.extend_from_slice(diff);
        Ok(())
    })?;
    let sum = |count: fn(&DiffFigures) -> u64| figures.iter().map(|file| count(&file.figures)).sum();
    let both = changes.all().iter().zip(&figures);
    let KnownRun { run_id, commits } = known;
    let json = DiffJson {
        run_id,
        commits,
        files: both.map(|(change, file)| FileJson { change, figures: &file.figures }).collect(),
        insertions: sum(DiffFigures::insertions),
        deletions: sum(DiffFigures::deletions),
        unreadable: changes.unreadable(),
        hidden: result.hidden(),
        diff: String::from_utf8_lossy(&text).into_owned(),
    };
    writeln!(io::stdout(), "{}", terminal::safe_json(&serde_json::to_string(&json)?))?;
    Ok(())
}
