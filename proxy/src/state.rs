//! The small files that are replaced whole: how far the journal was read and summed up. What they mean is their owners'.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// What is in `file`; nothing if it is not there.
pub(crate) fn read(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// Replaces `file` whole: a crash leaves the old or the new one.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let (new, dir) = (file.with_extension("new"), file.parent().unwrap_or(Path::new("/")));
    let mut out = File::create(&new)?;
    out.write_all(content)?;
    out.sync_all()?;
    fs::rename(&new, file)?;
    File::open(dir)?.sync_all()
}
