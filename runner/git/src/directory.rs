//! directory removes directories of this program.

use std::{fs, io, path::Path};

use crate::error::Error;

/// Removes a directory with all that is in it, if it exists.
pub(crate) fn remove_dir(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", dir)(error)),
        _ => Ok(()),
    }
}
