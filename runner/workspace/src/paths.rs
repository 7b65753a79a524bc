//! Manages a workspace's files on the host, and removes them in whatever state they are.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use platform_core::{limit::ByteSize, name::SANDBOX_UID};
use platform_runtime::{random, report, socket::private_dir, state_file};
use rustix::{
    fs::{Access, AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, access, statvfs},
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount_remount, unmount},
    process::geteuid,
    thread::{CapabilitySet, capabilities},
};

use super::{error::Error, program::run, watch::Exceeded};

/// Mode of a directory that belongs to an agent.
pub(super) const AGENT_DIR_MODE: u32 = 0o755;
/// Mode of a file that belongs to an agent.
pub(super) const AGENT_FILE_MODE: u32 = 0o644;
/// Upper bound on the number of files that Sluicegate itself has in a workspace with an image.
pub(super) const MAX_OWN_FILES: u64 = 8;

/// Beginning of the names of workspaces that are being removed. Such a name is not a valid workspace id.
const REMOVING_PREFIX: &str = ".removing-";

/// Divisor of a file system's size: one with less free space than that share is nearly full.
const NEARLY_FULL_DIVISOR: u64 = 50;

/// Number of attempts to remove or unmount a workspace in use. By then a reader of a file has finished, and so has a
/// running `mount`.
const MAX_TRIES: u32 = 40;
/// Flags of a mounted tree.
const MOUNT_FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOATIME);
/// Delay before another attempt.
const RETRY_DELAY: Duration = Duration::from_millis(25);

/// Paths of one workspace's files.
#[derive(Debug, Clone)]
pub(super) struct WorkspacePaths {
    pub(super) dir: PathBuf,
    pub(super) image: PathBuf,
    pub(super) tree: PathBuf,
    /// Directory that a warm container mounts for its start file; missing in other workspaces.
    pub(super) start: PathBuf,
}

impl WorkspacePaths {
    pub(super) fn of(root: &Path, name: &str) -> Self {
        let dir = root.join(name);
        Self { image: dir.join("image"), tree: dir.join("tree"), start: dir.join("start"), dir }
    }

