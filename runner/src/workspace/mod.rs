//! Workspaces: what containers have as `/workspace`, each with an id and a lifetime of its own.
//!
//! ```text
//! root/        ours alone; a container has a tree mounted, so nobody else has to get in
//!   <id>/      one workspace
//!     image    a file system in a sparse file, where the host allows that
//!     start/   what a container that waits is told in, when it is to become a run's
//!     tree/    what the container sees: the image's mount point, or else a directory that is watched
//! ```
//!
//! With an image, an agent can fill its own file system and nothing else, and whatever it leaves there is gone with an
//! unmount. What is in a tree is an agent's: the host looks at it through [`Workspace::read`] alone. Who has which
//! workspace and for how long is not known here, but in the store.

mod conversation;
mod error;
mod image;
mod place;
mod reading;
mod room;
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
use tokio::{sync::oneshot, task::spawn_blocking};

use self::place::Place;
pub(crate) use self::{conversation::markdown as as_markdown, error::Error, room::Room, watch::Exceeded};
use crate::conversation::Message;

/// Fewest files that any workspace may hold.
const FEWEST_FILES: u64 = 64;

/// Where workspaces are, and what they are there. Decided once, in [`Workspaces::open`].
#[derive(Debug, Clone)]
pub(crate) struct Workspaces {
    site: Arc<Site>,
    /// Of new ones, and of those that are taken up.
    bounds: Bounds,
}

#[derive(Debug)]
struct Site {
    root: PathBuf,
    form: Form,
    reserve: ByteSize,
    lasting: Lasting,
    /// Sizes of those that have room and are not there yet, together: what they may take cannot be seen.
    making: Mutex<u64>,
}

/// Room for a workspace, until it is there. Given back on drop.
#[derive(Debug)]
pub(crate) struct Reserved {
    site: Arc<Site>,
    size: ByteSize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *self.site.making() -= self.size.0;
    }
}

/// What new workspaces are. Those that are there already are what they were made.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Image,
    Directory {
        /// Why not an image, if nobody chose so.
        because: Option<String>,
    },
}

/// What workspaces have to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// Their runs, at most: what does not outlive the machine has no container either.
    Run,
    /// The machine's failing, too.
    Machine,
}

/// What a workspace may hold.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    size: ByteSize,
    files: u64,
}

impl Bounds {
    const fn of(settings: &Sandbox) -> Self {
        Self { size: settings.workspace_size, files: settings.workspace_files }
    }

    /// Of another size, with files in the same proportion.
    fn sized(self, size: ByteSize) -> Self {
        let in_proportion = u128::from(self.files) * u128::from(size.0) / u128::from(self.size.0.max(1));
        let files = u64::try_from(in_proportion).unwrap_or(u64::MAX).max(FEWEST_FILES);
        Self { size, files }
    }
}

/// What a new workspace is for.
#[derive(Debug)]
enum For {
    /// A run that has its conversation in it from the beginning.
    Run(Vec<Message>),
    /// A container that waits for one.
    Waiting,
    /// A gateway, which has these directories of it.
    Gateway(&'static [&'static str]),
}

/// A workspace that is there. Dropping it changes nothing.
#[derive(Debug)]
pub(crate) struct Workspace {
    tree: PathBuf,
    /// Where its container waits to be told what it becomes, if it does.
    start: Option<PathBuf>,
    /// What nobody but us enforces.
    watched: Option<watch::Watched>,
}

