//! Keeps workspaces: the file systems that containers see as `/workspace`, each with an id and a lifetime of its own.
//!
//! ```text
//! root/        mode 0700; containers have trees mounted, so no other user has to enter
//!   <id>/      one workspace
//!     image    a file system in a sparse file, where the host allows that
//!     start/   mounted in a warm container; its start file appears here
//!     tree/    what the container sees: the image's mount point, or else a directory that is watched
//! ```
//!
//! With an image, an agent can fill its own file system and nothing else. An unmount removes everything it leaves
//! there. A tree belongs to its agent: the host reads it through [`Workspace::read`] alone. The store, not this
//! module, records which run has which workspace and for how long.
//!
//! Does not follow a link that an agent created, and runs nothing in a workspace.
//!
//! Start reading at [`Workspaces`] and [`Workspace`].
//!
//! Invariants: reads go through `openat2` beneath the tree. Only plain files are read.

mod conversation;
mod disk_space;
mod error;
mod image;
mod place;
mod program;
mod reading;
mod start;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    fs,
    path::{Path, PathBuf, absolute},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use platform_core::{id::WorkspaceId, limit::ByteSize, start::Start};
use platform_runtime::{
    random, report,
    settings::{Sandbox, WorkspaceForm},
    socket::private_dir,
};
use runner_model::conversation::Message;
use tokio::{sync::oneshot, task::spawn_blocking};

use self::place::Place;
pub use self::{
    conversation::markdown as as_markdown,
    disk_space::{DiskSpace, InsufficientDisk},
    error::Error,
    watch::Exceeded,
};

/// Fewest files that any workspace may hold.
const FEWEST_FILES: u64 = 64;

/// Workspaces below one root, in the form this host allows. [`Workspaces::open`] decides the form once.
#[derive(Debug, Clone)]
pub struct Workspaces {
    site: Arc<Site>,
    /// Bounds of new workspaces, and of those that are adopted.
    bounds: Bounds,
}

#[derive(Debug)]
struct Site {
    root: PathBuf,
    form: Form,
    reserve: ByteSize,
    lasting: Lasting,
    /// Total size of the workspaces that are reserved and not made yet: on disk their demand cannot be seen.
    making: Mutex<u64>,
}

/// Reservation of disk space for a workspace until it is made. Released on drop.
#[derive(Debug)]
pub struct Reserved {
    site: Arc<Site>,
    size: ByteSize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *self.site.making() -= self.size.0;
    }
}

/// Form of new workspaces. An existing one keeps the form it was made in.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Image,
    Directory {
        /// Reason that images are not possible, unless the settings ask for directories.
        because: Option<String>,
    },
}

/// Failures that a workspace has to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// The end of its run, at most: if the machine goes down, its container is gone too.
    Run,
    /// A crash of the machine as well.
    Machine,
}

/// Bounds of a workspace's content.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    size: ByteSize,
    files: u64,
}

impl Bounds {
    const fn of(settings: &Sandbox) -> Self {
        Self { size: settings.workspace_size, files: settings.workspace_files }
    }

    /// Returns bounds of another size, with the number of files in the same proportion.
    fn sized(self, size: ByteSize) -> Self {
        let in_proportion = u128::from(self.files) * u128::from(size.0) / u128::from(self.size.0.max(1));
        let files = u64::try_from(in_proportion).unwrap_or(u64::MAX).max(FEWEST_FILES);
        Self { size, files }
    }
}

/// Purpose of a new workspace.
#[derive(Debug)]
enum For {
    /// A run, whose conversation is in it from the beginning.
    Run(Vec<Message>),
    /// A warm container that waits for a run.
    Waiting,
    /// A gateway, which sees these directories of it.
    Gateway(&'static [&'static str]),
}

/// Workspace that exists. Dropping it changes nothing.
#[derive(Debug)]
pub struct Workspace {
    tree: PathBuf,
    /// Directory in which a warm container waits for its start file.
    start: Option<PathBuf>,
    /// Bounds that only this process enforces, by measuring.
    watched: Option<watch::Watched>,
}

