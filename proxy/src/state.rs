//! Reads and replaces small files as a whole: how far the journal was read and summed up. Their owners know the format.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use platform_runtime::file::{open_own, own};

/// Reads `file`; empty if it does not exist.
pub(crate) fn read(file: &Path) -> io::Result<String> {
    match own(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
        Ok(content) => String::from_utf8(content).map_err(io::Error::other),
    }
}

/// Replaces `file` whole: a crash leaves the old or the new one.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    let dir = file.parent().unwrap_or(Path::new("/"));
    // A crash may have left a file there, or the path may be a link.
    drop(fs::remove_file(&new));
    let mut out = open_own(OpenOptions::new().write(true).create_new(true), &new)?;
    out.write_all(content)?;
    out.sync_all()?;
    fs::rename(&new, file)?;
    File::open(dir)?.sync_all()
}