impl Workspaces {
    /// Makes the root if it is not there, and tries what a workspace can be here: takes some 20 ms.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn open(settings: &Sandbox) -> Result<Self, Error> {
        Self::lasting(settings, Lasting::Run)
    }

    /// The same for workspaces that have to survive more or less.
    pub(crate) fn lasting(settings: &Sandbox, lasting: Lasting) -> Result<Self, Error> {
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

    /// The same place, for workspaces of another size, if there is one; with files in the same proportion.
    pub(crate) fn sized(&self, size: Option<ByteSize>) -> Self {
        let bounds = size.map_or(self.bounds, |size| self.bounds.sized(size));
        Self { site: Arc::clone(&self.site), bounds }
    }

    /// An id for a new workspace.
    pub(crate) fn new_id() -> WorkspaceId {
        WorkspaceId::from_random(random::bits())
    }

    /// Whether they bound themselves.
    pub(crate) fn are_images(&self) -> bool {
        self.site.form == Form::Image
    }

    /// Where they are.
    pub(crate) fn root(&self) -> &Path {
        &self.site.root
    }

    /// What workspaces are here, for people.
    pub(crate) fn describe(&self) -> String {
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

    /// Makes workspace `id` with `conversation` in it. Nothing is left when this fails; dropped before its end, it removes
    /// again what it makes.
    pub(crate) async fn create(
        &self,
        id: &WorkspaceId,
        conversation: &[Message],
    ) -> Result<Workspace, Error> {
        self.create_for(id, For::Run(conversation.to_owned())).await
    }

    /// The same, empty, for a container that waits for its run.
    pub(crate) async fn create_waiting(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        self.create_for(id, For::Waiting).await
    }

    /// The same for a gateway, which is given these directories of it and sees nothing else.
    pub(crate) async fn create_for_gateway(
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

    /// Workspace `id`, which is there already. Where it needs a mount and has none, it is mounted again, and mended
    /// before if the machine went down while it was in use.
    pub(crate) async fn adopt(&self, id: &WorkspaceId) -> Result<Workspace, Error> {
        let (site, bounds, id) = (Arc::clone(&self.site), self.bounds, id.clone());
        blocking(move || site.adopt(&id, bounds)).await
    }

    /// Whether `id` is that of a container which was told nothing yet.
    pub(crate) fn waits(&self, id: &WorkspaceId) -> bool {
        let start = self.site.place(id).start;
        start.is_dir() && !start::was_told(&start)
    }

    /// Removes workspace `id` in whatever state it is; none is as good as one that is gone. Where a container still has
    /// it, an image goes on existing for that container alone, until its end; a directory is emptied under it.
    pub(crate) async fn remove(&self, id: &WorkspaceId) -> Result<(), Error> {
        let place = self.site.place(id);
        blocking(move || place.remove()).await
    }

    /// Leaves workspace `id` for people to look at: it can be read where it is and not changed, and takes no more room than
    /// it has. Without effect on a directory, which bounds nothing by itself.
    pub(crate) async fn keep(&self, id: &WorkspaceId) -> Result<(), Error> {
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

    /// Room for one more workspace, while it is made.
    pub(crate) fn reserve(&self) -> Result<Reserved, Error> {
        let (mut making, size) = (self.site.making(), self.bounds.size);
        self.room_beside(*making)?.enough()?;
        *making += size.0;
        Ok(Reserved { site: Arc::clone(&self.site), size })
    }

    /// The workspaces on disk, half-made ones and all.
    pub(crate) fn list(&self) -> Result<Vec<WorkspaceId>, Error> {
        let unreadable = || Error::io("list", &self.site.root);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.site.root).map_err(unreadable())? {
            let name = entry.map_err(unreadable())?.file_name();
            found.extend(name.to_str().and_then(|name| WorkspaceId::parse(name).ok()));
        }
        Ok(found)
    }

    /// Whether the disk has room for one more. Asked before a run is begun.
    pub(crate) fn room(&self) -> Result<Room, Error> {
        let making = *self.site.making();
        self.room_beside(making)
    }

    fn room_beside(&self, making: u64) -> Result<Room, Error> {
        let Site { root, form, reserve, .. } = &*self.site;
        let promised = match form {
            Form::Image => {
                let growing: u64 = self.list()?.iter().map(|id| self.site.place(id).may_grow()).sum();
                growing.saturating_add(making)
            }
            // To know what these may still take, all of them would have to be walked through.
            Form::Directory { .. } => 0,
        };
        let files = match form {
            Form::Image => place::FILES,
            Form::Directory { .. } => self.bounds.files,
        };
        let needed = Bounds { size: self.bounds.size, files };
        Room::of(root, needed, ByteSize(promised), *reserve)
    }
}

/// Removes what is left below `root` of trials, whose processes were killed.
pub(crate) async fn remove_forgotten(root: &Path) {
    let root = root.to_owned();
    drop(spawn_blocking(move || image::remove_forgotten(&root)).await);
}

/// Where the files of the workspace called `name` below `root` are, if it is there.
pub(crate) fn tree(root: &Path, name: &str) -> PathBuf {
    Place::of(root, name).tree
}

/// Puts workspace `id` below `root` away, which nobody uses: it stays, and [`Workspaces::adopt`] takes it up again. None is as good as
/// one that is put away.
pub(crate) async fn put_away(root: &Path, id: &WorkspaceId) -> Result<(), Error> {
    let place = Place::of(root, id.as_str());
    blocking(move || if place.tree.is_dir() { place.unmount() } else { Ok(()) }).await
}

/// Whether workspace `id` below `root`, which is there to hold `size`, has too much in it, or as an image has no room left. None is as
/// good as one that is empty.
pub(crate) async fn look(
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

/// Whether workspace `id` below `root` bounds itself.
pub(crate) fn is_image(root: &Path, id: &WorkspaceId) -> bool {
    Place::of(root, id.as_str()).has_image()
}

/// Whether it does, and is not mounted.
pub(crate) fn is_away(root: &Path, id: &WorkspaceId) -> Result<bool, Error> {
    let place = Place::of(root, id.as_str());
    Ok(place.has_image() && !place.is_mounted()?)
}

/// Removes workspace `id` below `root`, whatever new ones would be there.
pub(crate) async fn remove(root: &Path, id: &WorkspaceId) -> Result<(), Error> {
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
            // Somebody else may have been faster.
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
    /// The directory that a container is to have mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.tree
    }

    /// The directory that a container which waits is to have mounted besides.
    pub(crate) fn start_dir(&self) -> Option<&Path> {
        self.start.as_deref()
    }

    /// Puts `conversation` into it, whose container is there and was told nothing yet.
    pub(crate) async fn furnish(&self, conversation: &[Message]) -> Result<(), Error> {
        let (tree, conversation) = (self.tree.clone(), conversation.to_owned());
        blocking(move || conversation::write(&tree, &conversation)).await
    }

    /// Tells the container that waits with it to become `start`. It is told once, by whoever is first; for all others this is
    /// without effect, as it is where no container waits.
    pub(crate) async fn tell(&self, start: Start) -> Result<(), Error> {
        let Some(dir) = self.start.clone() else { return Ok(()) };
        blocking(move || start::tell(&dir, &start)).await
    }

    /// What is in the file at `relative`, if that is one file with one name, below the tree without a link on the way, of
    /// at most `most` bytes. Blocks for as long as the disk takes.
    #[cfg_attr(not(test), expect(dead_code, reason = "for what agents leave: results, bundles"))]
    pub(crate) fn read(&self, relative: &Path, most: ByteSize) -> Result<Vec<u8>, Error> {
        reading::read(&self.tree, relative, most)
    }

    /// Returns when there is more in it than may be, and whoever fills it has to be stopped. An image bounds itself: then
    /// this never returns. Cancel safe.
    pub(crate) async fn watch(&self) -> Exceeded {
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