impl Workspaces {
    /// Makes the root if it is missing, and tries which form workspaces can have here, which takes some 20 ms.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(settings: &Sandbox) -> Result<Self, Error> {
        Self::lasting(settings, Lasting::Run)
    }

    /// Opens the root as [`Self::open`] does, for workspaces that survive what `lasting` says.
    pub fn lasting(settings: &Sandbox, lasting: Lasting) -> Result<Self, Error> {
        let configured = &settings.workspace_dir;
        let root = absolute(configured).map_err(Error::io("find", configured))?;
        place::private_root(&root)?;
        let tried = || image::attempt(&root, &settings.docker_socket);
        let form = match settings.workspaces {
            WorkspaceForm::Directory => Form::Directory { because: None },
            WorkspaceForm::Image => {
                tried().map_err(|source| Error::NoImages { source: Box::new(source) })?;
                Form::Image
            }
            WorkspaceForm::Auto => tried().map_or_else(
                |error| {
                    let because = report::chain(&error);
                    tracing::warn!(because, "workspaces are directories: images are not possible here");
                    Form::Directory { because: Some(because) }
                },
                |()| Form::Image,
            ),
        };
        let bounds = Bounds::of(settings);
        let site = Site { root, form, reserve: settings.disk_reserve, lasting, making: Mutex::default() };
        Ok(Self { site: Arc::new(site), bounds })
    }

    /// Returns the same place for workspaces of `size`, if one is given, with the number of files in the same
    /// proportion.
    pub fn sized(&self, size: Option<ByteSize>) -> Self {
        let bounds = size.map_or(self.bounds, |size| self.bounds.sized(size));
        Self { site: Arc::clone(&self.site), bounds }
    }

    /// Returns an id for a new workspace.
    pub fn new_id() -> WorkspaceId {
        WorkspaceId::from_random(random::bits())
    }

    /// Returns whether workspaces bound themselves.
    pub fn are_images(&self) -> bool {
        self.site.form == Form::Image
    }

    /// Returns the directory that holds all workspaces.
    pub fn root(&self) -> &Path {
        &self.site.root
    }

    /// Describes form, bounds and root for people.
    pub fn describe(&self) -> String {
        let (Site { root, form, .. }, Bounds { size, files }) = (&*self.site, self.bounds);
        let what = match form {
            Form::Image => "images".to_owned(),
            Form::Directory { because: None } => "watched directories".to_owned(),
            Form::Directory { because: Some(because) } => {
                format!("watched directories, because images are not possible here ({because}),")
            }
        };
        format!("{what} of {size} and {files} files in {}", root.display())
    }

    /// Makes workspace `id` with `conversation` in it. A failure leaves nothing behind. If the future is dropped
    /// early, the workspace is removed once it is made.
    pub async fn create(&self, id: &WorkspaceId, conversation: &[Message]) -> Result<Workspace, Error> {
        self.create_for(id, For::Run(conversation.to_owned())).await
    }

    /// Makes an empty workspace as [`Self::create`] does, for a warm container that waits for its run.
    pub async fn create_waiting(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        self.create_for(id, For::Waiting).await
    }

    /// Makes a workspace as [`Self::create`] does, for a gateway, which gets the directories `parts` and sees nothing
    /// else.
    pub async fn create_for_gateway(
        &self,
        id: &WorkspaceId,
        parts: &'static [&'static str],
    ) -> Result<Workspace, Error> {
        self.create_for(id, For::Gateway(parts)).await
    }

    async fn create_for(&self, id: &WorkspaceId, whom: For) -> Result<Workspace, Error> {
        let (site, bounds, id) = (Arc::clone(&self.site), self.bounds, id.clone());
        let (tell, told) = oneshot::channel();
        spawn_blocking(move || {
            let unheard = tell.send(site.create(&id, bounds, &whom));
            if let Err(Ok(_workspace)) = unheard
                && let Err(error) = site.place(&id).remove()
            {
                tracing::warn!(%id, error = report::chain(&error), "workspace stays behind");
            }
        });
        told.await.unwrap_or(Err(Error::Thread))
    }

    /// Returns workspace `id`, which exists. Where it needs a mount and has none, it is mounted again, and repaired
    /// before if the machine went down while it was in use.
    pub async fn adopt(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        let (site, bounds, id) = (Arc::clone(&self.site), self.bounds, id.clone());
        blocking(move || site.adopt(&id, bounds)).await
    }

    /// Returns whether `id` belongs to a warm container that has no start file yet.
    pub fn waits(&self, id: &WorkspaceId) -> bool {
        let start = self.site.place(id).start;
        start.is_dir() && !start::was_told(&start)
    }

    /// Removes workspace `id` in whatever state it is; a missing one is no error. If a container still uses an image,
    /// the image lives on for that container alone, until its end; a directory is emptied under it.
    pub async fn remove(&self, id: &WorkspaceId) -> Result<(), Error> {
        let place = self.site.place(id);
        blocking(move || place.remove()).await
    }

    /// Keeps workspace `id` for people to read: it becomes read-only and gives unused space back. Has no effect on a
    /// directory, which bounds nothing by itself.
    pub async fn keep(&self, id: &WorkspaceId) -> Result<(), Error> {
        let place = self.site.place(id);
        blocking(move || {
            if !place.has_image() || !place.is_mounted()? {
                return Ok(());
            }
            let trimmed = image::trim(&place);
            place.freeze().and(trimmed)
        })
        .await
    }

    /// Reserves disk space for one more workspace while it is made.
    pub fn reserve(&self) -> Result<Reserved, Error> {
        let (mut making, size) = (self.site.making(), self.bounds.size);
        self.disk_space_beside(*making)?.enough()?;
        *making += size.0;
        Ok(Reserved { site: Arc::clone(&self.site), size })
    }

    /// Lists the workspaces on disk, half-made ones included.
    pub(crate) fn list(&self) -> Result<Vec<WorkspaceId>, Error> {
        let unreadable = || Error::io("list", &self.site.root);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.site.root).map_err(unreadable())? {
            let name = entry.map_err(unreadable())?.file_name();
            found.extend(name.to_str().and_then(|name| WorkspaceId::parse(name).ok()));
        }
        Ok(found)
    }

    /// Returns the disk space for one more workspace. Asked before a run begins.
    pub fn disk_space(&self) -> Result<DiskSpace, Error> {
        let making = *self.site.making();
        self.disk_space_beside(making)
    }

    fn disk_space_beside(&self, making: u64) -> Result<DiskSpace, Error> {
        let Site { root, form, reserve, .. } = &*self.site;
        let promised = match form {
            Form::Image => {
                let growing: u64 = self.list()?.iter().map(|id| self.site.place(id).may_grow()).sum();
                growing.saturating_add(making)
            }
            // Their remaining demand is unknown: measuring it means a walk through all of them.
            Form::Directory { .. } => 0,
        };
        let files = match form {
            Form::Image => place::FILES,
            Form::Directory { .. } => self.bounds.files,
        };
        let needed = Bounds { size: self.bounds.size, files };
        DiskSpace::measure(root, needed, ByteSize(promised), *reserve)
            .map_err(Error::io("ask for the room in", root))
    }
}

