//! Copies the directory that a run begins with, and says what was copied and what was left out.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use platform_runtime::{
    settings::{Execution, Sandbox},
    terminal,
};
use runner_engine::run_request::{Keep, RunRequest};
use runner_files::{
    CopyBounds, CopyProgress, CopyRules, FreshClone, Patterns, RelativePath, Scope, Selection, Stage,
    StagedFiles, size_text,
};
use runner_store::{self as store, Store};
use runner_workspace as workspace;

use super::roots::check_root;
use crate::{
    commands::{Context, Error, error::Misused, progress::ProgressLine, show::OutputArguments},
    plural::counted,
};

/// Most names of files with secrets which are printed.
const MAX_NAMED: usize = 5;

#[derive(clap::Args, Clone)]
pub(super) struct FilesArguments {
    /// Directory to copy into the sandbox; the agent starts in it. `sluice runs diff` shows what the agent changed
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Also copy files that .gitignore excludes
    #[arg(long, requires = "workspace")]
    all: bool,
    /// Also copy files that may hold secrets, such as .env and keys, if they match; may be repeated
    #[arg(long, value_name = "GLOB", requires = "workspace")]
    include: Vec<String>,
    /// Copy a fresh clone of the repository with its history, without remotes, hooks and configuration
    #[arg(long, requires = "workspace", conflicts_with_all = ["all", "include"])]
    git: bool,
}

/// Copier of files for the runs of one command.
pub(super) struct Staging<'s> {
    sandbox: &'s Sandbox,
    stages: PathBuf,
    /// Home directory of this process's user.
    home: Option<&'s Path>,
    output: OutputArguments,
}

impl<'s> Staging<'s> {
    pub(super) fn of(context: &'s Context, output: OutputArguments) -> Self {
        let sandbox = &context.settings.sandbox;
        let home = context.sources.environment.get("HOME").map(Path::new);
        Self { sandbox, stages: runner_files::stages_dir(&sandbox.workspace_dir), home, output }
    }

    /// Copies the files that `arguments` name for `request`, and adds them to it. Its workspace is then kept. Blocks for
    /// as long as the disk takes.
    pub(super) fn add(&self, request: &mut RunRequest, arguments: &FilesArguments) -> Result<(), Error> {
        let Some(dir) = arguments.workspace.as_deref() else { return Ok(()) };
        if request.spec.agent.mode == Execution::Gateway {
            return Err(Error::from(Misused(format!(
                "--workspace: runs of {} are sessions of a gateway, which has files of its own; choose an agent with mode = \"ephemeral\"",
                request.agent_id
            ))));
        }
        check_directory(dir)?;
        check_root(dir, self.home)?;
        workspace::Workspaces::check_root(self.sandbox)?;
        request.spec.files = Some(self.copy(request, arguments, dir)?);
        request.spec.keep = Keep::Workspace;
        Ok(())
    }

    /// Removes the copied files of a request that was not stored.
    pub(super) async fn discard(&self, store: &Store, request: &RunRequest) {
        if request.spec.files.is_none() {
            return;
        }
        if let Err(store::Error::Unknown { .. }) = store.record(&request.run_id).await {
            // What remains is listed by `sluice runs gc`.
            drop(workspace::remove_files(&self.sandbox.workspace_dir, &request.run_id).await);
        }
    }

