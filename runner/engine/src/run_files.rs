//! Finds the files of a run: those it received, and the workspace with those it has now. Changes none of them.

use std::path::{Path, PathBuf};

use platform_core::{
    code::{Code, Coded},
    id::{InvalidId, RunId, WorkspaceId},
    json::{self, Bounds},
    limit::ByteSize,
    name::path::REPO_DIR,
};
use platform_runtime::settings::Sandbox;
use runner_files::{
    OutsideFiles, PlainFile, RelativePath, ResultBounds, ResultTree, Scope, Stage, TreeRoot, Unreadable,
    stages_dir,
};
use runner_model::{behaviour::BehaviourFile, lifecycle::State};
use runner_store::{Error as StoreError, Resource, ResourceKind, ResourceState, RunRecord, Store};
use runner_workspace::{self as workspace, Workspaces};
use tokio::task::spawn_blocking;

use crate::run_request::{RunRequest, RunSpec};

/// Reason why the files of a run cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum RunFilesError {
    /// The store failed, or has no such run.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run received no files, or they are damaged.
    #[error(transparent)]
    Files(#[from] runner_files::Error),
    /// The workspace cannot be mounted.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// The stored name of the workspace is not an id.
    #[error(transparent)]
    Id(#[from] InvalidId),
    /// The run has ended, and its workspace was removed since.
    #[error("the workspace of {run_id} is no longer kept: its files cannot be read any more")]
    NoLongerKept {
        /// The run.
        run_id: RunId,
    },
    /// The run has not ended, and has no workspace yet.
    #[error("{run_id} is {state} and has no workspace yet: `sluice runs wait {run_id}` waits for its end")]
    NotYet {
        /// The run.
        run_id: RunId,
        /// State of the run.
        state: State,
    },
}

impl Coded for RunFilesError {
    fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Files(error) => error.code(),
            Self::Workspace(error) => error.code(),
            Self::Id(error) => error.code(),
            Self::NoLongerKept { .. } => Code::FilesGone,
            Self::NotYet { .. } => Code::NoFilesYet,
        }
    }
}

/// Files of a run: those it received, and the workspace with those it has now.
#[derive(Debug)]
pub struct RunFiles {
    /// State of the run.
    pub state: State,
    /// The files that the run received.
    pub stage: Stage,
    /// Bounds of a copy of the files.
    pub bounds: ResultBounds,
    tree: PathBuf,
    /// Request of the run, unless its texts were removed.
    request: Option<RunRequest>,
}

/// Finds the files beside the repository in the workspace `tree` of `request`. A thread's workspace keeps such files for
/// its next runs, so they are as they should be.
pub(crate) fn outside(request: &RunRequest, tree: &Path) -> OutsideFiles {
    match request.thread_workspace() {
        Some(_) => OutsideFiles::default(),
        None => OutsideFiles::of(tree, &BehaviourFile::ALL.map(BehaviourFile::name)),
    }
}

impl RunFiles {
    /// Finds the files of `run_id`, and mounts its kept workspace where that is necessary.
    ///
    /// # Errors
    /// If the run received no files, its workspace is not there, or the store fails.
    pub async fn open(store: &Store, sandbox: &Sandbox, run_id: &RunId) -> Result<Self, RunFilesError> {
        let record = store.record(run_id).await?;
        let root = &sandbox.workspace_dir;
        let stages = stages_dir(root);
        let staged = run_id.clone();
        let stage = spawn_blocking(move || Stage::open(&stages, &staged)).await;
        let stage = stage.map_err(|_panicked| workspace::Error::Thread)??;
        let is_present = |resource: &&Resource| {
            resource.kind == ResourceKind::Workspace
                && matches!(resource.stage, ResourceState::Made | ResourceState::Kept)
        };
        let state = record.run.state;
        let Some(resource) = record.resources.iter().rev().find(is_present) else {
            let run_id = run_id.clone();
            return Err(if state.is_final() {
                RunFilesError::NoLongerKept { run_id }
            } else {
                RunFilesError::NotYet { run_id, state }
            });
        };
        let id = WorkspaceId::parse(&resource.name)?;
        if workspace::is_unmounted(root, &id)? {
            mount(sandbox, &id).await?;
        }
        let bounds = ResultBounds { bytes: workspace_size(&record, sandbox), reserve: sandbox.disk_reserve };
        let tree = workspace::tree(root, &resource.name);
        Ok(Self { state, stage, bounds, tree, request: RunRequest::stored(&record).ok() })
    }

    /// Finds the files that the agent of the run left beside them. A request that cannot be read any more has none.
    #[must_use]
    pub fn outside(&self) -> OutsideFiles {
        self.request.as_ref().map(|request| outside(request, &self.tree)).unwrap_or_default()
    }

    /// Reads which files the run has now.
    ///
    /// # Errors
    /// If the workspace has no such files, or too many.
    pub fn result(&self, scope: Scope) -> Result<ResultTree, runner_files::Error> {
        ResultTree::read(&self.tree, &self.stage, scope)
    }

    /// Opens one of the files that the run has now, whatever ignore rules say. Follows no link.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason. A repository's own directory is as good as missing.
    pub fn open_file(&self, path: &RelativePath) -> Result<PlainFile, Unreadable> {
        if path.is_in_git_dir() {
            return Err(Unreadable::Missing);
        }
        let root = TreeRoot::open(&self.tree)?.subtree(Path::new(REPO_DIR))?;
        root.open_file(path.as_path())?.with_one_name()
    }
}

/// Mounts the kept workspace `id`, to be read alone.
async fn mount(sandbox: &Sandbox, id: &WorkspaceId) -> Result<(), RunFilesError> {
    let sandbox = sandbox.clone();
    let workspaces = spawn_blocking(move || Workspaces::open(&sandbox)).await;
    let workspaces = workspaces.map_err(|_panicked| workspace::Error::Thread)??;
    workspaces.adopt(id).await?;
    workspaces.keep(id).await?;
    Ok(())
}

/// Returns the size of the workspace that the run of `record` was ordered with.
fn workspace_size(record: &RunRecord, sandbox: &Sandbox) -> ByteSize {
    let spec = json::from_str::<RunSpec>(&record.wanted, Bounds::STORED).ok();
    spec.and_then(|spec| spec.agent.disk).unwrap_or(sandbox.workspace_size)
}
