//! Checks who can change or read a path: each directory and link that leads to it, and the file itself.
//!
//! A path is safe if root or a trusted user owns every part of it and other users cannot write there. In a directory
//! with the sticky bit, such as `/tmp`, all users may write. They cannot move or replace files of others there.

#[cfg(test)]
mod tests;
mod user;

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

pub use self::user::User;

/// Most links that are followed on one path, as in the kernel.
const MAX_LINKS: usize = 40;
/// Mode bit of a directory in which users remove only their own files.
const STICKY: u32 = 0o1000;

/// Access of other users to a path.
#[derive(Debug, thiserror::Error)]
pub enum Exposure {
    /// The path belongs to a user who is not trusted.
    #[error("{} belongs to uid {owner}, who could change it: {}, or choose another place", path.display(), chown_advice(path, *own))]
    Foreign {
        /// The path.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user that should own the path, if known.
        own: Option<u32>,
    },
    /// Other users can write to the path.
    #[error("{} can be written by {by}: `chmod {}-w {}`", path.display(), by.classes(), path.display())]
    Writable {
        /// The path.
        path: PathBuf,
        /// The users.
        by: Others,
    },
    /// Other users can read the path.
    #[error("{} is open to {to}: `chmod {}= {}`, and replace its secrets", path.display(), to.classes(), path.display())]
    Readable {
        /// The path.
        path: PathBuf,
        /// The users.
        to: Others,
    },
    /// Another kind of file is there.
    #[error("{} is not {expected}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// Expected kind of file.
        expected: &'static str,
    },
    /// The system refuses to report on the path.
    #[error("cannot look at {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Returns the advice for giving `path` to the user that should own it.
fn chown_advice(path: &Path, own: Option<u32>) -> String {
    match own {
        Some(own) => format!("`chown {own} {}`", path.display()),
        None => "give it to the user who works with it with `chown`".to_owned(),
    }
}

/// Users who are not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Members of a group.
    Group(u32),
    /// All users outside the file's group.
    Everyone,
    /// All users.
    EveryoneAndGroup,
}

impl Others {
    /// Returns the users to whom the mode of a file grants any of `bits`: permissions as in the mode's last octal
    /// digit. Members of `trusted_gids` do not count.
    fn of(found: &Metadata, bits: u32, trusted_gids: &[u32]) -> Option<Self> {
        let everyone = found.mode() & bits != 0;
        let group = found.mode() & (bits << 3) != 0 && !trusted_gids.contains(&found.gid());
        match (everyone, group) {
            (true, true) => Some(Self::EveryoneAndGroup),
            (true, false) => Some(Self::Everyone),
            (false, true) => Some(Self::Group(found.gid())),
            (false, false) => None,
        }
    }

    /// Returns the classes as chmod(1) names them.
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

/// Users that may own a path, and groups that may read and write it.
#[derive(Debug, Clone)]
pub struct Trusted {
    uids: Vec<u32>,
    gids: Vec<u32>,
    /// User that should own a path of an untrusted owner, if known. Advice names it.
    proper_owner: Option<u32>,
}

impl Trusted {
    /// Returns root and this process's own user and groups.
    #[must_use]
    pub fn own() -> Self {
        let own = geteuid().as_raw();
        let group = getegid().as_raw();
        let others = getgroups().unwrap_or_default();
        let gids = [0, group].into_iter().chain(others.into_iter().map(|gid| gid.as_raw()));
        Self { uids: vec![own, 0], gids: gids.collect(), proper_owner: Some(own) }
    }

    /// Returns the users that may own files of a program in `dir`: those of [`own`](Self::own). Root also trusts the
    /// owner of that directory, or of the one in which it will be created. Root helps a service that runs as its own
    /// user, and must accept the service's files.
    ///
    /// # Errors
    /// If users other than root and that owner can write to the directory, or change the path to it.
    pub fn for_state_in(dir: &Path) -> Result<Self, Exposure> {
        let mut trusted = Self::own();
        if !geteuid().is_root() {
            return Ok(trusted);
        }
        let dir = std::path::absolute(dir).unwrap_or_else(|_error| dir.to_owned());
        let existing = dir.ancestors().find_map(|dir| Some((dir, fs::metadata(dir).ok()?)));
        if let Some((dir, found)) = existing.filter(|(_, found)| !trusted.contains(found.uid())) {
            trusted.uids.push(found.uid());
            // The files belong to the service, so advice names its user.
            trusted.proper_owner = Some(found.uid());
            check_directory(dir, &trusted)?;
        }
        Ok(trusted)
    }

    /// Returns root and `user`: the users that a process of `user` trusts.
    #[must_use]
    pub fn of(user: &User) -> Self {
        let gids = std::iter::once(0).chain(user.gids.iter().copied());
        Self { uids: vec![user.uid, 0], gids: gids.collect(), proper_owner: Some(user.uid) }
    }

    /// Adds the users and groups of `others`.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        self.uids.extend(&others.uids);
        self.gids.extend(&others.gids);
        self.proper_owner = self.proper_owner.filter(|owner| others.proper_owner == Some(*owner));
        self
    }

    /// Returns the same users, but advice names none as the owner to set. This process's user may not be the one that
    /// works with the files.
    #[must_use]
    pub fn without_advice(mut self) -> Self {
        self.proper_owner = None;
        self
    }

    fn contains(&self, uid: u32) -> bool {
        self.uids.contains(&uid)
    }

    fn check_owner(&self, path: &Path, found: &Metadata) -> Result<(), Exposure> {
        if self.contains(found.uid()) {
            return Ok(());
        }
        Err(Exposure::Foreign { path: path.to_owned(), owner: found.uid(), own: self.proper_owner })
    }

