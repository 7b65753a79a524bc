//! token_file checks that a token's file can be given to `git-sync`, and gives away nothing else.
//!
//! The directory is mounted, and not the file: a token that is renewed by a rename would not be seen.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use platform_core::name::SANDBOX_UID;

use crate::error::Error;

/// Rights of users other than the owner.
const OTHERS_BITS: u32 = 0o077;

/// Place of a token's file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TokenPlace {
    /// Directory that is mounted.
    pub(crate) dir: PathBuf,
    /// Name of the file in it.
    pub(crate) name: String,
}

/// Returns the place of a token's file, which may be missing for a moment.
///
/// # Errors
/// [`Error::TokenFile`] if the path is not absolute.
pub(crate) fn locate(path: &Path) -> Result<TokenPlace, Error> {
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_absolute());
    match (path.parent(), name) {
        (Some(dir), Some(name)) => Ok(TokenPlace { dir: dir.to_owned(), name: name.to_owned() }),
        _ => Err(Error::TokenFile { path: path.to_owned(), problem: "its path is not absolute".to_owned() }),
    }
}

/// Checks a token's file when it is added. Later `git-sync` itself refuses one that others may read.
///
/// # Errors
/// [`Error::TokenFile`] if the file belongs to another user, others may read it, or other files lie beside it.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let refuse = |problem: String| Error::TokenFile { path: path.to_owned(), problem };
    let TokenPlace { dir, name } = locate(path)?;
    let found = fs::symlink_metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !found.is_file() {
        return Err(refuse("it is not a regular file".to_owned()));
    }
    if found.uid() != SANDBOX_UID || found.permissions().mode() & OTHERS_BITS != 0 {
        let shown = path.display();
        return Err(refuse(format!(
            "git-sync runs as user {SANDBOX_UID}, and no other user may read it: `chown {SANDBOX_UID}:{SANDBOX_UID} {shown} && chmod 0400 {shown}`"
        )));
    }
    let others = fs::read_dir(&dir).map_err(|error| refuse(error.to_string()))?;
    if others.filter_map(Result::ok).any(|entry| entry.file_name() != *name.as_str()) {
        return Err(refuse(format!(
            "give it a directory of its own: git-sync gets all of {}",
            dir.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    #[test]
    fn only_a_private_file_on_its_own_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("token");
        fs::create_dir(&dir).unwrap();
        let path = dir.join("token");
        let problem = || check(&path).unwrap_err().to_string();
        assert!(problem().contains("No such file"), "{}", problem());
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(problem().contains("chown 1001:1001"), "{}", problem());
        chown(&path, Some(SANDBOX_UID), Some(SANDBOX_UID)).expect("this test must run as root");
        check(&path).expect("control");
        assert_eq!(locate(&path).unwrap(), TokenPlace { dir: dir.clone(), name: "token".to_owned() });
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        assert!(problem().contains("chmod 0400"), "{}", problem());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        fs::write(dir.join("other"), "").unwrap();
        assert!(problem().contains("a directory of its own"), "{}", problem());
        assert!(check(Path::new("token")).unwrap_err().to_string().contains("not absolute"));
    }
}
