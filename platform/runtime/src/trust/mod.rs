//! Checks who can change or read a path: each directory and link that leads to it, and what it names.
//!
//! A way is safe if root or a trusted user owns every part of it and other users cannot write there. In a directory with the
//! sticky bit, such as `/tmp`, all may write: what has an owner there stays in its place.

#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fmt,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatVfsMountFlags, StatxFlags, statfs, statvfs, statx},
    process::{getegid, geteuid, getgroups},
};

/// Links that are followed on one way, as many as the kernel follows.
const MAX_LINKS: usize = 40;
/// The mode bit of a directory in which users remove only what is theirs.
const STICKY: u32 = 0o1000;

/// A way in which other users can reach a path.
#[derive(Debug, thiserror::Error)]
pub enum Exposure {
    /// It belongs to a user who is not trusted.
    #[error("{} belongs to uid {owner}, who could change it: `chown {own} {}`, or choose another place", path.display(), path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user it should belong to.
        own: u32,
    },
    /// Other users can write it.
    #[error("{} can be written by {by}: `chmod {}-w {}`", path.display(), by.classes(), path.display())]
    Writable {
        /// The path.
        path: PathBuf,
        /// The users.
        by: Others,
    },
    /// Other users can read it.
    #[error("{} is open to {to}: `chmod {}= {}`, and replace its secrets", path.display(), to.classes(), path.display())]
    Readable {
        /// The path.
        path: PathBuf,
        /// The users.
        to: Others,
    },
    /// Something else is there.
    #[error("{} is not {expected}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What should be there.
        expected: &'static str,
    },
    /// The system does not tell.
    #[error("cannot look at {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Users who are not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Members of a group.
    Group(u32),
    /// All who are not of its group.
    Everyone,
    /// All.
    EveryoneAndGroup,
}

impl Others {
    /// Those that `mode` gives any of `bits` to, which are written for the last digit.
    fn of(found: &Metadata, bits: u32, groups: &[u32]) -> Option<Self> {
        let everyone = found.mode() & bits != 0;
        let group = found.mode() & (bits << 3) != 0 && !groups.contains(&found.gid());
        match (everyone, group) {
            (true, true) => Some(Self::EveryoneAndGroup),
            (true, false) => Some(Self::Everyone),
            (false, true) => Some(Self::Group(found.gid())),
            (false, false) => None,
        }
    }

    /// As chmod(1) names them.
    const fn classes(self) -> &'static str {
        match self {
            Self::Group(_) => "g",
            Self::Everyone => "o",
            Self::EveryoneAndGroup => "go",
        }
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(gid) => write!(f, "group {gid}"),
            Self::Everyone | Self::EveryoneAndGroup => f.write_str("every user of this host"),
        }
    }
}

/// The users that may own, and the groups that may read and write.
#[derive(Debug, Clone)]
pub struct Trusted {
    uids: Vec<u32>,
    gids: Vec<u32>,
}

impl Trusted {
    /// Returns root and this process's own user and groups.
    #[must_use]
    pub fn own() -> Self {
        let (own, group) = (geteuid().as_raw(), getegid().as_raw());
        let others = getgroups().unwrap_or_default();
        let gids = [0, group].into_iter().chain(others.into_iter().map(|gid| gid.as_raw()));
        Self { uids: vec![own, 0], gids: gids.collect() }
    }

    /// Adds the owner of `dir`, if it is there: the user of a service that keeps its state in it.
    #[must_use]
    pub fn with_owner_of(mut self, dir: &Path) -> Self {
        if let Ok(found) = fs::metadata(dir) {
            self.uids.push(found.uid());
            self.gids.push(found.gid());
        }
        self
    }

    /// Returns whether `uid` is trusted.
    #[must_use]
    pub fn contains(&self, uid: u32) -> bool {
        self.uids.contains(&uid)
    }

    /// Returns the user that should own what does not belong to a trusted one.
    pub(crate) fn own_uid(&self) -> u32 {
        self.uids.first().copied().unwrap_or_default()
    }

    fn check_owner(&self, path: &Path, found: &Metadata) -> Result<(), Exposure> {
        if self.contains(found.uid()) {
            return Ok(());
        }
        Err(Exposure::Foreign { path: path.to_owned(), owner: found.uid(), own: self.own_uid() })
    }

    pub(crate) fn check_writers(&self, path: &Path, found: &Metadata) -> Result<(), Exposure> {
        match Others::of(found, 0o2, &self.gids) {
            Some(by) => Err(Exposure::Writable { path: path.to_owned(), by }),
            None => Ok(()),
        }
    }

