//! Keeps workspaces as images: each has its own file system in a sparse file.
//!
//! The file is mounted through a loop device, which goes with its mount. `mkfs.ext4` and `mount` do the work, because
//! attaching a loop device takes ioctls, which are unsafe code here. Other processes attach loop devices too, and
//! `mount` knows how to get along with them. Unmounting is one system call.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::Path,
    thread,
    time::{Duration, Instant},
};

use platform_core::limit::ByteSize;
use platform_runtime::{lock::Lock, random, report, settings::WorkspaceBounds};

use super::{bounds::Durability, error::Error, paths::WorkspacePaths, program::run};

/// Mount options of a run's image. Without barriers and order: the content need not survive the machine, and an agent's
/// fsync(2) must not become the host's. Without `discard`, which makes deleting five times as slow. Inode tables are
/// zero already, in a file that was just created.
const RUN_OPTIONS: &str =
    "loop,nosuid,nodev,noatime,nobarrier,data=writeback,noinit_itable,errors=remount-ro";
/// Mount options of an image that has to survive the machine.
const DURABLE_OPTIONS: &str = "loop,nosuid,nodev,noatime,noinit_itable,errors=remount-ro";
/// Options of `mkfs.ext4`. Blocks are of 4 KiB. The journal is the smallest possible, and not for safety. Without one,
/// ext4 does not reuse inodes that were deleted in the last minutes, and scans them whenever it needs one. 20,000 files
/// that had been deleted took 52 s to be written again instead of 3.
const MKFS_OPTIONS: [&str; 10] = [
    "-b",
    "4096",
    "-m",
    "0",
    "-O",
    "^resize_inode",
    "-J",
    "size=4",
    "-E",
    "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
];
/// Bounds of a trial image.
const TRIAL_BOUNDS: WorkspaceBounds = WorkspaceBounds { size: ByteSize::mib(16), files: 64 };
/// Prefix of a trial's name. Such a name is not a valid workspace id, so no trial counts as a workspace.
const TRIAL_PREFIX: &str = ".trial-";
/// Number of attempts to mount an image that no loop device has: all processes share the loop devices.
const MAX_MOUNT_TRIES: u32 = 5;
/// Time for which the image's previous loop device may stay. A container that is being created has a copy of all mounts
/// until it leaves them, and until then the kernel refuses to mount a device anew that was mounted read-only.
const DETACH_TIMEOUT: Duration = Duration::from_secs(20);
/// Delay before another attempt to mount.
const MOUNT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Tests whether an image can be created and mounted below `root`, and whether Docker on `docker` would see the mount.
pub(super) fn try_image(root: &Path, docker: &Path) -> Result<(), Error> {
    remove_forgotten(root);
    if !shares_mounts(docker) {
        return Err(Error::MountsApart { docker: docker.to_owned() });
    }
    let Trial { paths, lock } = Trial::begin(root)?;
    let result = create(&paths, TRIAL_BOUNDS).and_then(|()| mount(&paths, Durability::Run));
    let removed = paths.remove();
    drop(lock);
    result.and(removed)
}

/// Workspace to try images with. It stays locked during the trial, so that another process recognises an abandoned
/// one.
struct Trial {
    paths: WorkspacePaths,
    lock: Lock,
}

impl Trial {
    fn begin(root: &Path) -> Result<Self, Error> {
        loop {
            let paths = WorkspacePaths::of(
                root,
                &format!("{TRIAL_PREFIX}{:016x}", random::bits() & u128::from(u64::MAX)),
            );
            paths.create_dirs()?;
            // Until it is locked it looks abandoned, and another process may have removed it.
            if let Some(lock) = Lock::attempt(&paths.dir).map_err(Error::io("lock", &paths.dir))? {
                return Ok(Self { paths, lock });
            }
        }
    }
}

/// Removes trials after their process was killed.
pub(super) fn remove_forgotten(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(TRIAL_PREFIX)) else { continue };
        let paths = WorkspacePaths::of(root, name);
        if let Ok(Some(lock)) = Lock::attempt(&paths.dir) {
            if let Err(error) = paths.remove() {
                tracing::warn!(name, error = report::chain(&error), "trial workspace not removed");
            }
            drop(lock);
        }
    }
}