    /// Creates the directories, which must not exist yet.
    pub(super) fn create_dirs(&self) -> Result<(), Error> {
        match fs::create_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Taken { path: self.dir.clone() });
            }
            created => created.map_err(Error::io("make", &self.dir))?,
        }
        private_dir(&self.dir, 0o700)?;
        Ok(private_dir(&self.tree, 0o700)?)
    }

    pub(super) fn has_image(&self) -> bool {
        fs::symlink_metadata(&self.image).is_ok()
    }

    /// Returns by how many bytes an image in use may still grow on disk.
    pub(super) fn possible_growth(&self) -> u64 {
        if !self.is_mounted().unwrap_or(true) || self.is_read_only() {
            return 0;
        }
        fs::metadata(&self.image).map_or(0, |found| found.len().saturating_sub(found.blocks() * 512))
    }

    /// Returns the space on disk that the image uses.
    pub(super) fn image_usage(&self) -> ByteSize {
        fs::metadata(&self.image).map_or(ByteSize(0), |found| ByteSize(found.blocks() * 512))
    }

    pub(super) fn is_mounted(&self) -> Result<bool, Error> {
        match rustix::fs::statx(CWD, &self.tree, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE) {
            Ok(found) => Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(Error::io("look at", &self.tree)(error.into())),
        }
    }

    /// Makes the mounted tree read-only.
    pub(super) fn make_read_only(&self) -> Result<(), Error> {
        mount_remount(&self.tree, MOUNT_FLAGS | MountFlags::RDONLY, "")
            .map_err(|error| Error::io("mount read-only", &self.tree)(error.into()))
    }

    /// Makes the mounted tree writable again, if it is read-only.
    pub(super) fn make_writable(&self) -> Result<(), Error> {
        if !self.is_read_only() {
            return Ok(());
        }
        mount_remount(&self.tree, MOUNT_FLAGS, "")
            .map_err(|error| Error::io("mount writable", &self.tree)(error.into()))
    }

    fn is_read_only(&self) -> bool {
        statvfs(&self.tree).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    /// Returns the bound of the mounted tree that is nearly reached.
    pub(super) fn fullness(&self) -> Result<Option<Exceeded>, Error> {
        let found = statvfs(&self.tree).map_err(|error| Error::io("look at", &self.tree)(error.into()))?;
        let size = || ByteSize(found.f_blocks.saturating_mul(found.f_frsize));
        let is_short = |free: u64, all: u64| free.saturating_mul(NEARLY_FULL_DIVISOR) < all;
        Ok(if is_short(found.f_bavail, found.f_blocks) {
            Some(Exceeded::Size(size()))
        } else {
            is_short(found.f_favail, found.f_files).then_some(Exceeded::Files(found.f_files))
        })
    }

    /// Unmounts the tree, as often as it is mounted. If a process still uses it at the end, only that process keeps it.
    pub(super) fn unmount(&self) -> Result<(), Error> {
        let mut tries = 0..MAX_TRIES;
        while self.is_mounted()? {
            match unmount(&self.tree, UnmountFlags::NOFOLLOW) {
                Ok(()) => {}
                Err(Errno::BUSY) if tries.next().is_some() => thread::sleep(RETRY_DELAY),
                Err(Errno::BUSY) => {
                    tracing::warn!(tree = %self.tree.display(), "workspace in use: unmounted except for the processes that use it");
                    unmount(&self.tree, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)
                        .map_err(|error| Error::io("unmount", &self.tree)(error.into()))?;
                }
                Err(error) => return Err(Error::io("unmount", &self.tree)(error.into())),
            }
        }
        Ok(())
    }

    /// Removes everything. Another process may be removing the workspace too, or still be creating it. The workspace
    /// disappears at once, so no reader takes what is left of it for the whole.
    pub(super) fn remove(&self) -> Result<(), Error> {
        self.unmount()?;
        self.move_aside()?.map_or(Ok(()), |aside| aside.delete())
    }

    /// Renames the directory to a name that no reader looks for; `None` if it is missing.
    fn move_aside(&self) -> Result<Option<Self>, Error> {
        let root = self.dir.parent().unwrap_or(Path::new(""));
        let aside = Self::of(root, &format!("{REMOVING_PREFIX}{:032x}", random::bits()));
        match fs::rename(&self.dir, &aside.dir) {
            Ok(()) => Ok(Some(aside)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("rename", &self.dir)(error)),
        }
    }

    /// Deletes all files of a workspace that was moved aside.
    fn delete(&self) -> Result<(), Error> {
        let mut tries = 1..MAX_TRIES;
        loop {
            self.unmount()?;
            match self.try_delete() {
                Ok(()) => return Ok(()),
                Err(_busy) if tries.next().is_some() => thread::sleep(RETRY_DELAY),
                Err(error) => return Err(error),
            }
        }
    }

    fn try_delete(&self) -> Result<(), Error> {
        ignore_missing(fs::remove_file(&self.image)).map_err(Error::io("remove", &self.image))?;
        ignore_missing(fs::remove_dir_all(&self.start)).map_err(Error::io("remove", &self.start))?;
        if ignore_missing(fs::remove_dir(&self.tree))
            .and_then(|()| ignore_missing(fs::remove_dir(&self.dir)))
            .is_ok()
        {
            return Ok(());
        }
        // The directory has files of an agent. `rm` needs few descriptors however deep it is, and follows no link.
        let arguments =
            [OsStr::new("-rf"), OsStr::new("--one-file-system"), OsStr::new("--"), self.dir.as_os_str()];
        run("rm", &self.dir, &arguments)
    }
}

/// Deletes workspaces below `root` after their removal was broken off.
pub(super) fn delete_removed(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(REMOVING_PREFIX)) else { continue };
        if let Err(error) = WorkspacePaths::of(root, name).delete() {
            tracing::warn!(name, error = report::chain(&error), "a removed workspace still uses the disk");
        }
    }
}

fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Gives `path` to the sandbox's user with exactly `mode`, whatever the umask says.
pub(super) fn give_to_agent(path: &Path, mode: u32) -> Result<(), Error> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(Error::io("set the mode of", path))?;
    chown(path, Some(SANDBOX_UID), Some(SANDBOX_UID)).map_err(Error::io("give to the sandbox's user", path))
}

/// Checks that this thread may give files away, as each workspace takes: before a run is paid for.
fn check_privilege() -> Result<(), Error> {
    let uid = geteuid().as_raw();
    let may_give = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::CHOWN));
    if may_give || uid == SANDBOX_UID { Ok(()) } else { Err(Error::NotPrivileged { uid }) }
}

/// Creates the root with mode 0700: on the host only its owner can enter it, and a container mounts its workspace
/// directly. An existing root is not changed, because it may belong to another user. It is refused if others can enter
/// it, or if this process cannot write to it or give its files to the sandbox's user.
pub(super) fn private_root(root: &Path) -> Result<(), Error> {
    check_privilege()?;
    if !root.exists() {
        state_file::create_dir(root).map_err(Error::io("make", root))?;
    }
    let mode = fs::metadata(root).map_err(Error::io("look at", root))?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Error::Enterable { path: root.to_owned(), mode });
    }
    access(root, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|errno| Error::io("write to", root)(errno.into()))
}