    fn check_readers(&self, path: &Path, found: &Metadata) -> Result<(), Exposure> {
        match Others::of(found, 0o7, &self.gids) {
            Some(to) => Err(Exposure::Readable { path: path.to_owned(), to }),
            None => Ok(()),
        }
    }
}

/// Checks a directory that other users must not write to. One that is not there yet, or not to be seen, has only its way
/// checked as far as that goes.
///
/// # Errors
/// The first thing on the way that they can change.
pub fn check_directory(path: &Path, trusted: &Trusted) -> Result<(), Exposure> {
    match walk(path, trusted)? {
        None => Ok(()),
        Some(found) if !found.metadata.is_dir() => {
            Err(Exposure::Kind { path: found.path, expected: "a directory" })
        }
        Some(found) => {
            trusted.check_owner(&found.path, &found.metadata)?;
            trusted.check_writers(&found.path, &found.metadata)
        }
    }
}

/// Checks a file that other users must neither write to nor read. One that an orchestrator mounts may belong to any user,
/// and all may read it.
///
/// # Errors
/// As for [`check_directory`], and if they can read it.
pub fn check_secret(path: &Path, trusted: &Trusted) -> Result<(), Exposure> {
    match walk(path, trusted)? {
        None => Ok(()),
        Some(found) => found.check_secret(&found.metadata, trusted),
    }
}

/// The same for a file that is open, of which the system says `opened`.
pub(crate) fn check_opened(path: &Path, opened: &Metadata, trusted: &Trusted) -> Result<(), Exposure> {
    match walk(path, trusted)? {
        None => Ok(()),
        Some(found) => found.check_secret(opened, trusted),
    }
}

/// The end of a way.
struct Found {
    /// The path with all links resolved.
    path: PathBuf,
    metadata: Metadata,
}

impl Found {
    fn check_secret(&self, metadata: &Metadata, trusted: &Trusted) -> Result<(), Exposure> {
        if !metadata.is_file() {
            return Err(Exposure::Kind { path: self.path.clone(), expected: "a regular file" });
        }
        if !is_mounted_secret(&self.path) {
            trusted.check_owner(&self.path, metadata)?;
            trusted.check_readers(&self.path, metadata)?;
        }
        trusted.check_writers(&self.path, metadata)
    }
}

/// Follows `path` from the root, and checks every directory and link on the way, but not its end, which it returns; nothing if
/// that is not there, or not to be seen.
fn walk(path: &Path, trusted: &Trusted) -> Result<Option<Found>, Exposure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Exposure::Io { path, source }
    };
    let mut rest = Vec::new();
    push(&mut rest, &std::path::absolute(path).map_err(failed(path))?);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    loop {
        let metadata = match fs::symlink_metadata(&at) {
            Err(error) if is_out_of_sight(&error) => return Ok(None),
            found => found.map_err(failed(&at))?,
        };
        if rest.is_empty() && !metadata.is_symlink() {
            return Ok(Some(Found { path: at, metadata }));
        }
        trusted.check_owner(&at, &metadata)?;
        if metadata.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(failed(&at)(io::Error::from(rustix::io::Errno::LOOP)));
            }
            let target = fs::read_link(&at).map_err(failed(&at))?;
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            push(&mut rest, &target);
        } else if metadata.mode() & STICKY == 0 {
            trusted.check_writers(&at, &metadata)?;
        }
        match rest.pop() {
            Some(name) if name == ".." => drop(at.pop()),
            Some(name) => at.push(name),
            None => {}
        }
    }
}

/// Puts the parts of `path` before the parts that are left, the next one last.
fn push(rest: &mut Vec<OsString>, path: &Path) {
    let is_part = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    rest.extend(path.components().rev().filter(is_part).map(|part| part.as_os_str().to_owned()));
}

fn is_out_of_sight(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// Returns whether a file is mounted read-only, by itself or in memory, as Docker, Kubernetes and systemd hand secrets to a
/// service: only what runs there sees it, and its mode is the orchestrator's.
fn is_mounted_secret(path: &Path) -> bool {
    let is_read_only = statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    // tmpfs and ramfs.
    let is_memory = || statfs(path).is_ok_and(|found| matches!(found.f_type, 0x0102_1994 | 0x8584_58f6));
    let mount = |path: &Path| {
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
        StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID).then_some(found.stx_mnt_id)
    };
    let is_alone =
        || mount(path).is_some_and(|own| path.parent().and_then(mount).is_some_and(|dir| own != dir));
    is_read_only && (is_memory() || is_alone())
}
