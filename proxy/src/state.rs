//! The small files that keep what must hold over restarts: revocations, closed runs, freezes, how far the journal was read and
//! summed up. What they mean is their owners'.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use platform_core::id::RunId;
use rustix::fs::{FallocateFlags, fallocate};

/// Space that is set aside behind the end of a file: for some hundred runs.
const AHEAD: u64 = 64 << 10;

/// What is in `file`; nothing if it is not there.
pub(crate) fn read(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// The runs that [`append`] wrote to `file`, the oldest first.
pub(crate) fn runs(file: &Path) -> io::Result<Vec<RunId>> {
    // A last line that a crash cut short is no run id, or one that does not matter.
    Ok(read(file)?.lines().filter_map(|line| RunId::parse(line).ok()).collect())
}

/// Adds a run to a file that is open for appending.
pub(crate) fn append(file: &mut File, run: &RunId) -> io::Result<()> {
    // A line begins with a line feed, so that one that was cut short spoils only itself.
    file.write_all(format!("\n{run}\n").as_bytes())
}

/// Sets space aside behind the end of `file`, so that runs can be added when the disk is full. What was set aside before stays
/// if there is no more to be had now.
pub(crate) fn set_aside(file: &File) -> io::Result<()> {
    let end = file.metadata()?.len();
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, end, AHEAD)?)
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
