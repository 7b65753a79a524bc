//! directory removes files and directories of this program. What is missing counts as removed.

use std::{fs, io, path::Path};

use crate::error::Error;

/// Removes a directory with all that is in it, if it exists.
pub(crate) fn remove_dir(dir: &Path) -> Result<(), Error> {
    missing_is_fine(fs::remove_dir_all(dir)).map_err(Error::io("remove", dir))
}

/// Removes a file, if it exists.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    missing_is_fine(fs::remove_file(path)).map_err(Error::io("remove", path))
}

fn missing_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