    fn copy(
        &self,
        request: &RunRequest,
        arguments: &FilesArguments,
        dir: &Path,
    ) -> Result<StagedFiles, Error> {
        let bounds = self.bounds(request);
        if arguments.git {
            self.say(format_args!(
                "cloning {} with its history",
                terminal::safe(&dir.display().to_string())
            ))?;
            let clone = FreshClone::make(&self.stages, dir, bounds, self.sandbox.disk_reserve)?;
            self.announce_uncommitted(clone.uncommitted_files()?)?;
            self.announce_secrets(&clone.secret_files()?)?;
            let selection = clone.select(bounds)?;
            selection.git_gaps().lines().iter().try_for_each(|line| self.say(format_args!("{line}")))?;
            return self.stage(request, &selection);
        }
        let include =
            Patterns::parse(&arguments.include).map_err(|error| Misused(format!("--include: {error}")))?;
        let scope = if arguments.all { Scope::All } else { Scope::Tracked };
        if dir.join(".git").exists() {
            self.say(format_args!(
                "without .git: the agent sees no history and cannot commit (--git copies a clone with it)"
            ))?;
        }
        self.stage(request, &Selection::of(dir, &CopyRules { scope, include, bounds })?)
    }

    fn stage(&self, request: &RunRequest, selection: &Selection) -> Result<StagedFiles, Error> {
        selection.check_room(&self.stages, self.sandbox.disk_reserve)?;
        self.announce(selection)?;
        let mut progress = if self.output.json { None } else { ProgressLine::on_terminal() };
        let mut show = |copied| {
            if let Some(line) = &mut progress {
                line.draw(|_| copied_text(copied));
            }
        };
        Ok(Stage::write(&self.stages, &request.run_id, selection, &mut show)?)
    }

    /// Returns the bounds of the files for the agent of `request`.
    fn bounds(&self, request: &RunRequest) -> CopyBounds {
        CopyBounds::of_workspace(self.sandbox.workspace_bounds(request.spec.agent.disk))
    }

    /// Writes `line` to standard error, unless programs read the output.
    fn say(&self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        if self.output.json { Ok(()) } else { writeln!(io::stderr(), "{line}") }
    }

    /// Warns of committed secrets: no rule leaves them out, and a later commit that removes one leaves it in the history.
    fn announce_secrets(&self, secret: &[RelativePath]) -> io::Result<()> {
        if secret.is_empty() {
            return Ok(());
        }
        let count = counted(secret.len() as u64, "file");
        self.say(format_args!(
            "WARNING: the agent receives {count} that may hold secrets, now or in the history: {}",
            first_names(secret)
        ))
    }

    fn announce_uncommitted(&self, files: u64) -> io::Result<()> {
        if files == 0 {
            return Ok(());
        }
        let files = counted(files, "file");
        self.say(format_args!("{files} with uncommitted changes: --git copies the last commit without them"))
    }

    /// Says what will be copied, and what is left out.
    fn announce(&self, selection: &Selection) -> io::Result<()> {
        if self.output.json {
            return Ok(());
        }
        let dir = selection.source_dir().display().to_string();
        let dir = terminal::safe(&dir);
        let files = counted(selection.files(), "file");
        let mut err = io::stderr();
        writeln!(err, "copying {files}, {} from {dir}", size_text(selection.bytes()))?;
        let left_out = selection.left_out();
        if left_out.is_empty() {
            return Ok(());
        }
        let count = counted(left_out.len() as u64, "file");
        writeln!(
            err,
            "left out {count} that may hold secrets: {} (--include copies them)",
            first_names(left_out)
        )
    }
}

/// Returns the first of `paths` as a list.
fn first_names(paths: &[RelativePath]) -> String {
    let mut names: Vec<_> = paths.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if paths.len() > MAX_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// Refuses a path that is not a directory.
fn check_directory(dir: &Path) -> Result<(), Misused> {
    let misused = |why: String| Misused(format!("--workspace {}: {why}", dir.display()));
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(misused("not a directory: name the directory that the file is in".to_owned())),
        Err(error) => Err(misused(format!("{error}; name a directory that this user can read"))),
    }
}

/// Returns how far a copy is.
fn copied_text(copied: CopyProgress) -> String {
    let CopyProgress { files, bytes, all_files, all_bytes } = copied;
    let [bytes, all_bytes] = [bytes, all_bytes].map(size_text);
    format!("copied {files} of {all_files} files, {bytes} of {all_bytes}")
}
