//! Keeps this host's id in a file of its state directory.

use std::{fs, io, path::Path};

use platform_core::limit::ByteSize;
use platform_runtime::{
    file::Unread,
    random, state_file,
    trust::{Trusted, check_directory},
};

use super::{
    error::{Error, HostIdFault},
    identity::{HostId, HostIdentity},
};

/// Name of the file in `sandbox.state_dir`.
const FILE: &str = "host-id";
/// Largest file that is read.
const MAX_FILE: ByteSize = ByteSize(64);
/// Longest host name that is stored: the limit of DNS.
const MAX_NAME: usize = 253;

impl HostIdentity {
    /// Reads the identity of this host from `state_dir`, or creates it there: the file with mode 0600, a missing
    /// directory with 0700. A file that root creates belongs to the owner of the directory: `sluice up` may run as that
    /// user.
    ///
    /// # Errors
    /// [`Error::Exposed`] if other users can change the directory or the file. [`Error::HostId`] if the file cannot be
    /// read or created, or does not hold an id.
    pub fn of(state_dir: &Path) -> Result<Self, Error> {
        let path = state_dir.join(FILE);
        // Checked before anything is created there: a file that another user could have put there is refused the first
        // time, too.
        let trusted = Trusted::for_state_in(state_dir).map_err(Error::Exposed)?;
        check_directory(state_dir, &trusted).map_err(Error::Exposed)?;
        let id = match read(&path)? {
            Some(id) => id,
            None => create(state_dir, &path)?,
        };
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let is_allowed = |c: &char| c.is_ascii_alphanumeric() || ".-_".contains(*c);
        Ok(Self { id, name: name.trim().chars().filter(is_allowed).take(MAX_NAME).collect() })
    }
}

/// Returns the error for a fault of the file at `path`.
fn fault(path: &Path, fault: HostIdFault) -> Error {
    Error::HostId { path: path.to_owned(), fault }
}

/// Reads the id, if the file exists. Refuses symbolic links: the id decides which runs this host may take over.
fn read(path: &Path) -> Result<Option<HostId>, Error> {
    let text = match state_file::text(path, MAX_FILE) {
        Ok(text) => text,
        Err(Unread::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(Unread::Io(source)) => return Err(fault(path, HostIdFault::Unusable { action: "read", source })),
        Err(Unread::Exposed(exposure)) => return Err(Error::Exposed(exposure)),
    };
    HostId::parse(text.expose().trim_end()).map(Some).ok_or_else(|| fault(path, HostIdFault::NoId))
}

/// Creates the file with its whole content at once, so that no other process reads half of it. Of two processes at
/// once, the first wins. Writes it to disk at once: after a power failure without the id, this host could not use its
/// own store.
fn create(state_dir: &Path, path: &Path) -> Result<HostId, Error> {
    let failed = |source| fault(path, HostIdFault::Unusable { action: "created", source });
    state_file::create_dir(state_dir).map_err(failed)?;
    let id = HostId::from_random(random::bits());
    match state_file::create(path, format!("{id}\n").as_bytes()) {
        Ok(()) => Ok(id),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| fault(path, HostIdFault::NoId))
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn an_id_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("lib/runner");
        let first = HostIdentity::of(&state).unwrap();
        assert_eq!(HostIdentity::of(&state).unwrap(), first);
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(state.join(FILE)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "nothing is left beside it");
        assert_ne!(HostIdentity::of(dir.path()).unwrap().id, first.id, "another directory is another host");
    }

    #[test]
    fn an_open_directory_gets_no_id() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("runner");
        fs::create_dir(&state).unwrap();
        for mode in [0o777, 0o1777] {
            fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
            let refused = HostIdentity::of(&state).unwrap_err().to_string();
            assert!(refused.contains("can be written by every user"), "{mode:o}: {refused}");
            assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "{mode:o}: nothing is made there");
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        HostIdentity::of(&state).expect("the control");
    }

    #[test]
    fn processes_that_begin_at_once_agree() {
        let dir = tempfile::tempdir().unwrap();
        let ids: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| HostIdentity::of(dir.path()).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[test]
    fn root_shares_the_id_of_the_services_user() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(dir.path(), Some(12345), Some(12345)).expect("this test must run as root");
        let state = dir.path().join("runner");
        let made = HostIdentity::of(&state).unwrap();
        for path in [&state, &state.join(FILE)] {
            assert_eq!(fs::metadata(path).unwrap().uid(), 12345, "{}", path.display());
        }
        assert_eq!(HostIdentity::of(&state).unwrap(), made);
        // The control: a file of another user is refused, and the message does not advise to give it to root.
        chown(state.join(FILE), Some(23456), None).unwrap();
        let refused = HostIdentity::of(&state).unwrap_err().to_string();
        assert!(refused.contains("belongs to uid 23456") && refused.contains("chown 12345 "), "{refused}");
    }

    #[test]
    fn an_exposed_or_invalid_id_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let refused = || platform_runtime::report::chain(&HostIdentity::of(dir.path()).unwrap_err());
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(refused().contains("holds no host id"), "{}", refused());
        fs::write(&file, HostId::from_random(7).as_str()).unwrap();
        assert_eq!(HostIdentity::of(dir.path()).unwrap().id, HostId::from_random(7), "the control");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused().contains("chmod o="), "{}", refused());
        let other = dir.path().join("other");
        fs::rename(&file, &other).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&other, &file).unwrap();
        assert!(refused().contains("cannot be read"), "{}", refused());
    }
}