/// Returns whether the process that listens on `docker` is in the mount namespace of this process. Without a listener
/// the answer is yes: no run begins without Docker.
fn shares_mounts(docker: &Path) -> bool {
    let Ok(stream) = UnixStream::connect(docker) else { return true };
    let pid = stream
        .set_nonblocking(true)
        .and_then(|()| tokio::net::UnixStream::from_std(stream))
        .and_then(|stream| stream.peer_cred())
        .map(|peer| peer.pid());
    let namespace = |process: &str| {
        fs::metadata(format!("/proc/{process}/ns/mnt")).ok().map(|found| (found.dev(), found.ino()))
    };
    // A process of a PID namespace that this one cannot see has the id 0, and no entry in /proc.
    let docker_namespace = pid.ok().flatten().and_then(|pid| namespace(&pid.to_string()));
    docker_namespace.is_some() && docker_namespace == namespace("self")
}

/// Creates an empty image at `paths`.
pub(super) fn create(paths: &WorkspacePaths, bounds: WorkspaceBounds) -> Result<(), Error> {
    let image = &paths.image;
    let file = fs::File::create_new(image).map_err(Error::io("make", image))?;
    file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(Error::io("set the mode of", image))?;
    file.set_len(bounds.size.0).map_err(Error::io("set the size of", image))?;
    let files = bounds.files.to_string();
    let options = ["-F", "-q", "-N", &files];
    let arguments: Vec<_> =
        options.iter().chain(&MKFS_OPTIONS).map(OsStr::new).chain([image.as_os_str()]).collect();
    run("mkfs.ext4", image, &arguments)
}

/// Mounts the image at `paths` on its tree, which then holds only what an agent and this process put there.
pub(super) fn mount(paths: &WorkspacePaths, durability: Durability) -> Result<(), Error> {
    let mount_options = match durability {
        Durability::Run => RUN_OPTIONS,
        Durability::Machine => DURABLE_OPTIONS,
    };
    let options = ["-n", "-i", "-t", "ext4", "-o", mount_options, "--"];
    let ends = [paths.image.as_os_str(), paths.tree.as_os_str()];
    let arguments: Vec<_> = options.iter().map(OsStr::new).chain(ends).collect();
    let begun = Instant::now();
    let mut tries = 1;
    while let Err(error) = run("mount", &paths.image, &arguments) {
        let is_detaching = is_attached(&paths.image) && begun.elapsed() < DETACH_TIMEOUT;
        if tries >= MAX_MOUNT_TRIES && !is_detaching {
            return Err(error);
        }
        tracing::debug!(error = report::chain(&error), "workspace image not mounted; tried again");
        thread::sleep(MOUNT_RETRY_DELAY);
        tries += 1;
    }
    // `lost+found` belongs to root, so an agent could not remove it. After a repair it may have content, and stays.
    fs::remove_dir(paths.tree.join("lost+found")).ok();
    Ok(())
}

/// Returns deleted blocks of the mounted image at `paths` to the host.
pub(super) fn trim(paths: &WorkspacePaths) -> Result<(), Error> {
    run("fstrim", &paths.tree, &[paths.tree.as_os_str()])
}

/// Repairs the image at `paths` if the machine went down while it was mounted. The last writes may be lost. Does
/// nothing while the image is attached: a container may use it even where this process does not.
pub(super) fn repair(paths: &WorkspacePaths) -> Result<(), Error> {
    if is_attached(&paths.image) {
        return Ok(());
    }
    run("e2fsck", &paths.image, &[OsStr::new("-p"), paths.image.as_os_str()])
}

/// Returns whether a loop device is backed by the file.
fn is_attached(image: &Path) -> bool {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backing = devices.map(|device| fs::read_to_string(device.path().join("loop/backing_file")));
    backing.flatten().any(|backing| Path::new(backing.trim_end_matches('\n')) == image)
}
