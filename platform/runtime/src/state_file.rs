//! Keeps state of a service that runs as its own user and that root uses as well.
//!
//! Root trusts the owner of the directory and creates files for that user, so that either may come first. Any other
//! user keeps its own state.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
};

use platform_core::{limit::ByteSize, secret::Secret};
use rustix::{fs::OFlags, process::geteuid};

use crate::{
    file::{self, Unread},
    trust::{self, Exposure, Trusted},
};

/// Mode of the directories above the private one: other users may keep files there as well.
const PARENT_MODE: u32 = 0o755;
/// Mode of the directory that holds the state.
const PRIVATE_MODE: u32 = 0o700;

/// Returns the text in `path`, of at most `largest` bytes. Only its owner may read it, and a link is refused.
///
/// # Errors
/// If [`trust`] finds that other users can read or change it, if it is larger or not text, or if the system refuses.
pub fn text(path: &Path, largest: ByteSize) -> Result<Secret, Unread> {
    file::private_of(path, largest, &Trusted::for_state_in(dir_of(path))?)
}

/// Checks that `path` is a file, no link, and that other users can neither read nor change it.
///
/// # Errors
/// If other users can read or change it, if it is not a regular file, or if the system refuses.
pub fn check(path: &Path) -> Result<(), Unread> {
    file::open_secret(path, &Trusted::for_state_in(dir_of(path))?).map(drop)
}

/// Checks that other users cannot change the directories that lead to `path`, which may be missing.
///
/// # Errors
/// If they can change one of them.
pub fn check_path(path: &Path) -> Result<(), Exposure> {
    trust::check_secret(path, &Trusted::for_state_in(dir_of(path))?)
}

/// Creates `path` with `content`, readable by its owner alone, where no file exists. It is on the disk when this
/// returns.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], and any other error of the system.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    file::create_prepared(path, content, |file| give_to_owner_of(dir_of(path), file))
}

/// Creates `dir`, which only its owner can enter, if it is missing. All users can enter the directories above it that
/// this creates. Existing directories are not changed.
///
/// # Errors
/// If the system refuses.
pub fn create_dir(dir: &Path) -> io::Result<()> {
    create_dir_of(dir, PRIVATE_MODE)
}

fn create_dir_of(dir: &Path, mode: u32) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = dir_of(dir);
    create_dir_of(above, PARENT_MODE)?;
    match fs::DirBuilder::new().mode(mode).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => return Ok(()),
        created => created?,
    }
    let flags = i32::try_from((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits()).map_err(io::Error::other)?;
    let created = OpenOptions::new().read(true).custom_flags(flags).open(dir)?;
    created.set_permissions(Permissions::from_mode(mode))?;
    give_to_owner_of(above, &created)
}

/// Gives a file or directory that root has just created in `dir` to the owner of `dir`. Works on the open file, not on
/// its name, because that user could put another file in its place.
fn give_to_owner_of(dir: &Path, created: &File) -> io::Result<()> {
    let owner = fs::metadata(dir)?;
    if !geteuid().is_root() || owner.uid() == geteuid().as_raw() {
        return Ok(());
    }
    fchown(created, Some(owner.uid()), Some(owner.gid()))
}

fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() => Path::new("."),
        Some(dir) => dir,
        None => Path::new("/"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    const MAX_FILE: ByteSize = ByteSize(8);

    #[test]
    fn root_keeps_files_for_a_directorys_owner() {
        let root = tempfile::tempdir().unwrap();
        let service = root.path().join("service");
        let dir = root.path().join("service/state/deep");
        fs::create_dir(&service).unwrap();
        fs::set_permissions(&service, Permissions::from_mode(0o755)).unwrap();
        chown(&service, Some(12345), Some(12346)).expect("this test must run as root");
        let path = dir.join("file");
        create_dir(&dir).unwrap();
        create_dir(&dir).unwrap();
        create(&path, b"kept").unwrap();
        for (path, mode) in [(dir.parent().unwrap(), PARENT_MODE), (&dir, PRIVATE_MODE), (&path, 0o600)] {
            let found = fs::symlink_metadata(path).unwrap();
            let found = (found.uid(), found.gid(), found.mode() & 0o7777);
            assert_eq!(found, (12345, 12346, mode), "{}", path.display());
        }
        assert_eq!(text(&path, MAX_FILE).unwrap().expose(), "kept");
        // A file that is not read through this module must belong to root.
        assert!(file::private(&path, MAX_FILE).unwrap_err().to_string().contains("belongs to uid 12345"));
        chown(&path, Some(23456), None).unwrap();
        let message = check(&path).unwrap_err().to_string();
        assert!(message.contains("belongs to uid 23456") && message.contains("`chown 12345 "), "{message}");
        chown(&path, Some(0), None).unwrap();
        check(&path).expect("root's own file is no less trusted");
    }

    #[test]
    fn an_existing_directory_keeps_its_mode() {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().join("above");
        fs::create_dir(&above).unwrap();
        fs::set_permissions(&above, Permissions::from_mode(0o711)).unwrap();
        let mode_of = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let dir = above.join("between/dir");
        create_dir(&dir).unwrap();
        let modes = [&above, &above.join("between"), &dir].map(|path| mode_of(path));
        assert_eq!(modes, [0o711, PARENT_MODE, PRIVATE_MODE]);
        fs::set_permissions(&dir, Permissions::from_mode(0o750)).unwrap();
        create_dir(&dir).unwrap();
        assert_eq!(mode_of(&dir), 0o750);
        fs::write(above.join("file"), "").unwrap();
        create_dir(&above.join("file")).expect_err("a file is there");
    }

    #[test]
    fn a_directory_others_write_to_is_not_trusted() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("dir");
        create_dir(&dir).unwrap();
        create(&dir.join("file"), b"kept").unwrap();
        for path in [&dir.join("file"), &dir] {
            chown(path, Some(12345), Some(12345)).expect("this test must run as root");
        }
        for (mode, is_trusted) in [(0o755, true), (0o770, false), (0o707, false), (0o1777, false)] {
            fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            for path in [dir.join("file"), dir.join("missing"), dir.join("missing/file")] {
                let message = check_path(&path).err().map(|error| error.to_string()).unwrap_or_default();
                assert_eq!(message.is_empty(), is_trusted, "{mode:o} {}: {message}", path.display());
                assert!(is_trusted || message.contains("can be written by"), "{mode:o}: {message}");
            }
        }
    }
}