/// Removes trials below `root` whose processes were killed.
pub async fn remove_forgotten(root: &Path) {
    let root = root.to_owned();
    drop(spawn_blocking(move || image::remove_forgotten(&root)).await);
}

/// Returns the tree of the workspace called `name` below `root`, which may not exist.
pub fn tree(root: &Path, name: &str) -> PathBuf {
    Place::of(root, name).tree
}

/// Unmounts workspace `id` below `root`, which is not in use. It stays on disk, and [`Workspaces::adopt`] takes it up
/// again. A missing one is no error.
pub async fn put_away(root: &Path, id: &WorkspaceId) -> Result<(), Error> {
    let place = Place::of(root, id.as_str());
    blocking(move || if place.tree.is_dir() { place.unmount() } else { Ok(()) }).await
}

/// Returns the bound that workspace `id` below `root`, made for `size`, exceeds, or as an image has nearly reached. A
/// missing workspace counts as empty.
pub async fn look(
    root: &Path,
    id: &WorkspaceId,
    (settings, size): (&Sandbox, ByteSize),
) -> Result<Option<Exceeded>, Error> {
    let (place, bounds) = (Place::of(root, id.as_str()), Bounds::of(settings).sized(size));
    blocking(move || {
        if place.has_image() {
            return if place.is_mounted()? { place.fullness() } else { Ok(None) };
        }
        if !place.tree.is_dir() {
            return Ok(None);
        }
        let looked = watch::Watched::new(&place.tree, bounds, ByteSize(0)).look();
        looked.map_err(Error::io("look through", &place.tree))
    })
    .await
}

/// Returns whether workspace `id` below `root` is an image and so bounds itself.
pub fn is_image(root: &Path, id: &WorkspaceId) -> bool {
    Place::of(root, id.as_str()).has_image()
}

/// Returns whether workspace `id` below `root` is an image that is not mounted.
pub fn is_away(root: &Path, id: &WorkspaceId) -> Result<bool, Error> {
    let place = Place::of(root, id.as_str());
    Ok(place.has_image() && !place.is_mounted()?)
}