    /// Checks a directory or link on a path.
    fn check_part(&self, path: &Path, found: &Metadata) -> Result<(), Exposure> {
        self.check_owner(path, found)?;
        if found.is_symlink() || found.mode() & STICKY != 0 {
            return Ok(());
        }
        self.check_writers(path, found)
    }

    fn check_writers(&self, path: &Path, found: &Metadata) -> Result<(), Exposure> {
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

/// Checks a directory that other users must not write to. If it is missing or not visible, only the visible part of the
/// path to it is checked.
///
/// # Errors
/// The first part of the path that they can change.
pub fn check_directory(path: &Path, trusted: &Trusted) -> Result<(), Exposure> {
    let Some(end) = walk(path, |at, found| trusted.check_part(at, found))? else { return Ok(()) };
    if !end.metadata.is_dir() {
        return Err(Exposure::Kind { path: end.path, expected: "a directory" });
    }
    end.check_changes(trusted)
}

/// Checks a file that other users must neither write to nor read. A secret that an orchestrator mounts may belong to
/// any user, and all may read it.
///
/// # Errors
/// As for [`check_directory`], and if they can read it.
pub fn check_secret(path: &Path, trusted: &Trusted) -> Result<(), Exposure> {
    match walk(path, |at, found| trusted.check_part(at, found))? {
        None => Ok(()),
        Some(end) => end.check_secret(&end.metadata, trusted),
    }
}

/// Checks a file that other users must not write to and all may read, such as a configuration. For a file that an
/// orchestrator mounts read-only, neither the owner nor the mode matters: this host cannot write to it.
///
/// # Errors
/// As for [`check_directory`].
pub fn check_file(path: &Path, trusted: &Trusted) -> Result<(), Exposure> {
    let is_mounted = is_mounted_by_itself();
    let check = |at: &Path, found: &Metadata| {
        if is_mounted(at) { Ok(()) } else { trusted.check_part(at, found) }
    };
    let Some(end) = walk(path, check)? else { return Ok(()) };
    if !end.metadata.is_file() {
        return Err(Exposure::Kind { path: end.path, expected: "a regular file" });
    }
    if is_mounted(&end.path) { Ok(()) } else { end.check_changes(trusted) }
}

/// Checks a secret that is already open, with the metadata `opened`.
pub(crate) fn check_opened(path: &Path, opened: &Metadata, trusted: &Trusted) -> Result<(), Exposure> {
    match walk(path, |at, found| trusted.check_part(at, found))? {
        None => Ok(()),
        Some(end) => end.check_secret(opened, trusted),
    }
}

/// File or directory that a path leads to.
struct PathEnd {
    /// The path with all links resolved.
    path: PathBuf,
    metadata: Metadata,
}

impl PathEnd {
    /// Checks that only trusted users can change the file or directory.
    fn check_changes(&self, trusted: &Trusted) -> Result<(), Exposure> {
        trusted.check_owner(&self.path, &self.metadata)?;
        trusted.check_writers(&self.path, &self.metadata)
    }

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

/// Follows `path` from the root and calls `check` on every directory and link on the way. Returns the end of the path
/// unchecked, or `None` if it is missing or not visible.
fn walk(
    path: &Path,
    check: impl Fn(&Path, &Metadata) -> Result<(), Exposure>,
) -> Result<Option<PathEnd>, Exposure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Exposure::Io { path, source }
    };
    let mut rest = Vec::new();
    push_parts(&mut rest, &std::path::absolute(path).map_err(failed(path))?);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    loop {
        let metadata = match fs::symlink_metadata(&at) {
            Err(error) if is_not_visible(&error) => return Ok(None),
            found => found.map_err(failed(&at))?,
        };
        if rest.is_empty() && !metadata.is_symlink() {
            return Ok(Some(PathEnd { path: at, metadata }));
        }
        check(&at, &metadata)?;
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
            push_parts(&mut rest, &target);
        }
        match rest.pop() {
            Some(name) if name == ".." => drop(at.pop()),
            Some(name) => at.push(name),
            None => {}
        }
    }
}

/// Pushes the parts of `path` onto the stack of parts that are left, the next one last.
fn push_parts(rest: &mut Vec<OsString>, path: &Path) {
    let is_part = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    rest.extend(path.components().rev().filter(is_part).map(|part| part.as_os_str().to_owned()));
}

fn is_not_visible(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// Returns whether a file is mounted read-only, by itself or in memory, as Docker, Kubernetes and systemd hand secrets
/// to a service. Only processes of that service see it, and the orchestrator sets its mode.
fn is_mounted_secret(path: &Path) -> bool {
    // tmpfs and ramfs.
    let is_memory = || statfs(path).is_ok_and(|found| matches!(found.f_type, 0x0102_1994 | 0x8584_58f6));
    let has_own_mount =
        || mount_id(path).is_some_and(|own| path.parent().and_then(mount_id).is_some_and(|dir| own != dir));
    is_read_only(path) && (is_memory() || has_own_mount())
}

/// Returns a test for paths on a read-only mount other than the root's: a directory or file that an orchestrator
/// mounted. Where the whole system is read-only, as systemd's `ProtectSystem=strict` makes it for one service, others
/// still write.
fn is_mounted_by_itself() -> impl Fn(&Path) -> bool {
    let root = mount_id(Path::new("/"));
    move |path| {
        // A link lies on the mount of its directory.
        let mounted = if path.is_symlink() { path.parent().unwrap_or(path) } else { path };
        is_read_only(mounted) && mount_id(mounted).zip(root).is_some_and(|(own, root)| own != root)
    }
}

fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Returns the mount that `path` is on, if the kernel reports it.
fn mount_id(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID).then_some(found.stx_mnt_id)
}
