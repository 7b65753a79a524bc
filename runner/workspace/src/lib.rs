//! Keeps workspaces: the file systems that containers see as `/workspace`, each with an id and its own lifetime.
//!
//! ```text
//! root/        mode 0700; containers have trees mounted, so no other user has to enter
//!   <id>/      one workspace
//!     image    a file system in a sparse file, where the host allows that
//!     start/   mounted in a warm container; its start file appears here
//!     tree/    what the container sees: the image's mount point, or else a directory that is watched
//! ```
//!
//! A workspace that is removed is first renamed to `.removing-*`, so no reader takes what is left of it for the whole.
//!
//! With an image, an agent can fill its own file system and nothing else. An unmount removes everything it leaves
//! there. A tree belongs to its agent: the host reads it through `runner_files::TreeRoot` alone. The store, not this
//! module, records which run has which workspace and for how long.
//!
//! Does not follow a link that an agent created, and runs nothing in a workspace.
//!
//! Start reading at [`Workspaces`] and [`Workspace`].
//!
//! Invariants: reads go through `openat2` beneath the tree. Only plain files are read.

mod agent_dir;
mod behaviour;
mod bounds;
mod content;
mod conversation;
mod disk_space;
mod error;
mod image;
mod paths;
mod program;
mod refresh;
mod reopen;
mod root;
mod start;
#[cfg(test)]
mod tests;
mod watch;
mod workspace;

use std::{
    fs,
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use platform_core::{
    id::{RunId, WorkspaceId},
    limit::ByteSize,
};
use platform_runtime::{
    random, report,
    settings::{Sandbox, WorkspaceBounds, WorkspaceForm},
    sync::Mutex,
    task::blocking,
};
use runner_files::{Stage, StagedFiles};
use tokio::{sync::oneshot, task::spawn_blocking};

pub use self::{
    agent_dir::make_agent_dir,
    bounds::Durability,
    content::InitialContent,
    conversation::markdown as as_markdown,
    disk_space::{DiskSpace, InsufficientDisk},
    error::Error,
    reopen::WorkspaceLock,
    watch::Exceeded,
    workspace::Workspace,
};
use self::{
    paths::WorkspacePaths,
    root::{Form, Purpose, WorkspaceRoot},
};

/// Workspaces below one root, in the form this host allows. [`Workspaces::open`] decides the form once.
#[derive(Debug, Clone)]
pub struct Workspaces {
    root: Arc<WorkspaceRoot>,
    /// Bounds of new workspaces, and of those that are adopted.
    bounds: WorkspaceBounds,
    /// Failures that workspaces have to survive from their next mount on.
    durability: Durability,
}

/// Reservation of disk space for a workspace that is being created. Released on drop.
#[derive(Debug)]
pub struct Reserved {
    root: Arc<WorkspaceRoot>,
    size: ByteSize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *self.root.reserved.lock() -= self.size.0;
    }
}

