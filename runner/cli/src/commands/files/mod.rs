//! Implements the commands that show and take out the files of a run: `diff`, `files`, `pull` and `apply`.

pub(super) mod apply;
pub(super) mod diff;
pub(super) mod ls;
pub(super) mod pull;
mod run_and_paths;
mod text;
mod visible;

use std::path::PathBuf;

use platform_core::{
    id::{RunId, WorkspaceId},
    limit::ByteSize,
};
use platform_runtime::settings::Sandbox;
use runner_engine::request::RunSpec;
use runner_files::{ResultBounds, ResultTree, Scope, Stage, stages_dir};
use runner_model::lifecycle::State;
use runner_store::{Record, Resource, ResourceKind, ResourceState, Store};
use runner_workspace::{self as workspace, Workspaces};

use super::{Context, Error, error::Unknown};

/// Files of a run: those it received, and the workspace with those it has now.
struct RunFiles {
    state: State,
    stage: Stage,
    tree: PathBuf,
    bounds: ResultBounds,
}

/// Choice of files that ignore rules name.
#[derive(clap::Args)]
struct IgnoredFiles {
    /// Also take new files that the run's .gitignore names, such as build output
    #[arg(long)]
    all: bool,
}

impl IgnoredFiles {
    const fn scope(&self) -> Scope {
        if self.all { Scope::All } else { Scope::Tracked }
    }
}

impl RunFiles {
    /// Finds the files of `run_id`, and mounts its kept workspace where that is necessary.
    async fn open(context: &Context, store: &Store, run_id: &RunId) -> Result<Self, Error> {
        let record = store.record(run_id).await?;
        let sandbox = &context.settings.sandbox;
        let root = &sandbox.workspace_dir;
        let stage = Stage::open(&stages_dir(root), run_id)?;
        let is_present = |resource: &&Resource| {
            resource.kind == ResourceKind::Workspace
                && matches!(resource.stage, ResourceState::Made | ResourceState::Kept)
        };
        let state = record.run.state;
        let Some(resource) = record.resources.iter().rev().find(is_present) else {
            return Err(no_workspace(run_id, state).into());
        };
        let id = WorkspaceId::parse(&resource.name)?;
        if workspace::is_unmounted(root, &id)? {
            let workspaces = Workspaces::open(sandbox)?;
            workspaces.adopt(&id).await?;
            workspaces.keep(&id).await?;
        }
        let bounds = ResultBounds { bytes: workspace_size(&record, sandbox), reserve: sandbox.disk_reserve };
        Ok(Self { state, stage, tree: workspace::tree(root, &resource.name), bounds })
    }

    /// Reads which files the run has now.
    fn result(&self, scope: Scope) -> Result<ResultTree, Error> {
        Ok(ResultTree::read(&self.tree, &self.stage, scope)?)
    }
}

/// Returns the size of the workspace that the run of `record` was ordered with.
fn workspace_size(record: &Record, sandbox: &Sandbox) -> ByteSize {
    let spec = serde_json::from_str::<RunSpec>(&record.wanted).ok();
    spec.and_then(|spec| spec.agent.disk).unwrap_or(sandbox.workspace_size)
}

/// Returns the error for a run without a workspace.
fn no_workspace(run_id: &RunId, state: State) -> Unknown {
    Unknown(if state.is_final() {
        format!("the workspace of {run_id} is no longer kept: its files cannot be read any more")
    } else {
        format!("{run_id} is {state} and has no workspace yet: `sluice runs wait {run_id}` waits for its end")
    })
}