/// Removes workspace `id` below `root`, whatever form new ones would have.
pub async fn remove(root: &Path, id: &WorkspaceId) -> Result<(), Error> {
    let place = Place::of(&absolute(root).map_err(Error::io("find", root))?, id.as_str());
    blocking(move || place.remove()).await
}

impl Site {
    fn making(&self) -> MutexGuard<'_, u64> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, id: &WorkspaceId) -> Place {
        Place::of(&self.root, id.as_str())
    }

    fn create(&self, id: &WorkspaceId, bounds: Bounds, whom: &For) -> Result<Workspace, Error> {
        let place = self.place(id);
        place.claim()?;
        let filled = self.fill(&place, bounds, whom);
        if filled.is_err()
            && let Err(error) = place.remove()
        {
            tracing::warn!(%id, error = report::chain(&error), "workspace stays behind");
        }
        filled?;
        Ok(self.workspace(place, bounds))
    }

    fn fill(&self, place: &Place, bounds: Bounds, whom: &For) -> Result<(), Error> {
        if self.form == Form::Image {
            image::make(place, bounds)?;
            image::mount(place, self.lasting)?;
        }
        place::give(&place.tree, place::DIRECTORY)?;
        match whom {
            For::Run(messages) => conversation::write(&place.tree, messages),
            For::Waiting => Ok(private_dir(&place.start, place::DIRECTORY)?),
            For::Gateway(parts) => parts.iter().try_for_each(|part| {
                let path = place.tree.join(part);
                fs::create_dir(&path).map_err(Error::io("make", &path))?;
                place::give(&path, place::DIRECTORY)
            }),
        }
    }

    fn adopt(&self, id: &WorkspaceId, bounds: Bounds) -> Result<Workspace, Error> {
        let place = self.place(id);
        if !place.tree.is_dir() {
            return Err(Error::Unknown { id: id.clone(), root: self.root.clone() });
        }
        if place.has_image() && !place.is_mounted()? {
            let mounted = image::mend(&place).and_then(|()| image::mount(&place, self.lasting));
            // Another process may have mounted it in the meantime.
            if mounted.is_err() && !place.is_mounted()? {
                mounted?;
            }
        }
        Ok(self.workspace(place, bounds))
    }

    fn workspace(&self, place: Place, bounds: Bounds) -> Workspace {
        let watched = (!place.has_image()).then(|| watch::Watched::new(&place.tree, bounds, self.reserve));
        let start = Some(place.start).filter(|start| start.is_dir());
        Workspace { tree: place.tree, start, watched }
    }
}

impl Workspace {
    /// Returns the directory that a container mounts as its workspace.
    pub fn path(&self) -> &Path {
        &self.tree
    }

    /// Returns the directory that a warm container mounts in addition, for its start file.
    pub fn start_dir(&self) -> Option<&Path> {
        self.start.as_deref()
    }

    /// Writes `conversation` into a workspace whose container is running and has no start file yet.
    pub async fn furnish(&self, conversation: &[Message]) -> Result<(), Error> {
        let (tree, conversation) = (self.tree.clone(), conversation.to_owned());
        blocking(move || conversation::write(&tree, &conversation)).await
    }

    /// Places the start file `start` for the warm container that waits with this workspace. The first caller wins;
    /// for later callers, and without a waiting container, this has no effect.
    pub async fn tell(&self, start: Start) -> Result<(), Error> {
        let Some(dir) = self.start.clone() else { return Ok(()) };
        blocking(move || start::tell(&dir, &start)).await
    }

    /// Returns the content of the file at `relative`. It must be a regular file with one name, below the tree,
    /// reached without a link, and of at most `most` bytes. Blocks for as long as the disk takes.
    #[cfg_attr(not(test), expect(dead_code, reason = "for what agents leave: results, bundles"))]
    pub(crate) fn read(&self, relative: &Path, most: ByteSize) -> Result<Vec<u8>, Error> {
        reading::read(&self.tree, relative, most)
    }

    /// Returns when the workspace exceeds its bounds and its agent has to be stopped. An image bounds itself: then
    /// this never returns. Cancel safe.
    pub async fn watch(&self) -> Exceeded {
        match &self.watched {
            Some(watched) => watched.exceeded().await,
            None => std::future::pending().await,
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or(Err(Error::Thread))
}