impl Workspaces {
    /// Creates the root if it is missing, and tests which form workspaces can have here. The test takes some 20 ms.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(settings: &Sandbox) -> Result<Self, Error> {
        Self::with_durability(settings, Durability::Run)
    }

    /// Opens the root as [`Self::open`] does, for workspaces of another `durability`.
    pub fn with_durability(settings: &Sandbox, durability: Durability) -> Result<Self, Error> {
        let configured = &settings.workspace_dir;
        let root = absolute(configured).map_err(Error::io("find", configured))?;
        paths::private_root(&root)?;
        let try_image = || image::try_image(&root, &settings.docker_socket);
        let form = match settings.workspaces {
            WorkspaceForm::Directory => Form::Directory { because: None },
            WorkspaceForm::Image => {
                try_image().map_err(|source| Error::NoImages { source: Box::new(source) })?;
                Form::Image
            }
            WorkspaceForm::Auto => try_image().map_or_else(
                |error| {
                    let because = report::chain(&error);
                    tracing::warn!(because, "workspaces are directories: images are not possible here");
                    Form::Directory { because: Some(because) }
                },
                |()| Form::Image,
            ),
        };
        let bounds = settings.workspace_bounds(None);
        let root =
            WorkspaceRoot { path: root, form, reserve: settings.disk_reserve, reserved: Mutex::default() };
        Ok(Self { root: Arc::new(root), bounds, durability })
    }

    /// Creates the root if it is missing, and checks that it is private and can be written. Tests no form.
    pub fn check_root(settings: &Sandbox) -> Result<(), Error> {
        let configured = &settings.workspace_dir;
        paths::private_root(&absolute(configured).map_err(Error::io("find", configured))?)
    }

    /// Returns the same root for workspaces of `size`, if one is given, with the number of files in the same
    /// proportion.
    pub fn sized(&self, size: Option<ByteSize>) -> Self {
        let bounds = size.map_or(self.bounds, |size| self.bounds.sized(size));
        Self { root: Arc::clone(&self.root), bounds, durability: self.durability }
    }

    /// Returns an id for a new workspace.
    pub fn new_id() -> WorkspaceId {
        WorkspaceId::from_random(random::bits())
    }

    /// Returns whether new workspaces are images, which bound themselves.
    pub fn are_images(&self) -> bool {
        self.root.form == Form::Image
    }

    /// Returns the directory that holds all workspaces.
    pub fn root(&self) -> &Path {
        &self.root.path
    }

    /// Describes form, bounds and root for people.
    pub fn describe(&self) -> String {
        let WorkspaceRoot { path, form, .. } = &*self.root;
        let WorkspaceBounds { size, files } = self.bounds;
        let what = match form {
            Form::Image => "images".to_owned(),
            Form::Directory { because: None } => "watched directories".to_owned(),
            Form::Directory { because: Some(because) } => {
                format!("watched directories, because images are not possible here ({because}),")
            }
        };
        format!("{what} of {size} and {files} files in {}", path.display())
    }

    /// Creates workspace `id` with `content` in it. A failure leaves nothing behind. If the future is dropped early, the
    /// workspace is removed once it is created.
    pub async fn create(&self, id: &WorkspaceId, content: InitialContent) -> Result<Workspace, Error> {
        self.create_for(id, Purpose::Run(content)).await
    }

    /// Opens the files that were staged for run `run_id`.
    pub async fn files(&self, run_id: &RunId, staged: &StagedFiles) -> Result<Stage, Error> {
        let stages = runner_files::stages_dir(&self.root.path);
        let run_id = run_id.clone();
        let expected = staged.digest.clone();
        blocking(move || {
            let stage = Stage::open(&stages, &run_id)?;
            if stage.digest() == expected { Ok(stage) } else { Err(Error::OtherFiles { run_id }) }
        })
        .await
    }

    /// Removes the files that were staged for run `run_id`; missing ones are not an error.
    pub async fn remove_files(&self, run_id: &RunId) -> Result<(), Error> {
        remove_files(&self.root.path, run_id).await
    }

    /// Creates an empty workspace as [`Self::create`] does, for a warm container that waits for its run.
    pub async fn create_waiting(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        self.create_for(id, Purpose::Waiting).await
    }

    /// Creates a workspace as [`Self::create`] does, for a gateway, which gets the directories `parts` and sees nothing
    /// else.
    pub async fn create_for_gateway(
        &self,
        id: &WorkspaceId,
        parts: &'static [&'static str],
    ) -> Result<Workspace, Error> {
        self.create_for(id, Purpose::Gateway(parts)).await
    }

    async fn create_for(&self, id: &WorkspaceId, purpose: Purpose) -> Result<Workspace, Error> {
        let root = Arc::clone(&self.root);
        let Self { bounds, durability, .. } = *self;
        let id = id.clone();
        let (sender, receiver) = oneshot::channel();
        spawn_blocking(move || {
            let unreceived = sender.send(root.create(&id, bounds, durability, &purpose));
            if let Err(Ok(_workspace)) = unreceived
                && let Err(error) = root.paths(&id).remove()
            {
                tracing::warn!(%id, error = report::chain(&error), "workspace not removed; left for gc");
            }
        });
        receiver.await.unwrap_or(Err(Error::Thread))
    }

    /// Returns workspace `id`, which exists. Where it needs a mount and has none, it is mounted again, and repaired
    /// first if the machine went down while it was in use.
    pub async fn adopt(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        let root = Arc::clone(&self.root);
        let Self { bounds, durability, .. } = *self;
        let id = id.clone();
        blocking(move || root.adopt(&id, bounds, durability)).await
    }

    /// Returns whether `id` belongs to a warm container that has no start file yet.
    pub fn waits(&self, id: &WorkspaceId) -> bool {
        let start = self.root.paths(id).start;
        start.is_dir() && !start::is_placed(&start)
    }

    /// Removes workspace `id` in whatever state it is; a missing one is not an error. If a container still uses an image,
    /// the image lives on for that container alone, until its end; a directory is emptied under it.
    pub async fn remove(&self, id: &WorkspaceId) -> Result<(), Error> {
        let paths = self.root.paths(id);
        blocking(move || paths.remove()).await
    }

    /// Keeps workspace `id` for people to read: it becomes read-only and gives unused space back. Has no effect on a
    /// directory, which bounds nothing by itself.
    pub async fn keep(&self, id: &WorkspaceId) -> Result<(), Error> {
        let paths = self.root.paths(id);
        blocking(move || {
            if !paths.has_image() || !paths.is_mounted()? {
                return Ok(());
            }
            let trimmed = image::trim(&paths);
            paths.make_read_only().and(trimmed)
        })
        .await
    }

    /// Reserves disk space for one more workspace while it is created.
    pub fn reserve(&self) -> Result<Reserved, Error> {
        let size = self.bounds.size;
        let mut reserved = self.root.reserved.lock();
        self.disk_space_with(*reserved)?.enough()?;
        *reserved += size.0;
        Ok(Reserved { root: Arc::clone(&self.root), size })
    }

    /// Lists the workspaces on disk, incomplete ones included.
    pub(crate) fn list(&self) -> Result<Vec<WorkspaceId>, Error> {
        let unreadable = || Error::io("list", &self.root.path);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root.path).map_err(unreadable())? {
            let name = entry.map_err(unreadable())?.file_name();
            found.extend(name.to_str().and_then(|name| WorkspaceId::parse(name).ok()));
        }
        Ok(found)
    }

    /// Returns the disk space for one more workspace, for the check before a run begins.
    pub fn disk_space(&self) -> Result<DiskSpace, Error> {
        let reserved = *self.root.reserved.lock();
        self.disk_space_with(reserved)
    }

    fn disk_space_with(&self, reserved: u64) -> Result<DiskSpace, Error> {
        let WorkspaceRoot { path, form, reserve, .. } = &*self.root;
        let promised = match form {
            Form::Image => {
                let growing: u64 = self.list()?.iter().map(|id| self.root.paths(id).possible_growth()).sum();
                growing.saturating_add(reserved)
            }
            // Their remaining demand is unknown: measuring it means a walk through all of them.
            Form::Directory { .. } => 0,
        };
        let files = match form {
            Form::Image => paths::MAX_OWN_FILES,
            Form::Directory { .. } => self.bounds.files,
        };
        let needed = WorkspaceBounds { size: self.bounds.size, files };
        DiskSpace::measure(path, needed, ByteSize(promised), *reserve)
            .map_err(Error::io("ask for the room in", path))
    }
}

