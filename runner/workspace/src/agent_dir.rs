//! Makes directories for agents in a tree that they already write to.

use std::path::Path;

use platform_core::name::SANDBOX_UID;
use runner_files::TreeRoot;
use rustix::{
    fs::{Mode, Uid, fchmod, fchown, fstat, mkdirat},
    io::Errno,
    process::Gid,
};

use super::{error::Error, paths::AGENT_DIR_MODE};

/// Makes each directory of `relative` below `base` that is missing, and gives it to the sandbox's user. The path to `base` is
/// trusted. Below it no link is followed, because agents may have made one.
///
/// # Errors
/// The system's, with the path: `ELOOP` or `ENOTDIR` if something else is in the way.
pub fn make_agent_dir(base: &Path, relative: &Path) -> Result<(), Error> {
    make(base, relative).map_err(|errno| Error::io("make", &base.join(relative))(errno.into()))
}

fn make(base: &Path, relative: &Path) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(AGENT_DIR_MODE);
    let mut above = TreeRoot::open(base)?;
    for name in relative {
        let name = Path::new(name);
        match mkdirat(&above, name, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let dir = above.subtree(name)?;
        // One that a process made before it was killed is still this user's.
        if fstat(&dir)?.st_uid != SANDBOX_UID {
            fchmod(&dir, mode)?;
            fchown(&dir, Some(Uid::from_raw(SANDBOX_UID)), Some(Gid::from_raw(SANDBOX_UID)))?;
        }
        above = dir;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, symlink},
    };

    use super::*;

    #[test]
    fn directories_are_made_once_beside_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("state");
        fs::create_dir(&base).unwrap();
        let wanted = Path::new("sessions/one");
        // As a kill leaves it.
        fs::create_dir(base.join("sessions")).unwrap();
        for _again in 0..2 {
            make_agent_dir(&base, wanted).unwrap();
        }
        let made = fs::metadata(base.join(wanted)).unwrap();
        assert_eq!((made.uid(), made.mode() & 0o777), (SANDBOX_UID, AGENT_DIR_MODE));
        assert_eq!(fs::metadata(base.join("sessions")).unwrap().uid(), SANDBOX_UID);

        fs::remove_dir_all(base.join("sessions")).unwrap();
        symlink(dir.path(), base.join("sessions")).unwrap();
        make_agent_dir(&base, wanted).unwrap_err();
        assert!(!dir.path().join("one").exists(), "the link leads out of the tree");
    }
}
