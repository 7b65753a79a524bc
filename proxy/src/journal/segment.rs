//! The journal's files: finding the end of what is there, and cutting off a torn line.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use platform_core::record::JournalLine;

use super::{Error, NO_LINE, hash};

/// Longest wait for a proxy that is ending.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The end of a journal file.
pub(super) struct End {
    pub(super) file: File,
    pub(super) seq: u64,
    pub(super) hash: [u8; 64],
}

/// A segment is named after its first line, so that rotation only adds files.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(format!("{:020}.ndjson", 1))
}

/// The id kept in `dir`, made on first use.
pub(super) fn journal_id(dir: &Path) -> Result<String, Error> {
    let path = dir.join("id");
    match fs::read_to_string(&path) {
        Ok(id) => Ok(id.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = format!("{:032x}", platform_runtime::random::bits());
            let mut file = private(OpenOptions::new().create_new(true).write(true))
                .open(&path)
                .map_err(Error::io("create", &path))?;
            file.write_all(id.as_bytes()).map_err(Error::io("write", &path))?;
            Ok(id)
        }
        Err(error) => Err(Error::io("read", &path)(error)),
    }
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Opens the file for appending after its last whole line, for this process alone. Reads only its end: a journal
/// of any length opens at once.
pub(super) fn open_at_end(path: &Path) -> Result<End, Error> {
    let mut file = private(OpenOptions::new().create(true).read(true).append(true))
        .open(path)
        .map_err(Error::io("open", path))?;
    lock(&file).map_err(|_held| Error::InUse { path: path.to_owned() })?;
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    let whole = line_end_before(&mut file, length).map_err(Error::io("read", path))?;
    if length > whole {
        tracing::warn!(path = %path.display(), bytes = length - whole, "cutting off an unfinished line");
        file.set_len(whole).map_err(Error::io("shorten", path))?;
    }
    if whole == 0 {
        return Ok(End { file, seq: 0, hash: NO_LINE });
    }
    let start = line_end_before(&mut file, whole - 1).map_err(Error::io("read", path))?;
    let mut line = vec![0; usize::try_from(whole - 1 - start).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut line, start).map_err(Error::io("read", path))?;
    let parsed: JournalLine = serde_json::from_slice(&line)
        .map_err(|_error| Error::Corrupt { path: path.to_owned(), offset: start })?;
    Ok(End { file, seq: parsed.seq, hash: hash(&line) })
}

/// Takes the file for this process, until it ends however it ends. A proxy that was killed a moment ago may
/// still be on its way out.
fn lock(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_PATIENCE / 100)
            }
            outcome => return outcome,
        }
    }
}

/// Where the last line feed before `end` ends; 0 if there is none.
fn line_end_before(file: &mut File, end: u64) -> io::Result<u64> {
    let mut piece = [0; 4096];
    let mut end = end;
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let read = &mut piece[..usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(read, start)?;
        if let Some(at) = memchr::memrchr(b'\n', read) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