/// Removes trials, unfinished copies and remains of workspaces below `root` after their processes were killed.
pub async fn remove_forgotten(root: &Path) {
    let root = root.to_owned();
    let remove = move || {
        image::remove_forgotten(&root);
        paths::delete_removed(&root);
        let stages = runner_files::stages_dir(&root);
        if let Err(error) = Stage::remove_unfinished(&stages) {
            tracing::warn!(error = report::chain(&error), "unfinished copies of files not removed");
        }
    };
    drop(spawn_blocking(remove).await);
}

/// Returns the tree of the workspace called `name` below `root`, which may not exist.
pub fn tree(root: &Path, name: &str) -> PathBuf {
    WorkspacePaths::of(root, name).tree
}

/// Unmounts workspace `id` below `root`, which is not in use. It stays on disk, and [`Workspaces::adopt`] mounts it
/// again. A missing one is not an error.
pub async fn unmount(root: &Path, id: &WorkspaceId) -> Result<(), Error> {
    let paths = WorkspacePaths::of(root, id.as_str());
    blocking(move || if paths.tree.is_dir() { paths.unmount() } else { Ok(()) }).await
}

/// Returns the bound that workspace `id` below `root`, created with `size`, exceeds, or as an image has nearly reached.
/// A missing workspace counts as empty.
pub async fn exceeded_bound(
    root: &Path,
    id: &WorkspaceId,
    settings: &Sandbox,
    size: ByteSize,
) -> Result<Option<Exceeded>, Error> {
    let paths = WorkspacePaths::of(root, id.as_str());
    let bounds = settings.workspace_bounds(Some(size));
    blocking(move || {
        if paths.has_image() {
            return if paths.is_mounted()? { paths.fullness() } else { Ok(None) };
        }
        if !paths.tree.is_dir() {
            return Ok(None);
        }
        let measured = watch::WatchedTree::new(&paths.tree, bounds, ByteSize(0)).measure();
        measured.map_err(Error::io("look through", &paths.tree))
    })
    .await
}

/// Returns whether workspace `id` below `root` is an image and so bounds itself.
pub fn is_image(root: &Path, id: &WorkspaceId) -> bool {
    WorkspacePaths::of(root, id.as_str()).has_image()
}

/// Returns whether workspace `id` below `root` is an image that is not mounted.
pub fn is_unmounted(root: &Path, id: &WorkspaceId) -> Result<bool, Error> {
    let paths = WorkspacePaths::of(root, id.as_str());
    Ok(paths.has_image() && !paths.is_mounted()?)
}

/// Removes the files staged below `root` for run `run_id`; missing ones are not an error.
pub async fn remove_files(root: &Path, run_id: &RunId) -> Result<(), Error> {
    let stages = runner_files::stages_dir(root);
    let run_id = run_id.clone();
    blocking(move || Ok(Stage::remove(&stages, &run_id)?)).await
}

/// Returns the space on disk that the files staged below `root` for run `run_id` use. Missing ones use none.
pub async fn files_usage(root: &Path, run_id: &RunId) -> Result<ByteSize, Error> {
    let stages = runner_files::stages_dir(root);
    let run_id = run_id.clone();
    blocking(move || Ok(Stage::disk_usage(&stages, &run_id)?)).await
}

/// Returns the space on disk that workspace `id` below `root` uses. A missing one uses none.
pub async fn disk_usage(root: &Path, id: &WorkspaceId) -> Result<ByteSize, Error> {
    let paths = WorkspacePaths::of(root, id.as_str());
    blocking(move || {
        if paths.has_image() {
            return Ok(paths.image_usage());
        }
        watch::size(&paths.tree).map_err(Error::io("look through", &paths.tree))
    })
    .await
}

/// Removes workspace `id` below `root`, whatever form new ones would have.
pub async fn remove(root: &Path, id: &WorkspaceId) -> Result<(), Error> {
    let paths = WorkspacePaths::of(&absolute(root).map_err(Error::io("find", root))?, id.as_str());
    blocking(move || paths.remove()).await
}
